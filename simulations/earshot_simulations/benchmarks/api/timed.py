"""How long calls take."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


class Timed:
    """Calls, and keeps how many seconds each took, by what it is; for any number of threads."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def __call__(self, what: str, call: Callable[[], _T]) -> _T:
        """What the call returns, or raises; how long that took is kept either way."""
        began = time.perf_counter()
        try:
            return call()
        finally:
            self.seconds[what].append(time.perf_counter() - began)
