"""Which encoders come with every phone: their names, by which phases ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULT_ENCODER = "contrast-2"
"""What a phone embeds with, and what a phase asks for, unless they are told otherwise."""

SHIPPED_ENCODERS: Mapping[str, str] = MappingProxyType(
    {
        "contrast-1": "622142b15ef98273a8225aa2adcc1b90486152e775367086d8ec031f7c112816",
        "contrast-2": "b9a0ecd58398483962eef35185f71bf5204a170fc0a2d3b6b8567d0e1596e5f3",
    }
)
"""SHA-256 of the encoder file of each name, hexadecimal: all phones share the same."""
