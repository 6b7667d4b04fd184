"""Limits on the number of processes of a machine."""

from __future__ import annotations

import os

from earshot_protocol.checks import whole

_PER_CORE = 4
"""Most processes per core: more only wait for each other, and each takes memory."""


def check_processes(name: str, count: int) -> int:
    """Check a number of processes against the cores of this machine, and return it.

    Raises:
        InvalidParametersError: The number is below one, or above four for each core.
    """
    return whole(name, count, 1, _PER_CORE * (os.cpu_count() or 1))
