"""Phones on the machines of a Ray cluster.

A phone's states stay on the disk of the node that its shard was dealt to; tasks go there, answers
come back. Ray runs a batch again whose process died. A node that leaves takes its phones along.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from earshot_protocol import distribution
from earshot_simulations.engine.answering import Answered, Job, answer_jobs, peak_memory
from earshot_simulations.engine.batches import Batch, BatchEngine, Place
from earshot_simulations.engine.interface import EngineError, LostWorkersError, Scenario
from earshot_simulations.engine.states import States

_CONNECT_SECONDS = 3
_GREET_SECONDS = 20
"""For Ray to start and to find the cluster, where something listens."""
_PROBE_SECONDS = 60
_CLEAN_SECONDS = 10
_LOOK_SECONDS = 2
"""So often, while nothing comes back, one looks whether all nodes are there."""
_BLAME_SECONDS = 15
"""A cluster knows a little later than its tasks that a node is gone."""
_MOST_LOSSES = 3
"""So often a batch whose process died is run again."""
_OBJECT_BYTES = 100 * 2**20
"""What a cluster of this process's own keeps in memory on its way; more goes to the disk."""
_DRIVER: Place = "driver"
_LIBRARIES = ("numpy", "ray")
"""That must be the same on all nodes, besides Earshot and Python."""


class ClusterError(EngineError):
    """There is no such cluster, or it cannot run these phones."""


class LostNodeError(ClusterError):
    """A node has left, and the states of its phones with it."""


class MissingRayError(ClusterError):
    """Ray is not installed."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is connected to.

    Attributes:
        nodes: by Ray's name of each node, its processes.
        hosts: by the same, its address.
    """

    nodes: Mapping[Place, int]
    hosts: Mapping[Place, str]


@contextlib.contextmanager
def connected(address: str | None, processes: int) -> Iterator[Cluster]:
    """Be connected to a cluster.

    Args:
        address: HOST:PORT of the cluster; None for one of this process's own on this machine, which
            ends with the connection.
        processes: of one's own; a cluster that is there has those that it has.

    Raises:
        MissingRayError: says what to install.
        ClusterError: there is no cluster, or a node of it has other software; within seconds.
    """
    ray = _ray()
    if address is not None:
        _greet(address)
    own = {
        "address": "local",  # and not one that the environment names
        "num_cpus": processes,
        "object_store_memory": _OBJECT_BYTES,
        "include_dashboard": False,
    }
    with _silenced():
        try:
            chosen = own if address is None else {"address": address}
            ray.init(**chosen, log_to_driver=False, configure_logging=False)
        except (Exception, SystemExit) as error:  # it exits where it finds nobody
            raise ClusterError(f"no Ray cluster to work on: {error}") from error
        try:
            yield _cluster(ray)
        finally:
            ray.shutdown()


class RayEngine(BatchEngine):
    """An `Engine` over the nodes of a cluster, to which this process is connected.

    On each node, states lie in a folder of its temporary folder, which goes with `close`.

    Args:
        scenario: who the phones are.
        cluster: where they run.
    """

    def __init__(self, scenario: Scenario, cluster: Cluster) -> None:
        super().__init__(scenario, cluster.nodes)
        self._cluster = cluster
        self._ray = _ray()
        self._remote = self._ray.remote(num_cpus=1, max_retries=_MOST_LOSSES)(_answer_batch)
        self._name = f"earshot-phones-{uuid.uuid4().hex[:12]}"
        self._sent: dict[Any, Batch] = {}
        # In a list it stays a reference, which each process follows once.
        self._shared = [self._ray.put(scenario)]
        _on_all(self._ray, cluster, _hear, self._shared)

    def peak_memory(self) -> int:
        """See `Engine.peak_memory`; this process is among them."""
        self._peaks[_DRIVER, os.getpid()] = peak_memory()
        return super().peak_memory()

    def close(self) -> None:
        """See `Engine.close`."""
        for work in self._sent:
            self._ray.cancel(work, force=True)
        self._sent.clear()
        if self._shared:
            self._shared = []
            alive = _alive(self._ray)
            there = {place: count for place, count in self._places.items() if place in alive}
            left = Cluster(there, self._cluster.hosts)
            with contextlib.suppress(EngineError):
                _on_all(self._ray, left, _clean, self._name, seconds=_CLEAN_SECONDS)
            _clean(self._name)  # a node that has left may have been on this machine

    def _send(self, batch: Batch) -> None:
        remote = self._remote.options(scheduling_strategy=_only_on(self._ray, batch.place))
        folder = f"{self._name}-{batch.place[:8]}"
        work = remote.remote(folder, self._shared, batch.step, batch.jobs)
        self._sent[work] = batch

    def _receive(self) -> Iterable[tuple[Batch, Answered]]:
        done: list[Any] = []
        while not done:
            done, _ = self._ray.wait(list(self._sent), num_returns=1, timeout=_LOOK_SECONDS)
            if not done:
                _check_nodes(self._ray, self._cluster)
        return [(self._sent.pop(work), self._answered(work)) for work in done]

    def _answered(self, work: Any) -> Answered:
        errors = self._ray.exceptions
        try:
            answered: Answered = self._ray.get(work)
        except errors.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, EngineError) else error) from None
        except errors.RayError as error:
            until = time.monotonic() + _BLAME_SECONDS
            while time.monotonic() < until:
                _check_nodes(self._ray, self._cluster)
                if isinstance(error, errors.WorkerCrashedError):
                    break
                time.sleep(0.5)
            raise LostWorkersError(
                f"processes of the Ray cluster that run phones died {1 + _MOST_LOSSES} times under "
                "the same work (often that is memory: nodes with fewer CPUs, as Ray counts them, "
                f"take less): {_first_line(error)}"
            ) from error
        return answered


