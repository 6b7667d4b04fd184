"""Conditions for taking part: at night, while the phone charges, on Wi-Fi; as its app decides.

A phone checks its condition before every request. An app supplies the platform's state (power,
network) through `When`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, Self

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override

SECONDS_BETWEEN_LOOKS = 300.0
"""Seconds until the next check if it is unknown when a condition will hold."""


@dataclass(frozen=True)
class Postponed:
    """Postponement of a visit.

    Attributes:
        reason: Human-readable reason.
        seconds: Seconds after which to check again, above 0.
    """

    reason: str
    seconds: float


class Condition(Protocol):
    """Decision whether a phone may take part now."""

    def check(self, now: datetime) -> Postponed | None:
        """Return why to wait and when to check again; None if the phone may take part now.

        Args:
            now: Local time of the phone.
        """


@dataclass(frozen=True)
class Hours(Condition):
    """Some hours of every day, which may span midnight: from 22 to 6.

    Attributes:
        start: Full hour at which they begin, 0 to 23.
        end: Full hour at which they end, 0 to 24.

    Raises:
        InvalidInputError: A number is out of range, or both are the same.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not (0 <= self.start < 24 and 0 <= self.end <= 24) or self.start == self.end:
            raise InvalidInputError(
                f"hours {self.start}-{self.end}: give two different full hours, such as 22-6"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read hours as people write them: `22-6`.

        Raises:
            InvalidInputError: The text is anything else.
        """
        matched = re.fullmatch(r"(\d{1,2})-(\d{1,2})", text.strip(), re.ASCII)
        if matched is None:
            raise InvalidInputError(f"hours {text!r}: give two full hours, such as 22-6")
        return cls(int(matched[1]), int(matched[2]))

    @override
    def check(self, now: datetime) -> Postponed | None:
        begun, ended = now.hour >= self.start, now.hour >= self.end
        inside = begun and not ended if self.start < self.end else begun or not ended
        if inside:
            return None
        opens = now.replace(hour=self.start, minute=0, second=0, microsecond=0)
        if begun:
            opens += timedelta(days=1)
        return Postponed(f"outside {self.start}-{self.end} h", (opens - now).total_seconds())


@dataclass(frozen=True)
class When(Condition):
    """Condition that the app checks, such as charging or Wi-Fi.

    Attributes:
        holds: Function that returns whether the condition holds.
        reason: Reason to give while the condition does not hold.
        seconds: Seconds after which to check again.
    """

    holds: Callable[[], bool]
    reason: str
    seconds: float = SECONDS_BETWEEN_LOOKS

    @override
    def check(self, now: datetime) -> Postponed | None:
        return None if self.holds() else Postponed(self.reason, self.seconds)


class AllOf(Condition):
    """All of several conditions.

    Args:
        conditions: The conditions; without any, every time is allowed.
    """

    def __init__(self, *conditions: Condition) -> None:
        self._conditions = conditions

    @override
    def check(self, now: datetime) -> Postponed | None:
        """Return all reasons, and check again when the last may be gone; None if there is none."""
        checked = [condition.check(now) for condition in self._conditions]
        postponed = [each for each in checked if each is not None]
        if not postponed:
            return None
        return Postponed(
            ", ".join(each.reason for each in postponed), max(each.seconds for each in postponed)
        )
