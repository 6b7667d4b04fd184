"""Noise for comparisons: its law, its grid, and its bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from support.goodness import ALPHA_LIMIT, source, words

from earshot_protocol.privacy.secret_noise import laplace, normal

TOP = 2**64 - 1


def test_normal_noise_fits_its_law_far_into_its_tails() -> None:
    samples = normal(400_000, source(1))
    assert stats.kstest(samples, stats.norm.cdf).pvalue > ALPHA_LIMIT
    assert stats.kstest(1.03 * samples, stats.norm.cdf).pvalue < ALPHA_LIMIT
    for far in (2.5, 3.5, 4.2):
        beyond = int((np.abs(samples) > far).sum())
        expected = 2 * stats.norm.sf(far)
        assert stats.binomtest(beyond, len(samples), expected).pvalue > ALPHA_LIMIT


def test_laplace_noise_fits_its_law() -> None:
    samples = laplace(400_000, source(2))
    assert stats.kstest(samples, stats.laplace.cdf).pvalue > ALPHA_LIMIT
    assert stats.kstest(1.03 * samples, stats.laplace.cdf).pvalue < ALPHA_LIMIT


def test_neighbouring_draws_are_independent() -> None:
    for sampler in (normal, laplace):
        samples = sampler((100_000, 2), source(3))
        assert samples.shape == (100_000, 2)
        ranks = np.abs(samples)
        assert stats.spearmanr(samples[:, 0], samples[:, 1]).pvalue > ALPHA_LIMIT
        assert stats.spearmanr(ranks[:, 0], ranks[:, 1]).pvalue > ALPHA_LIMIT


def test_the_ends_of_the_grid_are_finite_and_where_they_are_said_to_be() -> None:
    assert normal(1, words(0, 0))[0] == pytest.approx(math.sqrt(2 * 53 * math.log(2)))
    assert normal(1, words(TOP, 0))[0] == 0
    assert normal(1, words(0, 2**63))[0] == pytest.approx(-8.572, abs=1e-3)
    assert laplace(1, words(0, 0))[0] == pytest.approx(-53 * math.log(2))
    assert laplace(1, words(TOP, 0))[0] == pytest.approx(36.74, abs=0.01)
    assert abs(laplace(1, words(0, TOP))[0]) == 0


@pytest.mark.parametrize("word", [1 << 11, 123456789 << 30, TOP - (1 << 12)])
def test_a_draw_is_the_textbooks_function_of_its_words(word: int) -> None:
    uniform = (word >> 11) * 2.0**-53
    expected = math.sqrt(-2 * math.log(uniform + 2.0**-53)) * math.cos(2 * math.pi * 0.125)
    assert normal(1, words(word, 2**61))[0] == pytest.approx(expected, rel=1e-12)
    assert laplace(1, words(TOP, word))[0] == pytest.approx(-math.log(uniform + 2.0**-53))


def test_no_draws_take_no_bytes() -> None:
    assert normal((0, 10), words()).shape == (0, 10)
    assert laplace(0, words()).shape == (0,)
