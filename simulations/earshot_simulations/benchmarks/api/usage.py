"""What processes of a server take: CPU and memory, by what they do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from earshot_simulations.benchmarks.meanwhile import Meanwhile

if TYPE_CHECKING:
    import psutil

_EVERY = 1.0
_MIB = 2**20
DRIVER, WEB, DATABASE = "driver", "web", "postgresql"


class Usage(Meanwhile):
    """Looks every second at what processes hold, while it is entered.

    A process's memory is its own peak as the kernel knows it, where it does (Linux), so that none
    between two looks is missed; those of one group are added. PostgreSQL's share one large piece,
    which would be counted as often as there are processes: of them it is their proportional shares.

    Args:
        server: number of the server's first process; see `roles`.
        database: that of PostgreSQL's.
    """

    def __init__(self, server: int, database: int) -> None:
        import psutil

        super().__init__()
        self._server = psutil.Process(server)
        self._database = psutil.Process(database)
        self._peaks: dict[str, dict[int, int]] = {DRIVER: {}, WEB: {}}
        self._shares = 0
        self._cpu = dict.fromkeys((DRIVER, WEB, DATABASE), 0.0)

    def figures(self) -> dict[str, float]:
        """CPU seconds since the processes began, and peak memory, by group; only those alive."""
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
        self._shares = max(self._shares, sum(map(_share, groups[DATABASE])))


def roles(server: psutil.Process) -> dict[str, list[psutil.Process]]:
    """The driver, and the web server's arbiter with its workers.

    Of the supervisor's children that run Python code (one more keeps count of their resources) the
    arbiter has children of its own. Nobody where the supervisor is gone.
    """
    found: dict[str, list[psutil.Process]] = {DRIVER: [], WEB: []}
    for child in family(server, recursive=False)[1:]:
        if "spawn_main" not in " ".join(_command(child)):
            continue
        members = family(child)
        found[WEB if len(members) > 1 else DRIVER] += members
    return found


def family(process: psutil.Process, *, recursive: bool = True) -> list[psutil.Process]:
    """A process and all that come from it; none if it is gone."""
    import psutil

    try:
        return [process, *process.children(recursive=recursive)]
    except psutil.NoSuchProcess:
        return []


def peak_memory(process: psutil.Process) -> int:
    """The most that a process has held, in bytes; what it holds where that is not known."""
    return 1024 * _kibibytes(process, "status", "VmHWM") or _resident(process)


def _share(process: psutil.Process) -> int:
    """What a process holds, and of what it shares its share, in bytes."""
    return 1024 * _kibibytes(process, "smaps_rollup", "Pss") or _resident(process)


def _kibibytes(process: psutil.Process, file: str, entry: str) -> int:
    try:
        lines = Path(f"/proc/{process.pid}/{file}").read_text().splitlines()
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
    """Tell the seconds of the processor that a process has spent; 0 where it is gone."""
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
