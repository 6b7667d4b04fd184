"""Coins and choices, against mpmath and their laws."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.coins import bernoulli_exp, geometric, grid_exp, uniform_below

DRAWS = 20_000
LIMIT = 1e-4  # the probability with which a right sampler would fail; seeds are fixed


@given(rate=st.floats(1e-3, 1e6), steps=st.integers(0, 1000))
def test_grid_exp(rate: float, steps: int) -> None:
    with mpmath.workdps(80):
        exact = mpmath.exp(-mpmath.mpf(rate) * steps) * 2**128
        assert -0.001 <= exact - grid_exp(rate, steps) <= 1.001


def test_bernoulli_exp() -> None:
    random = np.random.default_rng(1).bytes
    for steps in (1, 3):
        heads = sum(bernoulli_exp(0.7, steps, random) for _ in range(DRAWS))
        assert stats.binomtest(heads, DRAWS, math.exp(-0.7 * steps)).pvalue > LIMIT
    assert bernoulli_exp(0.7, 0, lambda count: b"\xff" * count)
    assert not bernoulli_exp(0.7, 1, lambda count: b"\xff" * count)


@pytest.mark.parametrize("limit", [1, 2, 5, 256])
def test_uniform_below(limit: int) -> None:
    random = np.random.default_rng(2).bytes
    drawn = np.bincount([uniform_below(limit, random) for _ in range(DRAWS)], minlength=limit)
    assert len(drawn) == limit
    assert stats.chisquare(drawn).pvalue > LIMIT or limit == 1


def test_what_is_not_below_is_drawn_again() -> None:
    drawn = iter([0b111, 0b101, 0b100])
    assert uniform_below(5, lambda count: bytes([next(drawn) << 5])) == 4
    assert uniform_below(2**136, lambda count: b"\xff" * count) == 2**136 - 1


@pytest.mark.parametrize("mean", [2, 7])
def test_geometric(mean: int) -> None:
    random = np.random.default_rng(3).bytes
    drawn = np.array([geometric(mean, random) for _ in range(DRAWS)])
    assert drawn.min() == 1
    cells = np.arange(1, 12)
    expected = np.append(stats.geom.pmf(cells, 1 / mean), stats.geom.sf(cells[-1], 1 / mean))
    observed = np.append([(drawn == cell).sum() for cell in cells], (drawn > cells[-1]).sum())
    assert stats.chisquare(observed, expected * DRAWS).pvalue > LIMIT
    assert geometric(1, random) == 1


@pytest.mark.parametrize(("rate", "steps"), [(0.0, 1), (math.nan, 1), (math.inf, 1), (1.0, -1)])
def test_what_is_no_probability_is_refused(rate: float, steps: int) -> None:
    with pytest.raises(InvalidParametersError, match="rate" if steps > 0 else "steps"):
        grid_exp(rate, steps)
