"""Processes that are killed at any call that changes the disk."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

MOMENTS = {
    "write": ("before", "half", "after"),
    "fsync": ("half", "after"),
    "replace": ("before", "after"),
}
"""Moments of each call of `os` at which a process may die. Before an `fsync` a draft is half on the
disk: its writer may have filled it by other calls than `os.write`."""

Call = Callable[..., Any]


@contextmanager
def intercepted(by: Callable[[str, Call, tuple[Any, ...]], Any]) -> Iterator[None]:
    """Let a function make each call that changes the disk, from its name, itself and arguments."""
    calls = {name: getattr(os, name) for name in MOMENTS}
    for name, call in calls.items():
        setattr(os, name, lambda *given, name=name, call=call: by(name, call, given))
    try:
        yield
    finally:
        for name, call in calls.items():
            setattr(os, name, call)


Watch = Callable[[Callable[[str, Call, tuple[Any, ...]], Any]], AbstractContextManager[None]]
"""Like `intercepted`: which calls are watched."""


def moments(
    run: Callable[[], object],
    watch: Watch = intercepted,
    known: Mapping[str, Sequence[str]] = MOMENTS,
) -> list[tuple[int, str]]:
    """Run, and return each moment at which the run could be killed: number of a call, and when."""
    made: list[str] = []

    def noted(name: str, call: Call, given: tuple[Any, ...]) -> Any:
        made.append(name)
        return call(*given)

    with watch(noted):
        run()
    return [(number, moment) for number, name in enumerate(made) for moment in known[name]]


@contextmanager
def dying(number: int, moment: str, watch: Watch = intercepted) -> Iterator[None]:
    """Kill this process at a moment of one of its calls."""
    made = 0

    def counted(name: str, call: Call, given: tuple[Any, ...]) -> Any:
        nonlocal made
        made += 1
        if made - 1 != number:
            return call(*given)
        if moment == "half":
            _half(name, call, given)
        elif moment == "after":
            with suppress(OSError):  # a draft has been renamed, and cannot be removed
                call(*given)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it lives")

    with watch(counted):
        yield


def _half(name: str, call: Call, given: tuple[Any, ...]) -> None:
    if name == "write":
        call(given[0], given[1][: len(given[1]) // 2])
        return
    place = Path(os.readlink(f"/proc/self/fd/{given[0]}"))
    if place.is_file() and place.name.startswith("."):
        os.truncate(place, place.stat().st_size // 2)


def in_child(run: Callable[[], Any]) -> tuple[bool, Any]:
    """Run in a process of its own; return whether that was killed, and what the run returned.

    Raises:
        AssertionError: The run raised something.
    """
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(here, "w") as pipe:
                pipe.write(json.dumps(run()))
        except BaseException:  # a fork must not go on where its parent does
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(here)
    with os.fdopen(there) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True, None
    assert status == 0, "the child failed; see above"
    return False, json.loads(told)