def _ray() -> Any:
    """Ray, told to tell nobody; nothing imports it but this.

    Raises:
        MissingRayError: says what to install.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingRayError(
            "the engine 'ray' needs Ray, which is not installed: pip install "
            f"'{distribution.NAME}[cluster]'"
        ) from error
    return ray


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Without Ray's log on the terminal: what matters of it comes as an error."""
    log = logging.getLogger("ray")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def _greet(address: str) -> None:
    """Find out within seconds whether a cluster is there: Ray itself tries for minutes.

    Raises:
        ClusterError: says what is there instead.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"{address}: no Ray cluster there ({error}); `ray start --head` starts one, and says "
            "its address"
        ) from None
    program = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    try:
        # In a process of its own, which can be ended.
        done = subprocess.run(  # noqa: S603 - the program is written above
            [sys.executable, "-c", program, address],
            capture_output=True,
            text=True,
            check=False,
            timeout=_GREET_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{address}: something listens there, but within {_GREET_SECONDS} seconds no Ray "
            "cluster has answered"
        ) from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing is said"]
        raise ClusterError(
            f"{address}: Ray cannot join that cluster from this machine: {said[-1].strip()} "
            "(Python and Ray must be the same as there, and this machine one of its nodes)"
        )


def _cluster(ray: Any) -> Cluster:
    """The nodes that can run phones, once all of them are known to have the same software.

    Raises:
        ClusterError: there are none, or one has other software.
    """
    nodes = {
        node["NodeID"]: (int(node["Resources"].get("CPU", 0)), node["NodeManagerAddress"])
        for node in ray.nodes()
        if node["Alive"]
    }
    some = {name: each for name, each in sorted(nodes.items()) if each[0]}
    if not some:
        raise ClusterError("the Ray cluster has no CPU on any node")
    cluster = Cluster(
        {name: processes for name, (processes, _) in some.items()},
        {name: host for name, (_, host) in some.items()},
    )
    ours = _software()
    for name, theirs in _on_all(ray, cluster, _software).items():
        other = [f"{what} {theirs[what]}" for what in ours if theirs[what] != ours[what]]
        if other:
            here = ", ".join(f"{what} {version}" for what, version in ours.items())
            raise ClusterError(
                f"the node {cluster.hosts[name]} has {', '.join(other)}, and this machine {here}: "
                "figures are the same only with the same software on all nodes"
            )
    return cluster


def _on_all(
    ray: Any,
    cluster: Cluster,
    function: Callable[..., Any],
    *given: Any,
    seconds: int = _PROBE_SECONDS,
) -> dict[Place, Any]:
    """What a function says on every node.

    Raises:
        ClusterError: a node does not answer, or the function fails there.
    """
    remote = ray.remote(num_cpus=0, max_retries=_MOST_LOSSES)(function)
    asked = {
        place: remote.options(scheduling_strategy=_only_on(ray, place)).remote(*given)
        for place in cluster.nodes
    }
    until, said = time.monotonic() + seconds, {}
    for place, work in asked.items():
        try:
            said[place] = ray.get(work, timeout=max(0.1, until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            raise ClusterError(
                f"the node {cluster.hosts[place]} has not answered within {seconds} seconds"
            ) from None
        except ray.exceptions.RayTaskError as error:
            raise ClusterError(
                f"the node {cluster.hosts[place]} cannot run phones: {_first_line(error.cause)}"
            ) from None
        except ray.exceptions.RayError as error:
            _check_nodes(ray, cluster)
            raise ClusterError(f"the Ray cluster fails: {_first_line(error)}") from error
    return said


def _check_nodes(ray: Any, cluster: Cluster) -> None:
    """Refuse to go on without one of the nodes.

    Raises:
        LostNodeError: one has left.
    """
    alive = _alive(ray)
    for place, host in cluster.hosts.items():
        if place not in alive:
            raise LostNodeError(
                f"the node {host} has left the Ray cluster, and with it the states of its phones "
                f"({cluster.nodes[place]} of {sum(cluster.nodes.values())} processes were there); "
                "run the phase again on the nodes that are left"
            )


def _alive(ray: Any) -> set[Place]:
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def _only_on(ray: Any, place: Place) -> Any:
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(place, soft=False)


def _first_line(error: object) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


# ------------------------------------------------------------------------------- on the nodes


def _software() -> dict[str, str]:
    """What must be the same on all nodes."""
    versions = {"Earshot": distribution.version(), "Python": platform.python_version()}
    return versions | {name: metadata.version(name) for name in _LIBRARIES}


def _hear(shared: Sequence[Any]) -> None:
    """See that a node hears what its phones have heard.

    Raises:
        ClusterError: what was heard is in a file that the node does not have.
    """
    try:
        _scenario(shared[0]).population.recordings(0)
    except OSError as error:
        raise ClusterError(
            f"what phones heard is not there ({error}): set TMPDIR to a folder that all nodes share"
        ) from None


def _answer_batch(folder: str, shared: Sequence[Any], step: int, jobs: Sequence[Job]) -> Answered:
    scenario, path = _scenario(shared[0]), Path(tempfile.gettempdir()) / folder
    path.mkdir(mode=0o700, exist_ok=True)
    return answer_jobs(scenario, States(path, scenario.population.phones), step, jobs)


def _clean(name: str) -> None:
    """Remove the states of a simulation from a node."""
    for folder in Path(tempfile.gettempdir()).glob(f"{name}-*"):
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _scenario(reference: Any) -> Scenario:
    """Once in each process."""
    scenario: Scenario = _ray().get(reference)
    return scenario
