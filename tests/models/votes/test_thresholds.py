"""Votes against thresholds: fixed ones, the widest gap of noisy votes, and a public grid."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.examples import examples
from support.goodness import ALPHA_LIMIT, frequent, source
from support.refusals import refused

from earshot_models.votes.rules.against_thresholds import largest_outputs
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule, above_widest_gap
from earshot_models.votes.rules.grid_threshold import GridRule, room
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE

DRAWS = 40_000


def test_a_fixed_threshold_has_a_normal_law() -> None:
    voting = GNThresholdRule(sigma=4.0, cut=10.0)
    found = voting.outcomes(np.broadcast_to([3.0, 10.0, 12.5], (DRAWS, 3)), 50, source(1))
    for label, votes in enumerate((3.0, 10.0, 12.5)):
        assert frequent(found[:, label], stats.norm.cdf((votes - 10) / 4))


@pytest.mark.parametrize(
    "voting",
    [
        GNThresholdRule(sigma=1e-3, cut=10.0, threshold=30.0, check_sigma=5.0),
        AdaptiveRule(sigma=1e-3, threshold=30.0, check_sigma=5.0),
        GridRule(sigma=1e-3, grid=(10.0,), scale=1e-3, threshold=30.0, check_sigma=5.0),
    ],
)
def test_a_check_looks_at_the_largest_vote_with_one_noise(voting: Any) -> None:
    votes = np.broadcast_to([33.0, 33.0, 2.0], (DRAWS, 3))
    found = voting.outcomes(votes, 50, source(2))
    passed = (found != NONE).all(axis=1)
    assert ((found == NONE).all(axis=1) | passed).all()
    assert frequent(passed, stats.norm.cdf(3 / 5))  # not that of two tries
    assert (found[passed] == [1, 1, 0]).all()


def textbook_above(values: list[float]) -> list[bool]:
    """Definition 11 in its own words."""
    ordered = sorted(values, reverse=True)
    gaps = [high - low for high, low in itertools.pairwise(ordered)]
    at = gaps.index(max(gaps))
    middle = (ordered[at] + ordered[at + 1]) / 2
    return [value > middle for value in values]


@settings(max_examples=examples(200))
@given(st.lists(st.integers(0, 12), min_size=2, max_size=7).filter(lambda each: len(set(each)) > 1))
def test_above_the_widest_gap_and_of_equal_gaps_the_upper(values: list[float]) -> None:
    found = above_widest_gap(np.array([values, values], dtype=np.float64))
    assert found.tolist() == [textbook_above(values)] * 2


def test_the_adaptive_threshold_is_of_noisy_votes() -> None:
    """Of two labels the one with more noisy votes wins, and that alone: a normal law."""
    votes = np.broadcast_to([22.0, 20.0], (DRAWS, 2))
    found = AdaptiveRule(sigma=4.0).outcomes(votes, 50, source(3))
    assert (found.sum(axis=1) == 1).all()
    assert frequent(found[:, 0], stats.norm.cdf(2 / (4 * math.sqrt(2))))


def test_thresholds_of_a_grid_have_the_law_of_the_exponential_mechanism() -> None:
    grid = (5.0, 15.0, 30.0, 45.0)
    voting = GridRule(sigma=1.0, grid=grid, scale=3.0)
    votes = np.array([[48.0, 20.0, 0.0]])
    apart = room(np.array(grid), votes, 50)
    assert apart.tolist() == [[5.0, 5.0, 10.0, 3.0]]
    law = np.exp(apart[0] / 3)
    found = voting.thresholds(np.repeat(votes, DRAWS, axis=0), 50, source(4))
    observed = [(found == each).sum() for each in grid]
    assert stats.chisquare(observed, DRAWS * law / law.sum()).pvalue > ALPHA_LIMIT


def test_silence_gets_no_label_from_a_grid() -> None:
    """Zeros count as votes at either end, so a threshold beside them has no room."""
    voting = GridRule(sigma=1.0, grid=(2.0, 25.0, 48.0), scale=0.5)
    assert not voting.outcomes(np.zeros((1000, 4)), 50, source(5)).any()


def test_only_the_largest_outputs_count_and_of_equal_ones_the_first() -> None:
    outputs = np.array([[0.5, 0.9, 0.5, 0.1], [0.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
    expected = [[0.5, 0.9, 0.0, 0.0], [0.0] * 4, [0.0, 0.0, 0.3, 0.4]]
    np.testing.assert_array_equal(largest_outputs(outputs, 2), expected)
    voting = GNThresholdRule(sigma=1.0, cut=1.0, winners=2)
    np.testing.assert_allclose(voting.votes(outputs[:, None]), np.sum(expected, axis=0)[None])
    everything = GNThresholdRule(sigma=1.0, cut=1.0)
    np.testing.assert_allclose(everything.votes(outputs[:, None]), outputs.sum(axis=0)[None])


FIXED = GNThresholdRule(sigma=1.0, cut=1.0)
FIVE = GNThresholdRule(sigma=1.0, cut=1.0, winners=5)
ADAPTIVE = AdaptiveRule(sigma=1.0)
SCORES = np.full((2, 3, 4), 0.5)
BAD = SCORES.copy()
BAD[1, 1, 1] = math.nan


test_parameters_out_of_range_are_named = refused(
    InvalidParametersError,
    ("cut", lambda: GNThresholdRule(sigma=1.0, cut=math.nan)),
    ("cut", lambda: GNThresholdRule(sigma=1.0, cut=math.inf)),
    ("sigma", lambda: GNThresholdRule(sigma=0.0, cut=1.0)),
    ("the number of labels", FIVE.votes, SCORES),
    ("above 0", lambda: GridRule(sigma=1.0, grid=(0.0, 1.0))),
    ("above 0", lambda: GridRule(sigma=1.0, grid=(math.nan,))),
    ("scale", GridRule(sigma=1.0, grid=(1.0,)).outcomes, np.ones((1, 2)), 2),
)

test_bad_input_is_named = refused(
    InvalidInputError,
    ("from 0 to 1", FIXED.votes, BAD),
    ("from 0 to 1", FIXED.votes, SCORES * 3),
    ("teachers × queries × labels", FIXED.votes, SCORES[0]),
    ("0 to 2", FIXED.outcomes, np.full((1, 2), 2.5), 2),
    ("at least two", ADAPTIVE.outcomes, np.ones((1, 1)), 2),
)
