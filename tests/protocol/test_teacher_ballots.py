"""Ballots of teachers: what they hold, and how far any two of them are apart."""

from __future__ import annotations

import numpy as np
import pytest
from support.ballot_distances import check_distances

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.teacher_ballots import NONE, Agreement, Ballot, OneHot, Weighted


def kinds() -> list[tuple[Ballot, np.ndarray]]:
    """Ballots, each with all the answers that a teacher may give."""
    several: list[tuple[Ballot, np.ndarray]] = [
        (OneHot(4), np.arange(NONE, 4)),
        (Agreement(), np.array([0, 1])),
    ]
    return several + [(Weighted(ballot, 3), answers) for ballot, answers in several]


@pytest.mark.parametrize(("ballot", "answers"), kinds(), ids=str)
def test_distances_are_the_largest_that_there_are(ballot: Ballot, answers: np.ndarray) -> None:
    check_distances(ballot, answers)


def test_a_vote_for_one_class() -> None:
    assert OneHot(3).cast(np.array([[0, 2], [1, NONE]])).tolist() == [
        [[1, 0, 0], [0, 0, 1]],
        [[0, 1, 0], [0, 0, 0]],
    ]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: OneHot(1), "classes=1"),
        (lambda: Weighted(OneHot(2), -1), "weight=-1"),
        (lambda: Weighted(OneHot(2), 0.5), "weight=0.5"),  # type: ignore[arg-type]
    ],
)
def test_ballots_that_nobody_can_cast(make: object, named: str) -> None:
    with pytest.raises(InvalidParametersError, match=named):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("ballot", "answers", "named"),
    [
        (OneHot(3), np.array([3]), "classes are 0 to 2"),
        (OneHot(3), np.array([-2]), "-1 abstains"),
        (OneHot(3), np.array([1.0]), "float64"),
        (Agreement(), np.array([2]), "zeros and ones"),
    ],
)
def test_answers_that_are_none(ballot: Ballot, answers: np.ndarray, named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        ballot.cast(answers)
