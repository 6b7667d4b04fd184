"""A clustering of one's own in place of OPTICS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.own_things import LOCAL, SMALL, Density
from support.simulated import decided

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_server.discovery.optics import Optics
from earshot_simulations import (
    FoundCentroids,
    OwnCodeError,
    PolicyChoice,
    Settings,
    SummationChoice,
    result,
    simulate,
)
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.own import OwnClustering

PHASE = replace(LOCAL, phones=60, scenes=3)


def test_a_phase_runs_by_hdbscan_and_says_so() -> None:
    run, usual = simulate(PHASE, clustering=Density()), simulate(PHASE)
    assert run.interrupted is None
    points = run.found.local_centroids
    found = Density().discover(points, Geometry.EUCLIDEAN)
    assert run.found.local_clusters.tolist() == found.clusters.tolist()
    assert run.found.global_centroids == pytest.approx(found.centroids.astype(np.float32))
    # Phones and their noise are the same, whatever clusters what they publish.
    assert points.tolist() == usual.found.local_centroids.tolist()
    own = result(run)["provenance"]["own"]
    assert own == {"clustering": {"class": "support.own_things.Density", "key": "HDBSCAN, 5"}}
    assert result(run)["configuration"]["data"] == "blobs"


def test_optics_as_one_s_own_finds_the_same() -> None:
    run, usual = simulate(PHASE, clustering=Optics()), simulate(PHASE)
    assert run.found.label_votes.tolist() == usual.found.label_votes.tolist()
    assert decided(run).keys() == decided(usual).keys()


class Asked(Density):
    def discover(self, points: Any, geometry: Geometry) -> FoundCentroids:
        assert geometry is Geometry.SPHERICAL
        assert points.dtype == np.float32
        points[:] = points  # its own to change
        return FoundCentroids(5 * points[:2], np.full(len(points), -1))


def test_on_the_sphere_centroids_become_directions() -> None:
    clustering = OwnClustering(Asked(), lambda points: 10)
    points = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    before = points.copy()
    found = clustering.discover(points, Geometry.SPHERICAL)
    assert np.linalg.norm(found.centroids, axis=1) == pytest.approx([1, 1])
    assert points.tolist() == before.tolist()
    assert found.clusters.dtype == np.int64


LABELLING = LabellingSettings(
    phones=30, policy=PolicyChoice.ANYTHING, summation=SummationChoice.IDEAL, jobs=1
)


@pytest.mark.parametrize("settings", [replace(SMALL, phones=30), LABELLING], ids=["sum", "labels"])
def test_it_is_refused_where_nothing_asks_it(settings: Settings) -> None:
    with pytest.raises(InvalidParametersError, match="clustering Density: only on the local route"):
        simulate(settings, clustering=Density())


def test_an_object_that_is_no_clustering_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="clustering object: has no discover"):
        simulate(PHASE, clustering=object())  # type: ignore[arg-type]


class Given:
    """A clustering whose answer is given, with what is put in for the number of points."""

    key = "given"

    def __init__(self, centroids: Any, clusters: Any = None) -> None:
        self._centroids, self._clusters = centroids, clusters

    def discover(self, points: Any, geometry: Geometry) -> FoundCentroids:
        usual = np.zeros(len(points), int)
        return FoundCentroids(self._centroids, usual if self._clusters is None else self._clusters)


@pytest.mark.parametrize("nothing", [np.empty((0, 2)), np.array([]), np.array([[]])])
def test_finding_nothing_ends_the_phase_as_with_optics(nothing: Any) -> None:
    run = simulate(PHASE, clustering=Given(nothing))
    assert run.interrupted is not None
    assert run.interrupted.startswith("the phase failed: clustering Given found no cluster in ")
    assert run.found.ari_test is None


SQUARE = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("clustering", "says"),
    [
        (
            Given(np.random.default_rng(0).random((101, 2))),
            "found 101 centroids in 120 points",
        ),
        (Given(np.zeros((2, 3))), r"centroids has shape \(2, 3\)"),
        (Given(np.zeros(2)), r"centroids has shape \(2,\)"),
        (Given(np.full((2, 2), np.nan)), "row 0 is not finite"),
        (Given(np.zeros((2, 2), int)), "centroids is of type int64"),
        (Given(SQUARE, np.zeros(3, int)), r"clusters has shape \(3,\) of type int64: must be"),
        (Given(SQUARE, np.zeros(120)), r"clusters has shape \(120,\) of type float64: must be"),
        (Given(SQUARE, np.full(120, 2)), "entries from 2 to 2: must be 0 to 1"),
        (Given(SQUARE, np.full(120, -3)), "entries from -3 to -3"),
    ],
)
def test_an_answer_that_cannot_be_used_ends_the_run_by_name(clustering: Any, says: str) -> None:
    with pytest.raises(OwnCodeError, match=says) as refused:
        simulate(PHASE, clustering=clustering)
    assert str(refused.value).startswith("clustering Given")
    assert str(refused.value).endswith("(in the step 'local centroids')")


class Returning:
    key = "returning"

    def __init__(self, found: Any) -> None:
        self._found = found

    def discover(self, points: Any, geometry: Geometry) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ((SQUARE, np.zeros(120, int)), "returned a tuple: must be FoundCentroids"),
        (None, "returned a NoneType"),
        (FoundCentroids([[1.0], [1.0, 2.0]], np.zeros(120, int)), "centroids is not an array"),  # type: ignore[arg-type]
        (FoundCentroids(SQUARE, [[1], [1, 2]]), "clusters is not an array"),  # type: ignore[arg-type]
        (ValueError("no"), "clustering Returning: discover raised ValueError: no"),
        # Not a phase that failed, which a server's own error would be.
        (InvalidParametersError("no"), "discover raised InvalidParametersError: no"),
    ],
)
def test_another_answer_and_an_exception_are_named(found: Any, says: str) -> None:
    with pytest.raises(OwnCodeError, match=says):
        simulate(PHASE, clustering=Returning(found))


def test_a_zero_centroid_is_no_direction() -> None:
    clustering = OwnClustering(Given(np.zeros((1, 4))), lambda points: 10)
    with pytest.raises(OwnCodeError, match="a centroid is zero"):
        clustering.discover(np.ones((5, 4), np.float32), Geometry.SPHERICAL)
