"""How work is dealt out: every task once, at the place of its phone, in batches by time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from earshot_protocol.secure_sum.bell import BELL
from earshot_simulations.engine.answering import AnsweredJobs
from earshot_simulations.engine.batches import Batch, BatchEngine
from earshot_simulations.engine.interface import AGREES, PhoneOutcome, Scenario
from earshot_simulations.populations import Blobs

PHONES = 5000


class Recorder(BatchEngine):
    """Phones that take so many seconds each, and come back in any order."""

    def __init__(self, places: dict[str, int], each: float, phones: int = PHONES) -> None:
        super().__init__(Scenario(Blobs(phones, 1, 1, 0.0, 0), 0, BELL, AGREES), places)
        self.each, self.batches, self.most = each, list[Batch](), 0
        self.random = np.random.default_rng(5)
        self.waiting: list[Batch] = []

    def close(self) -> None: ...

    def _send(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.waiting.append(batch)
        self.most = max(self.most, len(self.waiting))

    def _receive(self) -> list[tuple[Batch, AnsweredJobs]]:
        batch = self.waiting.pop(int(self.random.integers(len(self.waiting))))
        phones = [phone for job in batch.jobs for phone, _ in job.tasks]
        outcomes = tuple(PhoneOutcome(phone, b"", 0.0) for phone in phones)
        return [(batch, AnsweredJobs(outcomes, self.each * len(phones), os.getpid(), 1))]


def tasks(engine: BatchEngine, made: list[int]) -> Iterator[tuple[int, bytes]]:
    for phone in sorted(engine.present):
        made.append(phone)
        yield phone, b"task"


@pytest.mark.parametrize("places", [{"a": 1}, {"a": 2}, {"a": 1, "b": 1}, {"a": 3, "b": 1}])
@pytest.mark.parametrize("each", [1e-5, 1e-3, 0.3])
def test_every_phone_answers_each_step_once_where_it_lies(
    places: dict[str, int], each: float
) -> None:
    engine = Recorder(places, each)
    lies: dict[int, set[str]] = defaultdict(set)
    for step in range(4):
        engine.drop(range(step, PHONES, 100))
        answered = [
            outcome.phone
            for outcomes in engine.answer(step, tasks(engine, []))
            for outcome in outcomes
        ]
        assert sorted(answered) == sorted(engine.present)
    for batch in engine.batches:
        for job in batch.jobs:
            lies[job.shard].add(batch.place)
            assert {phone // 128 for phone, _ in job.tasks} == {job.shard}
    assert all(len(where) == 1 for where in lies.values())
    for place, processes in places.items():
        share = sum(where == {place} for where in lies.values()) / len(lies)
        assert share == pytest.approx(processes / sum(places.values()), abs=0.05)


def test_a_shard_goes_on_from_what_its_last_step_wrote() -> None:
    engine = Recorder({"a": 2}, 1e-3)
    newest: dict[int, int] = defaultdict(int)
    for step in range(5):
        # Every other step leaves some shards out: they go on from the step before it.
        some = (task for task in tasks(engine, []) if step % 2 or task[0] % 3000 < 1500)
        for _ in engine.answer(step, some):
            pass
        for job in (job for batch in engine.batches for job in batch.jobs):
            assert job.former <= job.before == newest[job.shard] < job.after
            newest[job.shard] = job.after
        engine.batches.clear()
    assert len(set(newest.values())) == 2


def test_a_batch_takes_about_half_a_second_once_it_is_known_what_a_phone_takes() -> None:
    engine = Recorder({"a": 2}, 0.7e-3)
    for _ in engine.answer(0, tasks(engine, [])):
        pass
    sizes = [sum(len(job.tasks) for job in batch.jobs) for batch in engine.batches]
    assert sizes[0] == 128  # nothing is known yet
    assert 0.5 / 0.7e-3 <= max(sizes) < 0.5 / 0.7e-3 + 128
    assert sizes[-1] <= 256  # at the end nobody is left with much more than others


def test_tasks_are_made_when_there_is_room_for_them() -> None:
    engine, made = Recorder({"a": 2}, 1e-3), list[int]()
    most = 0
    answered = 0
    for outcomes in engine.answer(0, tasks(engine, made)):
        most = max(most, len(made) - answered)
        answered += len(outcomes)
    assert answered == PHONES
    assert engine.most <= 4
    assert most <= 5 * (500 + 128)
    assert len(made) == PHONES


def test_a_crowd_of_few_is_spread_over_all_processes() -> None:
    engine = Recorder({"a": 3, "b": 1}, 1e-3, phones=20)
    for _ in engine.answer(0, tasks(engine, [])):
        pass
    assert len({job.shard for batch in engine.batches for job in batch.jobs}) == 20
