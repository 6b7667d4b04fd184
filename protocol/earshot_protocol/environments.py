"""Where people are: the classes that a phase asks for unless it names its own."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_ENVIRONMENTS: Mapping[str, tuple[str, ...]] = {
    "public transport": (
        "train",
        "underground",
        "tram",
        "bus",
        "train station",
        "bus stop",
        "airport",
        "ferry",
    ),
    "car": ("car", "taxi", "car park"),
    "street": ("traffic", "siren", "pedestrian street", "crossing", "construction site"),
    "nature": ("park", "forest", "birds", "rain", "wind", "waves", "beach", "garden"),
    "gastronomy": ("café", "restaurant", "bar", "canteen", "beer garden"),
    "home": ("living room", "kitchen", "stairwell", "visiting friends"),
    "office": ("desk", "open-plan office", "meeting room", "classroom", "library"),
    "shop": ("supermarket", "shopping centre", "bakery", "market", "hairdresser"),
    "event": ("crowd", "concert", "cinema", "stadium", "party", "worship"),
    "workshop": ("machine hum", "factory", "garage", "laboratory", "warehouse"),
    "sport": ("gym", "swimming pool", "sports hall", "playing field"),
}
"""Eleven environments of everyday life, after Figure 7.1 of the thesis: class → what a poll offers
for it, in its order."""
