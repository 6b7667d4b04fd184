"""One winner among all sets of labels, against tables that hold every set."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

from earshot_models.votes.costs.dependent import log_other_winner
from earshot_models.votes.costs.outcomes import ERROR, log_winning, outcome_divergence
from earshot_models.votes.costs.powerset import log_other_set, set_divergence
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol.privacy.mechanisms import Unit

ORDERS = np.array([1.3, 2.0, 6.0, 25.0])


def few(counts: list[int], labels: int) -> SubsetVotes:
    """One query: the first sets have these counts."""
    rows = np.array(list(itertools.islice(itertools.product((0, 1), repeat=labels), len(counts))))
    return SubsetVotes(rows.astype(np.int8), np.array(counts), np.array([0]))


def dense(counts: list[int], labels: int) -> np.ndarray:
    return np.array([counts + [0] * (2**labels - len(counts))], dtype=np.float64)


CASES = [([5, 3, 3], 3), ([30], 4), ([8, 4, 2, 1, 1], 3), ([3, 2, 1, 1], 2), ([25, 25], 1)]


@pytest.mark.parametrize(("counts", "labels"), CASES)
@pytest.mark.parametrize("sigma", [1.5, 7.0, 40.0])
def test_sparse_sets_cost_what_a_table_of_all_sets_does(
    counts: list[int], labels: int, sigma: float
) -> None:
    sparse = few(counts, labels)
    expected = outcome_divergence(dense(counts, labels), sigma, ORDERS)
    np.testing.assert_allclose(
        set_divergence(sparse, sigma, ORDERS), expected, rtol=1e-7, atol=4 * ERROR
    )
    np.testing.assert_allclose(
        log_other_set(sparse, sigma), log_other_winner(dense(counts, labels), sigma), rtol=1e-12
    )


@pytest.mark.parametrize(("counts", "labels"), CASES[:3])
def test_a_teacher_that_is_left_out(counts: list[int], labels: int) -> None:
    """Every law with one vote fewer, or one more, of a table of all sets."""
    sigma, table = 4.0, dense(counts, labels)[0]
    here = log_winning(table, sigma)
    worst = np.zeros(len(ORDERS))
    for place, change in itertools.product(range(len(table)), (-1, 1)):
        if table[place] + change >= 0:
            there = log_winning(table + change * (np.arange(len(table)) == place), sigma)
            for p, q in ((here, there), (there, here)):
                logs = logsumexp(ORDERS[:, None] * p + (1 - ORDERS[:, None]) * q, axis=1)
                worst = np.maximum(worst, logs / (ORDERS - 1))
    found = set_divergence(few(counts, labels), sigma, ORDERS, Unit.PHONE)[0]
    np.testing.assert_allclose(found, worst, rtol=1e-6, atol=1e-9)
    assert (found <= ORDERS / (2 * sigma**2)).all()
    moved = set_divergence(few(counts, labels), sigma, ORDERS)[0]
    assert (found < moved).all()


@pytest.mark.slow
def test_a_million_sets_against_another_quadrature() -> None:
    """Fifty unanimous teachers, twenty labels: two kinds of sets, and three at a neighbour."""
    sigma, uncast, order = 7.0, 2**20 - 1, 10.0
    nodes, weights = np.polynomial.legendre.leggauss(4000)
    half = 60.0
    points, weights = half * nodes + 45.0, half * weights  # from −15 to 105

    def law(most: float, one: float | None) -> list[float]:
        kinds = [(most, 1), (0.0, uncast if one is None else uncast - 1)]
        kinds += [] if one is None else [(one, 1)]
        below = sum(times * log_ndtr((points - each) / sigma) for each, times in kinds)
        found = []
        for each, _ in kinds:
            standard = (points - each) / sigma
            logs = -0.5 * standard**2 - log_ndtr(standard) + below
            found.append(float(weights @ np.exp(logs)) / (sigma * math.sqrt(2 * math.pi)))
        total = sum(p * times for p, (_, times) in zip(found, kinds, strict=True))
        assert total == pytest.approx(1, abs=1e-9)
        return found

    here, there = law(50.0, None), law(49.0, 1.0)
    times = (1, uncast - 1, 1)
    with mpmath.workdps(30):
        ways = []
        for p, q in (((*here, here[1]), there), (there, (*here, here[1]))):
            terms = [
                n * mpmath.mpf(a) ** order * mpmath.mpf(b) ** (1 - order)
                for n, a, b in zip(times, p, q, strict=True)
            ]
            ways.append(float(mpmath.log(mpmath.fsum(terms)) / (order - 1)))
    found = set_divergence(few([50], 20), sigma, [order])[0, 0]
    assert found == pytest.approx(max(ways), rel=1e-6)


def test_how_likely_another_of_a_million_sets_wins_at_50_digits() -> None:
    with mpmath.workdps(50):
        uncast = (2**20 - 2) * mpmath.erfc(mpmath.mpf(40) / 14) / 2
        expected = float(mpmath.log(uncast + mpmath.erfc(mpmath.mpf(30) / 14) / 2))
    assert expected > 0, "the bound says nothing here, and 1 − 2^-20 stands in"
    found = log_other_set(few([40, 10], 20), 7.0)[0]
    assert found == pytest.approx(math.log1p(-(2.0**-20)), rel=1e-9)
    with mpmath.workdps(50):
        uncast = (2**20 - 2) * mpmath.erfc(mpmath.mpf(40) / 8) / 2
        expected = float(mpmath.log(uncast + mpmath.erfc(mpmath.mpf(30) / 8) / 2))
    assert log_other_set(few([40, 10], 20), 4.0)[0] == pytest.approx(expected, rel=1e-12)


def test_hundreds_of_labels_are_no_harder_than_twenty() -> None:
    for labels in (53, 60, 512):
        rows = np.zeros((2, labels), dtype=np.int8)
        rows[1, 0] = 1
        votes = SubsetVotes(rows, np.array([200, 50]), np.array([0]))
        found = set_divergence(votes, 12.0, ORDERS)[0]
        assert (found > 0).all()
        assert (found <= ORDERS / 144).all()
