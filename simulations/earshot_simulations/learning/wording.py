"""Numbers and foreign text, written for people."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text without control characters and halves of characters, which no page may hold."""
    return "".join(
        letter
        if unicodedata.category(letter) not in ("Cc", "Cs", "Cn")
        else " "
        if letter.isspace()
        else "\ufffd"
        for letter in text
    )


def whole(value: float) -> str:
    """A count, its thousands set apart."""
    return f"{round(value):,}".replace(",", "\u202f")


def byte_size(value: float) -> str:
    """A number of bytes, to three digits."""
    units = ["TB", "GB", "MB", "kB", "B"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop()
    return f"{value:.3g} {units[-1]}"


def duration(value: float) -> str:
    """A duration, in the unit that suits it."""
    if value >= 59.95:
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes} min {seconds} s"
    if value >= 0.9995:
        return f"{value:.3g} s"
    return f"{value * 1000:.3g} ms"


def counted(number: int, noun: str) -> str:
    """A number of things, such as "1 phone" or "3 phones"."""
    return f"{whole(number)} {noun}{'' if number == 1 else 's'}"
