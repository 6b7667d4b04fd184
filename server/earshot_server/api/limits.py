"""How many requests one phone and one address may send, counted in memory by each process."""

from __future__ import annotations

import ipaddress
import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from earshot_server.api.problems import RateLimitError


class RateLimits:
    """Counts requests in windows of a minute; refuses one too many by a `RateLimitError`.

    Args:
        phone: requests per minute of one phone.
        address: requests per minute of one address; of IPv6, of one /64, which is one subscriber.
    """

    def __init__(self, phone: int, address: int) -> None:
        self._limits = {
            "phone": RateLimitItemPerMinute(phone),
            "address": RateLimitItemPerMinute(address),
        }
        self._counts = FixedWindowRateLimiter(MemoryStorage())

    def count_phone(self, phone: int) -> None:
        """Count a request of a phone."""
        self._count("phone", str(phone))

    def count_address(self, address: str | None) -> None:
        """Count a request from an address; None: unknown."""
        self._count("address", _subscriber(address or ""))

    def _count(self, whose: str, name: str) -> None:
        limit = self._limits[whose]
        if not self._counts.hit(limit, whose, name):
            reset = self._counts.get_window_stats(limit, whose, name).reset_time
            raise RateLimitError(whose, max(1, math.ceil(reset - time.time())))


def _subscriber(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    return address
