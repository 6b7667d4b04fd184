"""A Ray cluster: connection, nodes and their software, and calls on every node.

Only this module imports Ray, and keeps it quiet: no dashboard, no usage statistics, no log on the
terminal.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from earshot_protocol import distribution
from earshot_simulations.engine.batches import Place
from earshot_simulations.engine.interface import EngineError

MOST_LOSSES = 3
"""Most retries of work whose process died."""
_CONNECT_SECONDS = 3
_GREET_SECONDS = 60
"""Seconds for Ray to start and to find the cluster, if the port is open."""
LOOK_SECONDS = 2
"""Seconds without a result after which the presence of all nodes is checked."""
_ASK_SECONDS = 600
"""Seconds for the first answer of a present node, which may have to start and import."""
_OBJECT_BYTES = 100 * 2**20
"""Bytes of objects in memory with this process's own cluster; more spill to the disk."""
_LIBRARIES = ("numpy", "ray")
"""Libraries that must be the same on all nodes, besides Earshot and Python."""


class ClusterError(EngineError):
    """The cluster does not exist, or cannot run these phones."""


class LostNodeError(ClusterError):
    """A node has left, and the states of its phones with it."""


class MissingRayError(ClusterError):
    """Ray is not installed."""


@dataclass(frozen=True)
class RayCluster:
    """A cluster that this process is connected to.

    Attributes:
        ray: Ray's module.
        nodes: Number of processes of each node, by Ray's name of the node.
        hosts: Address of each node, by Ray's name of the node.
    """

    ray: Any
    nodes: Mapping[Place, int]
    hosts: Mapping[Place, str]

    def only_on(self, place: Place) -> Any:
        """Return the scheduling strategy that runs something on one node and no other."""
        strategies = self.ray.util.scheduling_strategies
        return strategies.NodeAffinitySchedulingStrategy(place, soft=False)

    def alive(self) -> set[Place]:
        """Return the nodes that are present now."""
        there = {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}
        return there & self.nodes.keys()

    def check(self) -> None:
        """Check that all nodes are present.

        Raises:
            LostNodeError: A node has left.
        """
        for place in self.nodes.keys() - self.alive():
            raise LostNodeError(
                f"the node {self.hosts[place]} has left the Ray cluster, and with it the states of "
                f"its phones ({self.nodes[place]} of {sum(self.nodes.values())} processes were "
                "there); run the phase again on the nodes that are left"
            )

    def ask_all(
        self, function: Callable[..., Any], *given: Any, seconds: int = _ASK_SECONDS
    ) -> dict[Place, Any]:
        """Return the result of a module's function on every node that is present now.

        Raises:
            LostNodeError: A node has left before it answered.
            ClusterError: A node does not answer in time, or the function fails there.
        """
        remote = self.ray.remote(num_cpus=0, max_retries=MOST_LOSSES)(function)
        asked = {
            place: remote.options(scheduling_strategy=self.only_on(place)).remote(*given)
            for place in self.alive()
        }
        waiting = {work: place for place, work in asked.items()}
        until, said = time.monotonic() + seconds, {}
        while waiting:
            left = max(0.1, min(LOOK_SECONDS, until - time.monotonic()))
            done, _ = self.ray.wait(list(waiting), num_returns=1, timeout=left)
            for work in done:
                said[waiting[work]] = self._answer(waiting[work], work)
                del waiting[work]
            if not done:
                self._check_answering(waiting.values())
            if waiting and time.monotonic() >= until:
                raise ClusterError(
                    f"the node {self.hosts[min(waiting.values())]} has not answered within "
                    f"{seconds} seconds"
                )
        return {place: said[place] for place in asked}

    def _answer(self, place: Place, work: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(work)
        except errors.RayTaskError as error:
            raise ClusterError(
                f"the node {self.hosts[place]} cannot run phones: {first_line(error.cause)}"
            ) from None
        except errors.RayError as error:
            self._check_answering([place])
            raise ClusterError(f"the Ray cluster fails: {first_line(error)}") from error

    def _check_answering(self, places: Iterable[Place]) -> None:
        alive = self.alive()
        for place in places:
            if place not in alive:
                raise LostNodeError(
                    f"the node {self.hosts[place]} has left the Ray cluster before it answered "
                    f"({self.nodes[place]} of {sum(self.nodes.values())} processes were there); "
                    "run the phase again on the nodes that are left"
                )


@contextlib.contextmanager
def connected(address: str | None, processes: int) -> Iterator[RayCluster]:
    """Connect to a cluster.

    Args:
        address: HOST:PORT of the cluster; None for this process's own on this machine, which ends
            with the connection.
        processes: Processes of an own cluster; ignored for an existing one.

    Raises:
        MissingRayError: Ray is not installed; the message says what to install.
        ClusterError: There is no cluster, or a node has left, has other software or does not answer
            for minutes.
    """
    ray = library()
    own = {
        "address": "local",  # not one from the environment
        "num_cpus": processes,
        "object_store_memory": _OBJECT_BYTES,
        "include_dashboard": False,
    }
    if address is not None:
        _greet(address)
    with _silenced():
        try:
            chosen = own if address is None else {"address": address}
            ray.init(**chosen, log_to_driver=False, configure_logging=False)
        except (Exception, SystemExit) as error:  # Ray exits where it finds no cluster
            raise ClusterError(f"cannot use the Ray cluster: {first_line(error)}") from error
        try:
            cluster = _nodes(ray)
            if address is not None:
                _check_software(cluster)
            yield cluster
        finally:
            ray.shutdown()


def library() -> Any:
    """Return Ray's module, with its usage statistics switched off.

    Raises:
        MissingRayError: Ray is not installed; the message says what to install.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingRayError(
            distribution.unusable("phones on a cluster", "ray", "ray", "cluster", error)
        ) from error
    return ray


def first_line(error: object) -> str:
    """Return the first line of Ray's message; the rest is for Ray's developers."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Silence Ray's log on the terminal: all that matters is raised as an error."""
    log = logging.getLogger("ray")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def _greet(address: str) -> None:
    """Check within a minute whether a cluster exists: Ray itself tries for minutes.

    Raises:
        ClusterError: There is no cluster.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"{address}: no Ray cluster there ({error}); `ray start --head` starts one and prints "
            "its address"
        ) from None
    program = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    try:
        # In another process, which can be killed.
        done = subprocess.run(  # noqa: S603 - the program is written above
            [sys.executable, "-c", program, address],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_GREET_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{address}: something listens there, but no Ray cluster answered within "
            f"{_GREET_SECONDS} seconds"
        ) from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise ClusterError(
            f"{address}: Ray cannot join that cluster from this machine: {said[-1].strip()} "
            "(Python and Ray must be the same as there, and this machine one of its nodes)"
        )


def _nodes(ray: Any) -> RayCluster:
    """Return the nodes that can run phones."""
    nodes = {
        node["NodeID"]: (int(node["Resources"].get("CPU", 0)), node["NodeManagerAddress"])
        for node in ray.nodes()
        if node["Alive"]
    }
    some = {name: each for name, each in sorted(nodes.items()) if each[0]}
    if not some:
        raise ClusterError("the Ray cluster has no CPU on any node")
    return RayCluster(
        ray,
        {name: processes for name, (processes, _) in some.items()},
        {name: host for name, (_, host) in some.items()},
    )


def _check_software(cluster: RayCluster) -> None:
    """Refuse nodes on which the same phone might behave differently."""
    ours = software()
    for name, theirs in cluster.ask_all(software).items():
        other = [f"{what} {theirs[what]}" for what in ours if theirs[what] != ours[what]]
        if other:
            here = ", ".join(f"{what} {version}" for what, version in ours.items())
            raise ClusterError(
                f"the node {cluster.hosts[name]} has {', '.join(other)}, and this machine {here}: "
                "figures are the same only with the same software on all nodes"
            )


def software() -> dict[str, str]:
    """Return the software that must be the same on all nodes, with its version here."""
    versions = {"Earshot": distribution.version(), "Python": platform.python_version()}
    return versions | {name: metadata.version(name) for name in _LIBRARIES}
