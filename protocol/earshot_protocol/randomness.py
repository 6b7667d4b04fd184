"""Source of random bytes: the operating system, except in a simulation."""

from __future__ import annotations

from collections.abc import Callable

RandomBytes = Callable[[int], bytes]
"""A source of random bytes: `source(n)` returns n of them. Real phones use `os.urandom`."""
