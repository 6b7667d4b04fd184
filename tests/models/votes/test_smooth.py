"""Smooth sensitivity against every neighbour, and the cost of noise that depends on it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import mpmath
import numpy as np
import pytest
from support.goodness import source
from support.refusals import refused

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.dependent import log_other_winner
from earshot_models.votes.costs.releases import (
    CostRelease,
    best_release,
    largest_beta,
    printed_release_divergence,
    published,
    release_divergence,
    smooth_sensitivity,
)
from earshot_models.votes.costs.smooth import (
    _Answers,
    exact_sensitivities,
    local_sensitivities,
)
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_protocol.errors import InvalidParametersError

ALL = np.array([True])
TEACHERS = 40
ORDER = 4.0
GNMAX = GNMaxRule(sigma=8.0)
CONFIDENT = ConfidentRule(sigma=8.0, threshold=25.0, check_sigma=12.0)
CHECK = CONFIDENT.check


def neighbours(votes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for here, there in itertools.permutations(range(len(votes)), 2):
        if votes[here]:
            moved = list(votes)
            moved[here] -= 1
            moved[there] += 1
            yield tuple(moved)


def all_votes(classes: int) -> list[tuple[int, ...]]:
    """That 40 teachers can cast, each descending."""
    found = [
        each
        for each in itertools.product(range(TEACHERS + 1), repeat=classes - 1)
        if sum(each) <= TEACHERS
    ]
    whole = [(*each, TEACHERS - sum(each)) for each in found]
    return [each for each in whole if list(each) == sorted(each, reverse=True)]


@functools.cache
def of_answer(votes: tuple[int, ...]) -> np.ndarray:
    return local_sensitivities(8.0, None, np.array([votes]), ALL, ORDER, TEACHERS)


def cost(aggregator: GNMaxRule, votes: tuple[int, ...], method: Method = Method.DEPENDENT) -> float:
    return float(aggregator.divergences(np.array([votes]), [ORDER], method).answered[0, 0])


@pytest.mark.parametrize("classes", [2, 3])
def test_answers_against_every_neighbour(classes: int) -> None:
    """No neighbour's cost is further than LS₀, and LS_d is no more than a neighbour's LS_(d+1)."""
    votes = all_votes(classes)
    costs = {each: cost(GNMAX, each) for each in votes}
    known = {each: of_answer(each) for each in votes}
    for here in votes:
        assert (np.diff(known[here]) >= 0).all()
        for moved in neighbours(here):
            there = tuple(sorted(moved, reverse=True))
            assert abs(costs[here] - costs[there]) <= known[here][0] * (1 + 1e-9) + 1e-12
            assert (known[here][:-1] <= known[there][1:] * (1 + 1e-9) + 1e-12).all()
    assert min(each[0] for each in known.values()) < 0.2 * max(each[0] for each in known.values())


@pytest.mark.parametrize("beta", [0.02, 0.1, 0.4])
def test_smooth_sensitivities_of_neighbours_are_within_their_factor(beta: float) -> None:
    votes = all_votes(3)
    smooth = {each: smooth_sensitivity(of_answer(each), beta) for each in votes}
    for here in votes:
        for moved in neighbours(here):
            there = tuple(sorted(moved, reverse=True))
            assert smooth[here] <= math.exp(beta) * smooth[there] * (1 + 1e-9)


def test_a_moved_vote_keeps_q_between_its_bounds() -> None:
    answers = _Answers(8.0, 3, ORDER)
    for votes in all_votes(3):
        here = log_other_winner(np.array([votes]), 8.0)
        low, high = answers._moved(here, -1)[0], answers._moved(here, 1)[0]
        for moved in neighbours(votes):
            there = log_other_winner(np.array([moved]), 8.0)[0]
            assert low - 1e-9 <= there <= max(high, math.log(2 / 3)) + 1e-9


def test_a_check_is_a_table_and_so_is_an_exact_answer_of_two() -> None:
    """By hand: the largest step between neighbours among all votes that are d votes away."""
    costs = {}
    for first in range(TEACHERS + 1):
        votes = np.array([[first, TEACHERS - first]])
        each = CONFIDENT.divergences(votes, [ORDER], Method.EXACT)
        costs[first] = (each.asked[0, 0], each.answered[0, 0])
    for first in (0, 7, 20, 33, 40):
        votes = np.array([[first, TEACHERS - first]])
        for voted, parts in ((ALL, (0, 1)), (~ALL, (0,))):
            expected = []
            for distance in range(TEACHERS + 1):
                near = [v for v in costs if abs(v - first) <= distance]
                expected.append(
                    sum(
                        max(
                            abs(costs[v][part] - costs[w][part])
                            for v in near
                            for w in (v - 1, v + 1)
                            if w in costs
                        )
                        for part in parts
                    )
                )
            found = exact_sensitivities(8.0, CHECK, votes, voted, ORDER, TEACHERS)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("exact", [False, True])
def test_queries_share_their_neighbours(exact: bool) -> None:
    """A hundred equal queries have a hundred times the sensitivity: sums first, then smooth."""
    of = exact_sensitivities if exact else local_sensitivities
    votes = np.array([[33.0, 7.0], [22.0, 18.0]])
    voted = np.array([True, False])
    each = [of(8.0, CHECK, votes[[k]], voted[[k]], ORDER, TEACHERS) for k in range(2)]
    together = of(8.0, CHECK, np.tile(votes, (100, 1)), np.tile(voted, 100), ORDER, TEACHERS)
    np.testing.assert_allclose(together, 100 * (each[0] + each[1]), rtol=1e-9)


def test_a_check_of_confident_answers_has_no_neighbour_further_away() -> None:
    for first in range(1, TEACHERS):
        votes = np.array([[float(first), TEACHERS - first]])
        found = local_sensitivities(8.0, CHECK, votes, ~ALL, ORDER, TEACHERS)
        here = CONFIDENT.divergences(votes, [ORDER], Method.DEPENDENT).asked[0, 0]
        for step in (-1, 1):
            moved = votes + np.array([[step, -step]])
            there = CONFIDENT.divergences(moved, [ORDER], Method.DEPENDENT).asked[0, 0]
            assert abs(here - there) <= found[0] + 1e-12


# ---------------------------------------------------------------------------------- the release


def gaussian_divergence(apart: float, first: float, second: float, order: float) -> mpmath.mpf:
    """∫ p^λ p'^(1−λ) by quadrature, of N(0, first²) and N(apart, second²)."""
    p, q = mpmath.mpf(first), mpmath.mpf(second)

    def integrand(x: mpmath.mpf) -> mpmath.mpf:
        logs = -order * x**2 / (2 * p**2) - (1 - order) * (x - apart) ** 2 / (2 * q**2)
        return mpmath.exp(logs) / (p**order * q ** (1 - order) * mpmath.sqrt(2 * mpmath.pi))

    left = order / p**2 + (1 - order) / q**2
    centre = (1 - order) * apart / q**2 / left
    width = 1 / mpmath.sqrt(left)
    steps = [centre + k * width for k in range(-20, 21, 2)]
    return mpmath.log(mpmath.quad(integrand, steps)) / (order - 1)


