"""Numbers and foreign text as a report writes them; the rest is worded as on the dashboard."""

from __future__ import annotations

import unicodedata

from earshot_server.dashboard import wording


def printable(text: str) -> str:
    """The text without control characters and halves of characters, which no page may hold.

    Other than on the dashboard, line breaks become spaces, and reading may change its direction.
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
    """What was measured, in the unit that suits it; the dashboard's durations are rougher."""
    if value >= 59.95:
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes} min {seconds} s"
    if value >= 0.9995:
        return f"{value:.3g} s"
    return f"{value * 1000:.3g} ms"


def percent(share: float) -> str:
    """A share as a percentage; only everything is 100 %: 0.997 is not rounded up to it."""
    return wording.percent(share if share >= 1 else min(share, 0.99))
