"""How many processes a machine is asked for."""

from __future__ import annotations

import os

from earshot_protocol.checks import whole

_PER_CORE = 4
"""More than that only wait for each other, and each takes its memory."""


def check_processes(name: str, count: int) -> int:
    """A number of processes that this machine can use.

    Raises:
        InvalidParametersError: fewer than one, or more than four for each of its cores.
    """
    return whole(name, count, 1, _PER_CORE * (os.cpu_count() or 1))
