"""What runs where the phones are, whatever the engine: tasks in, answers out, states on the disk.

A phone lives only while it answers: its store is rebuilt from its state, and goes back to bytes.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import EarshotError
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.plan import PartTask
from earshot_simulations.engine.interface import HeardPoints, Outcome, Outcomes, Scenario
from earshot_simulations.engine.states import States

_NEW_PHONE = MemoryStore().to_bytes()


@dataclass(frozen=True)
class Job:
    """Some tasks for the phones of one shard.

    Attributes:
        shard: its number.
        former: the version of its states that nothing will begin from again.
        before: the version of its states to begin from.
        after: the version to write.
        tasks: the encoded task of each phone that has one.
    """

    shard: int
    former: int
    before: int
    after: int
    tasks: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True)
class Answered:
    """What one process made of some jobs.

    Attributes:
        outcomes: one for each task.
        seconds: that it took, by the clock.
        process: which one, on its machine.
        peak_memory: of that process so far, in bytes.
    """

    outcomes: Outcomes
    seconds: float
    process: int
    peak_memory: int


def answer_jobs(scenario: Scenario, states: States, step: int, jobs: Sequence[Job]) -> Answered:
    """Let phones answer their tasks, and keep what they have become.

    Done twice from the same states it comes to the same, but for keys.

    Raises:
        NoRoomError: the disk is full.
    """
    began = time.perf_counter()
    outcomes: list[Outcome] = []
    for job in jobs:
        # The answers of the step before have arrived, so what it began from has served.
        states.forget(job.shard, job.former)
        shard = states.read(job.shard, job.before)
        for phone, task in job.tasks:
            outcomes.append(_answer(scenario, step, phone, task, shard))
        states.write(job.shard, job.after, shard)
    return Answered(tuple(outcomes), time.perf_counter() - began, os.getpid(), peak_memory())


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes.

    Where the kernel says it, that of this program alone: what `getrusage` counts begins with the
    size of the process that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text("ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _answer(
    scenario: Scenario, step: int, number: int, encoded_task: bytes, states: dict[int, bytes]
) -> Outcome:
    """One phone's answer; its new state replaces the old one, unless it refused."""
    population, task = scenario.population, decode_task(encoded_task)
    # Only what begins a part of the phase looks at recordings.
    points, choices = _recordings(scenario, number, isinstance(task, PartTask))
    started = time.process_time()
    store = MemoryStore.from_bytes(states.get(number, _NEW_PHONE), points, choices)
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
