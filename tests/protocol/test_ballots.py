"""Ballots against a slow reading of Algorithm 1, and their sensitivity for every neighbour."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.examples import examples
from support.refusals import refused

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.voting.ballots import label_votes, top_candidates, top_votes, winning_labels

Ballot = Callable[[NDArray[np.int64], int], NDArray[np.int64]]

# Small counts make ties frequent, and ties are where a ballot could jump.
vectors = arrays(np.int64, st.tuples(st.integers(1, 12)), elements=st.integers(0, 4))
matrices = arrays(
    np.int64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(0, 4)
)


def slow_top_votes(counts: list[int], votes: int) -> list[int]:
    ranked = sorted(range(len(counts)), key=lambda i: (-counts[i], i))
    return [int(i in ranked[:votes] and counts[i] > 0) for i in range(len(counts))]


def slow_label_votes(counts: list[list[int]], votes: int) -> list[list[int]]:
    majority = [row.index(max(row)) for row in counts]
    chosen = slow_top_votes([max(row) for row in counts], votes)
    return [
        [int(bool(one) and label == winner) for label in range(len(row))]
        for row, winner, one in zip(counts, majority, chosen, strict=True)
    ]


@settings(max_examples=examples(300), derandomize=True)
@given(counts=vectors, data=st.data())
def test_top_votes_follow_the_paper(counts: NDArray[np.int64], data: st.DataObject) -> None:
    votes = data.draw(st.integers(1, len(counts)))
    ballot = top_votes(counts, votes)
    assert ballot.dtype == np.int64
    assert ballot.tolist() == slow_top_votes(counts.tolist(), votes)
    assert ballot.sum() == min(votes, np.count_nonzero(counts))


@settings(max_examples=examples(300), derandomize=True)
@given(counts=matrices, data=st.data())
def test_label_votes_follow_the_paper(counts: NDArray[np.int64], data: st.DataObject) -> None:
    votes = data.draw(st.integers(1, len(counts)))
    ballot = label_votes(counts, votes)
    assert ballot.dtype == np.int64
    assert ballot.tolist() == slow_label_votes(counts.tolist(), votes)
    assert ballot.sum() <= votes
    assert ballot.sum(axis=1).max() <= 1
    assert np.all(counts[ballot == 1] > 0)


@pytest.mark.parametrize("ballot", [top_votes, label_votes])
@settings(max_examples=examples(300), derandomize=True)
@given(data=st.data())
def test_one_recording_more_changes_a_ballot_by_at_most_two(
    ballot: Ballot, data: st.DataObject
) -> None:
    counts = data.draw(vectors if ballot is top_votes else matrices)
    votes = data.draw(st.integers(1, len(counts)))
    before = ballot(counts, votes)
    for place in np.ndindex(counts.shape):
        more = counts.copy()
        more[place] += 1
        assert np.abs(ballot(more, votes) - before).sum() <= 2


@pytest.mark.parametrize(
    ("ballot", "shape"), [(top_votes, (4,)), (label_votes, (2, 2)), (label_votes, (3, 2))]
)
def test_sensitivity_over_all_small_counts_is_exactly_two(
    ballot: Ballot, shape: tuple[int, ...]
) -> None:
    worst = 0
    for entries in itertools.product(range(3), repeat=int(np.prod(shape))):
        counts = np.array(entries).reshape(shape)
        for votes in range(1, shape[0] + 1):
            before = ballot(counts, votes)
            for place in np.ndindex(shape):
                counts[place] += 1
                worst = max(worst, int(np.abs(ballot(counts, votes) - before).sum()))
                counts[place] -= 1
    assert worst == 2


def test_a_phone_with_no_recordings_casts_an_empty_ballot() -> None:
    assert top_votes(np.zeros(5, dtype=int), 3).tolist() == [0] * 5
    assert not label_votes(np.zeros((4, 3), dtype=int), 2).any()


def test_a_ballot_leaves_the_counts_alone() -> None:
    counts = np.array([[3, 1], [0, 2]])
    label_votes(counts, 1)
    top_votes(counts[0], 1)
    assert counts.tolist() == [[3, 1], [0, 2]]


@settings(max_examples=examples(200), derandomize=True)
@given(
    totals=st.lists(
        st.sampled_from([-(2**63), -(2**63) + 1, -3, -1, 0, 1, 2, 2**63 - 1]),
        min_size=1,
        max_size=10,
    ),
    data=st.data(),
)
def test_top_candidates_by_descending_total(totals: list[int], data: st.DataObject) -> None:
    top = data.draw(st.integers(1, len(totals)))
    kept = top_candidates(np.array(totals, dtype=np.int64), top)
    assert kept.dtype == np.int64
    assert kept.tolist() == sorted(range(len(totals)), key=lambda i: (-totals[i], i))[:top]


@settings(max_examples=examples(100), derandomize=True)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(-3, 3))
)
def test_winning_labels_are_each_rows_first_largest(totals: NDArray[np.int64]) -> None:
    labels = winning_labels(totals)
    assert labels.dtype == np.int64
    assert labels.tolist() == [row.index(max(row)) for row in totals.tolist()]


COUNTS = np.ones((3, 5), dtype=int)
BAD = [np.ones(3), np.array([], dtype=int), np.array(["a"]), np.array([1], dtype=np.uint64)]

test_votes_beyond_the_candidates_are_refused = refused(
    InvalidParametersError,
    *[
        (f"from 1 to the 3 candidates there are, not {votes}", call, counts, votes)
        for votes in (0, -1, 4)
        for call, counts in (
            (top_votes, COUNTS[:, 0]),
            (label_votes, COUNTS),
            (top_candidates, COUNTS[:, 0]),
        )
    ],
)
test_counts_of_another_kind_are_refused = refused(
    InvalidInputError,
    *[
        ("non-empty array of integers", *attempt)
        for bad in BAD
        for attempt in (
            (top_votes, bad, 1),
            (top_candidates, bad, 1),
            (label_votes, bad, 1),
            (label_votes, bad[:, None], 1),
            (winning_labels, bad),
            (winning_labels, bad[:, None]),
        )
    ],
    ("1 dimension", top_votes, np.ones((2, 2), dtype=int), 1),
    ("1 dimension", top_candidates, np.ones((2, 2), dtype=int), 1),
    ("2 dimension", label_votes, np.ones(4, dtype=int), 1),
    ("negative, but one is -1", top_votes, np.array([2, -1]), 1),
    ("negative", label_votes, np.array([[2, -1]]), 1),
)
