"""Runs one step of a phase over all phones, on all cores.

A phone lives only while it answers: its store is rebuilt from bytes in whichever process takes its
batch, and goes back as bytes. So memory holds the phones' states, never all phones.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import EarshotError, WrongStateError
from earshot_protocol.messages import (
    Cluster,
    GlobalCentroids,
    TopCentroids,
    decode_task,
    encode,
)
from earshot_protocol.phase import STEPS, Step
from earshot_protocol.secure_sum.participant import Participant
from earshot_simulations.populations import Population

_HEARD = (Cluster, GlobalCentroids, TopCentroids)
"""The tasks for which a phone needs its recordings."""
_LARGEST_BATCH = 128

AGREES = Policy(
    least_phones=1,
    largest_epsilon=float("inf"),
    largest_delta=1.0,
    largest_lifetime_epsilon=float("inf"),
    largest_lifetime_delta=1.0,
    largest_dropout=1.0,
    least_corrupted=0.0,
    least_threshold=1,
)
"""The researcher sets the parameters of a simulation, so its phones agree to any that are valid."""


@dataclass(frozen=True)
class HeardPoints:
    """An encoder in name: what simulated phones heard is points already."""

    name: str
    dimensions: int

    def embed(self, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Refused: there is no sound to embed.

        Raises:
            WrongStateError: always.
        """
        raise WrongStateError("a simulated phone holds points, not sound")

    def project(
        self, embeddings: npt.NDArray[np.float32], dimensions: int
    ) -> npt.NDArray[np.float32]:
        """The points as they are."""
        return embeddings


@dataclass(frozen=True)
class Scenario:
    """What a process needs to bring any phone of the simulation to life."""

    population: Population
    seed: int
    participant: type[Participant]


@dataclass(frozen=True)
class Job:
    """One task for one phone."""

    phone: int
    state: bytes
    task: bytes


@dataclass(frozen=True)
class Outcome:
    """What one phone made of one task; `refusal` says why where there is no answer."""

    phone: int
    state: bytes
    answer: bytes
    cpu_seconds: float
    refusal: str = ""


@dataclass(frozen=True)
class Batch:
    """What one process made of some jobs; its peak memory is in bytes."""

    outcomes: tuple[Outcome, ...]
    process: int
    peak_memory: int


def answer_all(
    scenario: Scenario, step: Step, jobs: Sequence[Job], processes: int
) -> Iterator[Batch]:
    """Let every phone answer its task; batches come back as they finish."""
    from joblib import Parallel, delayed

    size = max(1, min(_LARGEST_BATCH, -(-len(jobs) // (4 * processes))))
    batches = (jobs[at : at + size] for at in range(0, len(jobs), size))
    parallel = Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    yield from parallel(delayed(_answer_batch)(scenario, step, batch) for batch in batches)


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _answer_batch(scenario: Scenario, step: Step, jobs: Sequence[Job]) -> Batch:
    outcomes = tuple(_answer(scenario, step, job) for job in jobs)
    return Batch(outcomes, os.getpid(), peak_memory())


def _answer(scenario: Scenario, step: Step, job: Job) -> Outcome:
    task = decode_task(job.task)
    points, choices = _recordings(scenario.population, job.phone, isinstance(task, _HEARD))
    started = time.process_time()
    if job.state:
        store = MemoryStore.from_bytes(job.state, points, choices)
    else:
        store = MemoryStore(points, choices)
    phone = Phone(
        store,
        HeardPoints(scenario.population.name, scenario.population.dimensions),
        AGREES,
        hierarchy=LabelHierarchy.flat(scenario.population.labels),
        random=np.random.default_rng([scenario.seed, 0xA, job.phone, STEPS.index(step)]).bytes,
        participant=scenario.participant,
    )
    try:
        answer = phone.answer(task)
    except EarshotError as error:
        return Outcome(job.phone, job.state, b"", time.process_time() - started, str(error))
    encoded = encode(answer) if answer is not None else b""
    return Outcome(job.phone, store.to_bytes(), encoded, time.process_time() - started)


def _recordings(
    population: Population, phone: int, wanted: bool
) -> tuple[npt.NDArray[np.float32], tuple[str | None, ...]]:
    if not wanted:
        return np.empty((0, population.dimensions), dtype=np.float32), ()
    heard = population.recordings(phone)
    names = (*population.labels, None)  # so that -1, unlabelled, is None
    return heard.points, tuple(names[label] for label in heard.labels.tolist())
