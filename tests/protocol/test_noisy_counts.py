"""Counts with noise in whole steps: their law, what they cost, and what real-valued noise does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from support.goodness import ALPHA_LIMIT, source, words

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.noise import discrete_gaussian, discrete_laplace
from earshot_protocol.privacy.noisy_counts import (
    ODDS,
    coin,
    likeliest,
    with_laplace,
    with_normal,
)

TOP = 2**64 - 1


@pytest.mark.parametrize(
    ("sampler", "law"), [(with_normal, stats.norm), (with_laplace, stats.laplace)]
)
def test_noise_fits_its_law_far_into_its_tails(
    sampler: Callable[..., np.ndarray], law: object
) -> None:
    samples = sampler(np.full(60_000, 7), 3.0, source(1)) - 7
    assert stats.kstest(samples / 3.0, law.cdf).pvalue > ALPHA_LIMIT  # type: ignore[attr-defined]
    assert stats.kstest(1.06 * samples / 3.0, law.cdf).pvalue < ALPHA_LIMIT  # type: ignore[attr-defined]
    for far in (2.5, 3.5):
        beyond = int((np.abs(samples) > 3.0 * far).sum())
        expected = 2 * law.sf(far)  # type: ignore[attr-defined]
        assert stats.binomtest(beyond, len(samples), expected).pvalue > ALPHA_LIMIT


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 40.0, 1234.5, 1e9])
def test_what_comes_out_is_the_count_and_whole_steps_of_exact_noise(scale: float) -> None:
    counts = np.array([[0, 3, 250], [7, 1, 2]])
    for sampler, draw in ((with_normal, discrete_gaussian), (with_laplace, discrete_laplace)):
        step = noisy_counts._step(scale)
        assert math.frexp(step)[0] == 0.5  # a power of two
        assert 2.0**48 <= scale / step < 2.0**49
        found = sampler(counts, scale, source(2))
        noise = draw(scale / step, 6, source(2)).reshape(2, 3)
        assert np.abs(noise).max() < 2**53
        for own, count, steps in zip(found.flat, counts.flat, noise.flat, strict=True):
            exact = int(count) + int(steps) * Fraction(step)
            # A sum that has too many digits is rounded after the noise is in it.
            assert float(own) == float(exact)


def test_a_vote_and_its_parts_are_whole_steps() -> None:
    for scale in (1e-3, 1.0, 1e6, 2.0**40):
        step = noisy_counts._step(scale)
        for parts in (1, 2**8, 2**10):
            assert (Fraction(1, parts) / Fraction(step)).denominator == 1
        # So rounding commutes with a vote, and neighbours stay as near as they were.
        odd = np.random.default_rng(3).integers(0, 250 << 30, 1000) / 2.0**30
        whole, more = (noisy_counts._in_steps(each, scale) * step for each in (odd, odd + 1))
        assert (more - whole <= 1).all()
    # Whatever is no part of a vote is rounded before the noise is added, not after.
    for sampler in (with_normal, with_laplace):
        steps = sampler(np.full(100, 1 / 3), 1.0, source(6)) / noisy_counts._step(1.0)
        assert (steps == np.rint(steps)).all()


def pmf(deviation: float, reach: int) -> list[mpmath.mpf]:
    weights = [mpmath.exp(-mpmath.mpf(k) ** 2 / (2 * mpmath.mpf(deviation) ** 2))
               for k in range(-reach, reach + 1)]  # fmt: skip
    whole = mpmath.fsum(weights)
    return [each / whole for each in weights]


def first_wins(counts: Sequence[int], deviation: int) -> mpmath.mpf:
    """P(the first of two counts is the largest), in noise of so many steps, by adding up."""
    reach = 12 * deviation
    law = pmf(deviation, reach)
    below = list(itertools.accumulate(law))
    total = mpmath.mpf(0)
    for place, chance in enumerate(law):
        other = min(place + counts[0] - counts[1], 2 * reach)
        total += chance * (below[other] if other >= 0 else 0)
    return total


@pytest.mark.parametrize("steps", [1, 2, 8])
@pytest.mark.parametrize("votes", [(3, 2), (4, 4), (9, 0), (40, 0)])
def test_winners_cost_what_is_said_without_a_delta(votes: tuple[int, int], steps: int) -> None:
    """All outcomes of two counts with noise in few steps: D(P‖Q) ≤ λ/σ², both ways, to the tails.

    On a grid of uniform numbers, noise ends, and a neighbour's outcome has a chance of nothing.
    """
    deviation = 2
    moved = (votes[0] - 1, votes[1] + 1)
    with mpmath.workdps(60):
        wins = [
            first_wins([steps * each for each in own], deviation * steps) for own in (votes, moved)
        ]
        laws = [(own, 1 - own) for own in wins]
        for one, other in (laws, laws[::-1]):
            for order in (mpmath.mpf("1.5"), 2, 8, 32):
                moment = mpmath.fsum(
                    p**order * q ** (1 - order) for p, q in zip(one, other, strict=True)
                )
                assert mpmath.log(moment) / (order - 1) <= mpmath.mpf(order) / deviation**2


@pytest.mark.parametrize("bits", [3, 5])
def test_either_tail_is_within_a_step_of_real_valued_noise(bits: int) -> None:
    """For bounds that look at votes: (x + 1) steps at most, in logarithms, whatever the threshold.

    With steps as small as they are, and what is rounded, that is far below `ODDS`.
    """
    steps = 2**bits
    with mpmath.workdps(80):
        law = pmf(steps, 14 * steps)
        above = list(itertools.accumulate(law[::-1]))[::-1]
        for place in range(4 * steps, 24 * steps):
            for part in (-0.999, -0.5, 0.0):  # of a step that ends here
                far = (mpmath.mpf(place) - 14 * steps + part) / steps
                for own, sign in ((above[place], 1), (1 - above[place], -1)):
                    exact = mpmath.erfc(sign * far / mpmath.sqrt(2)) / 2
                    wrong = abs(mpmath.log(own / exact))
                    assert wrong < (abs(far) + 1) * mpmath.mpf(2) ** -bits
                    assert part != -0.5 or wrong < (abs(far) + 1) * mpmath.mpf(4) ** -bits
    assert ODDS > (2**12 + 1) * 2.0 ** (2 - noisy_counts._BITS)


def test_the_likeliest_has_the_odds_of_the_exponential_mechanism() -> None:
    scores, scale = np.array([3.0, 5.0, 4.0, 0.0]), 1.5
    found = likeliest(np.tile(scores, (5_000, 1)), scale, source(4))
    odds = np.exp(scores / scale)
    expected = len(found) * odds / odds.sum()
    assert stats.chisquare(np.bincount(found, minlength=4), expected).pvalue > ALPHA_LIMIT
    assert stats.chisquare(np.bincount(found, minlength=4), np.full(4, 1250)).pvalue < ALPHA_LIMIT
    # At the very ends of 128 bits, and where all others have no chance at all.
    assert likeliest(scores[None], scale, words(0, 0)).tolist() == [0]
    assert likeliest(scores[None], scale, words(TOP, TOP)).tolist() == [3]
    assert likeliest(np.array([[0.0, 1e9]]), 1e-3, words(0, 0)).tolist() == [1]


def test_a_coin_is_right_to_the_last_bit() -> None:
    assert not coin(0.0, 1.0, words(0, 0))
    assert coin(1.0, 0.0, words(0, 0))
    assert coin(1.0, 0.0, words(TOP, TOP))
    assert coin(2.0**-100, 1 - 2.0**-100, (2**28 - 1).to_bytes)
    assert not coin(2.0**-100, 1 - 2.0**-100, (2**28).to_bytes)
    assert not coin(1 - 2.0**-20, 2.0**-100, (2**28 - 1).to_bytes)
    assert [coin(0.5, 0.5, each.to_bytes) for each in (2**127 - 1, 2**127)] == [True, False]
    assert coin(1 - 2.0**-20, 2.0**-100, (2**28).to_bytes)


def test_no_draws_take_no_bytes_and_many_are_independent() -> None:
    assert with_normal(np.zeros((0, 10)), 1.0, words()).shape == (0, 10)
    assert with_laplace(np.zeros(0), 1.0, words()).shape == (0,)
    many = with_normal(np.zeros((20_000, 2)), 1.0, source(5))  # in several blocks
    assert stats.spearmanr(many[:, 0], many[:, 1]).pvalue > ALPHA_LIMIT
    assert len(np.unique(many)) == many.size


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf, 2.0**60])
def test_noise_out_of_range_is_refused(wrong: float) -> None:
    for sampler in (with_normal, with_laplace):
        with pytest.raises(InvalidParametersError):
            sampler(np.zeros(2), wrong)
