"""Merged candidates, against a textbook of Ward's method that looks at every pair every time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from support.parameters import learning_parameters

from earshot_protocol.phases.learning import CENTROID_VOTE
from earshot_protocol.wire import Matrix
from earshot_server.discovery.merging import grouped, merged
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
        inputs={CENTROID_VOTE: 500},
    )
    phase.take_total(CENTROID_VOTE, np.array(votes))
    assert phase.top == kept
    assert phase.centroid_votes == votes
    np.testing.assert_array_equal(phase.candidates().array(), places[list(kept)])
    assert len(phase.centroid_p_values) == 3


# ------------------------------------------------------------------------------ groups of places


def parts_of(owner: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(owner == group).tolist()) for group in set(owner.tolist())}


def ward(places: np.ndarray, times: np.ndarray, groups: int) -> set[frozenset[int]]:
    """Groups of scipy's method, which knows no weights: each place stands there so many times."""
    if len(places) == 1:
        return {frozenset({0})}
    repeated = np.repeat(np.arange(len(places)), times)
    found = fcluster(linkage(places[repeated], "ward"), groups, "maxclust")
    return {frozenset(repeated[found == group].tolist()) for group in set(found.tolist())}


@given(
    count=st.integers(2, 30),
    dimensions=st.integers(1, 4),
    groups=st.integers(1, 16),
    seed=st.integers(0, 2**32 - 1),
)
def test_groups_are_those_of_scipys_ward(
    count: int, dimensions: int, groups: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    places = random.normal(size=(count, dimensions))
    for times in (np.ones(count, dtype=np.int64), random.integers(1, 6, count)):
        # Only how much one weighs beside the others counts.
        for weight in (1.0, 0.25, 40.0):
            owner = grouped(places, weight * times.astype(np.float64), groups)
            assert parts_of(owner) == ward(places, times, min(groups, count))
            assert (owner[owner] == owner).all(), "a group has the number of one of its places"


@given(
    count=st.integers(2, 20),
    groups=st.integers(1, 8),
    seed=st.integers(0, 2**32 - 1),
    lightest=st.sampled_from([0.25, 1.0]),
)
def test_a_place_that_weighs_nothing_weighs_as_much_as_the_lightest(
    count: int, groups: int, seed: int, lightest: float
) -> None:
    random = np.random.default_rng(seed)
    places = random.normal(size=(count, 3))
    times = random.integers(1, 6, count)
    times[0] = 1
    weights = lightest * times
    silent = np.arange(count) > count // 2
    owner = grouped(places, np.where(silent, 0.0, weights), groups)
    assert parts_of(owner) == ward(places, np.where(silent, 1, times), min(groups, count))


def test_where_others_are_heavy_a_place_that_weighs_nothing_weighs_one() -> None:
    """It joins the group that is near, however far the others are apart."""
    places = np.array([[0.0], [1.0], [1.9], [9.0]])
    owner = grouped(places, np.array([5.0, 5.0, 0.0, 5.0]), 3)
    assert parts_of(owner) == {frozenset({0}), frozenset({1, 2}), frozenset({3})}
    # (5 · 1 / 6) · 2² = 3.3 is more than (5 · 5 / 10) · 1² = 2.5; with a weight of five it is 10.
    far = np.array([[0.0], [1.0], [3.0], [9.0]])
    owner = grouped(far, np.array([5.0, 5.0, 0.0, 5.0]), 3)
    assert parts_of(owner) == {frozenset({0, 1}), frozenset({2}), frozenset({3})}
    nearer = np.array([[0.0], [1.0], [2.5], [9.0]])  # 1.9 < 2.5, but 5.6 with a weight of five
    owner = grouped(nearer, np.array([5.0, 5.0, 0.0, 5.0]), 3)
    assert parts_of(owner) == {frozenset({0}), frozenset({1, 2}), frozenset({3})}


def test_places_that_all_weigh_nothing_are_grouped_by_where_they_are() -> None:
    places = np.random.default_rng(3).normal(size=(12, 2))
    owner = grouped(places, np.zeros(12), 4)
    assert parts_of(owner) == ward(places, np.ones(12, dtype=np.int64), 4)


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_with_no_more_places_than_groups_each_is_one(count: int) -> None:
    places = np.zeros((count, 2), dtype=np.float32)
    assert grouped(places, np.ones(count), 5).tolist() == list(range(count))
