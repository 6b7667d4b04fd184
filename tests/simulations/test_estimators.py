"""Estimators: scikit-learn's own checks, oracles without noise, and noise as it is accounted."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import inspect
import io
import math
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from support.documented import blocks

from earshot_client import clustering
from earshot_client.clustering import GRID
from earshot_protocol.geometry import Geometry
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.local_mechanisms import GaussianLloyd, LaplaceLloyd
from earshot_server.discovery import optics
from earshot_simulations import estimators
from earshot_simulations.estimators import (
    DPLloyd,
    Optics,
    PredictableNoiseWarning,
    SphericalDPLloyd,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXPERIMENT = pytest.mark.filterwarnings(
    "ignore::earshot_simulations.estimators.PredictableNoiseWarning"
)


def blobs(seed: int, points: int = 300, dimensions: int = 2) -> np.ndarray:
    """Four blobs in [−1, 1], each around a corner."""
    generator = np.random.default_rng(seed)
    corners = np.where(generator.random((4, dimensions)) < 0.5, -0.6, 0.6)
    corners[:, :2] = [[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]]
    chosen = corners[generator.integers(4, size=points)]
    return chosen + 0.05 * generator.standard_normal((points, dimensions))


def dp_lloyd(**given: Any) -> DPLloyd:
    return DPLloyd(**{"n_clusters": 4, "epsilon": 1, "bounds": (-1, 1), "recordings": 300} | given)


def spherical(**given: Any) -> SphericalDPLloyd:
    return SphericalDPLloyd(**{"n_clusters": 4, "epsilon": 1, "delta": 1e-6} | given)


@pytest.fixture(scope="module")
def compiled() -> None:
    """Compile what OPTICS runs, which takes seconds."""
    Optics().fit(blobs(0))


# ------------------------------------------------------------------------ scikit-learn's manners

TOO_FEW = "among 50 points the noise of ε = 1 drowns clusters of 17"
TOO_FINE = "50 points in 3 blobs are split as finely as a vote can use, by design (decision 42)"


@pytest.mark.filterwarnings("ignore")  # the checks warn, and give every estimator a seed
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("estimator", "cannot_pass"),
    [
        (DPLloyd(epsilon=1000, bounds=(-3, 3), recordings=50), {}),
        (DPLloyd(epsilon=1, bounds=(-3, 3), recordings=50), {"check_clustering": TOO_FEW}),
        (SphericalDPLloyd(epsilon=100, delta=1e-6), {}),
        (Optics(), {"check_clustering": TOO_FINE}),
    ],
)
def test_scikit_learn_s_checks_pass_but_those_that_cannot(
    estimator: object, cannot_pass: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or one check is skipped
    checks = check_estimator(estimator, expected_failed_checks=cannot_pass, on_skip=None)
    assert len(checks) >= 45  # by the oldest supported version
    assert {check["status"] for check in checks} <= {"passed", "xfail"}
    failed = {check["check_name"] for check in checks if check["status"] == "xfail"}
    assert failed == cannot_pass.keys(), "what passes is not expected to fail"


@EXPERIMENT
@pytest.mark.parametrize("estimator", [dp_lloyd(random_state=1), spherical(random_state=1)])
def test_a_pipeline_clusters_and_sets_parameters(estimator: Any) -> None:
    pipeline = make_pipeline(FunctionTransformer(lambda points: points / 2), estimator)
    name = type(estimator).__name__.lower()
    pipeline.set_params(**{f"{name}__epsilon": 50.0, f"{name}__n_clusters": 3})
    points = blobs(1)
    labels = pipeline.fit_predict(points)
    alone = clone(estimator).set_params(epsilon=50.0, n_clusters=3).fit(points / 2)
    np.testing.assert_array_equal(labels, alone.labels_)
    np.testing.assert_array_equal(pipeline.predict(points), labels)
    assert pipeline[-1].get_params() == alone.get_params()


@pytest.mark.parametrize("estimator", [dp_lloyd(), spherical()])
def test_names_of_features_are_kept_and_compared(estimator: Any) -> None:
    frame = pd.DataFrame(blobs(1), columns=["east", "north"])
    estimator.fit(frame)
    assert list(estimator.feature_names_in_) == ["east", "north"]
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame.rename(columns={"north": "south"}))


@pytest.mark.parametrize("estimator", [DPLloyd, SphericalDPLloyd, Optics])
def test_nothing_is_offered_that_would_release_more(estimator: type) -> None:
    assert list(inspect.signature(estimator.fit).parameters) == ["self", "X", "y"]
    assert not {"score", "inertia_", "transform", "partial_fit"} & set(dir(estimator))


# --------------------------------------------------------------------------------------- oracles


@EXPERIMENT
@pytest.mark.parametrize("dimensions", [2, 5])
def test_with_next_to_no_noise_it_is_scikit_learn_s_k_means(dimensions: int) -> None:
    """From the same start; the bounds' half-widths are 10, so a box's unit is not the points'."""
    points = 10 * blobs(1, dimensions=dimensions) + 3
    model = dp_lloyd(epsilon=1e8, bounds=(-7, np.full(dimensions, 13)), random_state=2).fit(points)
    start = 10 * clustering.box_packing(4, dimensions) + 3
    oracle = KMeans(4, init=start, n_init=1, max_iter=7, tol=0, algorithm="lloyd").fit(points)
    assert np.bincount(oracle.labels_, minlength=4).min() > 0, "another oracle for empty clusters"
    np.testing.assert_allclose(model.cluster_centers_, oracle.cluster_centers_, atol=2e-3)
    np.testing.assert_array_equal(model.labels_, oracle.labels_)
    np.testing.assert_array_equal(model.predict(points), model.labels_)


