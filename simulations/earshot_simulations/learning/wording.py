"""Wording of numbers and foreign text in a report; the rest is worded as on the dashboard."""

from __future__ import annotations

import unicodedata

from earshot_server.dashboard import wording


def printable(text: str) -> str:
    """Return the text without control characters and halves of characters, which no page may hold.

    Unlike on the dashboard, line breaks become spaces, and the reading direction may change.
    """
    return "".join(
        letter
        if unicodedata.category(letter) not in ("Cc", "Cs", "Cn")
        else " "
        if letter.isspace()
        else "\ufffd"
        for letter in text
    )


def duration(value: float) -> str:
    """Format measured seconds in a suitable unit; the dashboard's durations are rougher."""
    if value >= 59.95:
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes} min {seconds} s"
    if value >= 0.9995:
        return f"{value:.3g} s"
    return f"{value * 1000:.3g} ms"


def percent(share: float) -> str:
    """Format a share as a percentage; only a full share is 100 %: 0.997 is not rounded up to it."""
    return wording.percent(share if share >= 1 else min(share, 0.99))
