"""Merged candidates, against a textbook of Ward's method that looks at every pair every time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parameters import learning_parameters

from earshot_protocol.phases.learning import CENTROID_VOTE
from earshot_protocol.wire import Matrix
from earshot_server.discovery.merging import merged
from earshot_server.phases.learning import LearningPhase


def textbook(places: np.ndarray, votes: np.ndarray, groups: int) -> list[set[int]]:
    """Merge the pair that adds least to the weighted sum of squares within groups."""
    parts = [{one} for one in range(len(places))]

    def within(part: set[int]) -> float:
        members = sorted(part)
        centre = np.average(places[members], axis=0, weights=votes[members])
        return float(votes[members] @ np.square(places[members] - centre).sum(axis=1))

    while len(parts) > groups:
        pairs = itertools.combinations(range(len(parts)), 2)
        first, second = min(
            pairs,
            key=lambda pair: (
                within(parts[pair[0]] | parts[pair[1]])
                - within(parts[pair[0]])
                - within(parts[pair[1]])
            ),
        )
        parts[first] |= parts.pop(second)
    return parts


@pytest.mark.slow
@given(
    count=st.integers(1, 25),
    dimensions=st.integers(1, 3),
    groups=st.integers(1, 25),
    seed=st.integers(0, 2**32 - 1),
)
def test_each_group_of_the_textbook_has_its_favourite(
    count: int, dimensions: int, groups: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    places = random.normal(size=(count, dimensions)).astype(np.float32)
    votes = random.permutation(np.arange(1, 10 * count))[:count]
    kept = merged(places, votes, groups)
    parts = textbook(places.astype(np.float64), votes, groups)
    assert len(kept) == min(count, groups)
    assert set(kept) == {max(part, key=lambda one: votes[one]) for part in parts}
    assert (np.diff(votes[kept]) < 0).all()


def test_an_environment_in_two_parts_takes_one_place() -> None:
    """The old rule, most votes first, keeps both parts of the first and loses the third."""
    places = np.array([[0.0, 0.0], [0.05, 0.0], [0.8, 0.0], [0.0, 0.8]], dtype=np.float32)
    assert sorted(merged(places, np.array([90, 70, 120, 60]), 3)) == [0, 2, 3]


def test_what_hardly_anybody_voted_for_goes_before_what_many_did() -> None:
    places = np.array([[0.0], [1.0], [2.2], [3.2]], dtype=np.float32)
    assert sorted(merged(places, np.array([100, 90, 110, 8]), 3)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("votes", "kept"),
    [
        ((90, 70, 120, 60), (2, 0, 3)),  # all stand clear of the noise: both parts are merged
        ((90, 70, 120, 2), (2, 0, 1)),  # no more do than fit: those with the most votes
        ((3, 1, 4, 2), (2, 0, 3)),  # none does
    ],
)
def test_a_phase_keeps_merged_candidates(votes: tuple[int, ...], kept: tuple[int, ...]) -> None:
    places = np.array([[0.0, 0.0], [0.05, 0.0], [0.8, 0.0], [0.0, 0.8]], dtype=np.float32)
    phase = LearningPhase(
        phase=bytes(16),
        parameters=learning_parameters(top_global_centroids=3),
        step="centroid vote: unmask",
        deadline=0.0,
        centroids=Matrix.of(places),
    )
    phase.take_total(CENTROID_VOTE, np.array(votes))
    assert phase.top == kept
    assert phase.centroid_votes == votes
    np.testing.assert_array_equal(phase.candidates().array(), places[list(kept)])
    assert len(phase.centroid_p_values) == 3
