"""Rate limits per phone and per address, counted in memory by each process.

An address may send `FAILURES` wrong operator tokens a minute; later ones are refused without being
checked, so that the refusal reveals nothing about them.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Callable

from earshot_server.api.problems import RateLimitError
from earshot_server.api.proxies import read_address
from earshot_server.dashboard.languages import noted

FAILURES = 10
"""Wrong tokens that one address may send to each process in a minute."""
_MINUTE = 60.0
_TOKENS = noted("too many wrong tokens from one address: wait %(seconds)s seconds")
_REQUESTS = {
    "phone": "too many requests from one phone: wait %(seconds)s seconds",
    "address": noted("too many requests from one address: wait %(seconds)s seconds"),
}
"""What is said of too many requests, by what they have in common; phones see no page."""


class RateLimits:
    """Counters of requests in windows of a minute; beyond a limit, `RateLimitError` is raised.

    A window begins with the first request in it. Instances are thread-safe.

    Args:
        phone: Requests per minute from one phone.
        address: Requests per minute from one address, or from one /64 of IPv6, which is one
            subscriber.
        failures: Wrong tokens per minute from one address.
        clock: Monotonic clock in seconds; replaced in tests.
    """

    def __init__(
        self,
        phone: int,
        address: int,
        failures: int = FAILURES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = {"phone": phone, "address": address, "failure": failures}
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}
        """Kind of sender and its name → when the window began, and the requests in it."""
        self._tidied = clock()

    def count_phone(self, phone: int) -> None:
        """Count a request from a phone."""
        self._count("phone", str(phone))

    def count_address(self, address: str | None) -> None:
        """Count a request from an address; None if it is unknown."""
        self._count("address", subscriber(address or ""))

    def count_failure(self, address: str | None) -> None:
        """Count a wrong token from an address; None if it is unknown."""
        self._hit("failure", subscriber(address or ""))

    def check_failures(self, address: str | None) -> None:
        """Raise `RateLimitError` if an address has sent too many wrong tokens."""
        name = subscriber(address or "")
        with self._lock:
            began, count = self._window("failure", name)
        if count >= self._most["failure"]:
            raise RateLimitError(_TOKENS, self._seconds(began))

    def _count(self, whose: str, name: str) -> None:
        began, count = self._hit(whose, name)
        if count > self._most[whose]:
            raise RateLimitError(_REQUESTS[whose], self._seconds(began))

    def _hit(self, whose: str, name: str) -> tuple[float, int]:
        with self._lock:
            self._tidy()
            began, count = self._window(whose, name)
            self._windows[whose, name] = began, count + 1
        return began, count + 1

    def _window(self, whose: str, name: str) -> tuple[float, int]:
        now = self._clock()
        began, count = self._windows.get((whose, name), (now, 0))
        return (began, count) if now < began + _MINUTE else (now, 0)

    def _tidy(self) -> None:
        """Delete windows that are over, once a minute."""
        now = self._clock()
        if now >= self._tidied + _MINUTE:
            self._tidied = now
            self._windows = {
                key: window for key, window in self._windows.items() if now < window[0] + _MINUTE
            }

    def _seconds(self, began: float) -> int:
        """Return the seconds until the window is over."""
        return max(1, math.ceil(began + _MINUTE - self._clock()))


def subscriber(address: str) -> str:
    """Return the key under which an address is counted: itself, or its /64 for IPv6."""
    parsed = read_address(address)
    if parsed is None:
        return address
    return str(parsed) if parsed.version == 4 else str(ipaddress.ip_network((parsed, 64), False))
