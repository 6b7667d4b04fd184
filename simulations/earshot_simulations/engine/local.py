"""Phones on all cores of one machine."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path

from earshot_protocol.overriding import override
from earshot_simulations.engine.answering import AnsweredJobs, Job, answer_jobs, peak_memory
from earshot_simulations.engine.batches import Batch, BatchEngine
from earshot_simulations.engine.interface import LostWorkersError, Scenario
from earshot_simulations.engine.states import States, write_whole
from earshot_simulations.own_code import own_code
from earshot_simulations.temporary import TemporaryFolder
from earshot_simulations.workers import Workers, usable

_HERE = "this machine"
_MOST_LOSSES = 3
"""Number of times in a row that processes may die before any result arrives."""
_THREADS = 1
"""Threads of a process: a phone's work is small, and every process has its own core."""
_SCENARIO = "scenario"
"""Name of the scenario's file, which every process reads once."""


class LocalEngine(BatchEngine):
    """An `Engine` over processes of this machine.

    States lie in a `TemporaryFolder`, which is removed by `close`.

    Args:
        scenario: Phones of the simulation.
        processes: Number of processes, as for `usable`; with one, phones run in this process.
    """

    def __init__(self, scenario: Scenario, processes: int) -> None:
        processes = usable(processes)
        super().__init__(scenario, {_HERE: processes})
        self._processes = processes
        self._place: _Place | None = None
        self._workers: Workers | None = None
        self._here: list[Batch] = []
        self._sent: dict[Future[bytes], Batch] = {}
        self._losses = 0

    @override
    def peak_memory(self) -> int:
        self._peaks[_HERE, os.getpid()] = peak_memory()
        return super().peak_memory()

    @override
    def close(self) -> None:
        self._here.clear()
        self._sent.clear()
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        if self._place is not None:
            self._place.folder.remove()
            self._place = None

    @override
    def _send(self, batch: Batch) -> None:
        if self._place is None:
            self._place = _Place(self._scenario, self._processes > 1)
        if self._processes == 1:
            self._here.append(batch)
            return
        if self._workers is None:
            self._workers = Workers(self._processes, _THREADS)
        try:
            folder = self._place.folder.path
            work = self._workers.submit(_answer_batch, folder, batch.step, batch.jobs)
        except BrokenProcessPool as error:
            work = Future()
            work.set_exception(error)
        self._sent[work] = batch

    @override
    def _receive(self) -> Iterable[tuple[Batch, AnsweredJobs]]:
        if self._here and self._place is not None:
            batch = self._here.pop(0)
            states = self._place.states
            return [(batch, answer_jobs(self._scenario, states, batch.step, batch.jobs))]
        done, _ = wait(self._sent, return_when=FIRST_COMPLETED)
        if any(isinstance(work.exception(), BrokenProcessPool) for work in done):
            done, _ = wait(self._sent)  # all others fail with it
        received, lost = [], []
        for work in done:
            batch = self._sent.pop(work)
            if isinstance(work.exception(), BrokenProcessPool):
                lost.append(batch)
            else:
                received.append((batch, AnsweredJobs.from_bytes(work.result())))
        self._losses = 0 if received else self._losses + 1
        if lost:
            self._replace_processes()
        for batch in lost:
            self._send(batch)
        return received

    def _replace_processes(self) -> None:
        if self._losses >= _MOST_LOSSES:
            raise LostWorkersError(
                f"processes that run phones died {self._losses} times in a row under the same work "
                "(often for lack of memory: use fewer processes, --jobs)"
            )
        if self._workers is not None:
            self._workers.close()
            self._workers = None


class _Place:
    """The temporary folder of one simulation: states of its phones, and for others its scenario."""

    def __init__(self, scenario: Scenario, copied: bool) -> None:
        self.folder = TemporaryFolder("phones")
        self.states = States(self.folder.path, scenario.population.phones)
        if not copied:
            return
        import joblib

        # Unlike pickle, this also handles objects that only the main program defines.
        packed = bytes(joblib.externals.loky.backend.reduction.dumps(scenario))
        write_whole(self.folder.path / _SCENARIO, packed, len(packed))


def _answer_batch(folder: Path, step: int, jobs: Sequence[Job]) -> bytes:
    scenario = _scenario(folder)
    states = States(folder, scenario.population.phones)
    return answer_jobs(scenario, states, step, jobs).to_bytes()


@lru_cache(maxsize=1)
def _scenario(folder: Path) -> Scenario:
    """Read the scenario, once in each process."""
    packed = (folder / _SCENARIO).read_bytes()
    with own_code("a population or an attack, copied to another process,"):
        scenario: Scenario = pickle.loads(packed)  # noqa: S301 - ours
    return scenario
