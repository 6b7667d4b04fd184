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

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.rules.against_thresholds import largest_outputs
from earshot_models.votes.rules.gnthreshold import GNThreshold
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveThreshold, above_widest_gap
from earshot_models.votes.rules.grid_threshold import GridThreshold
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE

DRAWS = 40_000


def test_a_fixed_threshold_has_a_normal_law() -> None:
    voting = GNThreshold(10.0, 4.0, 50)
    found = voting.winners(np.broadcast_to([3.0, 10.0, 12.5], (DRAWS, 3)), source(1))
    for label, votes in enumerate((3.0, 10.0, 12.5)):
        assert frequent(found[:, label], stats.norm.cdf((votes - 10) / 4))


@pytest.mark.parametrize(
    "voting",
    [
        GNThreshold(10.0, 1e-3, 50, check=ConfidentCheck(30.0, 5.0)),
        AdaptiveThreshold(1e-3, 50, check=ConfidentCheck(30.0, 5.0)),
        GridThreshold((10.0,), 1e-3, 1e-3, 50, check=ConfidentCheck(30.0, 5.0)),
    ],
)
def test_a_check_looks_at_the_largest_vote_with_one_noise(voting: Any) -> None:
    votes = np.broadcast_to([33.0, 33.0, 2.0], (DRAWS, 3))
    found = voting.winners(votes, source(2))
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
    found = AdaptiveThreshold(4.0, 50).winners(np.broadcast_to([22.0, 20.0], (DRAWS, 2)), source(3))
    assert (found.sum(axis=1) == 1).all()
    assert frequent(found[:, 0], stats.norm.cdf(2 / (4 * math.sqrt(2))))


def test_thresholds_of_a_grid_have_the_law_of_the_exponential_mechanism() -> None:
    grid = (5.0, 15.0, 30.0, 45.0)
    voting = GridThreshold(grid, 3.0, 1.0, 50)
    votes = np.array([[48.0, 20.0, 0.0]])
    room = voting.room(votes)
    assert room.tolist() == [[5.0, 5.0, 10.0, 3.0]]
    law = np.exp(room[0] / 3)
    found = voting.thresholds(np.repeat(votes, DRAWS, axis=0), source(4))
    observed = [(found == each).sum() for each in grid]
    assert stats.chisquare(observed, DRAWS * law / law.sum()).pvalue > ALPHA_LIMIT


def test_silence_gets_no_label_from_a_grid() -> None:
    """Zeros count as votes at either end, so a threshold beside them has no room."""
    voting = GridThreshold((2.0, 25.0, 48.0), 0.5, 1.0, 50)
    assert not voting.winners(np.zeros((1000, 4)), source(5)).any()


def test_only_the_largest_outputs_count_and_of_equal_ones_the_first() -> None:
    outputs = np.array([[0.5, 0.9, 0.5, 0.1], [0.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
    expected = [[0.5, 0.9, 0.0, 0.0], [0.0] * 4, [0.0, 0.0, 0.3, 0.4]]
    np.testing.assert_array_equal(largest_outputs(outputs, 2), expected)
    voting = GNThreshold(1.0, 1.0, 3, most=2)
    np.testing.assert_allclose(voting.votes(outputs[:, None]), np.sum(expected, axis=0)[None])
    everything = GNThreshold(1.0, 1.0, 3)
    np.testing.assert_allclose(everything.votes(outputs[:, None]), outputs.sum(axis=0)[None])


FIXED = GNThreshold(1.0, 1.0, 2)
FIVE = GNThreshold(1.0, 1.0, 2, most=5)
ADAPTIVE = AdaptiveThreshold(1.0, 2)
SCORES = np.full((2, 3, 4), 0.5)
BAD = SCORES.copy()
BAD[1, 1, 1] = math.nan


test_parameters_out_of_range_are_named = refused(
    InvalidParametersError,
    ("threshold", GNThreshold, math.nan, 1.0, 2),
    ("threshold", GNThreshold, math.inf, 1.0, 2),
    ("deviation", GNThreshold, 1.0, 0.0, 2),
    ("most", lambda: GNThreshold(1.0, 1.0, 2, most=0)),
    ("the number of labels", FIVE.votes, SCORES),
    ("teachers", AdaptiveThreshold, 1.0, 0),
    ("grid", GridThreshold, (), 1.0, 1.0, 2),
    ("grid", GridThreshold, (0.0, 1.0), 1.0, 1.0, 2),
    ("grid", GridThreshold, (math.nan,), 1.0, 1.0, 2),
    ("scale", GridThreshold, (1.0,), 0.0, 1.0, 2),
)

test_bad_input_is_named = refused(
    InvalidInputError,
    ("from 0 to 1", FIXED.votes, BAD),
    ("from 0 to 1", FIXED.votes, SCORES * 3),
    ("with 3 teachers", GNThreshold(1.0, 1.0, 3).votes, SCORES),
    ("0 to 2", FIXED.winners, np.full((1, 2), 2.5)),
    ("at least two", ADAPTIVE.winners, np.ones((1, 1))),
)
