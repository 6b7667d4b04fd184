"""Private selection: exact laws for few candidates, and what they lose on neighbours."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from earshot_client import selection
from earshot_client.selection import top_centroids
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.local_mechanisms import NoisyMax

ROUNDS = 6000
LIMIT = 1e-4  # of a goodness-of-fit test; seeds are fixed, so a pass stays a pass
COUNTS = [(0, 0), (3, 2), (2, 3, 1), (0, 4, 4), (5, 0, 1)]


def noisy_max(epsilon: float, repeats: int) -> NoisyMax:
    return NoisyMax(epsilon, repeats, recordings=200)


# --------------------------------------------------------------------------- laws, another way


def noisy_max_law(counts: tuple[int, ...], epsilon: float) -> np.ndarray:
    """By summing over the value of the winner: earlier ones stay below it, later ones reach it."""
    alpha = math.exp(-epsilon)
    values = np.arange(-200, 201)
    pmf = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)

    def at_most(limits: np.ndarray) -> np.ndarray:
        return np.array([pmf[values <= limit].sum() for limit in limits])

    law = []
    for i, count in enumerate(counts):
        wins = pmf.copy()
        for j, other in enumerate(counts):
            if j != i:
                wins *= at_most(values + count - other - (j < i))
        law.append(wins.sum())
    return np.array(law)


@pytest.mark.parametrize("counts", COUNTS)
def test_one_choice_has_the_law(counts: tuple[int, ...]) -> None:
    random = np.random.default_rng(1).bytes
    epsilon = 0.8
    law = noisy_max_law(counts, epsilon)
    assert law.sum() == pytest.approx(1)
    chosen = [
        int(top_centroids(np.array(counts), noisy_max(epsilon, 1), random)[0])
        for _ in range(ROUNDS)
    ]
    observed = np.bincount(chosen, minlength=len(counts))
    assert stats.chisquare(observed, law * ROUNDS).pvalue > LIMIT
    if len(set(counts)) > 1:  # half the noise must be noticed
        wrong = noisy_max_law(counts, 2 * epsilon)
        assert stats.chisquare(observed, wrong * ROUNDS).pvalue < LIMIT


def test_two_choices_have_the_law_of_peeling() -> None:
    random = np.random.default_rng(2).bytes
    counts, epsilon = (2, 3, 1), 0.7
    law = {}
    for first in range(3):
        others = [i for i in range(3) if i != first]
        second = noisy_max_law(tuple(counts[i] for i in others), epsilon)
        for i, probability in zip(others, second, strict=True):
            law[first, i] = noisy_max_law(counts, epsilon)[first] * probability
    chosen = [
        tuple(top_centroids(np.array(counts), noisy_max(epsilon, 2), random).tolist())
        for _ in range(ROUNDS)
    ]
    observed = [chosen.count(pair) for pair in law]
    assert sum(observed) == ROUNDS
    assert stats.chisquare(observed, np.array(list(law.values())) * ROUNDS).pvalue > LIMIT


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_loss_on_neighbours_is_at_most_epsilon(epsilon: float) -> None:
    """Every pair of monotone neighbours of up to three counts, both directions, exactly."""
    largest = 0.0
    for size in (2, 3):
        for counts in itertools.product(range(3), repeat=size):
            law = noisy_max_law(counts, epsilon)
            for i in range(size):
                neighbour = tuple(count + (i == j) for j, count in enumerate(counts))
                loss = np.abs(np.log(noisy_max_law(neighbour, epsilon) / law)).max()
                largest = max(largest, float(loss))
    assert largest <= epsilon * (1 + 1e-9)
    assert largest > 0.5 * epsilon, "neighbours that show nothing prove nothing"


def test_the_noisy_max_of_the_code_loses_at_most_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code's own choice, enumerated over every value of the noise."""
    epsilon, reach = 1.5, 9
    alpha = math.exp(-epsilon)
    grid = list(itertools.product(range(-reach, reach + 1), repeat=3))
    weights = alpha ** np.abs(np.array(grid)).sum(axis=1)
    scales = set()

    def law(counts: tuple[int, ...]) -> np.ndarray:
        noise = iter(grid)

        def next_noise(scale: float, size: object, random: object) -> np.ndarray:
            scales.add(scale)
            return np.array(next(noise))

        monkeypatch.setattr(selection, "discrete_laplace", next_noise)
        chosen = [int(top_centroids(np.array(counts), noisy_max(epsilon, 1))[0]) for _ in grid]
        return np.bincount(chosen, weights, minlength=3) / weights.sum()

    for counts, neighbour in [
        ((1, 1, 1), (2, 1, 1)),
        ((1, 1, 1), (1, 1, 2)),
        ((0, 2, 1), (0, 2, 2)),
    ]:
        before, after = law(counts), law(neighbour)
        assert np.abs(np.log(after / before)).max() <= epsilon + 1e-4
        np.testing.assert_allclose(before, noisy_max_law(counts, epsilon), atol=1e-4)
    assert scales == {1 / epsilon}


# ---------------------------------------------------------------------------------- whole choices


def test_distinct_indices_and_the_largest_with_much_budget() -> None:
    counts = np.random.default_rng(5).permutation(40).astype(np.int64)
    random = np.random.default_rng(6).bytes
    everything = top_centroids(counts, noisy_max(0.1, 40), random)
    assert everything.dtype == np.int64
    assert sorted(everything) == list(range(40))
    np.testing.assert_array_equal(
        top_centroids(counts, noisy_max(200.0, 5), random), np.argsort(-counts)[:5]
    )


def test_the_source_decides_everything() -> None:
    counts = np.zeros(30, dtype=np.int64)
    chosen = [
        top_centroids(counts, noisy_max(1.0, 5), np.random.default_rng(seed).bytes)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert (chosen[0] != chosen[2]).any()
    drawn = {tuple(top_centroids(counts, noisy_max(1.0, 5))) for _ in range(5)}
    assert len(drawn) > 1


@pytest.mark.parametrize("counts", [np.zeros((2, 2), dtype=int), np.array([1.0, 2.0]), ["a"]])
def test_bad_counts_are_refused(counts: object) -> None:
    with pytest.raises(InvalidInputError, match="counts"):
        top_centroids(counts, noisy_max(1.0, 1))


@pytest.mark.parametrize(
    ("top", "epsilon", "named"),
    [
        (0, 1.0, "repeats"),
        (4, 1.0, "repeats"),
        (1.5, 1.0, "repeats"),
        (1, 0.0, "epsilon"),
        (1, math.nan, "epsilon"),
        (1, math.inf, "epsilon"),
    ],
)
def test_bad_settings_are_named(top: int, epsilon: float, named: str) -> None:
    with pytest.raises(InvalidParametersError, match=named):
        top_centroids(np.array([1, 2, 3]), noisy_max(epsilon, top))
