"""Winners of votes: laws by integrals of this file, noise that is never used twice, bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.goodness import ALPHA_LIMIT, source
from support.refusals import refused

from earshot_models.votes.counts import checked_counts, checked_scores, checked_votes
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMax, GNMaxRule
from earshot_models.votes.rules.interactive import InteractiveRule
from earshot_models.votes.rules.lnmax import LNMax, LNMaxRule
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE

DRAWS = 60_000
CONFIDENT = ConfidentRule(sigma=1.0, threshold=1.0, check_sigma=1.0)
INTERACTIVE = InteractiveRule(sigma=1.0, threshold=1.0, check_sigma=1.0, confidence=0.5)
VOTES = np.array([110.0, 90.0, 50.0, 0.0])


def law_of_winning(votes: np.ndarray, noise: Any) -> np.ndarray:
    """Pr[class j wins] = ∫ f(x − n_j) ∏ F(x − n_i) dx, by a fine sum."""
    scale = noise.std()
    points = np.linspace(votes.min() - 40 * scale, votes.max() + 40 * scale, 200_001)
    below, density = noise.cdf(points[:, None] - votes), noise.pdf(points[:, None] - votes)
    chances = [
        (density[:, j] * np.delete(below, j, axis=1).prod(axis=1)).sum() * (points[1] - points[0])
        for j in range(len(votes))
    ]
    assert sum(chances) == pytest.approx(1, abs=1e-6)
    return np.array(chances)


def fits(winners: np.ndarray, chances: np.ndarray) -> bool:
    observed = np.bincount(winners, minlength=len(chances))
    return float(stats.chisquare(observed, chances * len(winners)).pvalue) > ALPHA_LIMIT


@pytest.mark.parametrize(
    ("aggregator", "noise", "wrong"),
    [
        (GNMaxRule(sigma=40.0), stats.norm(0, 40.0), stats.norm(0, 42.0)),
        (LNMaxRule(sigma=25.0), stats.laplace(0, 25.0), stats.laplace(0, 27.0)),
    ],
)
def test_winners_are_of_their_law(
    aggregator: GNMaxRule | LNMaxRule, noise: Any, wrong: Any
) -> None:
    winners = aggregator.outcomes(np.tile(VOTES, (DRAWS, 1)), source(1))
    assert winners.dtype == np.int64
    assert fits(winners, law_of_winning(VOTES, noise))
    assert not fits(winners, law_of_winning(VOTES, wrong))


@pytest.mark.parametrize("most", [40.0, 200.0, 260.0])
def test_a_check_passes_as_often_as_its_noise_says(most: float) -> None:
    aggregator = ConfidentRule(sigma=40.0, threshold=200.0, check_sigma=150.0)
    votes = np.tile([most, 10.0, 5.0], (DRAWS, 1))
    passed = int(aggregator.check.passing(aggregator.agreement(votes), source(2)).sum())
    expected = stats.norm.cdf((most - 200) / 150)
    assert stats.binomtest(passed, DRAWS, expected).pvalue > ALPHA_LIMIT
    answered = int((aggregator.outcomes(votes, source(2)) != NONE).sum())
    assert answered == passed, "the same noise lets the same queries pass"


def test_the_noise_of_a_check_says_nothing_of_the_answer_behind_it() -> None:
    """Class 0 has most votes: a check that reused its noise would let it win too often."""
    aggregator = ConfidentRule(sigma=40.0, threshold=180.0, check_sigma=40.0)
    votes = np.tile(VOTES, (5 * DRAWS, 1))
    winners = aggregator.outcomes(votes, source(3))
    answered = winners[winners != NONE]
    assert 0.03 < len(answered) / len(winners) < 0.05
    chances = law_of_winning(VOTES, stats.norm(0, 40.0))
    assert fits(answered, chances)

    generator = np.random.default_rng(4)
    noise = generator.normal(0, 40.0, votes.shape)
    reused = (votes + noise).argmax(axis=1)[votes[:, 0] + noise[:, 0] >= 180.0]
    assert not fits(reused, chances), "what this test would see if noise were used twice"


def test_every_query_and_every_class_has_noise_of_its_own() -> None:
    equal = np.full((DRAWS, 3), 80.0)
    winners = GNMaxRule(sigma=1.0).outcomes(equal, source(5))
    pairs = 3 * winners[:-1:2] + winners[1::2]
    assert fits(pairs, np.full(9, 1 / 9))


def loudest(size: int) -> bytes:
    """Bytes by which the second of two classes gets all the noise that there is, the first none."""
    words = np.full((2, size // 32, 2), 2**64 - 1, dtype="<u8")
    words[0, :, 1] = 0
    return words.tobytes().ljust(size, b"\0")


def test_no_outcome_is_out_of_reach() -> None:
    """Noise that ends, as that of a grid of 2^-53 does at 37 scales, would need a δ."""
    assert LNMaxRule(sigma=1.0).outcomes(np.array([[100.0, 0.0]]), loudest).tolist() == [1]


def scores(*rows: list[float]) -> np.ndarray:
    return np.array(rows)


def test_a_student_that_is_wrong_is_corrected_and_one_that_is_right_is_not_asked_about() -> None:
    aggregator = InteractiveRule(sigma=1e-6, threshold=100.0, check_sigma=1e-6, confidence=0.8)
    votes = np.array([[250.0, 0.0, 0.0]] * 4)
    student = scores([0.0, 1.0, 0.0], [0.9, 0.1, 0.0], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1])
    np.testing.assert_allclose(aggregator.agreement(votes, student), [250, 25, 75, 225])
    winners, voted = aggregator.answers(votes, scores=student)
    assert winners.tolist() == [0, 0, NONE, 0]
    assert voted.tolist() == [True, False, False, True]
    assert aggregator.outcomes(votes, scores=student).tolist() == [0, 0, NONE, 0]


def test_who_is_just_as_sure_as_asked_for_is_not_reinforced() -> None:
    aggregator = InteractiveRule(sigma=1.0, threshold=1000.0, check_sigma=1.0, confidence=0.5)
    votes = np.array([[10.0, 0.0]] * 2)
    student = scores([0.5, 0.5], [0.25, 0.75])
    winners, voted = aggregator.answers(votes, scores=student)
    assert winners.tolist() == [NONE, 1]
    assert not voted.any()


def test_an_interactive_answer_is_that_of_gnmax() -> None:
    aggregator = InteractiveRule(sigma=40.0, threshold=60.0, check_sigma=30.0, confidence=0.9)
    votes = np.tile(VOTES, (DRAWS, 1))
    student = np.tile([0.25, 0.25, 0.25, 0.25], (DRAWS, 1))
    winners, voted = aggregator.answers(votes, source(6), student)
    checked = VOTES.max() - 250 / 4
    chance = stats.norm.cdf((checked - 60) / 30)
    assert stats.binomtest(int(voted.sum()), DRAWS, chance).pvalue > ALPHA_LIMIT
    assert (winners[~voted] == NONE).all()
    assert fits(winners[voted], law_of_winning(VOTES, stats.norm(0, 40.0)))


@given(
    st.lists(st.integers(0, 60), min_size=2, max_size=6),
    st.lists(st.floats(0.001, 1), min_size=6, max_size=6),
    st.integers(0, 5),
    st.integers(0, 5),
    st.booleans(),
)
def test_one_vote_changes_what_is_checked_by_one_at_most(
    votes: list[int], weights: list[float], here: int, there: int, withheld: bool
) -> None:
    """Moved to another class, or withheld."""
    here, there = here % len(votes), there % len(votes)
    student = np.array([weights[: len(votes)]])
    student /= student.sum()
    before = np.array([votes])
    after = before.copy()
    after[0, there] += 1
    if not withheld:
        before[0, here] += 1
    apart = INTERACTIVE.agreement(before, student) - INTERACTIVE.agreement(after, student)
    assert abs(apart[0]) <= 1 + 1e-9
    assert abs(CONFIDENT.agreement(before) - CONFIDENT.agreement(after))[0] <= 1


def test_noise_comes_from_the_operating_system_unless_a_source_is_given() -> None:
    votes = np.full((200, 10), 25)
    assert (GNMaxRule(sigma=40.0).outcomes(votes) != GNMaxRule(sigma=40.0).outcomes(votes)).any()
    same = [
        ConfidentRule(sigma=40.0, threshold=20.0, check_sigma=9.0).outcomes(votes, source(7))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*same)


def test_no_queries_have_no_winners() -> None:
    none = np.empty((0, 3))
    for aggregator in (LNMaxRule(sigma=1.0), GNMaxRule(sigma=1.0), CONFIDENT):
        assert aggregator.outcomes(none).shape == (0,)
    assert INTERACTIVE.outcomes(none, scores=none).shape == (0,)


def test_counts_of_an_ensemble_are_whole_and_add_up() -> None:
    counts = checked_counts(np.array([[249.0, 1.0], [0.0, 250.0]]), 250)
    assert counts.dtype == np.int64
    assert counts.tolist() == [[249, 1], [0, 250]]
    with pytest.raises(InvalidInputError, match=r"1 of 2 queries .* query 1 has 249"):
        checked_counts(np.array([[250, 0], [249, 0]]), 250)
    with pytest.raises(InvalidInputError, match="whole numbers"):
        checked_counts(np.array([[249.5, 0.5]]), 250)
    with pytest.raises(InvalidParametersError, match="teachers"):
        checked_counts(np.array([[1, 0]]), 0)


test_bad_input_is_named = refused(
    InvalidInputError,
    ("queries × classes", checked_votes, np.ones(3)),
    ("two classes", checked_votes, np.ones((3, 1))),
    ("votes: must be finite", checked_votes, np.array([[1.0, math.nan]])),
    ("none below 0", checked_votes, np.array([[1.0, -1.0]])),
    ("must be numbers", checked_votes, np.array([["a", "b"]])),
    ("finite", GNMaxRule(sigma=1.0).outcomes, np.array([[1.0, math.inf]])),
    ("one for every query and class", checked_scores, np.ones((1, 3)), (1, 2)),
    ("scores: must be finite", checked_scores, np.array([[0.5, math.nan]]), (1, 2)),
    ("none below 0", checked_scores, np.array([[1.5, -0.5]]), (1, 2)),
    ("add up to 1", checked_scores, np.array([[0.5, 0.4]]), (1, 2)),
    (
        "scores: must be finite",
        lambda: INTERACTIVE.outcomes(np.ones((1, 2)), scores=np.array([[math.nan, 1.0]])),
    ),
    ("a student's are needed", INTERACTIVE.outcomes, np.ones((1, 2))),
)


test_parameters_out_of_range_are_named = refused(
    InvalidParametersError,
    ("gamma", LNMax, 0.0),
    ("deviation", GNMax, -1.0),
    ("threshold", lambda: replace(CONFIDENT, threshold=math.nan)),
    ("deviation", lambda: replace(CONFIDENT, check_sigma=math.inf)),
    ("sigma", lambda: replace(CONFIDENT, sigma=0.0)),
    ("confidence", lambda: replace(INTERACTIVE, confidence=1.5)),
)
