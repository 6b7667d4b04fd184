"""Phones on the machines of a Ray cluster.

A phone's states stay on the disk of the node that its shard was assigned to, which answers its
tasks. Ray reruns a batch whose process died. If a node leaves, the states of its phones are lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from earshot_protocol.overriding import override
from earshot_simulations.engine.answering import AnsweredJobs, Job, answer_jobs, peak_memory
from earshot_simulations.engine.batches import Batch, BatchEngine, Place
from earshot_simulations.engine.cluster import (
    LOOK_SECONDS,
    MOST_LOSSES,
    ClusterError,
    RayCluster,
    first_line,
    library,
)
from earshot_simulations.engine.interface import EngineError, LostWorkersError, Scenario
from earshot_simulations.engine.states import States
from earshot_simulations.own_code import OwnCodeError

_CLEAN_SECONDS = 10
_BLAME_SECONDS = 15
"""Seconds after a failed task within which a cluster reports that its node is gone."""
_DRIVER: Place = "driver"


class RayEngine(BatchEngine):
    """An `Engine` over the nodes of a cluster, to which this process is connected.

    On each node, states lie in a folder of its temporary folder, which is removed by `close`.

    Args:
        scenario: Phones of the simulation.
        cluster: Cluster that runs them.

    Raises:
        ClusterError: A node cannot read the phones' recordings.
    """

    def __init__(self, scenario: Scenario, cluster: RayCluster) -> None:
        super().__init__(scenario, cluster.nodes)
        self._cluster = cluster
        self._ray = cluster.ray
        self._remote = self._ray.remote(num_cpus=1, max_retries=MOST_LOSSES)(_answer_batch)
        self._name = f"earshot-phones-{uuid.uuid4().hex[:12]}"
        self._sent: dict[Any, Batch] = {}
        # In a list Ray keeps it a reference, which each process resolves once.
        self._shared = [self._ray.put(scenario)]
        if len(cluster.nodes) > 1:
            cluster.ask_all(_hear, self._shared)

    @override
    def peak_memory(self) -> int:
        """Return the sum of the processes' peaks, this process included."""
        self._peaks[_DRIVER, os.getpid()] = peak_memory()
        return super().peak_memory()

    @override
    def close(self) -> None:
        for work in self._sent:
            self._ray.cancel(work, force=True)
        self._sent.clear()
        if self._shared:
            self._shared = []
            with contextlib.suppress(EngineError):
                self._cluster.ask_all(_clean, self._name, seconds=_CLEAN_SECONDS)
            _clean(self._name)  # a node that has left may have been on this machine

    @override
    def _send(self, batch: Batch) -> None:
        remote = self._remote.options(scheduling_strategy=self._cluster.only_on(batch.place))
        folder = f"{self._name}-{batch.place[:8]}"
        work = remote.remote(folder, self._shared, batch.step, batch.jobs)
        self._sent[work] = batch

    @override
    def _receive(self) -> Iterable[tuple[Batch, AnsweredJobs]]:
        done: list[Any] = []
        while not done:
            done, _ = self._ray.wait(list(self._sent), num_returns=1, timeout=LOOK_SECONDS)
            if not done:
                self._cluster.check()
        return [(self._sent.pop(work), self._answered(work)) for work in done]

    def _answered(self, work: Any) -> AnsweredJobs:
        errors = self._ray.exceptions
        try:
            answered = AnsweredJobs.from_bytes(self._ray.get(work))
        except errors.RayTaskError as error:
            known = isinstance(error.cause, EngineError | OwnCodeError)
            raise (error.cause if known else error) from None
        except errors.RayError as error:
            until = time.monotonic() + _BLAME_SECONDS
            while time.monotonic() < until:
                self._cluster.check()
                if isinstance(error, errors.WorkerCrashedError):
                    break
                time.sleep(0.5)
            raise LostWorkersError(
                f"processes of the Ray cluster that run phones died {1 + MOST_LOSSES} times under "
                "the same work (often for lack of memory: nodes with fewer CPUs, as Ray counts "
                f"them, use less): {first_line(error)}"
            ) from error
        return answered


# --------------------------------------------------------------------------------- on a node


def _hear(shared: Sequence[Any]) -> None:
    """Check that a node has its phones' recordings.

    Raises:
        ClusterError: The recordings are in a file that the node does not have.
    """
    try:
        _scenario(shared[0]).population.recordings(0)
    except OSError as error:
        raise ClusterError(
            f"phones' recordings are missing ({error}): set TMPDIR to a folder that all nodes share"
        ) from None


def _answer_batch(folder: str, shared: Sequence[Any], step: int, jobs: Sequence[Job]) -> bytes:
    scenario, path = _scenario(shared[0]), Path(tempfile.gettempdir()) / folder
    path.mkdir(mode=0o700, exist_ok=True)
    states = States(path, scenario.population.phones)
    return answer_jobs(scenario, states, step, jobs).to_bytes()


def _clean(name: str) -> None:
    """Remove the states of a simulation from this machine."""
    for folder in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _scenario(reference: Any) -> Scenario:
    """Fetch the scenario, once in each process."""
    scenario: Scenario = library().get(reference)
    return scenario
