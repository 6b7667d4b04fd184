"""The Laplace scale that is printed for PATE-AAE: what it protects, what it leaves of labels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from earshot_models.votes.costs.claims import printed_scale
from earshot_models.votes.rules.lnmax import LNMax
from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.auditing.findings import AuditRole
from earshot_simulations.auditing.printed_votes import (
    SCALE_DELTA,
    SCALE_TEACHERS,
    added_epsilon,
    audit_printed_scale,
    measured_epsilon,
    proven_epsilon,
    wins,
)
from earshot_studies.pate_aae.right_labels import (
    WORDS,
    best_accuracy,
    most_accuracy,
    printed_right_labels,
    right_labels,
)


def test_the_scale_is_that_under_figure_5() -> None:
    assert printed_scale(0.1, 200) == pytest.approx(1000)
    with pytest.raises(InvalidParametersError, match="queries=0"):
        printed_scale(1.0, 0)
    with pytest.raises(InvalidParametersError, match="epsilon"):
        printed_scale(0.0, 10)


def laplace_cdf(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2


@pytest.mark.parametrize("lead", [-3.0, -0.01, 0.0, 0.4, 12.0])
def test_who_wins_is_the_law_of_two_laplace_numbers(lead: float) -> None:
    with mpmath.workdps(30):
        exact = mpmath.quad(
            lambda x: mpmath.exp(-abs(x)) / 2 * laplace_cdf(x + lead),
            [-mpmath.inf, *sorted({-lead, 0.0}), mpmath.inf],
        )
    assert wins(lead) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "queries", "right"),
    # What the paper's noise leaves of unanimous teachers.
    [(0.01, 200, 0.03), (1, 200, 0.20), (10, 10_000, 0.04), (100, 10_000, 0.66)],
)
def test_figure_5_cannot_be_of_this_noise(epsilon: float, queries: int, right: float) -> None:
    found = printed_right_labels(epsilon, queries)
    assert round(found, 2) == right
    lead = mpmath.mpf(SCALE_TEACHERS) * 2 * epsilon / queries
    with mpmath.workdps(30):
        exact = mpmath.quad(
            lambda x: mpmath.exp(-abs(x)) / 2 * laplace_cdf(x + lead) ** (WORDS - 1),
            [-mpmath.inf, -lead, 0, lead, mpmath.inf],
        )
    assert found == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(("teachers", "classes", "scale"), [(20, 2, 7.0), (200, 10, 80.0)])
def test_right_labels_are_those_that_are_drawn(teachers: int, classes: int, scale: float) -> None:
    votes = np.zeros((40_000, classes))
    votes[:, classes - 1] = teachers
    drawn = LNMax(1 / scale).winners(votes, np.random.default_rng(3).bytes)
    right = float((drawn == classes - 1).mean())
    assert right_labels(teachers, classes, scale) == pytest.approx(right, abs=0.01)


def test_right_labels_go_from_chance_to_all() -> None:
    found = [right_labels(200, 35, scale) for scale in (1e9, 1e3, 100.0, 10.0, 1e-2)]
    assert found[0] == pytest.approx(1 / 35, rel=1e-6)
    assert found == sorted(found)
    assert found[-1] == pytest.approx(1.0)
    with pytest.raises(InvalidParametersError, match="classes=1"):
        right_labels(200, 1, 3.0)


def test_no_student_is_above_its_bound() -> None:
    """Guess a word from the labels of its clips, as well as anybody can: by the most frequent."""
    generator, words = np.random.default_rng(1), 5
    for epsilon, queries in ((0.01, 50), (0.05, 50), (0.2, 100)):
        scale = printed_scale(epsilon, queries)
        votes = np.zeros((queries // words * 2000, words))
        votes[:, 0] = SCALE_TEACHERS
        labels = LNMax(1 / scale).winners(votes, generator.bytes).reshape(2000, -1)
        counts = np.stack([(labels == word).sum(axis=1) for word in range(words)], axis=1)
        guessed = (counts + generator.random(counts.shape) / 2).argmax(axis=1)
        assert (guessed == 0).mean() < most_accuracy(epsilon, queries, words) + 0.03


def test_at_small_epsilon_no_number_of_queries_helps() -> None:
    many = [WORDS * 2**power for power in range(12)]
    assert max(most_accuracy(0.01, queries) for queries in many) < 0.1
    assert most_accuracy(100, 200) == 1.0
    with pytest.raises(InvalidParametersError, match="queries=34"):
        most_accuracy(1.0, 34)


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.03])
def test_no_number_of_queries_has_a_higher_bound(epsilon: float) -> None:
    """Just beyond a multiple of the words, a word has one more label at hardly more noise."""
    tried = [most_accuracy(epsilon, queries, 5) for queries in range(5, 200)]
    assert max(tried) == best_accuracy(epsilon, 5, 40)
    assert 1 > max(tried) > max(tried[::5])


def test_the_printed_scale_costs_more_or_less_than_is_claimed() -> None:
    few, paper, many = (replace(each, role=AuditRole.PRINTED) for each in audit_printed_scale())
    assert few.verdict == paper.verdict == "claim is wrong"
    assert many.verdict == "claim holds"
    for each in (few, paper, many):
        assert each.proven is not None
        assert each.measured.low <= each.measured.high <= each.proven <= added_epsilon(each.claimed)
    assert few.measured.low > 2 * few.claimed
    assert many.proven is not None
    assert many.proven < many.claimed / 2


def test_what_is_proven_is_the_divergence_of_all_answers() -> None:
    """By mpmath: K times randomized response of 2/b, the best order of a grid."""
    queries, epsilon = 200, 1.0
    each = mpmath.mpf(2) / printed_scale(epsilon, queries)
    best = mpmath.inf
    with mpmath.workdps(50):
        p = 1 / (1 + mpmath.exp(-each))
        for order in (mpmath.mpf(place) / 4 for place in range(6, 400)):
            total = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            spent = queries * mpmath.log(total) / (order - 1)
            spent += mpmath.log(1 - 1 / order)
            spent -= (mpmath.log(SCALE_DELTA) + mpmath.log(order)) / (order - 1)
            best = min(best, spent)
    # The product's accountant may know a tighter way; it must not be looser.
    assert proven_epsilon(queries, epsilon) <= float(best) * 1.001
    assert proven_epsilon(queries, epsilon) > measured_epsilon(queries, epsilon).low


def test_what_is_measured_is_the_law_of_all_answers() -> None:
    """Of three queries, every sequence of winners, by a textbook's hockey stick."""
    queries, epsilon, teachers = 3, 1.0, 4
    scale = printed_scale(epsilon, queries)
    worst = 0.0
    for lead in range(0, teachers + 1, 2):
        for one, two in ((lead, lead - 2), (lead - 2, lead)):
            p, q = wins(one / scale), wins(two / scale)
            pairs = [
                (math.prod(p if bit else 1 - p for bit in bits),
                 math.prod(q if bit else 1 - q for bit in bits))
                for bits in itertools.product((0, 1), repeat=queries)
            ]  # fmt: skip
            low, high = 0.0, 20.0
            for _ in range(60):
                middle = (low + high) / 2
                delta = sum(max(0.0, a - math.exp(middle) * b) for a, b in pairs)
                low, high = (middle, high) if delta > SCALE_DELTA else (low, middle)
            worst = max(worst, high)
    found = measured_epsilon(queries, epsilon, SCALE_DELTA, teachers)
    assert found.low == pytest.approx(worst, abs=1e-5)
    assert found.low <= worst <= found.high + 1e-9
