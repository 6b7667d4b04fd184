"""From how far a prototype names a sound: that depends on how sounds are spread, and on noise."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from support.discovery_phase import CLASSES, SCENES, outcome, parameters, play

from earshot_protocol.geometry import unit_rows
from earshot_protocol.phases.places import Places
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.voting.vectors import counted
from earshot_server.discovery.prototypes import (
    LARGEST_MEAN,
    LEAST_COSINE,
    SPREAD,
    Prototypes,
    prototypes,
    radius,
)

DEVIATION, ROWS, DRAWS = 400.0, 5, 100


def directions(count: int, dimensions: int) -> npt.NDArray[np.float64]:
    return unit_rows(np.random.default_rng(1).standard_normal((count, dimensions)))


def found_with(
    lengths: list[float], p_values: list[float], recordings: list[float] | None = None
) -> Prototypes:
    """Rows of these lengths, each the sum of so many unit vectors; by default far too many."""
    many = [1e6] * len(lengths) if recordings is None else recordings
    counts = np.array(many) / 4
    vectors = math.sqrt(15) / 4 * np.array(lengths)
    return Prototypes(np.eye(len(lengths)), vectors, counts, np.array(p_values))


def test_without_noise_it_is_the_mean_cosine_less_a_spread() -> None:
    """The mean over all recordings, not over rows: here of 20, of which 15 are a row of 9."""
    found = found_with([9.0, 4.0], [0.0, 0.0], [15.0, 5.0])
    for deviation in (0.0, 1e-9):
        expected = 1 - (13 / 20 - SPREAD)
        assert radius(found, deviation, np.arange(2)) == pytest.approx(expected, rel=1e-7)


def test_however_sounds_are_spread_there_is_a_least_cosine() -> None:
    for spread in (LEAST_COSINE + SPREAD, 0.3, 0.01):
        found = found_with([100.0 * spread, 1.0], [0.0, 0.9], [100.0, 1.0])
        assert radius(found, 0.0, np.arange(2)) == pytest.approx(1 - LEAST_COSINE, rel=1e-12)


@pytest.mark.parametrize("recordings", [5.0, 10.0, 12.0, 0.1])
def test_too_few_that_were_counted_make_it_no_narrower_than_the_most_alike(
    recordings: float,
) -> None:
    """Whoever adds vectors, or counts backwards, cannot hide all that is named."""
    found = found_with([10.0], [0.0], [recordings])
    expected = 1 - (LARGEST_MEAN - SPREAD)
    assert radius(found, 0.0, np.arange(1)) == pytest.approx(expected, rel=1e-12)


def test_a_count_that_may_be_noise_says_nothing() -> None:
    """Of two rows; its noise exceeds 1.645 · √2 in one of twenty phases, in quarters."""
    factor = 1e6 / math.hypot(1e6, math.sqrt(2) * 4 / math.sqrt(15))
    for recordings, narrow in ((-3.0, False), (0.0, False), (4.6, False), (4.7, True)):
        found = found_with([1e6, 1e6], [0.0, 0.0], [recordings, recordings])
        least = LARGEST_MEAN - SPREAD if narrow else LEAST_COSINE
        assert 1 - radius(found, 1.0, np.arange(2)) == pytest.approx(least * factor, rel=1e-9)


def test_only_prototypes_that_stand_clear_count() -> None:
    lengths, p_values = [6.0, 8.0, 9.0, 7.0], [0.05, 0.01, 0.051, 0.0]
    found = found_with(lengths, p_values, [9.0, 10.0, 900.0, 900.0])
    # In four dimensions noise is 2 long; the fourth row is none of the prototypes.
    shorter = [math.sqrt(15) / 4 * length for length in (6, 8)]
    factors = [length / math.hypot(length, 2) for length in shorter]
    # Nineteen were counted, by a quarter of each, and by noise of which √2 is the deviation.
    mean = 14 / (19 + 4 * math.sqrt(2))
    expected = 1 - (mean - SPREAD) * sum(factors) / 2
    assert mean - SPREAD > LEAST_COSINE
    assert radius(found, 1.0, np.arange(3)) == pytest.approx(expected, rel=1e-12)
    none = found_with([3.0, 4.0], [0.06, 1.0])
    assert radius(none, 1.0, np.arange(2)) == 1 - LEAST_COSINE


def spread_sounds(
    random: np.random.Generator, number: int, kinds: int, dimensions: int
) -> npt.NDArray[np.float64]:
    """Sounds of one label: each is of one of some kinds, which lie apart as those of a place do."""
    middle = np.eye(1, dimensions)
    around = unit_rows(middle + random.standard_normal((kinds, dimensions)) * 0.05)
    own = around[random.integers(0, kinds, number)]
    scatter = random.standard_normal((number, dimensions)) / math.sqrt(dimensions)
    return unit_rows(own + random.gamma(2.0, 0.35, (number, 1)) * scatter)


@pytest.mark.parametrize("deviation", [1.0, 40.0])
def test_about_one_in_twenty_of_labelled_sounds_lies_beyond(deviation: float) -> None:
    """Of sounds that are heavier in their tails than any single law on the sphere."""
    random, dimensions, number = np.random.default_rng(6), 64, 1500
    beyond = []
    for _ in range(20):
        # The labels' directions are the axes: sounds of one are those of the first, moved along.
        sounds = [spread_sounds(random, number, 4, dimensions) for _ in range(ROWS)]
        rows = np.array([np.roll(each.sum(axis=0), at) for at, each in enumerate(sounds)])
        total = np.rint(counted(rows, np.full(ROWS, number))).astype(np.int64)
        first, second = random.poisson(deviation**2 / 2, (2, *total.shape))
        found = prototypes(total + first - second, deviation, np.eye(ROWS, dimensions))
        assert (found.p_values < 0.05).all()
        least = 1 - radius(found, deviation, np.arange(ROWS))
        again = np.concatenate(
            [
                np.roll(spread_sounds(random, 300, 4, dimensions), at, axis=1)
                @ found.directions[at]
                for at in range(ROWS)
            ]
        )
        beyond.append((again < least).mean())
    assert 0.01 < np.mean(beyond) < 0.1


@pytest.mark.parametrize("backwards", [0, 60, 110, 240])
def test_phones_that_count_backwards_take_few_names(backwards: int) -> None:
    """Of a thousand, whose labelled sounds are of one label each: each cancels nine of them."""
    random, dimensions, number = np.random.default_rng(8), 64, 200
    sounds = [spread_sounds(random, number, 4, dimensions) for _ in range(ROWS)]
    rows = np.array([np.roll(each.sum(axis=0), at) for at, each in enumerate(sounds)])
    total = counted(rows, np.full(ROWS, number))
    total[:, -1] -= backwards / math.sqrt(ROWS)
    found = prototypes(np.rint(total * GRID).astype(np.int64), 1.0, np.eye(ROWS, dimensions))
    least = 1 - radius(found, 1.0, np.arange(ROWS))
    named = [
        (each @ np.roll(found.directions[at], -at) >= least).mean()
        for at, each in enumerate(sounds)
    ]
    assert np.mean(named) > 0.85


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
        vectors = np.rint(length * DEVIATION * true).astype(np.int64) + first - second
        # So many recordings that only the least cosine is left.
        total = np.column_stack([vectors, np.full(ROWS, 10**9)])
        found = prototypes(total, DEVIATION, true)
        cosines.extend((found.directions * true).sum(axis=1))
        of_sounds.extend((found.directions * sounds).sum(axis=1))
        least.append(1 - radius(found, DEVIATION, np.arange(ROWS)))
    # Lengths are measured, and their root is a little below the true ones on average.
    assert np.mean(least) / LEAST_COSINE == pytest.approx(np.mean(cosines), abs=0.02)
    error = np.std(of_sounds) / math.sqrt(len(of_sounds))
    assert np.mean(of_sounds) == pytest.approx(np.mean(least), abs=0.02 * LEAST_COSINE + 4 * error)


def test_a_phase_publishes_the_radius_and_sound_beyond_it_has_no_name() -> None:
    """Each phone's eight recordings lie within a few degrees of two directions."""
    result = outcome(play(parameters()))
    most_alike = 1 - (LARGEST_MEAN - SPREAD)
    assert result.radius == pytest.approx(most_alike, abs=0.01), "sounds are alike"
    places = Places.of(result)
    assert places.nearest(SCENES.astype(np.float32)) == list(CLASSES)
    # At right angles to one prototype, and farther from the other.
    beyond = np.array([[SCENES[0, 1], -SCENES[0, 0]]])
    assert places.nearest(beyond.astype(np.float32)) == [None]


def test_a_result_says_how_much_public_sound_it_refuses() -> None:
    """The scenes are at 25° and 150°, and the first start centroids at 0° and 120°."""
    result = outcome(play(parameters()))
    assert result.radius is not None
    reach = math.degrees(math.acos(1 - result.radius))
    assert 30 < reach < 90
    assert result.refused == pytest.approx(1 / 3), "the third is at 240°"
    everything = outcome(play(parameters(), labelled=False))
    assert everything.names == (None, None)
    assert everything.refused == 1.0


def test_noise_widens_the_radius_of_a_phase() -> None:
    quiet, loud = (outcome(play(parameters(labels_noise=noise))) for noise in (0.2, 2.0))
    assert quiet.radius is not None
    assert loud.radius is not None
    assert loud.radius > quiet.radius
