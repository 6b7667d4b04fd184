"""The phones' side of every engine: tasks in, answers out, states on the disk.

A phone exists only while it answers: its store is restored from bytes, and saved to bytes again.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.expiry import KEEP_DAYS
from earshot_client.labels import LabelHierarchy
from earshot_client.phone import ANSWERED, Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import EarshotError
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.plan import PartTask
from earshot_protocol.secure_sum.messages import MaskInput
from earshot_protocol.wire import Task
from earshot_simulations.engine.interface import HeardPoints, Outcomes, PhoneOutcome, Scenario
from earshot_simulations.engine.operators import CompiledParticipant
from earshot_simulations.engine.states import States
from earshot_simulations.populations import seeds

_NEW_PHONE = MemoryStore().to_bytes()


@dataclass(frozen=True)
class Job:
    """Some tasks for the phones of one shard.

    Attributes:
        shard: Number of the shard.
        former: Obsolete version of the shard's states, to remove.
        before: Version of the shard's states to read.
        after: Version of the shard's states to write.
        tasks: Phones that have a task, each with its encoded task.
    """

    shard: int
    former: int
    before: int
    after: int
    tasks: tuple[tuple[int, bytes], ...]


@dataclass(frozen=True)
class AnsweredJobs:
    """The results of one process for some jobs.

    Attributes:
        outcomes: Outcomes, one for each task.
        seconds: Seconds spent, by the clock.
        process: Number of the process on its machine.
        peak_memory: Peak memory of that process so far, in bytes.
    """

    outcomes: Outcomes
    seconds: float
    process: int
    peak_memory: int

    def to_bytes(self) -> bytes:
        """Encode the results for another process.

        Pickling each outcome takes longer than this.
        """
        return _encoder.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Decode the output of `to_bytes`."""
        return msgspec.msgpack.decode(data, type=cls)


_encoder = msgspec.msgpack.Encoder()


def answer_jobs(scenario: Scenario, states: States, step: int, jobs: Sequence[Job]) -> AnsweredJobs:
    """Let phones answer their tasks, and keep their new states.

    Repeated from the same states, the results are the same, except for keys.

    Raises:
        NoRoomError: The disk is full.
    """
    if issubclass(scenario.summation.participant, CompiledParticipant):
        CompiledParticipant.arithmetic()  # compiles for seconds, which are no phone's
    began = time.perf_counter()
    crowd = _Crowd(scenario)
    outcomes: list[PhoneOutcome] = []
    for job in jobs:
        # The answers of the step before have arrived, so the states it began from are obsolete.
        states.forget(job.shard, job.former)
        shard = states.read(job.shard, job.before)
        tasks = [(phone, decode_task(encoded)) for phone, encoded in job.tasks]
        # For a whole shard first, so that this code stays in the processor's cache.
        heard = [crowd.heard(phone, task) for phone, task in tasks]
        for (phone, task), own in zip(tasks, heard, strict=True):
            outcomes.append(crowd.answer(step, phone, task, own, shard))
        states.write(job.shard, job.after, shard)
    return AnsweredJobs(tuple(outcomes), time.perf_counter() - began, os.getpid(), peak_memory())


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes.

    On Linux it is read from /proc, for this program alone: the value of `getrusage` starts at the
    size of the parent process.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


class _Heard(NamedTuple):
    """The contents of a phone's store."""

    points: npt.NDArray[np.float32] | None = None
    choices: tuple[str | None, ...] | None = None
    days: tuple[date | None, ...] | None = None
    first: int = 1


_NOT_ASKED = _Heard()


class _Crowd:
    """The phones of a scenario, and the parts that they share."""

    def __init__(self, scenario: Scenario) -> None:
        population = scenario.population
        self._scenario = scenario
        self._encoder = HeardPoints(population.encoder, population.dimensions)
        self._hierarchy = LabelHierarchy.flat(population.labels)
        # The last entry is None, so that index -1 (unlabelled) yields None.
        self._names = np.array((*population.labels, None), dtype=object)

    def heard(self, phone: int, task: Task) -> _Heard:
        """Return a phone's recordings if its task begins a part, or has it mark what it released.

        No other task needs them, and marks only phones that live on.
        """
        scenario = self._scenario
        marks = scenario.lasting and isinstance(task, MaskInput)
        if not (isinstance(task, PartTask) or marks):
            return _NOT_ASKED
        recordings = scenario.attack.heard(phone, scenario.population.recordings(phone))
        choices = tuple(self._names[recordings.labels].tolist())
        days = None if recordings.days is None else tuple(recordings.days.tolist())
        return _Heard(recordings.points, choices, days, scenario.population.first_number(phone))

    def _clock(self) -> float:
        """Return the fixed time of a phase's phones, which makes runs repeatable."""
        return self._scenario.moment

    def answer(
        self, step: int, number: int, task: Task, heard: _Heard, states: dict[int, bytes]
    ) -> PhoneOutcome:
        """Let one phone answer; its new state replaces the old one, unless it refused."""
        scenario = self._scenario
        started = time.process_time()
        store = MemoryStore.from_bytes(states.get(number, _NEW_PHONE), *heard)
        phone = Phone(
            store,
            self._encoder,
            scenario.policy,
            hierarchy=self._hierarchy,
            random=_Noise(scenario.seed, 0xA, number, step),
            summation=scenario.attack.summation(number, scenario.summation),
            clock=self._clock,
            uptime=self._clock,
            keep_days=KEEP_DAYS if scenario.lasting else None,
        )
        try:
            answer = phone.answer(task)
        except EarshotError as error:
            return PhoneOutcome(number, b"", time.process_time() - started, str(error))
        sent = scenario.attack.sent(number, answer) if answer is not None else b""
        store.delete(ANSWERED)  # as large as a proof, and nobody asks for it again
        states[number] = store.to_bytes()
        return PhoneOutcome(number, sent, time.process_time() - started)


class _Noise:
    """Random bytes from a seed; the generator is made on first use, as few steps need it."""

    def __init__(self, *seed: int) -> None:
        self._seed = seed

    def __call__(self, count: int) -> bytes:
        return self._generator.bytes(count)

    @cached_property
    def _generator(self) -> np.random.Generator:
        return seeds.generator(*self._seed)
