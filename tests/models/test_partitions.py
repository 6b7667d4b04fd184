"""Parts of teachers: disjoint, complete, and with every source in one of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_models.teachers.partitions import checked_groups, partitions, upsampled
from earshot_protocol.errors import InvalidInputError, InvalidParametersError


@given(
    sources=st.lists(st.integers(0, 30), min_size=1, max_size=120),
    share=st.floats(0, 1),
    seed=st.integers(0, 10),
)
def test_parts_are_disjoint_complete_and_keep_sources_together(sources, share, seed):
    own = np.array(sources)
    different = len(set(sources))
    teachers = 1 + int(share * (different - 1))
    parts = partitions(own, teachers, np.random.default_rng(seed))
    assert len(parts) == teachers
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(own)))
    met = [set(own[part].tolist()) for part in parts]
    assert all(met)
    assert sum(map(len, met)) == different
    # No teacher has more than another by more than the largest source (Graham 1969).
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= np.bincount(own).max()


@given(st.integers(1, 40), st.integers(0, 400))
def test_records_on_their_own_are_shared_out_evenly(teachers, more):
    parts = partitions(np.arange(teachers + more), teachers, np.random.default_rng(0))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_is_random_and_repeats_with_its_seed():
    first, again, other = (
        partitions(np.arange(50), 5, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert [part.tolist() for part in first] == [part.tolist() for part in again]
    assert [part.tolist() for part in first] != [part.tolist() for part in other]


@pytest.mark.parametrize("teachers", [0, -1, 4, 1.5])
def test_an_ensemble_that_its_data_cannot_feed_is_refused(teachers):
    with pytest.raises(InvalidParametersError, match="teachers"):
        partitions(np.array([7, 7, 8, 9, 9]), teachers, np.random.default_rng(0))


def test_sources_must_be_a_vector_of_whole_numbers():
    for wrong in (np.zeros((2, 2), int), np.array([0.5]), np.array([], int)):
        with pytest.raises(InvalidInputError, match="sources"):
            partitions(wrong, 1, np.random.default_rng(0))


@given(
    copies=st.lists(st.integers(1, 4), min_size=12, max_size=60),
    seed=st.integers(0, 5),
)
def test_a_record_is_with_as_many_teachers_as_it_has_copies(copies, seed):
    numbers = np.array([*copies, 4, 4, 4])  # so that three records have each number of copies
    parts = upsampled(np.arange(len(numbers)), numbers, 3, np.random.default_rng(seed))
    met = np.concatenate(parts)
    np.testing.assert_array_equal(np.bincount(met, minlength=len(numbers)), numbers)
    assert all(len(set(part.tolist())) == len(part) for part in parts)


def test_copies_that_cannot_be_are_refused():
    random = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match="same for all"):
        upsampled(np.array([1, 1]), np.array([1, 2]), 1, random)
    with pytest.raises(InvalidInputError, match="at least 1"):
        upsampled(np.array([1, 2]), np.array([0, 2]), 1, random)
    with pytest.raises(InvalidParametersError, match="only 1 records have 2 copies"):
        upsampled(np.arange(4), np.array([1, 1, 1, 2]), 2, random)
    with pytest.raises(InvalidParametersError, match="size"):
        upsampled(np.arange(4), np.ones(4, int), 0, random)


def test_a_group_of_one_is_refused():
    assert checked_groups(np.array([0, 1, 1, 0]), 2).tolist() == [0, 1, 1, 0]
    with pytest.raises(InvalidInputError, match="group 1 has 1 members: at least 2"):
        checked_groups(np.array([0, 0, 1]), 2)
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        checked_groups(np.array([0, 0, 2]), 2)
    with pytest.raises(InvalidInputError, match="vector"):
        checked_groups(np.array([[0, 0]]), 2)
