"""Worker processes that end with this process.

They are joblib's (loky): fresh interpreters, which need no guard in the main program and accept
objects defined in it. They are not shared between users, and end after use.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from typing import Any

from earshot_server.processes.parent import end_with

_AHEAD = 2
"""Calls in flight per process: one running, and one waiting."""
_IDLE_SECONDS = 300
"""Seconds without work after which a process ends."""
_HAND_OUT_SECONDS = 5
_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
"""Environment variables with the number of threads of a library."""

_OWN_COMMAND = """
import sys
from earshot_client.command import main
from earshot_server.processes.parent import end_with
end_with(int(sys.argv.pop(1)))
main()
"""


class Workers:
    """Processes that run calls.

    Args:
        processes: Number of processes.
        threads: Threads that libraries use in each of them.
    """

    def __init__(self, processes: int, threads: int) -> None:
        import joblib

        # By attribute: importing a submodule while another thread imports joblib may yield a
        # partly initialized module.
        self._pool = joblib.externals.loky.ProcessPoolExecutor(
            processes,
            timeout=_IDLE_SECONDS,
            env=dict.fromkeys(_THREADS, str(threads)),
            initializer=end_with,
            initargs=(os.getpid(),),
        )
        self._sent: set[Future[Any]] = set()

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a call in one of the processes.

        Raises:
            BrokenProcessPool: A process died; so do all calls that are under way.
        """
        work: Future[Any] = self._pool.submit(function, *arguments)
        self._sent.add(work)
        work.add_done_callback(self._sent.discard)
        return work

    def close(self) -> None:
        """Kill the processes, even while they work."""
        # Loky's thread fails with a traceback if a call disappears while it is handed out.
        until = time.monotonic() + _HAND_OUT_SECONDS
        while any(not work.running() for work in self._sent.copy()) and time.monotonic() < until:
            time.sleep(0.001)
        self._pool.shutdown(wait=True, kill_workers=True)


def in_parallel(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    processes: int,
    *,
    ordered: bool = True,
) -> Iterator[Any]:
    """Yield the results of calls; arguments are taken on demand, a few ahead of each process.

    Args:
        function: Function that is called.
        tasks: Arguments of each call.
        processes: Number of processes, as for `usable`; below two, calls run in this process.
        ordered: Whether results come in the order of the tasks, or as they finish.

    Raises:
        BrokenProcessPool: A process died.
    """
    processes = usable(processes)
    if processes < 2:
        yield from itertools.starmap(function, tasks)
        return
    import joblib

    due = iter(tasks)
    under_way: list[Future[Any]] = []
    with closing(Workers(processes, max(1, joblib.cpu_count() // processes))) as workers:
        while True:
            for task in itertools.islice(due, _AHEAD * processes - len(under_way)):
                under_way.append(workers.submit(function, *task))
            if not under_way:
                return
            if not ordered:
                wait(under_way, return_when=FIRST_COMPLETED)
                under_way.sort(key=lambda work: not work.done())
            yield under_way.pop(0).result()


def spawned(processes: int) -> ProcessPoolExecutor:
    """Return a pool of the standard library with spawned processes, in the default environment."""
    return ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=end_with,
        initargs=(os.getpid(),),
    )


def own_command(*words: str) -> list[str]:
    """Return the command that starts `earshot` as a process that ends with this one."""
    return [sys.executable, "-c", _OWN_COMMAND, str(os.getpid()), *words]


def usable(processes: int) -> int:
    """Return the number of processes that this one may start.

    A daemonic process, such as one of a `multiprocessing.Pool`, cannot start any and works alone.
    """
    return 1 if multiprocessing.current_process().daemon else processes
