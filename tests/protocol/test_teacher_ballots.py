"""Ballots of teachers: what they hold, and how far any two of them are apart."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.label_ballots import (
    CLIPPED_VOTE,
    Approval,
    Clipped,
    SignedApproval,
    Subset,
)
from earshot_protocol.voting.teacher_ballots import NONE, Agreement, Ballot, OneHot, Weighted

REPLACED = (Unit.RECORDING, Unit.REPLACED_PHONE)


def label_answers(labels: int) -> np.ndarray:
    """Every set of labels there is."""
    return np.array(list(itertools.product((0, 1), repeat=labels)), dtype=np.int8)


def kinds() -> list[tuple[Ballot, np.ndarray]]:
    """Ballots, each with all the answers that a teacher may give."""
    classes = np.arange(NONE, 4)
    sets = label_answers(5)
    absent = np.concatenate([sets, np.full((1, 5), NONE)])
    several: list[tuple[Ballot, np.ndarray]] = [
        (OneHot(4), classes),
        (Agreement(), np.array([0, 1])),
        (Approval(5), sets),
        (SignedApproval(5), absent),
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
    cast = ballot.cast(answers).reshape(len(answers), ballot.length)
    assert cast.dtype == np.int64
    apart = (cast[:, None] - cast[None]).reshape(-1, ballot.length)
    assert ballot.l1(Unit.PHONE) == pytest.approx(np.abs(cast).sum(axis=1).max())
    assert ballot.l2(Unit.PHONE) == pytest.approx(np.linalg.norm(cast, axis=1).max())
    for unit in REPLACED:
        assert ballot.l1(unit) == pytest.approx(np.abs(apart).sum(axis=1).max())
        assert ballot.l2(unit) == pytest.approx(np.linalg.norm(apart, axis=1).max())
    assert ballot.least_entry <= cast.min()
    assert cast.max() == ballot.largest_entry


def test_a_vote_for_one_class() -> None:
    assert OneHot(3).cast(np.array([[0, 2], [1, NONE]])).tolist() == [
        [[1, 0, 0], [0, 0, 1]],
        [[0, 1, 0], [0, 0, 0]],
    ]


def test_signed_votes_say_no_as_well() -> None:
    rows = np.array([[1, 0, 1], [NONE, NONE, NONE]])
    assert SignedApproval(3).cast(rows).tolist() == [[1, -1, 1], [0, 0, 0]]


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


@pytest.mark.parametrize(("most", "length"), [(1, 21), (2, 211), (3, 1351)])
def test_the_number_of_sets(most: int, length: int) -> None:
    assert Subset(20, most).length == length


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: OneHot(1), "classes=1"),
        (lambda: Approval(0), "labels=0"),
        (lambda: Clipped(4, 2.0), "below 2"),
        (lambda: Clipped(4, 0.0), "tau=0"),
        (lambda: Clipped(4, math.nan), "tau=nan"),
        (lambda: Clipped(4, 1.0, 3), "norm=3"),
        (lambda: Subset(4, 5), "most=5"),
        (lambda: Subset(20), "1048576 sets"),
        (lambda: Weighted(OneHot(2), -1), "weight=-1"),
        (lambda: Weighted(OneHot(2), 0.5), "weight=0.5"),  # type: ignore[arg-type]
    ],
)
def test_ballots_that_nobody_can_cast(make: object, named: str) -> None:
    with pytest.raises(InvalidParametersError, match=named.replace("(", r"\(")):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("ballot", "answers", "named"),
    [
        (OneHot(3), np.array([3]), "classes are 0 to 2"),
        (OneHot(3), np.array([-2]), "-1 abstains"),
        (OneHot(3), np.array([1.0]), "float64"),
        (Approval(3), np.array([0, 1]), "must be 3 labels"),
        (Approval(2), np.array([0, 2]), "zeros and ones"),
        (Agreement(), np.array([2]), "zeros and ones"),
        (Subset(2), np.array([[-1, 0]]), "zeros and ones"),
    ],
)
def test_answers_that_are_none(ballot: Ballot, answers: np.ndarray, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        ballot.cast(answers)
