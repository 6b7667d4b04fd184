"""What a piece of work adds to the largest size of a process, measured in one of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path


def grown_by(work: Callable[..., object], *arguments: object) -> int:
    """Bytes by which the largest resident size grows while `work(*arguments)` runs.

    Args:
        work: a function of a module; it prepares what it needs and returns the work itself, which
            is measured.
        arguments: of the function; they travel to the process.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        return int(ours.recv())
    finally:
        process.join()


def _measured(
    told: Connection, prepare: Callable[..., Callable[[], object]], arguments: tuple[object, ...]
) -> None:
    work = prepare(*arguments)
    before = _largest()
    work()
    told.send(_largest() - before)


def _largest() -> int:
    """VmHWM: unlike `ru_maxrss`, it does not begin with what the parent process held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
