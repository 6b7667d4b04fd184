"""The day on which a phone's yearly budgets are charged, although its clock may be wrong.

Setting the clock forward would free the budget spent in the year before, and a network that sets
phones' clocks could do so for all of them. So time counts only as far as the phone has been running
since its last look, which the system measures independently of its clock. How long a phone was off
before a restart is unknown: at most a week counts, from the clock's last reading to its present
one, so that a swinging clock counts once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime

import msgspec

from earshot_client.store.interface import Store

LONGEST_OFF = 7 * 86_400.0
"""Most seconds that count between the last look before a restart and the first one after it."""
_SLACK = 1.001
"""Largest ratio between two correct clocks."""
_LOOK = "calendar"
"""Name of the stored value with the newest look."""


class _Look(msgspec.Struct, frozen=True):
    """The newest look at the clocks: counted time and both readings, in seconds."""

    counted: float
    clock: float
    uptime: float


def uptime() -> float:
    """Return seconds since the system started, including sleep where the system counts it."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class Calendar:
    """The present day, for budgets.

    Args:
        store: Store that keeps the newest look.
        clock: Clock of the seconds since 1970.
        uptime: Clock of the seconds since the system started; less than before after a restart.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float], uptime: Callable[[], float] = uptime
    ) -> None:
        self._store = store
        self._clock = clock
        self._uptime = uptime

    def today(self) -> date:
        """Return the day in UTC, later than at the last look by no more than may have passed since.

        Before the phone has released anything, nothing can be freed, and the clock is trusted.
        """
        clock, running = self._clock(), self._uptime()
        saved = self._store.get(_LOOK)
        counted = clock
        if saved is not None and self._store.ledger():
            look = msgspec.msgpack.decode(saved, type=_Look)
            ran = running - look.uptime
            if ran >= 0:
                most = look.counted + _SLACK * ran
            else:
                most = min(min(look.counted, look.clock) + LONGEST_OFF, clock)
            passed = look.counted + max(0.0, clock - look.clock)
            counted = max(look.counted, min(passed, most))
        new = msgspec.msgpack.encode(_Look(counted, clock, running))
        if new != saved:
            self._store.put(_LOOK, new)
        return datetime.fromtimestamp(counted, UTC).date()
