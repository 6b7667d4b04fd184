"""The outcome of a visit: its kind, its explanation, and when to visit again."""

from __future__ import annotations

import enum
from dataclasses import dataclass

LONGEST_PAUSE = 3600.0
"""Default longest pause between visits, in seconds."""


class Event(enum.StrEnum):
    """Outcomes of a visit."""

    POSTPONED = "postponed"
    WAITING = "waiting"
    ANSWERED = "answered"
    LATE = "too late"
    ENDED = "phase over"
    REFUSED = "refused"
    TROUBLE = "trouble"


@dataclass(frozen=True)
class Visit:
    """Outcome of a visit.

    Attributes:
        event: Kind of outcome.
        detail: Human-readable explanation.
        seconds: Seconds after which to visit again.
    """

    event: Event
    detail: str
    seconds: float
