"""Formatting of numbers and untrusted text, partly shared with the dashboard."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from typing import TypeVar

from earshot_protocol.privacy.mechanisms import Cost
from earshot_server.dashboard import wording
from earshot_server.dashboard.wording import (
    NOTHING,
    UNKNOWN,
    UNNAMED,
    byte_size,
    chance,
    counted,
    real,
    votes,
    whole,
)

__all__ = [
    "NOTHING",
    "UNKNOWN",
    "UNNAMED",
    "at_delta",
    "byte_size",
    "chance",
    "counted",
    "duration",
    "optional",
    "percent",
    "printable",
    "real",
    "unbroken",
    "votes",
    "whole",
]

_Value = TypeVar("_Value")

_WITHIN = re.compile(r"(?<=\d) (?=%|· 10)|(?<=[εδ]) (?=[=≤])|(?<=[εδ] [=≤]) |(?<=·) (?=10)")
"""Spaces within a quantity."""


def at_delta(cost: Cost) -> str:
    """Return an ε with the δ at which it holds, such as "2 at δ = 10⁻⁶"; infinity needs none."""
    at = "" if cost.epsilon == math.inf else f" at δ = {real(cost.delta)}"
    return real(cost.epsilon) + at


def printable(text: str) -> str:
    """Return the text without control characters and lone surrogates.

    Unlike on the dashboard, line breaks become spaces, and bidirectional controls are kept.
    """
    return "".join(
        letter
        if unicodedata.category(letter) not in ("Cc", "Cs", "Cn")
        else " "
        if letter.isspace()
        else "\ufffd"
        for letter in text
    )


def unbroken(text: str) -> str:
    """Return the text with no space within a quantity, such as "ε = 2", at which a line breaks."""
    return _WITHIN.sub("\N{NO-BREAK SPACE}", text)


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


def optional(value: _Value | None, write: Callable[[_Value], str]) -> str:
    """Format a value, or return a dash for one that a run never reached."""
    return NOTHING if value is None else write(value)
