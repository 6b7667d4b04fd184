"""Private selection: exact laws for few candidates, and what they lose on neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from earshot_client import selection
from earshot_client.selection import top_centroids
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import SelectionMethod

ROUNDS = 6000
LIMIT = 1e-4  # of a goodness-of-fit test; seeds are fixed, so a pass stays a pass
COUNTS = [(0, 0), (3, 2), (2, 3, 1), (0, 4, 4), (5, 0, 1)]


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


def permute_and_flip_law(counts: tuple[int, ...], epsilon: float) -> np.ndarray:
    """Over all orders and the first head in each, as the paper states the algorithm."""
    heads = [math.exp(epsilon * (count - max(counts))) for count in counts]
    law = np.zeros(len(counts))
    for order in itertools.permutations(range(len(counts))):
        reached = 1.0
        for i in order:
            law[i] += reached * heads[i]
            reached *= 1 - heads[i]
    return law / math.factorial(len(counts))


def gumbel_law(counts: tuple[int, ...], epsilon: float) -> np.ndarray:
    weights = np.exp(epsilon * (np.array(counts) - max(counts)))
    return weights / weights.sum()


LAWS: dict[SelectionMethod, Callable[[tuple[int, ...], float], np.ndarray]] = {
    SelectionMethod.NOISY_MAX: noisy_max_law,
    SelectionMethod.PERMUTE_AND_FLIP: permute_and_flip_law,
    SelectionMethod.GUMBEL: gumbel_law,
}
METHODS = list(SelectionMethod)


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("method", METHODS)
def test_one_choice_has_the_law(method: SelectionMethod, counts: tuple[int, ...]) -> None:
    random = np.random.default_rng(1).bytes
    epsilon = 0.8
    law = LAWS[method](counts, epsilon)
    assert law.sum() == pytest.approx(1)
    chosen = [
        int(top_centroids(np.array(counts), 1, epsilon, method, random)[0]) for _ in range(ROUNDS)
    ]
    observed = np.bincount(chosen, minlength=len(counts))
    assert stats.chisquare(observed, law * ROUNDS).pvalue > LIMIT
    if len(set(counts)) > 1:  # half the noise must be noticed
        wrong = LAWS[method](counts, 2 * epsilon)
        assert stats.chisquare(observed, wrong * ROUNDS).pvalue < LIMIT


@pytest.mark.parametrize("method", METHODS)
def test_two_choices_have_the_law_of_peeling(method: SelectionMethod) -> None:
    random = np.random.default_rng(2).bytes
    counts, epsilon = (2, 3, 1), 0.7
    law = {}
    for first in range(3):
        others = [i for i in range(3) if i != first]
        second = LAWS[method](tuple(counts[i] for i in others), epsilon)
        for i, probability in zip(others, second, strict=True):
            law[first, i] = LAWS[method](counts, epsilon)[first] * probability
    chosen = [
        tuple(top_centroids(np.array(counts), 2, epsilon, method, random).tolist())
        for _ in range(ROUNDS)
    ]
    observed = [chosen.count(pair) for pair in law]
    assert sum(observed) == ROUNDS
    assert stats.chisquare(observed, np.array(list(law.values())) * ROUNDS).pvalue > LIMIT


def test_gumbel_peeling_is_one_shot_gumbel_noise() -> None:
    """The top two of counts plus Gumbel noise of scale 1/ε, drawn in doubles by numpy."""
    generator = np.random.default_rng(3)
    counts, epsilon = np.array([2, 3, 1]), 0.7
    noisy = counts + generator.gumbel(scale=1 / epsilon, size=(ROUNDS, 3))
    one_shot = np.argsort(-noisy, axis=1)[:, :2]
    random = np.random.default_rng(4).bytes
    peeled = [
        top_centroids(counts, 2, epsilon, SelectionMethod.GUMBEL, random) for _ in range(ROUNDS)
    ]
    table = [
        np.bincount(3 * pairs[:, 0] + pairs[:, 1], minlength=9)
        for pairs in (one_shot, np.array(peeled))
    ]
    cells = np.array(table)[:, [1, 2, 3, 5, 6, 7]]
    assert stats.chi2_contingency(cells).pvalue > LIMIT


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("method", METHODS)
def test_loss_on_neighbours_is_at_most_epsilon(method: SelectionMethod, epsilon: float) -> None:
    """Every pair of monotone neighbours of up to three counts, both directions, exactly."""
    largest = 0.0
    for size in (2, 3):
        for counts in itertools.product(range(3), repeat=size):
            law = LAWS[method](counts, epsilon)
            for i in range(size):
                neighbour = tuple(count + (i == j) for j, count in enumerate(counts))
                loss = np.abs(np.log(LAWS[method](neighbour, epsilon) / law)).max()
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
        chosen = [int(top_centroids(np.array(counts), 1, epsilon)[0]) for _ in grid]
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


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism() -> None:
    for counts in itertools.product(range(4), repeat=3):
        best = np.array(counts) == max(counts)
        flip = permute_and_flip_law(counts, 0.9)[best].sum()
        assert flip >= gumbel_law(counts, 0.9)[best].sum() - 1e-12


# ---------------------------------------------------------------------------------- whole choices


@pytest.mark.parametrize("method", METHODS)
def test_distinct_indices_and_the_largest_with_much_budget(method: SelectionMethod) -> None:
    counts = np.random.default_rng(5).permutation(40).astype(np.int64)
    random = np.random.default_rng(6).bytes
    everything = top_centroids(counts, 40, 0.1, method, random)
    assert everything.dtype == np.int64
    assert sorted(everything) == list(range(40))
    np.testing.assert_array_equal(
        top_centroids(counts, 5, 200.0, method, random), np.argsort(-counts)[:5]
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_source_decides_everything(method: SelectionMethod) -> None:
    counts = np.zeros(30, dtype=np.int64)
    chosen = [
        top_centroids(counts, 5, 1.0, method, np.random.default_rng(seed).bytes)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert (chosen[0] != chosen[2]).any()
    drawn = {tuple(top_centroids(counts, 5, 1.0, method)) for _ in range(5)}
    assert len(drawn) > 1


@pytest.mark.parametrize("counts", [np.zeros((2, 2), dtype=int), np.array([1.0, 2.0]), ["a"]])
def test_bad_counts_are_refused(counts: object) -> None:
    with pytest.raises(InvalidInputError, match="counts"):
        top_centroids(counts, 1, 1.0)


@pytest.mark.parametrize(
    ("top", "epsilon", "method", "named"),
    [
        (0, 1.0, "gumbel", "top"),
        (4, 1.0, "gumbel", "top"),
        (1.5, 1.0, "gumbel", "top"),
        (1, 0.0, "noisy-max", "epsilon"),
        (1, math.nan, "permute-and-flip", "epsilon"),
        (1, math.inf, "gumbel", "epsilon"),
        (1, 1.0, "loudest", "noisy-max, permute-and-flip, gumbel"),
    ],
)
def test_bad_settings_are_named(top: int, epsilon: float, method: str, named: str) -> None:
    with pytest.raises(InvalidParametersError, match=named):
        top_centroids(np.array([1, 2, 3]), top, epsilon, method)
