"""CPU and memory of a server's processes, by their role."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import psutil

_EVERY = 1.0
_MIB = 2**20
DRIVER, WEB, DATABASE = "driver", "web", "postgresql"


class Usage:
    """Context that samples the processes' CPU and memory every second.

    A process's memory is its peak according to the kernel (on Linux), so no peak between two
    samples is missed; the peaks of a group are added. PostgreSQL's processes share much memory,
    which would be counted once for each, so theirs is the sum of their proportional shares.

    Args:
        server: PID of the server's first process; see `roles`.
        database: PID of PostgreSQL's first process.
    """

    def __init__(self, server: int, database: int) -> None:
        import psutil

        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._server = psutil.Process(server)
        self._database = psutil.Process(database)
        self._peaks: dict[str, dict[int, int]] = {DRIVER: {}, WEB: {}}
        self._shares = 0
        self._cpu = dict.fromkeys((DRIVER, WEB, DATABASE), 0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def figures(self) -> dict[str, float]:
        """Return living processes' CPU seconds and all processes' peak memory in MiB, by group."""
        memory = {name: sum(peaks.values()) for name, peaks in self._peaks.items()}
        memory[DATABASE] = self._shares
        return {f"{name}_cpu_seconds": seconds for name, seconds in self._cpu.items()} | {
            f"{name}_peak_memory_mb": size / _MIB for name, size in memory.items()
        }

    def _run(self) -> None:
        while True:
            last = self._stop.wait(_EVERY)
            self._look()
            if last:
                return

    def _look(self) -> None:
        groups = {**roles(self._server), DATABASE: family(self._database)}
        for name, processes in groups.items():
            self._cpu[name] = sum(map(cpu_seconds, processes))
            for process in processes:
                if name in self._peaks:
                    peaks = self._peaks[name]
                    peaks[process.pid] = max(peaks.get(process.pid, 0), peak_memory(process))
        self._shares = max(self._shares, sum(map(memory_share, groups[DATABASE])))


def roles(server: psutil.Process) -> dict[str, list[psutil.Process]]:
    """Return the processes of the driver, and those of the web server: its arbiter and workers.

    Among the supervisor's spawned children, only the arbiter has children; Python's resource
    tracker is skipped. Both lists are empty if the supervisor is gone.
    """
    found: dict[str, list[psutil.Process]] = {DRIVER: [], WEB: []}
    for child in family(server, recursive=False)[1:]:
        if "spawn_main" not in " ".join(_command(child)):
            continue
        members = family(child)
        found[WEB if len(members) > 1 else DRIVER] += members
    return found


def family(process: psutil.Process, *, recursive: bool = True) -> list[psutil.Process]:
    """Return a process and all its descendants; empty if it is gone."""
    import psutil

    try:
        return [process, *process.children(recursive=recursive)]
    except psutil.NoSuchProcess:
        return []


def peak_memory(process: psutil.Process) -> int:
    """Return the peak memory of a process in bytes, or its current size if that is unknown."""
    return 1024 * _kibibytes(process, "status", "VmHWM") or _resident(process)


def memory_share(process: psutil.Process) -> int:
    """Return a process's memory in bytes, with its proportional share of shared pages."""
    return 1024 * _kibibytes(process, "smaps_rollup", "Pss") or _resident(process)


def _kibibytes(process: psutil.Process, file: str, entry: str) -> int:
    try:
        lines = Path(f"/proc/{process.pid}/{file}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{entry}:")), 0)


def _resident(process: psutil.Process) -> int:
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has spent; 0 if it is gone."""
    import psutil

    try:
        spent = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(spent.user + spent.system)


def _command(process: psutil.Process) -> list[str]:
    import psutil

    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []
