"""Detection of processes that die so soon after their start that restarting is pointless."""

from __future__ import annotations

import time
from collections.abc import Callable

CALM = 10.0
"""Seconds a process must have lived to be restarted immediately; others are after a pause."""
MOST_QUICK_DEATHS = 5
"""Number of deaths within a minute, of processes that lived for less, that are too many."""
_MINUTE = 60.0
GAVE_UP = 70
"""Exit status of a process whose own children keep dying (EX_SOFTWARE of sysexits.h)."""


class QuickDeaths:
    """Counter of deaths that follow starts so quickly that restarting is pointless.

    Args:
        most: Number of deaths within a minute that are too many.
        clock: Clock of the times at which processes began, in seconds.
    """

    def __init__(
        self, most: int = MOST_QUICK_DEATHS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._clock = clock
        self._times: list[float] = []

    def are_too_many(self, began: float) -> bool:
        """Record a death, and return whether restarting is pointless."""
        now = self._clock()
        self._times = [each for each in self._times if each > now - _MINUTE]
        if now - began < CALM:
            self._times.append(now)
        return len(self._times) >= self._most
