"""Phones on a Ray cluster: the same bits, and every trouble by its name."""

from __future__ import annotations

import math
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.deadly import Deadly
from support.simulated import decided

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidParametersError
from earshot_simulations import Discovery, Settings, SummationChoice, simulate
from earshot_simulations.engine import cluster as clusters
from earshot_simulations.engine.cluster import (
    ClusterError,
    LostNodeError,
    MissingRayError,
    RayCluster,
)
from earshot_simulations.phases.settings import EngineChoice

SETTINGS = Settings(
    discovery=Discovery.LOCAL,
    phones=120,
    recordings=10,
    scenes=3,
    dropout=0.1,
    jobs=2,
    seed=3,
)
ON_RAY = replace(SETTINGS, engine=EngineChoice.RAY)
TESTS = Path(__file__).parents[1]
OBJECT_BYTES = 80 * 2**20

# Ray forks for its own processes, which become others at once. A test before these may have
# imported JAX, which then warns of every fork.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called.*JAX:RuntimeWarning")


def left_behind() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("earshot-phones-*-*")}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep states apart from those of tests that run meanwhile; Ray's sockets need a short path."""
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("states")))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes on this machine, a process each, that know nothing of each other's memory."""
    from ray.cluster_utils import Cluster

    # Their workers import what a test's crowd is made of.
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    node = {"num_cpus": 1, "object_store_memory": OBJECT_BYTES, "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=node)
    nodes.other = nodes.add_node(**node)
    yield nodes
    nodes.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("summation", SummationChoice)
def test_the_bits_are_the_same_wherever_phones_run(summation: SummationChoice) -> None:
    before = left_behind()
    settings = replace(SETTINGS, summation=summation)
    alone = decided(simulate(replace(settings, jobs=1)))
    assert decided(simulate(settings)) == alone
    assert decided(simulate(replace(settings, engine=EngineChoice.RAY))) == alone
    assert left_behind() == before


@pytest.mark.slow
def test_a_killed_worker_of_two_nodes_costs_no_bit(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = left_behind()
    whole = decided(simulate(replace(SETTINGS, jobs=1)))
    deadly = Deadly(folder=tmp_path, phone=77, answer="SharedKeys", spared=os.getpid())
    monkeypatch.setattr(Settings, "attack", lambda *given: deadly)
    places: list[set[str]] = []

    def look(what: str, done: int, total: int) -> None:
        places.append(left_behind() - before)

    run = simulate(replace(ON_RAY, address=cluster.address), look)
    assert (tmp_path / "death-0").exists()
    assert decided(run) == whole
    assert max(map(len, places)) == 2  # each node has its own phones' states
    assert left_behind() == before


@pytest.mark.slow
def test_a_node_that_leaves_ends_the_run_by_name_and_keeps_finished_steps(cluster: Any) -> None:
    leaving, before = "centroid vote: share keys", left_behind()

    def leave(what: str, done: int, total: int) -> None:
        if what == leaving and not done:
            cluster.remove_node(cluster.other, allow_graceful=False)

    run = simulate(replace(ON_RAY, address=cluster.address), leave)
    assert run.interrupted is not None
    assert run.interrupted.startswith(f"interrupted in the step '{leaving}': the node ")
    assert "has left the Ray cluster, and with it the states of its phones" in run.interrupted
    assert "(1 of 2 processes were there)" in run.interrupted
    assert [step.step for step in run.steps][-1] == "centroid vote: advertise keys"
    assert run.found.global_centroids is not None
    assert left_behind() == before


@pytest.mark.slow
def test_processes_that_die_without_end_are_an_error_by_name(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = Deadly(folder=tmp_path, phone=7, answer="LocalCentroids", times=99, spared=0)
    monkeypatch.setattr(Settings, "attack", lambda *given: deadly)
    run = simulate(replace(ON_RAY, address=cluster.address))
    assert run.interrupted is not None
    assert "died 4 times under the same work" in run.interrupted


@pytest.mark.slow
def test_a_node_with_other_software_is_refused_before_any_work(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = distribution.version()
    monkeypatch.setattr(distribution, "version", lambda: "9.9")
    with pytest.raises(ClusterError, match=f"has Earshot {ours}, and this machine Earshot 9.9"):
        simulate(replace(ON_RAY, address=cluster.address), refuse_work)


def refuse_work(what: str, done: int, total: int) -> None:
    raise AssertionError("work began")


def test_where_nobody_listens_there_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters.subprocess, "run", refuse_work)  # nobody is greeted
    with socket.socket() as closed:  # bound, but it does not listen
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"{address}: no Ray cluster there"):
            simulate(replace(ON_RAY, address=address), refuse_work)


@pytest.mark.slow
def test_what_listens_and_is_no_cluster_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_GREET_SECONDS", 4)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match="no Ray cluster answered within 4 seconds"):
            simulate(replace(ON_RAY, address=address), refuse_work)


class Hall:
    """Stands for Ray: each node answers at its second, as `clock` counts them, or never."""

    class exceptions:  # noqa: N801 - Ray's module of that name
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            pass

    class util:  # noqa: N801 - Ray's module of that name
        class scheduling_strategies:  # noqa: N801 - Ray's module of that name
            @staticmethod
            def NodeAffinitySchedulingStrategy(place: str, soft: bool) -> str:  # noqa: N802
                assert not soft
                return place

    def __init__(self, answers: dict[str, float], leaves: dict[str, float]) -> None:
        self._answers, self._leaves, self.clock = answers, leaves, 0.0

    def _left(self, place: str) -> bool:
        return self.clock >= self._leaves.get(place, math.inf)

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": place, "Alive": not self._left(place)} for place in self._answers]

    def remote(self, **_: Any) -> Any:
        def ask(scheduling_strategy: str) -> Any:
            return SimpleNamespace(remote=lambda *given: scheduling_strategy)

        return lambda function: SimpleNamespace(options=ask)

    def wait(self, works: list[str], num_returns: int, timeout: float) -> tuple[list[str], None]:
        first = min(works, key=lambda place: self._answers[place])
        if self._answers[first] > self.clock + timeout:
            self.clock += timeout
            return [], None
        self.clock = max(self.clock, self._answers[first])
        return [first], None

    def get(self, place: str) -> str:
        if self._left(place):
            raise self.exceptions.RayError("it is gone")
        return f"{place} at {self.clock:.0f} s"


def asking(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, float], leaves: dict[str, float] | None
) -> tuple[RayCluster, Hall]:
    """Return a cluster of a process on each node, and what stands for Ray there."""
    hall = Hall(answers, leaves or {})
    monkeypatch.setattr(clusters, "time", SimpleNamespace(monotonic=lambda: hall.clock))
    hosts = {place: f"10.0.0.{at}" for at, place in enumerate(answers, 1)}
    return RayCluster(hall, dict.fromkeys(answers, 1), hosts), hall


def test_a_node_that_is_there_may_take_minutes_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = asking(monkeypatch, {"a": 300.0, "b": 1.0}, None)
    assert cluster.ask_all(clusters.software) == {"a": "a at 300 s", "b": "b at 1 s"}


def test_a_node_that_leaves_before_it_answers_is_noticed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, hall = asking(monkeypatch, {"a": 1.0, "b": math.inf}, {"b": 5.0})
    left = r"node 10\.0\.0\.2 has left the Ray cluster before it answered \(1 of 2 processes"
    with pytest.raises(LostNodeError, match=left):
        cluster.ask_all(clusters.software)
    assert hall.clock < 5 + 2 * clusters.LOOK_SECONDS


def test_an_answer_that_a_leaving_node_takes_along_is_its_leaving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, _ = asking(monkeypatch, {"a": 1.0, "b": 2.0}, {"b": 2.0})
    with pytest.raises(LostNodeError, match=r"node 10\.0\.0\.2 has left the Ray cluster before"):
        cluster.ask_all(clusters.software)


def test_a_node_that_has_left_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _ = asking(monkeypatch, {"a": 1.0, "b": 1.0}, {"b": 0.0})
    assert cluster.ask_all(clusters.software) == {"a": "a at 1 s"}


@pytest.mark.parametrize("seconds", [10, 600])
def test_a_node_that_is_there_and_says_nothing_is_named_after_its_time(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    cluster, hall = asking(monkeypatch, {"a": 1.0, "b": math.inf}, None)
    with pytest.raises(
        ClusterError, match=rf"node 10\.0\.0\.2 has not answered within {seconds} seconds"
    ):
        cluster.ask_all(clusters.software, seconds=seconds)
    assert seconds <= hall.clock < seconds + 1


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingRayError, match=r"pip install 'earshot-sensing\[cluster\]'"):
        simulate(ON_RAY, refuse_work)


@pytest.mark.parametrize(
    "address", ["", "10.0.0.7", "10.0.0.7:", ":6379", "head:port", "head:0", "head:65536", "a:²"]
)
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(InvalidParametersError, match="must be HOST:PORT"):
        replace(ON_RAY, address=address).check()


def test_an_address_is_for_a_cluster() -> None:
    with pytest.raises(InvalidParametersError, match="only --engine ray runs at an address"):
        replace(SETTINGS, address="10.0.0.7:6379").check()
    replace(ON_RAY, address="10.0.0.7:6379").check()
