"""Parts of teachers: disjoint, complete, and with every source in one of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_models.teachers.partitions import partitions
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