@EXPERIMENT
def test_both_release_what_a_phone_does_with_the_same_noise() -> None:
    points = blobs(3)
    phone = clustering.DPLloyd(4, LaplaceLloyd(2.0, 500))
    expected = phone.cluster(points, np.random.RandomState(5).bytes)
    model = dp_lloyd(epsilon=2.0, recordings=500, random_state=5).fit(points)
    np.testing.assert_allclose(model.cluster_centers_, expected, atol=1e-12)
    sphere = clustering.SphericalDPLloyd(4, GaussianLloyd(2.0, 1e-5, 500), 3)
    directions = sphere.cluster(points, np.random.RandomState(5).bytes)
    model = spherical(epsilon=2.0, delta=1e-5, iterations=3, random_state=5).fit(points)
    np.testing.assert_array_equal(model.cluster_centers_, directions)
    cosines = points @ directions.T
    np.testing.assert_array_equal(model.labels_, cosines.argmax(axis=1))
    np.testing.assert_array_equal(model.predict(2.0**60 * points), model.labels_)


@EXPERIMENT
def test_each_feature_has_bounds_of_its_own() -> None:
    points = blobs(4)
    plain = dp_lloyd(epsilon=5, random_state=1).fit(points)
    lower, upper = [-1.0, 100.0], [1.0, 300.0]
    moved = points * [1.0, 100.0] + [0.0, 200.0]
    model = dp_lloyd(epsilon=5, bounds=(lower, upper), random_state=1).fit(moved)
    expected = plain.cluster_centers_ * [1.0, 100.0] + [0.0, 200.0]
    np.testing.assert_allclose(model.cluster_centers_, expected, atol=1e-2)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


@EXPERIMENT
def test_a_recording_beyond_the_bounds_counts_as_the_nearest_within() -> None:
    points = 2 * blobs(5)
    points[0] = 1e200
    inside = dp_lloyd(random_state=3).fit(np.clip(points, -1, 1))
    model = dp_lloyd(random_state=3).fit(points)
    np.testing.assert_array_equal(model.cluster_centers_, inside.cluster_centers_)
    np.testing.assert_array_equal(model.predict(points), inside.labels_)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("geometry", list(Geometry))
