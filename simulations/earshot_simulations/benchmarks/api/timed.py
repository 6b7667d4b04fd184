"""Durations of calls."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


class Timed:
    """Durations of calls in seconds, by kind of call; safe for any number of threads."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def __call__(self, what: str, call: Callable[[], _T]) -> _T:
        """Make a call and record its duration, even if it raises."""
        began = time.perf_counter()
        try:
            return call()
        finally:
            self.seconds[what].append(time.perf_counter() - began)
