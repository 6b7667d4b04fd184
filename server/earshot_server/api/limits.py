"""How many requests one phone and one address may send, counted in memory by each process.

Of wrong operator's tokens, an address may send `FAILURES` a minute; what it sends after them is
refused without being looked at, so that the refusal says nothing about it.
"""

from __future__ import annotations

import ipaddress
import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from earshot_server.api.problems import RateLimitError

FAILURES = 10
"""Wrong tokens of one address in a minute, to each process."""


class RateLimits:
    """Counts requests in windows of a minute; refuses one too many by a `RateLimitError`.

    Args:
        phone: requests per minute of one phone.
        address: requests per minute of one address; of IPv6, of one /64, which is one subscriber.
        failures: wrong tokens per minute of one address.
    """

    def __init__(self, phone: int, address: int, failures: int = FAILURES) -> None:
        self._limits = {
            "phone": RateLimitItemPerMinute(phone),
            "address": RateLimitItemPerMinute(address),
            "failure": RateLimitItemPerMinute(failures),
        }
        self._counts = FixedWindowRateLimiter(MemoryStorage())

    def count_phone(self, phone: int) -> None:
        """Count a request of a phone."""
        self._count("phone", str(phone))

    def count_address(self, address: str | None) -> None:
        """Count a request from an address; None: unknown."""
        self._count("address", subscriber(address or ""))

    def count_failure(self, address: str | None) -> None:
        """Count a wrong token from an address; None: unknown."""
        self._counts.hit(self._limits["failure"], "failure", subscriber(address or ""))

    def check_failures(self, address: str | None) -> None:
        """Refuse another token from an address that has sent too many wrong ones."""
        name = subscriber(address or "")
        if not self._counts.test(self._limits["failure"], "failure", name):
            raise RateLimitError("wrong tokens", "address", self._seconds("failure", name))

    def _count(self, whose: str, name: str) -> None:
        limit = self._limits[whose]
        if not self._counts.hit(limit, whose, name):
            raise RateLimitError("requests", whose, self._seconds(whose, name))

    def _seconds(self, whose: str, name: str) -> int:
        """Until the window is over."""
        reset = self._counts.get_window_stats(self._limits[whose], whose, name).reset_time
        return max(1, math.ceil(reset - time.time()))


def subscriber(address: str) -> str:
    """Under what an address is counted: itself, or its /64, which is one subscriber of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    return address
