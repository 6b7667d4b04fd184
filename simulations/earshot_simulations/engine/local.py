"""Phones on all cores of one machine."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import EarshotError
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.plan import PartTask
from earshot_simulations.engine.interface import HeardPoints, Outcome, Outcomes, Scenario
from earshot_simulations.engine.quiet import let_cancelled_jobs_go

_LARGEST_BATCH = 128


_Job = tuple[int, bytes, bytes]
"""One task for one phone: its number, its state, the task."""


@dataclass(frozen=True)
class _Batch:
    """What one process made of some jobs: outcomes, new states, its peak memory in bytes."""

    outcomes: Outcomes
    states: dict[int, bytes]
    process: int
    peak_memory: int


class LocalEngine:
    """An `Engine` over processes of this machine.

    Args:
        scenario: who the phones are.
        processes: at a time; with one, phones run in this process.
    """

    def __init__(self, scenario: Scenario, processes: int) -> None:
        self._scenario = scenario
        self._processes = processes
        self._states = dict.fromkeys(range(scenario.population.phones), MemoryStore().to_bytes())
        self._peaks: dict[int, int] = {}

    @property
    def present(self) -> Set[int]:
        """See `Engine.present`."""
        return self._states.keys()

    def drop(self, phones: Iterable[int]) -> None:
        """See `Engine.drop`."""
        for phone in phones:
            del self._states[phone]

    def answer(self, step: int, tasks: Iterable[tuple[int, bytes]]) -> Iterator[Outcomes]:
        """See `Engine.answer`."""
        from joblib import Parallel, delayed

        let_cancelled_jobs_go()
        jobs = ((phone, self._states[phone], task) for phone, task in tasks)
        size = max(1, min(_LARGEST_BATCH, -(-len(self._states) // (4 * self._processes))))
        batches = iter(lambda: tuple(islice(jobs, size)), ())
        parallel = Parallel(
            n_jobs=self._processes, return_as="generator_unordered", pre_dispatch="2*n_jobs"
        )
        for batch in parallel(
            delayed(_answer_batch)(self._scenario, step, batch) for batch in batches
        ):
            self._states |= batch.states
            self._peaks[batch.process] = batch.peak_memory
            yield batch.outcomes

    def peak_memory(self) -> int:
        """See `Engine.peak_memory`; this process is among them."""
        return sum((self._peaks | {os.getpid(): _peak_memory()}).values())


def _peak_memory() -> int:
    """Largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _answer_batch(scenario: Scenario, step: int, jobs: Sequence[_Job]) -> _Batch:
    states: dict[int, bytes] = {}
    outcomes = tuple(_answer(scenario, step, job, states) for job in jobs)
    return _Batch(outcomes, states, os.getpid(), _peak_memory())


def _answer(scenario: Scenario, step: int, job: _Job, states: dict[int, bytes]) -> Outcome:
    number, state, encoded_task = job
    population, task = scenario.population, decode_task(encoded_task)
    # Only what begins a part of the phase looks at recordings.
    points, choices = _recordings(scenario, number, isinstance(task, PartTask))
    started = time.process_time()
    store = MemoryStore.from_bytes(state, points, choices)
    phone = Phone(
        store,
        HeardPoints(population.encoder, population.dimensions),
        scenario.policy,
        hierarchy=LabelHierarchy.flat(population.labels),
        random=np.random.default_rng([scenario.seed, 0xA, number, step]).bytes,
        summation=scenario.attack.summation(number, scenario.summation),
    )
    try:
        answer = phone.answer(task)
    except EarshotError as error:
        return Outcome(number, b"", time.process_time() - started, str(error))
    encoded = scenario.attack.sent(number, answer) if answer is not None else b""
    states[number] = store.to_bytes()
    return Outcome(number, encoded, time.process_time() - started)


def _recordings(
    scenario: Scenario, phone: int, wanted: bool
) -> tuple[npt.NDArray[np.float32], tuple[str | None, ...]]:
    population = scenario.population
    if not wanted:
        return np.empty((0, population.dimensions), dtype=np.float32), ()
    recordings = scenario.attack.heard(phone, population.recordings(phone))
    names = (*population.labels, None)  # so that -1, unlabelled, is None
    return recordings.points, tuple(names[label] for label in recordings.labels.tolist())
