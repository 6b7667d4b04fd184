"""Ballots of a teacher's largest outputs: how far two of them are apart, and what they refuse."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot_models.votes.output_ballots import STEPS, Outputs, in_steps
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit


@pytest.mark.parametrize(
    ("labels", "most", "vote"), [(4, 1, 2), (4, 3, 2), (3, 2, 3), (3, None, 2)]
)
def test_no_two_ballots_are_farther_apart_than_is_said_and_some_are(
    labels: int, most: int | None, vote: int
) -> None:
    """All ballots that there are, each against zeros and against each."""
    ballot = Outputs(labels, most, vote)
    answers = np.array(list(itertools.product(range(vote + 1), repeat=labels)))
    cast = np.unique(ballot.cast(answers), axis=0)
    for unit, differences in (
        (Unit.PHONE, cast),
        (Unit.REPLACED_PHONE, (cast[:, None] - cast).reshape(-1, labels)),
    ):
        assert int(np.abs(differences).sum(axis=1).max()) == ballot.l1(unit)
        assert math.isclose(np.linalg.norm(differences, axis=1).max(), ballot.l2(unit))
    assert (cast.min(), cast.max()) == (0, ballot.largest_entry)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=6, max_size=6), st.integers(1, 6))
def test_the_largest_outputs_count_and_of_equal_ones_the_first(row: list[int], most: int) -> None:
    expected = [0] * 6
    for place in sorted(range(6), key=lambda each: (-row[each], each))[:most]:
        expected[place] = row[place]
    before = np.array(row)
    assert Outputs(6, most, 9).cast(before).tolist() == expected
    assert before.tolist() == row, "the answers themselves are left alone"


def test_probabilities_become_the_nearest_steps() -> None:
    found = in_steps(np.array([0.0, 1.0, 0.5, 1 / 3]))
    assert found.tolist() == [0, STEPS, STEPS // 2, 85]
    for wrong in (-0.01, 1.01, math.nan, math.inf):
        with pytest.raises(InvalidInputError, match="from 0 to 1"):
            in_steps(np.array([wrong]))


def test_what_is_no_ballot_is_named() -> None:
    ballot = Outputs(3, 2, 4)
    with pytest.raises(InvalidInputError, match="0 to 4 steps"):
        ballot.cast(np.array([0, 5, 0]))
    with pytest.raises(InvalidInputError, match="0 to 4 steps"):
        ballot.cast(np.array([0, -1, 0]))
    with pytest.raises(InvalidInputError, match="last axis must be 3"):
        ballot.cast(np.array([0, 1]))
    with pytest.raises(InvalidInputError, match="integers"):
        ballot.cast(np.array([0.5, 1.0, 0.0]))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="squared length 48: must be at most 32"):
        ballot.check(np.array([[4, 4, 0], [4, 4, 4]]))
    ballot.check(np.array([[4, 4, 0]]))
    for labels, most, vote in ((0, None, 1), (3, 4, 1), (3, 0, 1), (3, 2, 0)):
        with pytest.raises(InvalidParametersError):
            Outputs(labels, most, vote)
