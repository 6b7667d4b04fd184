"""Common parts of engines: the places of phones, and batches sent out as others return.

Tasks are made on demand, so a step of any number of phones holds only a few batches in memory. A
batch is large enough to keep a process busy for `_BATCH_SECONDS`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from earshot_protocol.overriding import override
from earshot_simulations.engine.answering import AnsweredJobs, Job
from earshot_simulations.engine.interface import Engine, Outcomes, Scenario
from earshot_simulations.engine.states import NEW

_BATCH_SECONDS = 0.5
_AHEAD = 2
"""Batches in flight per process: one running, and one waiting."""
_LARGEST_SHARD = 128
_SHARDS_EACH = 8
"""Least number of shards for each process, so that all are busy until the end of a step."""

Place = str
"""Place of some shards: a machine."""


@dataclass(frozen=True)
class Batch:
    """Some jobs for one process, whose shards all lie at one place."""

    place: Place
    step: int
    jobs: tuple[Job, ...]


class BatchEngine(Engine, ABC):
    """An `Engine` that hands out batches of shards to processes, each at the place of its shards.

    Args:
        scenario: Phones of the simulation.
        places: Number of processes at each place.
    """

    def __init__(self, scenario: Scenario, places: Mapping[Place, int]) -> None:
        self._scenario = scenario
        self._places = places
        # A slot is a process; shards are assigned to slots in turn.
        self._slots = [place for place, count in places.items() for _ in range(count)]
        phones = scenario.population.phones
        fair = -(-phones // (_SHARDS_EACH * len(self._slots)))
        self._shard_size = max(1, min(_LARGEST_SHARD, fair))
        self._present = set(range(phones))
        self._versions = [(NEW, NEW)] * -(-phones // self._shard_size)
        self._version = NEW
        self._peaks: dict[tuple[Place, int], int] = {}

    @property
    @override
    def present(self) -> Set[int]:
        return self._present

    @override
    def drop(self, phones: Iterable[int]) -> None:
        self._present.difference_update(phones)

    @override
    def answer(self, step: int, tasks: Iterable[tuple[int, bytes]]) -> Iterator[Outcomes]:
        self._version += 1
        stream = _Stream(self._jobs(tasks), self._place_of, len(self._present))
        under_way: Counter[Place] = Counter()
        while True:
            for place, processes in self._places.items():
                while under_way[place] < _AHEAD * processes:
                    jobs = stream.take(place, len(self._slots))
                    if not jobs:
                        break
                    self._send(Batch(place, step, jobs))
                    under_way[place] += 1
            if not under_way.total():
                break
            for batch, answered in self._receive():
                under_way[batch.place] -= 1
                stream.took(len(answered.outcomes), answered.seconds)
                self._peaks[batch.place, answered.process] = answered.peak_memory
                for job in batch.jobs:
                    self._versions[job.shard] = (job.before, job.after)
                yield answered.outcomes

    @override
    def peak_memory(self) -> int:
        return sum(self._peaks.values())

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @override
    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _send(self, batch: Batch) -> None:
        """Let a process at the batch's place work on it."""

    @abstractmethod
    def _receive(self) -> Iterable[tuple[Batch, AnsweredJobs]]:
        """Wait for at least one of the batches that were sent."""

    def _place_of(self, shard: int) -> Place:
        return self._slots[shard % len(self._slots)]

    def _jobs(self, tasks: Iterable[tuple[int, bytes]]) -> Iterator[Job]:
        for shard, own in itertools.groupby(tasks, key=lambda task: task[0] // self._shard_size):
            former, before = self._versions[shard]
            yield Job(shard, former, before, self._version, tuple(own))


class _Stream:
    """The jobs of one step, made on demand, and an estimate of the time per phone."""

    def __init__(self, jobs: Iterator[Job], place_of: Callable[[int], Place], phones: int) -> None:
        self._jobs = jobs
        self._place_of = place_of
        self._ready: dict[Place, deque[Job]] = defaultdict(deque)
        self._left = phones
        self._done, self._seconds = 0, 0.0

    def took(self, phones: int, seconds: float) -> None:
        """Record the duration of a finished batch."""
        self._done += phones
        self._seconds += seconds

    def take(self, place: Place, processes: int) -> tuple[Job, ...]:
        """Return the jobs of the next batch at a place; empty if none are left.

        Args:
            place: Place of the batch.
            processes: Processes at all places together; towards the end each gets an equal share.
        """
        wanted = 1.0
        if self._done:
            by_time = _BATCH_SECONDS * self._done / max(self._seconds, 1e-9)
            wanted = min(by_time, self._left / (_AHEAD * processes))
        batch: list[Job] = []
        phones = 0
        while phones < wanted and (job := self._next(place)) is not None:
            batch.append(job)
            phones += len(job.tasks)
        self._left -= phones
        return tuple(batch)

    def _next(self, place: Place) -> Job | None:
        ready = self._ready[place]
        # Jobs of other places are queued on the way to this place's next shard: shards are
        # assigned in turn, so if places keep pace, these are few.
        while not ready and (job := next(self._jobs, None)) is not None:
            self._ready[self._place_of(job.shard)].append(job)
        return ready.popleft() if ready else None
