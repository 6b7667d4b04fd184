"""Private selection: exact laws for few candidates, and what they lose on neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import stats

from earshot_client import selection
from earshot_client.selection import top_centroids
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.events import BoundedRange, Pure
from earshot_protocol.privacy.local_mechanisms import Selection, SelectionMethod
from earshot_protocol.privacy.mechanisms import Unit

ROUNDS = 6000
LIMIT = 1e-4  # of a goodness-of-fit test; seeds are fixed, so a pass stays a pass


METHODS = list(SelectionMethod)
Law = Callable[[tuple[int, ...], float], np.ndarray]


def mechanism(
    epsilon: float, repeats: int, method: SelectionMethod = SelectionMethod.NOISY_MAX
) -> Selection:
    return Selection(epsilon, repeats, 200, method)


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


LAWS: dict[SelectionMethod, Law] = {
    SelectionMethod.NOISY_MAX: noisy_max_law,
    SelectionMethod.PERMUTE_AND_FLIP: permute_and_flip_law,
    SelectionMethod.GUMBEL: gumbel_law,
}


def peeled(law: Law, counts: tuple[int, ...], epsilon: float) -> dict[tuple[int, int], float]:
    """The law of two choices without replacement."""
    pairs = {}
    for first, probability in enumerate(law(counts, epsilon)):
        others = [i for i in range(len(counts)) if i != first]
        second = law(tuple(counts[i] for i in others), epsilon)
        pairs |= {(first, i): probability * p for i, p in zip(others, second, strict=True)}
    return pairs


@pytest.mark.parametrize(
    "counts",
    [
        (0, 0),
        (3, 2),
        (0, 4, 4),
        pytest.param((2, 3, 1), marks=pytest.mark.slow),
        pytest.param((5, 0, 1), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_one_choice_has_the_law(method: SelectionMethod, counts: tuple[int, ...]) -> None:
    """A right sampler fails with probability `LIMIT`, here and below: a chi-squared test."""
    random = np.random.default_rng(1).bytes
    epsilon = 0.8
    law = LAWS[method](counts, epsilon)
    assert law.sum() == pytest.approx(1)
    chosen = [
        int(top_centroids(np.array(counts), mechanism(epsilon, 1, method), random)[0])
        for _ in range(ROUNDS)
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
    law = peeled(LAWS[method], counts, epsilon)
    chosen = [
        tuple(top_centroids(np.array(counts), mechanism(epsilon, 2, method), random).tolist())
        for _ in range(ROUNDS)
    ]
    observed = [chosen.count(pair) for pair in law]
    assert sum(observed) == ROUNDS
    assert stats.chisquare(observed, np.array(list(law.values())) * ROUNDS).pvalue > LIMIT


def test_peeling_is_one_shot_gumbel_noise() -> None:
    """The top two of counts plus Gumbel noise of scale 1/ε, drawn once, in doubles, by numpy."""
    counts, epsilon, draws = np.array([2, 3, 1]), 0.7, 200_000
    gumbel = np.random.default_rng(3).gumbel(scale=1 / epsilon, size=(draws, 3))
    one_shot = np.argsort(-(counts + gumbel), axis=1)[:, :2]
    observed = np.bincount(3 * one_shot[:, 0] + one_shot[:, 1], minlength=9)
    law = peeled(gumbel_law, (2, 3, 1), epsilon)
    expected = [draws * law[divmod(cell, 3)] for cell in (1, 2, 3, 5, 6, 7)]
    assert stats.chisquare(observed[[1, 2, 3, 5, 6, 7]], expected).pvalue > LIMIT


# ---------------------------------------------------------------------------------------- privacy


def neighbours(size: int, most: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of small monotone neighbours: one recording more in one of the counts."""
    for counts in itertools.product(range(most), repeat=size):
        for i in range(size):
            yield counts, tuple(count + (i == j) for j, count in enumerate(counts))


