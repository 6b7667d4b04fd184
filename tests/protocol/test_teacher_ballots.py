"""Ballots of teachers: what they hold, and how far any two of them are apart."""

from __future__ import annotations

import numpy as np
import pytest
from support.ballot_distances import check_distances
from support.refusals import refused

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


test_ballots_that_nobody_can_cast_are_refused = refused(
    InvalidParametersError,
    ("classes=1", OneHot, 1),
    ("weight=-1", Weighted, OneHot(2), -1),
    ("weight=0.5", Weighted, OneHot(2), 0.5),
)
test_what_is_not_an_answer_is_refused = refused(
    InvalidInputError,
    ("classes are 0 to 2", OneHot(3).cast, np.array([3])),
    ("-1 abstains", OneHot(3).cast, np.array([-2])),
    ("float64", OneHot(3).cast, np.array([1.0])),
    ("zeros and ones", Agreement().cast, np.array([2])),
)