@pytest.mark.parametrize(
    ("order", "beta", "sigma"), [(14.0, 0.0329, 11.64), (3.0, 0.1, 2.0), (8.0, 0.01, 5.0)]
)
def test_the_release_costs_the_divergence_of_two_normal_laws(
    order: float, beta: float, sigma: float
) -> None:
    grown = math.exp(beta) * sigma
    with mpmath.workdps(30):
        worst = float(gaussian_divergence(1.0, grown, sigma, order))
        other = float(gaussian_divergence(1.0, sigma, grown, order))
        same = float(gaussian_divergence(1.0, sigma, sigma, order))
    found = release_divergence(order, beta, sigma)
    assert found == pytest.approx(worst, rel=1e-9)
    assert found >= max(other, same)


def test_the_printed_cost_of_a_release_is_half_of_the_true_one_where_they_tune() -> None:
    assert printed_release_divergence(14, 0.0329, 11.64) == pytest.approx(0.24, abs=0.005)
    assert release_divergence(14, 0.0329, 11.64) == pytest.approx(0.50, abs=0.005)
    with pytest.raises(InvalidParametersError, match="below 15"):
        printed_release_divergence(16, 0.0329, 11.64)


def test_the_best_release_is_no_worse_than_others_and_what_is_published_is_unbiased() -> None:
    votes = np.random.default_rng(1).multinomial(40, [0.8, 0.1, 0.1], 50).astype(float)
    sensitivities = local_sensitivities(8.0, CHECK, votes, votes[:, 0] > 30, ORDER, TEACHERS)
    best = best_release(sensitivities, ORDER)
    assert best.divergence == release_divergence(ORDER, best.beta, best.deviation)
    assert best.sensitivity == smooth_sensitivity(sensitivities, best.beta)
    for beta in (0.01, 0.03, 0.08):
        for deviation in (0.5, 2.0, 8.0, 30.0):
            other = release_divergence(ORDER, beta, deviation)
            other += deviation * smooth_sensitivity(sensitivities, beta)
            assert best.divergence + best.noise <= other * 1.02
    random = source(2)
    drawn = np.array([published(1.0, best, random) for _ in range(4000)])
    assert (drawn * 1024 == np.rint(drawn * 1024)).all()
    assert drawn.mean() == pytest.approx(1.0005, abs=4 * best.noise / math.sqrt(4000))
    assert drawn.std() == pytest.approx(best.noise, rel=0.06)


test_what_is_out_of_range_is_named = refused(
    InvalidParametersError,
    (r"beta=0.04: must be below 0\.037", release_divergence, 14, 0.04, 5.0),
    ("order", release_divergence, 1.0, 0.04, 5.0),
    ("deviation", release_divergence, 3.0, 0.01, 0.0),
    ("beta", smooth_sensitivity, np.ones(3), 0.0),
    ("too small", local_sensitivities, 0.8, None, np.array([[30, 10]]), ALL, 4.0, 40),
    ("3 classes", exact_sensitivities, 8.0, None, np.array([[30, 5, 5]]), ALL, 4.0, 40),
    ("add up to 40", exact_sensitivities, 8.0, None, np.array([[30, 5]]), ALL, 4.0, 40),
    ("teachers", local_sensitivities, 8.0, None, np.array([[30, 10]]), ALL, 4.0, 0),
)


def test_a_release_has_secret_noise() -> None:
    assert CostRelease(4.0, 0.1, 2.0, 0.25, 1.0).noise == 0.5
    assert largest_beta(14) == pytest.approx(0.5 * math.log(14 / 13))
