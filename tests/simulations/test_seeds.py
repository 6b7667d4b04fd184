"""Generators of a few numbers are NumPy's own of these numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from earshot_simulations.populations import seeds


@given(st.lists(st.integers(0, 2**70) | st.integers(0, 2**32), min_size=1, max_size=5))
@example([0])
@example([2**32 - 1, 0, 7])
@example([2**32, 1])
def test_a_generator_is_that_of_numpy(numbers: list[int]) -> None:
    expected = np.random.default_rng(numbers).bit_generator.state
    assert seeds.generator(*numbers).bit_generator.state == expected


def test_a_negative_number_is_no_seed() -> None:
    for seed in ((-1,), (3, -1), (2**32, -1)):
        with pytest.raises((OverflowError, ValueError)):
            seeds.generator(*seed)
