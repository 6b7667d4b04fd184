"""Ballots on labels: what they hold, and how far any two of them are apart."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ballot_distances import check_distances

from earshot_models.votes.label_ballots import (
    CLIPPED_VOTE,
    Approval,
    Clipped,
    Subset,
)
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE, Ballot, Weighted
from earshot_protocol.voting.vote_sums import VoteSum


def label_answers(labels: int) -> np.ndarray:
    """Every set of labels there is."""
    return np.array(list(itertools.product((0, 1), repeat=labels)), dtype=np.int8)


def kinds() -> list[tuple[Ballot, np.ndarray]]:
    """Ballots, each with all the answers that a teacher may give."""
    sets = label_answers(5)
    several: list[tuple[Ballot, np.ndarray]] = [
        (Approval(5), sets),
        (Clipped(5, 1.8), sets),
        (Clipped(5, 0.5), sets),
        (Clipped(5, 2.2), sets),
        (Clipped(5, 3.4, norm=1), sets),
        (Clipped(5, 1.0, norm=1), sets),
        (Subset(5), sets),
        (Subset(5, 2), sets),
    ]
    return several + [(Weighted(ballot, 3), answers) for ballot, answers in several]


@pytest.mark.parametrize(("ballot", "answers"), kinds(), ids=str)
def test_distances_are_the_largest_that_there_are(ballot: Ballot, answers: np.ndarray) -> None:
    check_distances(ballot, answers)


@given(labels=st.integers(2, 40), data=st.data())
def test_clipped_votes_are_never_longer_than_tau(labels: int, data: st.DataObject) -> None:
    norm = data.draw(st.sampled_from([1, 2]))
    free = labels if norm == 1 else math.sqrt(labels)
    tau = data.draw(st.floats(0.01, free * 0.999))
    ones = data.draw(st.integers(0, labels))
    answer = np.zeros(labels, dtype=np.int8)
    answer[:ones] = 1
    ballot = Clipped(labels, tau, norm)
    cast = ballot.cast(answer)
    length = np.abs(cast).sum() if norm == 1 else math.sqrt((cast**2).sum())
    assert length <= CLIPPED_VOTE * tau * (1 + 1e-12)
    # Rounding down takes less than a step away from each vote.
    root = ones if norm == 1 else math.sqrt(ones)
    wanted = CLIPPED_VOTE * min(1.0, tau / root) if ones else 0.0
    assert np.all(cast[:ones] > wanted - 1 - 1e-9)
    assert not cast[ones:].any()
    # The bounds of Definition 7, which the whole steps keep.
    if norm == 2:
        replaced = ballot.l2(Unit.REPLACED_PHONE) / CLIPPED_VOTE
        assert replaced**2 <= min(2 * tau**2, labels) * (1 + 1e-12)


def test_clipping_in_the_other_norm_was_charged_too_much() -> None:
    """What τ₁ = 3.4 in L1 and τ₂ = 1.8 in L2 cost at the same noise: 3 and 3.24 times λ/s²."""
    costs = [
        (Clipped(20, tau, norm).l2(Unit.REPLACED_PHONE) / CLIPPED_VOTE) ** 2 / 2
        for tau, norm in ((3.4, 1), (1.8, 2))
    ]
    assert costs[0] == pytest.approx(3.0, rel=1e-3)
    assert costs[1] == pytest.approx(3.24, rel=3e-3)


@given(labels=st.integers(1, 9), data=st.data())
def test_sets_are_numbered_one_by_one(labels: int, data: st.DataObject) -> None:
    most = data.draw(st.integers(1, labels))
    ballot, answers = Subset(labels, most), label_answers(labels)
    numbers = ballot.number(answers)
    fits = answers.sum(axis=1) <= most
    assert sorted(numbers[fits].tolist()) == list(range(ballot.length))
    assert np.all(numbers[~fits] == NONE)
    assert np.array_equal(ballot.sets()[numbers[fits]], answers[fits])
    assert not ballot.cast(answers[~fits]).any()


def test_clipped_votes_have_noise_in_steps() -> None:
    mechanism = VoteSum(Clipped(20, 1.8), 1, 9.0, 1e-6, 50)
    assert math.sqrt(mechanism.variance) == pytest.approx(9 * CLIPPED_VOTE)
    event = mechanism.event(Unit.PHONE)
    assert event.l2**2 / event.variance == pytest.approx(1.8**2 / 81, rel=5e-3)


@pytest.mark.parametrize(("most", "length"), [(1, 21), (2, 211), (3, 1351)])
def test_the_number_of_sets(most: int, length: int) -> None:
    assert Subset(20, most).length == length


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Approval(0), "labels=0"),
        (lambda: Clipped(4, 2.0), "below 2"),
        (lambda: Clipped(4, 0.0), "tau=0"),
        (lambda: Clipped(4, math.nan), "tau=nan"),
        (lambda: Clipped(4, 1.0, 3), "norm=3"),
        (lambda: Subset(4, 5), "most=5"),
        (lambda: Subset(20), "1048576 sets"),
    ],
)
def test_ballots_that_nobody_can_cast(make: object, named: str) -> None:
    with pytest.raises(InvalidParametersError, match=named.replace("(", r"\(")):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("ballot", "answers", "named"),
    [
        (Approval(3), np.array([0, 1]), "last axis must be 3"),
        (Approval(2), np.array([0, 2]), "zeros and ones"),
        (Subset(2), np.array([[-1, 0]]), "zeros and ones"),
    ],
)
def test_answers_that_are_none(ballot: Ballot, answers: np.ndarray, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        ballot.cast(answers)
