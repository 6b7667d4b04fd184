"""Phones on all cores of one machine."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path

from earshot_protocol.overriding import override
from earshot_simulations.engine.answering import AnsweredJobs, Job, answer_jobs, peak_memory
from earshot_simulations.engine.batches import Batch, BatchEngine
from earshot_simulations.engine.interface import LostWorkersError, Scenario
from earshot_simulations.engine.states import NEW, States, write_whole
from earshot_simulations.own_code import own_code
from earshot_simulations.temporary import TemporaryFolder
from earshot_simulations.workers import Workers, usable

_HERE = "this machine"
_MOST_LOSSES = 3
"""Number of times in a row that processes may die before any result arrives."""
_THREADS = 1
"""Threads of a process: a phone's work is small, and every process has its own core."""
_SCENARIO = "scenario"
"""Beginning of the name of a phase's scenario, which every process reads once."""


class LocalEngine(BatchEngine):
    """An `Engine` over processes of this machine.

    States lie in a `TemporaryFolder`, which is removed by `close`. Phones may live on: `begin`
    starts another phase over them.

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
        self._phase = 0
        self._here: list[Batch] = []
        self._sent: dict[Future[bytes], Batch] = {}
        self._losses = 0

    def begin(self, scenario: Scenario) -> None:
        """Begin another phase over the same phones: those that had vanished are back.

        Args:
            scenario: Scenario of the phase, with as many phones.
        """
        self._scenario = scenario
        self._present = set(range(scenario.population.phones))
        self._phase += 1
        if self._place is not None:
            self._place.begin(scenario, self._phase)

    def states(self) -> dict[int, bytes]:
        """Return the states of all phones between two steps; new phones have none."""
        found: dict[int, bytes] = {}
        for shard, (_, version) in enumerate(self._versions):
            found |= self._opened().states.read(shard, version)
        return found

    def restore(self, states: Mapping[int, bytes]) -> None:
        """Replace the states of all phones between two steps."""
        self._version += 1
        for shard, (_, version) in enumerate(self._versions):
            first = shard * self._shard_size
            own = range(first, min(first + self._shard_size, self._scenario.population.phones))
            kept = {phone: states[phone] for phone in own if phone in states}
            self._opened().states.write(shard, self._version, kept)
            self._opened().states.forget(shard, version)
            self._versions[shard] = (NEW, self._version)

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
        place = self._opened()
        if self._processes == 1:
            self._here.append(batch)
            return
        if self._workers is None:
            self._workers = Workers(self._processes, _THREADS)
        try:
            scenario = place.folder.path / f"{_SCENARIO}-{self._phase}"
            work = self._workers.submit(_answer_batch, scenario, batch.step, batch.jobs)
        except BrokenProcessPool as error:
            work = Future()
            work.set_exception(error)
        self._sent[work] = batch

    def _opened(self) -> _Place:
        if self._place is None:
            self._place = _Place(self._scenario, self._phase, self._processes > 1)
        return self._place

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
    """The temporary folder of one simulation: states of its phones, and for others its scenario.

    Args:
        scenario: Scenario of the phase under way.
        phase: Number of that phase.
        copied: Whether other processes read the scenario.
    """

    def __init__(self, scenario: Scenario, phase: int, copied: bool) -> None:
        self.folder = TemporaryFolder("phones")
        self.states = States(self.folder.path, scenario.population.phones)
        self._copied = copied
        self.begin(scenario, phase)

    def begin(self, scenario: Scenario, phase: int) -> None:
        """Give other processes the scenario of a phase, in place of that of the one before."""
        if not self._copied:
            return
        import joblib

        (self.folder.path / f"{_SCENARIO}-{phase - 1}").unlink(missing_ok=True)

        # Unlike pickle, this also handles objects that only the main program defines.
        packed = bytes(joblib.externals.loky.backend.reduction.dumps(scenario))
        write_whole(self.folder.path / f"{_SCENARIO}-{phase}", packed, len(packed))


def _answer_batch(file: Path, step: int, jobs: Sequence[Job]) -> bytes:
    scenario = _scenario(file)
    states = States(file.parent, scenario.population.phones)
    return answer_jobs(scenario, states, step, jobs).to_bytes()


@lru_cache(maxsize=1)
def _scenario(file: Path) -> Scenario:
    """Read the scenario of a phase, once in each process."""
    packed = file.read_bytes()
    with own_code("a population or an attack, copied to another process,"):
        scenario: Scenario = pickle.loads(packed)  # noqa: S301 - ours
    return scenario
