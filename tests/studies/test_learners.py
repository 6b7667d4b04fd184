"""A learning phase of all phones at once gives what phones give one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.simulated import by_phones

from earshot_client import clustering
from earshot_client.private_runs import clustering_by
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry, counts
from earshot_protocol.phases.learning import CENTROID_VOTE, CLUSTER, LABEL_VOTE, Budget
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_server.discovery.optics import Optics
from earshot_simulations import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.engine.course import Course
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, Scenario
from earshot_simulations.engine.local import LocalEngine
from earshot_simulations.phases.settings import NO_NOISE
from earshot_simulations.populations import Blobs, LiftedBlobs, SimulatedPopulation
from earshot_studies.liebenow.at_once import learners
from earshot_studies.liebenow.at_once.heard import HeardByAll
from earshot_studies.liebenow.at_once.learners import learn, local_centroids
from earshot_studies.liebenow.at_once.phase import at_once

QUIET = Budget(NO_NOISE, NO_NOISE, NO_NOISE, NO_NOISE)
SETTINGS = Settings(
    phones=120,
    recordings=40,
    scenes=4,
    labelled=0.5,
    dropout=0.2,
    corrupted=0.0,
    discovery=Discovery.LOCAL,
    summation=SummationChoice.IDEAL,
    policy=PolicyChoice.ANYTHING,
    budget=QUIET,
    jobs=1,
    seed=9,
)
POPULATIONS: dict[Geometry, SimulatedPopulation] = {
    Geometry.EUCLIDEAN: Blobs(120, 40, 4, 0.5, 9),
    Geometry.SPHERICAL: LiftedBlobs(120, 40, 4, 0.5, 9),
}


def test_without_noise_it_is_what_phones_give_one_by_one() -> None:
    population = POPULATIONS[Geometry.EUCLIDEAN]
    parameters = SETTINGS.parameters(population)
    found = learn(parameters, HeardByAll.of(population), SETTINGS.seed, Optics())  # type: ignore[arg-type]
    expected = by_phones(SETTINGS, population)
    np.testing.assert_allclose(found.centroids.array(), expected.centroids.array(), atol=1e-4)
    assert found.centroid_votes == expected.centroid_votes
    assert (found.label_votes, found.labels) == (expected.label_votes, expected.labels)
    assert max(found.centroid_votes) > 10


class Still(np.random.Generator):
    """A generator whose noise is zero."""

    def standard_normal(self, size: tuple[int, ...]) -> np.ndarray:  # type: ignore[override]
        return np.zeros(size)

    def laplace(self, loc: float, scale: float, size: tuple[int, ...]) -> np.ndarray:  # type: ignore[override]
        return np.zeros(size)


@pytest.mark.parametrize("geometry", Geometry)
def test_phones_cluster_and_choose_as_they_do_one_by_one(
    geometry: Geometry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(scale: float, shape: tuple[int, ...], random: object) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    for module, noise in ((clustering, "discrete_gaussian"), (clustering, "discrete_laplace")):
        monkeypatch.setattr(module, noise, nothing)
    monkeypatch.setattr(learners, "_laplace", lambda scale, shape, generator: nothing(1, shape, 0))
    population = POPULATIONS[geometry]
    usual = dataclasses.replace(SETTINGS, budget=Budget(1.0, 1.0, 1.0, 1.0))
    parameters = usual.parameters(population)
    still = Still(np.random.PCG64(0))
    found = local_centroids(parameters, HeardByAll.of(population), still)  # type: ignore[arg-type]
    mechanism = parameters.plan().mechanisms[CLUSTER]
    for phone in range(120):
        points = population.recordings(phone).points
        centroids = clustering_by(mechanism, 6).cluster(points)  # type: ignore[arg-type]
        numbers = counts(points, centroids, geometry)
        best = np.argsort(-numbers, kind="stable")[:2]
        np.testing.assert_allclose(found[phone], centroids[best], atol=1e-6)


@pytest.mark.parametrize("geometry", Geometry)
def test_noise_of_local_centroids_has_the_deviation_of_the_phones_own(geometry: Geometry) -> None:
    population = POPULATIONS[geometry]
    heard = HeardByAll.of(population)
    noisy = dataclasses.replace(SETTINGS, budget=Budget(1.0, 0.5, 1.0, 1.0), dropout=0.0)
    settings = dataclasses.replace(noisy, local_centroids=1, top_local_centroids=1)
    parameters = settings.parameters(population)
    ours = local_centroids(parameters, heard, np.random.default_rng(4))[:, 0]  # type: ignore[arg-type]
    engine = LocalEngine(Scenario(population, settings.seed, IDEAL, AGREES), 1)
    course = Course(parameters, engine, IDEAL, Optics(), settings.seed)
    course.run()
    theirs = course.coordinator.state.local_centroids()  # type: ignore[attr-defined]
    # 120 phones: a deviation is known to a fifteenth.
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.35)
    np.testing.assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=0.1)


def test_noise_of_a_vote_is_that_of_the_shares_of_all_who_stayed() -> None:
    settings = dataclasses.replace(SETTINGS, budget=Budget(NO_NOISE, NO_NOISE, 0.5, 0.5))
    population = POPULATIONS[Geometry.EUCLIDEAN]
    heard, quiet = HeardByAll.of(population), SETTINGS.parameters(population)
    parameters = settings.parameters(population)

    def totals(asked: object, seed: int) -> tuple[int, int]:
        result = learn(asked, heard, seed, Optics())  # type: ignore[arg-type]
        # The first vote's order changes with its noise, the sum of the noise does not.
        return int(np.sum(result.centroid_votes)), int(np.sum(result.label_votes))

    noisy, exact = (
        np.array([totals(asked, seed) for seed in range(40)]) for asked in (parameters, quiet)
    )
    found = np.std(noisy - exact, axis=0)
    for part, entries, deviation in zip((CENTROID_VOTE, LABEL_VOTE), (10, 40), found, strict=True):
        law = parameters.plan().mechanisms[part].noise(parameters.noise_survivors)  # type: ignore[union-attr]
        assert 0.6 < deviation / (law.deviation * np.sqrt(entries)) < 1.8


def test_a_phase_at_once_is_measured_like_any_other() -> None:
    figures = at_once(dataclasses.replace(SETTINGS, budget=None, phones=150, recordings=100))
    assert figures["ari_test"] > 0.8
    assert figures["centroids"] <= 10


def test_other_selections_and_several_runs_are_refused() -> None:
    for change in ({"selection_method": SelectionMethod.GUMBEL}, {"clustering_runs": 4}):
        settings = dataclasses.replace(SETTINGS, **change)
        with pytest.raises(InvalidParametersError, match="noisy-max and 1"):
            at_once(settings)
