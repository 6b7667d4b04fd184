"""A helper that is killed at any call that changes the disk, SQLite's statements among them."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

from earshot_server.helper import database
from earshot_server.helper.folder import HelperFolder
from support import kills
from support.kills import Call
from support.operators import NOW

By = Callable[[str, Call, tuple[Any, ...]], Any]
MOMENTS = kills.MOMENTS | dict.fromkeys(("truncate", "unlink", "execute"), ("before", "after"))
"""Moments at which it dies; `half` of an fsync leaves half of a draft."""


@contextmanager
def opened(path: Path, now: float = NOW) -> Iterator[HelperFolder]:
    """A helper's folder as a process opens it at its start."""
    folder = HelperFolder.make(path)
    with closing(folder.database):
        folder.book.begin(now)
        yield folder


@contextmanager
def watched(by: By) -> Iterator[None]:
    """Let a function make each call that changes the disk; open the database inside."""

    class Watched(sqlite3.Connection):
        def execute(self, *given: Any) -> Any:
            return by("execute", super().execute, given)

    truncate, unlink = os.truncate, os.unlink
    with (
        kills.intercepted(by),
        mock.patch.object(os, "truncate", lambda *given: by("truncate", truncate, given)),
        mock.patch.object(os, "unlink", lambda *given: by("unlink", unlink, given)),
        mock.patch.object(database, "_connect", partial(_connect, Watched)),
    ):
        yield


def _connect(factory: type[sqlite3.Connection], path: Path) -> sqlite3.Connection:
    with mock.patch.object(sqlite3, "connect", partial(sqlite3.connect, factory=factory)):
        return _CONNECT(path)


_CONNECT = database._connect


def trace(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Run, and return each call and what it was about: the file's name, or the statement."""
    made: list[tuple[str, str]] = []

    def noted(name: str, call: Call, given: tuple[Any, ...]) -> Any:
        about = given[0]
        if isinstance(about, int):
            about = os.readlink(f"/proc/self/fd/{about}")
        made.append((name, os.path.basename(str(about)) if name != "execute" else str(about)))
        return call(*given)

    with watched(noted):
        run()
    return made


moments = partial(kills.moments, watch=watched, known=MOMENTS)
dying = partial(kills.dying, watch=watched)


def side_by_side(runs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each in a process of its own, all at the same time, and return their results."""
    context = get_context("fork")
    together, results = context.Barrier(len(runs)), context.SimpleQueue()

    def work(number: int) -> None:
        together.wait()
        results.put((number, runs[number]()))

    processes = [context.Process(target=work, args=(number,)) for number in range(len(runs))]
    for process in processes:
        process.start()
    found: dict[int, Any] = {}
    while len(found) < len(runs):
        while results.empty():
            assert not any(process.exitcode for process in processes), "a process failed"
            time.sleep(0.01)
        number, result = results.get()
        found[number] = result
    for process in processes:
        process.join()
    return [found[number] for number in range(len(runs))]
