"""Votes with several winners, against textbook loops and the laws that their noise makes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats
from support.goodness import ALPHA_LIMIT, frequent, source
from support.refusals import refused

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.label_votes import label_agreement
from earshot_models.votes.rules.powerset import PowersetRule, _any_beyond
from earshot_models.votes.rules.tau import TauRule
from earshot_models.votes.subsets import SubsetVotes, subset_votes
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.noisy_counts import ODDS
from earshot_protocol.voting.teacher_ballots import NONE

DRAWS = 40_000


@pytest.mark.parametrize("votes", [0.0, 17.0, 24.0, 25.0, 26.5, 50.0])
def test_a_label_wins_by_normal_noise_on_its_votes(votes: float) -> None:
    found = BinaryRule(sigma=7.0).outcomes(np.full((DRAWS, 1), votes), 50, source(1))
    assert frequent(found == 1, stats.norm.cdf((votes - 25) / 7))


def test_labels_have_noise_of_their_own() -> None:
    found = BinaryRule(sigma=7.0).outcomes(np.full((DRAWS, 2), 25.0), 50, source(2))
    assert frequent(found.all(axis=1), 0.25)


def test_a_check_is_of_each_label_and_its_noise_is_not_the_answers() -> None:
    voting = BinaryRule(sigma=7.0, threshold=35.0, check_sigma=5.0)
    votes = np.broadcast_to([10.0, 25.0], (DRAWS, 2))
    assert label_agreement(votes, 50)[0].tolist() == [40, 25]
    found = voting.outcomes(votes, 50, source(3))
    passing, wins = stats.norm.cdf([5 / 5, -10 / 5]), stats.norm.cdf([-15 / 7, 0.0])
    for label in (0, 1):
        assert frequent(found[:, label] != NONE, passing[label])
        answered = found[found[:, label] != NONE, label]
        assert frequent(answered, wins[label])
    assert frequent((found != NONE).all(axis=1), passing[0] * passing[1])


def textbook_clipped(predictions: Any, tau: float, norm: int) -> Any:
    """Definition 7, vote by vote, in whole steps of 2^-10."""
    teachers, queries, labels = predictions.shape
    total = np.zeros((queries, labels))
    for teacher, query in itertools.product(range(teachers), range(queries)):
        ballot = predictions[teacher, query].astype(int)
        if ballot.any():
            length = ballot.sum() if norm == 1 else math.sqrt(ballot.sum())
            total[query] += ballot * math.floor(1024 * min(1.0, tau / length)) / 1024
    return total


@settings(max_examples=50)
@given(
    arrays(
        np.int8,
        st.tuples(st.integers(1, 6), st.integers(1, 4), st.just(5)),
        elements=st.integers(0, 1),
    ),
    st.sampled_from([(1.8, 2), (0.7, 2), (2.2, 2), (3.4, 1), (1.0, 1)]),
)
def test_votes_are_what_a_loop_over_ballots_counts(predictions: Any, clip: Any) -> None:
    assert (BinaryRule(sigma=1.0).votes(predictions) == predictions.sum(axis=0)).all()
    tau, norm = clip
    voting = TauRule(sigma=1.0, tau=tau, norm=norm)
    np.testing.assert_array_equal(voting.votes(predictions), textbook_clipped(predictions, *clip))


def test_unanimous_ballots_of_many_labels_lose_when_clipped() -> None:
    """Of a ≥ 4τ² ones each counts for half at most, and a label needs more than half."""
    everything = np.ones((50, 1, 20), dtype=np.int8)
    for tau, wins in ((2.2, False), (2.5, True)):
        voting = TauRule(sigma=0.01, tau=tau, norm=2)
        assert voting.outcomes(voting.votes(everything), 50, source(4)).all() == wins


@settings(max_examples=50)
@given(
    arrays(
        np.int8,
        st.tuples(st.integers(1, 8), st.integers(1, 5), st.integers(1, 11)),
        elements=st.integers(0, 1),
    )
)
def test_sets_are_counted_as_a_dictionary_counts_them(predictions: Any) -> None:
    votes = subset_votes(predictions)
    labels = predictions.shape[2]
    for query in range(predictions.shape[1]):
        expected: dict[tuple[int, ...], int] = {}
        for row in predictions[:, query].tolist():
            expected[tuple(row)] = expected.get(tuple(row), 0) + 1
        mine = votes.query == query
        keys = [tuple(row) for row in votes.sets[mine].tolist()]
        assert dict(zip(keys, votes.counts[mine].tolist(), strict=True)) == expected
        assert votes.most[query] == max(expected.values())
        uncast = 2**labels - len(expected)
        assert math.exp(votes.log_uncast[query]) == pytest.approx(uncast, rel=1e-12, abs=1e-12)


def dense_winner_law(counts: list[float], sigma: float) -> list[float]:
    """Of every set, cast or not, by quadrature over all of them."""
    points = np.linspace(-10 * sigma, max(counts) + 10 * sigma, 4001)
    standard = (points[:, None] - counts) / sigma
    below, density = stats.norm.cdf(standard), stats.norm.pdf(standard) / sigma
    return [
        float(integrate.trapezoid(density[:, j] * np.delete(below, j, axis=1).prod(axis=1), points))
        for j in range(len(counts))
    ]


def test_noise_is_on_all_sets_and_not_on_those_alone_that_are_cast() -> None:
    """Three labels, eight sets, of which three are cast: each wins as often as it must."""
    rows = [[0, 0, 0]] * 4 + [[1, 0, 1]] * 3 + [[1, 1, 1]]
    predictions = np.array(rows, dtype=np.int8)[:, None, :]
    voting, one = PowersetRule(sigma=2.0), subset_votes(predictions)
    cast = len(one.counts)
    many = SubsetVotes(
        np.tile(one.sets, (DRAWS, 1)), np.tile(one.counts, DRAWS), np.arange(DRAWS) * cast
    )
    found = voting.outcomes(many, source(5)) @ [4, 2, 1]
    law = dense_winner_law([4.0, 0, 0, 0, 0, 3, 0, 1], 2.0)
    assert sum(law) == pytest.approx(1, abs=1e-9)
    observed = np.bincount(found, minlength=8)
    assert stats.chisquare(observed, np.array(law) * DRAWS).pvalue > ALPHA_LIMIT
    assert observed[[1, 2, 3, 4, 6]].sum() > 0.1 * DRAWS


def test_twenty_labels_win_without_a_vote_when_noise_is_large() -> None:
    """The largest of a million draws is near 4.9σ: with σ = 7 more than 34 votes."""
    unanimous = np.zeros((30, 1500, 20), dtype=np.int8)
    points = np.linspace(-9, 9, 20_001)
    for sigma, seed in ((7.0, 6), (4.0, 7)):
        below = (2**20 - 1) * stats.norm.logcdf(points + 30 / sigma)
        law = 1 - integrate.trapezoid(stats.norm.pdf(points) * np.exp(below), points)
        voting = PowersetRule(sigma=sigma)
        found = voting.outcomes(subset_votes(unanimous), source(seed))
        assert frequent(found.any(axis=1), law)
        labels = found[found.any(axis=1)]
        assert frequent(labels, 0.5), "sets that nobody casts are equally likely"


def test_a_powerset_query_that_does_not_pass_has_no_label_at_all() -> None:
    predictions = np.zeros((10, 4000, 2), dtype=np.int8)
    voting = PowersetRule(sigma=0.1, threshold=12.0, check_sigma=2.0)
    found = voting.outcomes(subset_votes(predictions), source(7))
    assert ((found == NONE).all(axis=1) | (found == 0).all(axis=1)).all()
    assert frequent(found[:, 0] != NONE, stats.norm.cdf(-1.0))


@pytest.mark.parametrize("log_count", [0.0, 0.7, 5.0, 100.0, 512 * math.log(2)])
def test_the_coin_of_sets_that_nobody_casts_has_its_odds(log_count: float) -> None:
    for bar in (-40.0, -9.0, -1.5, -1e-9, 0.0, 1e-9, 0.3, 2.0, 5.0, 8.0, 13.0, 25.0, 26.5, 39.0):
        found = _any_beyond(bar, log_count)
        with mpmath.workdps(600):
            log = mpmath.log(mpmath.erfc(-mpmath.mpf(bar) / mpmath.sqrt(2)) / 2)
            none = mpmath.exp(log * mpmath.exp(mpmath.mpf(log_count)))
            for own, exact in zip(found, (1 - none, none), strict=True):
                # What a coin of 128 bits cannot tell from nothing may be nothing.
                assert abs(own - exact) <= ODDS / 10 * exact + mpmath.mpf(2) ** -128
    assert _any_beyond(1.0, -math.inf) == (0.0, 1.0)


ZEROS = np.zeros((2, 3, 4), dtype=np.int8)


def two(votes: float) -> object:
    return BinaryRule(sigma=1.0).outcomes(np.full((1, 2), votes), 2)


def sets(counts: int, *starts: int) -> object:
    return SubsetVotes(ZEROS[0], np.ones(counts, dtype=np.int64), np.array(starts))


test_parameters_out_of_range_are_named = refused(
    InvalidParametersError,
    ("sigma", lambda: BinaryRule(sigma=math.nan)),
    ("an Approval", TauRule(sigma=1.0, tau=2.0).ballot, PollForm(4, 2)),
    ("below 4", TauRule(sigma=1.0, tau=4.0, norm=1).votes, ZEROS),
    ("tau", TauRule(sigma=1.0, tau=0.0).votes, ZEROS),
    ("tau", TauRule(sigma=1.0, tau=math.nan).votes, ZEROS),
    ("1 or 2", TauRule(sigma=1.0, tau=1.0, norm=3).votes, ZEROS),
    ("512", PowersetRule(sigma=1.0).check_curator, PollForm(513, 2), False),
    ("threshold", ConfidentCheck, math.inf, 1.0),
    ("deviation", ConfidentCheck, 1.0, 0.0),
)

test_bad_input_is_named = refused(
    InvalidInputError,
    ("zeros and ones", BinaryRule(sigma=1.0).votes, ZEROS + 2),
    ("teachers × queries", BinaryRule(sigma=1.0).votes, ZEROS[0]),
    ("from 0 to 2", two, 3),
    ("from 0 to 2", two, -1),
    ("from 0 to 2", two, math.nan),
    ("queries × labels", BinaryRule(sigma=1.0).outcomes, np.zeros(3), 2),
    ("numbers", BinaryRule(sigma=1.0).outcomes, np.array([["a"]]), 2),  # type: ignore[arg-type]
    ("one per set", sets, 2, 0),
    ("rise", sets, 3, 0, 3),
)