@pytest.mark.parametrize("most", [5, 50])  # of 50, only 350 / 30 are allowed
def test_optics_is_the_server_s(geometry: Geometry, most: int) -> None:
    points = blobs(6, points=400).astype(np.float32)
    given = {"xi": 0.05, "candidates": most, "points_per_candidate": 30, "most": 350}
    found = optics.Optics(**given, nearest_share=0.03).discover(points, geometry)
    model = Optics(geometry=str(geometry), **given, nearest_share=0.03).fit(points)
    np.testing.assert_array_equal(model.cluster_centers_, found.centroids)
    np.testing.assert_array_equal(model.labels_, found.clusters)
    assert np.count_nonzero(model.labels_ == -2) == 50


def test_optics_without_a_cluster_has_outliers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def outliers(ordering: np.ndarray, **others: object) -> tuple[np.ndarray, None]:
        return np.full(len(ordering), -1), None

    monkeypatch.setattr(sklearn.cluster, "cluster_optics_xi", outliers)
    model = Optics().fit(blobs(1))
    assert model.cluster_centers_.shape == (0, 2)
    assert model.labels_.tolist() == [-1] * 300


# --------------------------------------------------------------------------------------- privacy


class Transcript:
    """What is added up, and at which scale noise is drawn for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[np.ndarray] = []
        self.draws: list[tuple[float, tuple[int, ...]]] = []
        sums = clustering.cluster_sums

        def added_up(steps: np.ndarray, *given: Any) -> Any:
            self.steps.append(steps)
            return sums(steps, *given)

        def drawn(scale: float, size: tuple[int, ...], random: object) -> np.ndarray:
            self.draws.append((scale, size))
            return np.zeros(size, dtype=np.int64)

        monkeypatch.setattr(clustering, "cluster_sums", added_up)
        monkeypatch.setattr(clustering, "discrete_laplace", drawn)
        monkeypatch.setattr(clustering, "discrete_gaussian", drawn)


@pytest.mark.parametrize("recordings", [1, 1000])
@pytest.mark.parametrize("points", [1, 40])
def test_the_noise_is_that_of_the_event_whatever_is_clustered(
    recordings: int, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Transcript(monkeypatch)
    model = dp_lloyd(epsilon=7.0, bounds=(-9, [4, 5, 6]), recordings=recordings)
    model.fit(np.full((points, 3), 100.0))
    spent = sum(1 / scale if size == (4,) else 3 * GRID / scale for scale, size in seen.draws)
    assert spent == pytest.approx(composed_epsilon([model.event()], 0.0), rel=1e-12)
    assert spent == pytest.approx(7.0, rel=1e-12)
    iterations = {1: 2, 1000: 5}[recordings]  # ε_m by hand: 1350 and 1.35
    assert len(seen.draws) == 2 * iterations
    last, _ = seen.draws[-1]
    assert model.noise_ == pytest.approx(math.sqrt(2) * last / GRID, rel=1e-12)


@pytest.mark.parametrize("points", [1, 40])
def test_the_noise_on_directions_is_that_of_the_event(
    points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Transcript(monkeypatch)
    model = spherical(epsilon=2.0, delta=1e-5, iterations=4).fit(np.ones((points, 3)))
    spent = sum(GRID**2 / (2 * sigma**2) for sigma, _ in seen.draws)
    assert [size for _, size in seen.draws] == [(4, 3)] * 4
    assert spent == pytest.approx(model.event().rho, rel=1e-12)
    assert composed_epsilon([model.event()], 1e-5) == pytest.approx(2.0, rel=1e-3)
    assert model.noise_ == pytest.approx(seen.draws[-1][0] / GRID, rel=1e-12)


@given(
    points=hnp.arrays(np.float64, (5, 2), elements=st.floats(-1e9, 1e9)),
    lower=st.floats(-1e6, 1e6),
    width=st.floats(1e-6, 1e6),
)
def test_a_recording_adds_at_most_its_share_and_moves_no_other(
    points: np.ndarray, lower: float, width: float
) -> None:
    model = dp_lloyd(bounds=(lower, [lower + width, lower + 2 * width]))
    both = []
    with pytest.MonkeyPatch.context() as patch:
        seen = Transcript(patch)
        for rows in (points, points[1:]):
            model.fit(rows)
            both.append(seen.steps[-1])
    assert np.abs(both[0]).max() <= GRID
    np.testing.assert_array_equal(both[0][1:], both[1])


def test_a_search_costs_the_sum() -> None:
    searched = [dp_lloyd(n_clusters=k, epsilon=0.5).event() for k in range(2, 8)]
    assert composed_epsilon(searched, 0.0) == pytest.approx(3.0)
    searched = [spherical(n_clusters=k, epsilon=0.5).event() for k in range(2, 8)]
    assert 0.5 < composed_epsilon(searched, 1e-6) < 3.0, "zCDP adds up to less"


@pytest.mark.parametrize("estimator", [dp_lloyd(), spherical()])
def test_noise_is_the_operating_system_s(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    secret = estimators.os.urandom

    def urandom(count: int) -> bytes:
        asked.append(count)
        return secret(count)

    monkeypatch.setattr(estimators.os, "urandom", urandom)
    found = []
    for _ in range(2):
        np.random.seed(1)  # noqa: NPY002 - scikit-learn's usual source, which must not count
        found.append(estimator.fit(blobs(1)).cluster_centers_)
    assert sum(asked) > 100
    assert not np.array_equal(*found)


@pytest.mark.parametrize("estimator", [dp_lloyd, spherical])
@pytest.mark.parametrize("seed", [3, np.int64(3), np.random.RandomState(3)])
def test_a_seed_repeats_the_noise_and_says_that_it_is_no_secret(
    estimator: Callable[..., Any], seed: object
) -> None:
    models = [estimator(random_state=copy.deepcopy(seed)) for _ in range(2)]
    for model in models:
        with pytest.warns(PredictableNoiseWarning, match="not secret") as caught:
            model.fit(blobs(1))
        assert caught[0].filename == __file__
    np.testing.assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)


@pytest.mark.parametrize("estimator", [dp_lloyd(), spherical()])
def test_a_pickle_holds_what_was_released_and_no_labels(estimator: Any) -> None:
    points = blobs(2)
    estimator.fit(points)
    kept = pickle.loads(pickle.dumps(estimator))  # noqa: S301 - our own
    assert vars(estimator).keys() - vars(kept).keys() == {"labels_"}
    np.testing.assert_array_equal(kept.cluster_centers_, estimator.cluster_centers_)
    np.testing.assert_array_equal(kept.predict(points), estimator.labels_)
    assert vars(clone(estimator)).keys() == estimator.get_params().keys()


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        *(
            (dp_lloyd(bounds=bounds), r"bounds=.*: give \(lower, upper\).*public")
            for bounds in (
                *(None, 3, (1, -1), (0, 0), (0, math.inf), (math.nan, 1), (-1.7e308, 1.7e308)),
                *((-1, 0, 1), (-1, [1, 1, 1]), ([-1, 1], 1), ("a", "b"), (-1, [[1, 1], [1, 1]])),
            )
        ),
        (dp_lloyd(n_clusters=0), "n_clusters=0: must be a whole number, at least 1"),
        (dp_lloyd(n_clusters=2.5), "n_clusters=2.5"),
        (dp_lloyd(epsilon=0), "epsilon=0: must be a positive, finite number"),
        (dp_lloyd(epsilon=math.inf), "epsilon=inf"),
        (dp_lloyd(epsilon="1"), "epsilon='1'"),
        (dp_lloyd(recordings=0), "recordings=0"),
        (spherical(n_clusters=True), "n_clusters=True"),
        (spherical(epsilon=-1), "epsilon=-1"),
        (spherical(delta=0), "delta=0"),
        (spherical(delta=1), "delta=1"),
        (spherical(iterations=0), "iterations=0"),
        (dp_lloyd(random_state="secret"), "secret"),
        (Optics(xi=1.5), "xi=1.5: must be a number, from 0 to 1"),
        (Optics(candidates=0), "candidates=0"),
        (Optics(points_per_candidate=0), "points_per_candidate=0"),
        (Optics(nearest_share=2), "nearest_share=2"),
        (Optics(most=1), "most=1"),
        (Optics(geometry="cosine"), "geometry='cosine': give one of euclidean, spherical"),
    ],
)
@pytest.mark.filterwarnings("ignore::earshot_simulations.estimators.PredictableNoiseWarning")
def test_a_bad_parameter_is_named_by_fit(estimator: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        estimator.fit(blobs(1))
    assert not hasattr(estimator, "cluster_centers_")


@pytest.mark.parametrize("estimator", [dp_lloyd(), spherical(), Optics()])
@pytest.mark.parametrize(
    ("points", "named"),
    [
        ([[math.nan, 0.0], [1.0, 1.0]], "NaN"),
        ([[math.inf, 0.0], [1.0, 1.0]], "infinity"),
        (np.full((2, 2), 1j), "Complex"),
        ([["a", "b"], ["c", "d"]], "could not convert"),
        ([0.0, 1.0], "2D array"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((2, 0)), "0 feature"),
    ],
)
def test_bad_points_are_refused_as_scikit_learn_does(
    estimator: Any, points: Any, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        estimator.fit(points)


def test_a_length_beyond_what_a_phone_clusters_is_refused() -> None:
    model = spherical().fit(blobs(1))
    for call in (model.predict, model.fit):
        with pytest.raises(ValueError, match="beyond"):
            call([[1e200, 0.0]])


# -------------------------------------------------------------------------------------- the page


def executed(page: str) -> Iterator[tuple[str, str]]:
    """What the page says that each of its programs prints, and what it prints."""
    names: dict[str, Any] = {}
    said = blocks(page, "text")
    programs = blocks(page, "python")
    assert len(said) == len(programs)
    for text, expected in zip(programs, said, strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "estimators.md", "exec"), names)  # noqa: S102 - our own page
        yield expected, printed.getvalue()


@pytest.mark.usefixtures("compiled")
def test_every_program_of_the_page_prints_what_stands_there() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for said, printed in executed((DOCS / "estimators.md").read_text("utf-8")):
            assert re.sub(r"\s+", " ", printed) == re.sub(r"\s+", " ", said)


@EXPERIMENT
def test_the_program_of_the_table_prints_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With our own clustering for the other library, which needs an environment of its own."""
    spec = importlib.util.spec_from_file_location("beside", DOCS / "beside_diffprivlib.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    asked: set[float] = set()

    def theirs(epsilon: float, seed: int | None) -> DPLloyd:
        asked.add(epsilon)
        return program.ours(epsilon, seed)

    monkeypatch.setattr(program, "SEEDS", 3)
    monkeypatch.setattr(program, "theirs", theirs)
    cells = program.row(2, 100).split(" | ")
    assert len(cells) == 8
    assert cells[2] == cells[4]
    # By hand for d = 2, w = ∛0.405 = 0.7399: (1 + 2 · 0.7399 / 2) / 2.7399.
    assert program.spent(2) == pytest.approx(0.6350, abs=1e-4)
    # A recording that is replaced leaves one place and enters another, each of which costs as much.
    present = program.spent(128)
    said = f"{2 * present:.1f} times the ε that it reports on a recording that is replaced, and "
    said += f"{present:.2f} times on one that is added or removed"
    assert said in " ".join((DOCS / "privacy.md").read_text("utf-8").split())
    assert sorted(asked) == pytest.approx([100, 157.48], abs=0.01)