@pytest.mark.parametrize(
    "epsilon",
    [pytest.param(0.3, marks=pytest.mark.slow), 1.0, pytest.param(2.5, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("method", METHODS)
def test_loss_on_neighbours_is_at_most_epsilon(method: SelectionMethod, epsilon: float) -> None:
    """Every pair of monotone neighbours of up to three counts, both directions, exactly."""
    largest = widest = 0.0
    for counts, neighbour in itertools.chain(neighbours(2, 3), neighbours(3, 3)):
        losses = np.log(LAWS[method](neighbour, epsilon) / LAWS[method](counts, epsilon))
        largest = max(largest, float(np.abs(losses).max()))
        widest = max(widest, float(np.ptp(losses)))
    assert largest <= epsilon * (1 + 1e-9)
    assert largest > 0.5 * epsilon, "neighbours that show nothing prove nothing"
    event = mechanism(epsilon, 1, method).event(Unit.RECORDING)
    assert event == (BoundedRange if method is SelectionMethod.GUMBEL else Pure)(epsilon)
    # Only the exponential mechanism's losses lie in a range of ε: the others say no more than ε.
    assert (widest <= epsilon * (1 + 1e-9)) == isinstance(event, BoundedRange)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_two_choices_cost_no_more_than_their_event(method: SelectionMethod) -> None:
    """The Rényi divergence of what the choices release, against the phone's closed forms."""
    epsilon, orders = 0.9, np.array([1.5, 2.0, 8.0, 40.0])
    allowed = renyi(mechanism(epsilon, 2, method).event(Unit.RECORDING), orders)
    assert mechanism(epsilon, 2, method).cost(Unit.RECORDING).epsilon == 2 * epsilon
    for counts, neighbour in neighbours(3, 3):
        laws = [list(peeled(LAWS[method], each, epsilon).values()) for each in (counts, neighbour)]
        for p, q in itertools.permutations(map(np.array, laws)):
            assert np.abs(np.log(p / q)).max() <= 2 * epsilon * (1 + 1e-9)
            spent = [np.log(np.sum(p**a * q ** (1 - a))) / (a - 1) for a in orders]
            assert (np.array(spent) <= allowed * (1 + 1e-9)).all()


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
        chosen = [int(top_centroids(np.array(counts), mechanism(epsilon, 1))[0]) for _ in grid]
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


# ------------------------------------------------------------------------------------------- use


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.9, 3.0])
def test_permute_and_flip_is_never_worse(epsilon: float) -> None:
    """How far the chosen count is behind the largest, in expectation, for all small counts.

    Report noisy max favours the first of equals, so it is taken in the mean over all orders.
    """
    for counts in itertools.combinations_with_replacement(range(5), 3):
        lost = {
            method: sum(
                float(law(order, epsilon) @ (max(order) - np.array(order)))
                for order in itertools.permutations(counts)
            )
            for method, law in LAWS.items()
        }
        flip = lost.pop(SelectionMethod.PERMUTE_AND_FLIP)
        assert flip <= min(lost.values()) + 1e-12
        if counts == (0, 1, 4):
            assert flip < 0.99 * min(lost.values())


# ---------------------------------------------------------------------------------- whole choices


@pytest.mark.parametrize("method", METHODS)
def test_distinct_indices_and_the_largest_with_much_budget(method: SelectionMethod) -> None:
    counts = np.random.default_rng(5).permutation(40).astype(np.int64)
    random = np.random.default_rng(6).bytes
    everything = top_centroids(counts, mechanism(0.1, 40, method), random)
    assert everything.dtype == np.int64
    assert sorted(everything) == list(range(40))
    np.testing.assert_array_equal(
        top_centroids(counts, mechanism(200.0, 5, method), random), np.argsort(-counts)[:5]
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_source_decides_everything(method: SelectionMethod) -> None:
    counts = np.zeros(30, dtype=np.int64)
    chosen = [
        top_centroids(counts, mechanism(1.0, 5, method), np.random.default_rng(seed).bytes)
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(chosen[0], chosen[1])
    assert (chosen[0] != chosen[2]).any()
    drawn = {tuple(top_centroids(counts, mechanism(1.0, 5, method))) for _ in range(5)}
    assert len(drawn) > 1


@pytest.mark.parametrize("counts", [np.zeros((2, 2), dtype=int), np.array([1.0, 2.0]), ["a"]])
def test_bad_counts_are_refused(counts: object) -> None:
    with pytest.raises(InvalidInputError, match="counts"):
        top_centroids(counts, mechanism(1.0, 1))


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
        top_centroids(np.array([1, 2, 3]), mechanism(epsilon, top))
