"""From how far a prototype names a sound: cosines fall by the noise in it, and the limit too."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from support.discovery_phase import CLASSES, SCENES, outcome, parameters, play

from earshot_protocol.geometry import unit_rows
from earshot_protocol.phases.places import Places
from earshot_server.discovery.prototypes import LEAST_COSINE, Prototypes, prototypes, radius

DEVIATION, ROWS, DRAWS = 400.0, 5, 100


def directions(count: int, dimensions: int) -> npt.NDArray[np.float64]:
    return unit_rows(np.random.default_rng(1).standard_normal((count, dimensions)))


def found_with(lengths: list[float], p_values: list[float]) -> Prototypes:
    return Prototypes(np.eye(len(lengths)), np.array(lengths), np.array(p_values))


def test_without_noise_the_least_cosine_is_that_between_sounds() -> None:
    found = found_with([100.0, 3.0, 0.5], [0.0, 0.0, 0.0])
    assert radius(found, 0.0, np.arange(3)) == pytest.approx(1 - LEAST_COSINE, rel=1e-12)
    assert radius(found, 1e-6, np.arange(3)) == pytest.approx(1 - LEAST_COSINE, rel=1e-9)


def test_only_prototypes_that_stand_clear_count() -> None:
    found = found_with([3.0, 4.0, 9.0, 7.0], [0.05, 0.01, 0.051, 0.0])
    # In four dimensions noise is 2 long; the fourth row is none of the prototypes.
    factors = 3 / math.sqrt(13), 4 / math.sqrt(20)
    expected = 1 - LEAST_COSINE * sum(factors) / 2
    assert radius(found, 1.0, np.arange(3)) == pytest.approx(expected, rel=1e-12)
    none = found_with([3.0, 4.0], [0.06, 1.0])
    assert radius(none, 1.0, np.arange(2)) == 1 - LEAST_COSINE


@pytest.mark.parametrize("dimensions", [16, 64])
@pytest.mark.parametrize("length", [7.0, 12.0, 40.0])
def test_cosines_to_noisy_prototypes_fall_by_the_factor(length: float, dimensions: int) -> None:
    """Of 500 rows in 100 sums: to what a row stands for, and to a sound at the least cosine."""
    random = np.random.default_rng([3, dimensions])
    true = directions(ROWS, dimensions)
    beside = directions(2 * ROWS, dimensions)[ROWS:]
    beside = unit_rows(beside - (beside * true).sum(axis=1, keepdims=True) * true)
    sounds = LEAST_COSINE * true + math.sqrt(1 - LEAST_COSINE**2) * beside
    cosines, of_sounds, least = [], [], []
    for _ in range(DRAWS):
        first, second = random.poisson(DEVIATION**2 / 2, (2, ROWS, dimensions))
        total = np.rint(length * DEVIATION * true).astype(np.int64) + first - second
        found = prototypes(total, DEVIATION, true)
        cosines.extend((found.directions * true).sum(axis=1))
        of_sounds.extend((found.directions * sounds).sum(axis=1))
        least.append(1 - radius(found, DEVIATION, np.arange(ROWS)))
    # Lengths are measured, and their root is a little below the true ones on average.
    assert np.mean(least) / LEAST_COSINE == pytest.approx(np.mean(cosines), abs=0.02)
    error = np.std(of_sounds) / math.sqrt(len(of_sounds))
    assert np.mean(of_sounds) == pytest.approx(np.mean(least), abs=0.02 * LEAST_COSINE + 4 * error)


def test_a_phase_publishes_the_radius_and_sound_beyond_it_has_no_name() -> None:
    result = outcome(play(parameters()))
    assert result.radius is not None
    assert 1 - LEAST_COSINE < result.radius < 1 - 0.99 * LEAST_COSINE, "there is hardly any noise"
    places = Places.of(result)
    assert places.nearest(SCENES.astype(np.float32)) == list(CLASSES)
    # At right angles to one prototype, and farther from the other.
    beyond = np.array([[SCENES[0, 1], -SCENES[0, 0]]])
    assert (beyond @ result.centroids.array().T < LEAST_COSINE - 0.05).all()
    assert places.nearest(beyond.astype(np.float32)) == [None]


def test_noise_widens_the_radius_of_a_phase() -> None:
    quiet, loud = (outcome(play(parameters(labels_noise=noise))) for noise in (0.2, 2.0))
    assert quiet.radius is not None
    assert loud.radius is not None
    assert loud.radius > quiet.radius
