"""Shares of Skellam noise and its law, against scipy, mpmath and convolutions of what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.goodness import ALPHA_LIMIT, fit_p_value, source, words
from support.refusals import refused

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noise
from earshot_protocol.privacy.laws import SkellamNoise

SUPPORT = np.arange(-300, 301)


def thresholds(rate: float) -> tuple[int, list[int]]:
    """The least number that the sampler draws, and its table."""
    table = noise._poisson_table(rate)
    return table.least, [table.above.value(i) for i in range(len(table.above.high))]


def weights(rate: float) -> tuple[int, list[int]]:
    """What is drawn with which chance, in 2^-128; beyond the table lies 2^-128 of all."""
    least, table = thresholds(rate)
    return least, [after - before for before, after in zip([0, *table], table, strict=False)]


def skellam_pmf(variance: float, support: np.ndarray) -> np.ndarray:
    """Of the Bessel function: exp(−μ) I_n(μ)."""
    return np.array([float(mpmath.exp(-variance) * mpmath.besseli(n, variance)) for n in support])


# ---------------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize("rate", [1e-9, 0.08, 0.999, 1.0, 12.5, 700.25, 75_000.0])
def test_the_table_is_the_poisson_law_to_120_bits(rate: float) -> None:
    least, table = thresholds(rate)
    assert table == sorted(table)
    places = {*np.linspace(0, len(table) - 1, 9, dtype=int).tolist(), int(rate) - least, 0}
    with mpmath.workdps(60):
        for place in places:
            # P(X ≤ x) is the regularized incomplete gamma function Q(x + 1, λ).
            below = mpmath.gammainc(least + place + 1, rate, mpmath.inf, regularized=True)
            assert abs(mpmath.mpf(table[place]) / 2**128 - below) < mpmath.mpf(2) ** -120
        last = mpmath.gammainc(least + len(table), 0, rate, regularized=True)
        assert last < mpmath.mpf(2) ** -128
        assert table[-1] == 2**128 - 1
        if least:
            assert mpmath.gammainc(least, rate, mpmath.inf, regularized=True) < 2**-128


def test_the_largest_rate_has_a_table_and_no_larger_one_has() -> None:
    least, table = thresholds(noise.LARGEST_RATE)
    assert least > 0
    assert len(table) < 3e5
    for deviations in (-5, -4, -2, -1, 0, 1, 3, 4.6):
        value = int(noise.LARGEST_RATE + deviations * math.sqrt(noise.LARGEST_RATE))
        chance = table[value - least] / 2**128
        assert chance == pytest.approx(large_poisson_cdf(noise.LARGEST_RATE, value), abs=1e-13)
    samples = noise.skellam_share(2 * noise.LARGEST_RATE, 1, 20_000, source(5))
    assert np.var(samples) == pytest.approx(2 * noise.LARGEST_RATE, rel=0.03)
    with pytest.raises(InvalidParametersError, match="at most"):
        noise.skellam_share(2.0001 * noise.LARGEST_RATE, 1, 1)


def large_poisson_cdf(rate: float, value: int) -> float:
    """A sum of probabilities by Stirling's series; scipy's is good to six digits at such rates."""
    numbers = value - np.arange(int(14 * math.sqrt(rate)))
    off = (numbers - rate) / rate
    exponents = -rate * ((1 + off) * np.log1p(off) - off) - 1 / (12 * numbers)
    return math.fsum(np.exp(exponents) / np.sqrt(2 * math.pi * numbers))


@pytest.mark.parametrize(("variance", "shares"), [(0.4, 1), (6.0, 2), (50.0, 7), (90.0, 300)])
def test_shares_add_up_to_skellam_noise_exactly(variance: float, shares: int) -> None:
    """Convolve what is really drawn, n' times on either side: nothing but its law is left."""
    _, chances = weights(variance / (2 * shares))
    size = 4096
    one = np.fft.fft(np.array([float(Fraction(each, 2**128)) for each in chances]), size)
    law = np.fft.ifft((one * one.conj()) ** shares).real
    here = np.concatenate([law[SUPPORT[0] :], law[: SUPPORT[-1] + 1]])
    assert here == pytest.approx(skellam_pmf(variance, SUPPORT), abs=1e-13)
    assert abs(law.sum() - 1) < 1e-12
    wrong = skellam_pmf(variance * (1 - 1 / (2 * shares)), SUPPORT)
    assert np.abs(here - wrong).max() > 1e-5, "one Poisson variable fewer would show"


@pytest.mark.parametrize(("variance", "shares"), [(0.9, 3), (12.0, 4), (160.0, 2)])
def test_sums_of_drawn_shares_fit_their_law(variance: float, shares: int) -> None:
    random = source(31)
    total = sum(noise.skellam_share(variance, shares, 60_000, random) for _ in range(shares))
    assert isinstance(total, np.ndarray)
    assert total.dtype == np.int64
    assert fit_p_value(total, skellam_pmf(variance, SUPPORT), SUPPORT) > ALPHA_LIMIT
    assert fit_p_value(total, skellam_pmf(1.05 * variance, SUPPORT), SUPPORT) < ALPHA_LIMIT
    fewer = total - noise.skellam_share(variance, shares, 60_000, source(31))
    assert fit_p_value(fewer, skellam_pmf(variance, SUPPORT), SUPPORT) < ALPHA_LIMIT


def test_tied_words_are_refined() -> None:
    """A word that equals the upper half of a threshold: 64 more bits say on which side it is."""
    rate, least = 12.5, 0
    table = noise._poisson_table(rate)
    assert table.least == least
    high, low = int(table.above.high[9]), int(table.above.low[9])
    assert 0 < low < 2**64 - 1
    zero = 0  # the least that can be drawn
    for lower, drawn in ((low - 1, 9), (low, 10), (low + 1, 10)):
        assert noise.skellam_share(2 * rate, 1, 1, words(high, zero, lower)) == [drawn]
        assert noise.skellam_share(2 * rate, 1, 1, words(zero, high, lower)) == [-drawn]
    assert noise.skellam_share(2 * rate, 1, 1, words(high - 1, zero)) == [9]
    assert noise.skellam_share(2 * rate, 1, 1, words(high + 1, zero)) == [10]


def test_ties_are_refined_where_thresholds_crowd() -> None:
    """Far out many thresholds share their upper half; the draw is that of the whole number."""
    table = noise._poisson_table(12.5)
    crowd = [i for i in range(len(table.above.high)) if int(table.above.high[i]) == 2**64 - 1]
    assert len(crowd) > 10
    for place in (crowd[0], crowd[3], crowd[-1]):
        low = int(table.above.low[place])
        drawn = noise.skellam_share(25.0, 1, 1, words(2**64 - 1, 0, low))
        assert drawn == [
            sum(table.above.value(i) <= (2**64 - 1 << 64 | low) for i in crowd) + crowd[0]
        ]


def tail(rate: float, bound: int) -> Fraction:
    """P(|X − Y| > bound), exactly, of two draws by the table."""
    _, chances = weights(rate)
    above, chance = [0], 0
    for each in reversed(chances):
        chance += each
        above.append(chance)
    above.reverse()  # above[i] = P(X ≥ i)
    beyond = sum(
        each * above[i + bound + 1] for i, each in enumerate(chances) if i + bound + 1 < len(above)
    )
    return 2 * Fraction(beyond, 2**256)


@pytest.mark.parametrize(("variance", "shares"), [(0.02, 1), (0.5, 3), (40.0, 2), (4000.0, 2)])
@pytest.mark.parametrize("bits", [1, 10, 40, 80, 118])
def test_the_bound_is_not_exceeded_and_not_far_away(
    variance: float, shares: int, bits: int
) -> None:
    bound = noise.skellam_share_bound(variance, shares, 2.0**-bits)
    rate = variance / (2 * shares)
    assert tail(rate, bound) <= Fraction(1, 2**bits)
    assert tail(rate, bound // 3 - 2) > Fraction(1, 2**bits) or bound <= 6


@pytest.mark.parametrize("rate", [40.25, 1000.25, 50_000.25])
@pytest.mark.parametrize("bits", [1, 10, 20, 40])
def test_the_bound_is_twice_the_least_distance_by_union(rate: float, bits: int) -> None:
    """Each of both draws is further from the rate with a quarter of the chance on either side."""
    quarter, law = 2.0 ** -(bits + 2), stats.poisson(rate)

    def enough(distance: int) -> bool:
        above = law.sf(math.floor(rate + distance))
        return above <= quarter and law.cdf(math.ceil(rate - distance) - 1) <= quarter

    half, rest = divmod(noise.skellam_share_bound(2 * rate, 1, 2.0**-bits), 2)
    assert rest == 0
    assert enough(half)
    assert not enough(half - 2)


def test_a_share_bound_beyond_all_that_can_be_drawn_is_one() -> None:
    """So many entries of so many phones that their chance is below the grid of the table."""
    least, table = thresholds(12.5)
    assert noise.skellam_share_bound(25.0, 1, 2.0**-140) >= least + len(table) - 1 - 12


test_bad_numbers_are_refused = refused(
    InvalidParametersError,
    *[
        ("variance", *attempt)
        for bad in (0.0, -1.0, math.nan, math.inf)
        for attempt in (
            (noise.skellam_share, bad, 3, 1),
            (noise.skellam_share_bound, bad, 3, 0.5),
            (noise.skellam_rate, bad, 3),
        )
    ],
    *[("shares", noise.skellam_share, 1.0, bad, 1) for bad in (0, -1, 1.5, math.nan)],
    *[
        ("probability", noise.skellam_share_bound, 1.0, 3, bad)
        for bad in (0.0, 1.0, -0.5, math.nan)
    ],
)


# ------------------------------------------------------------------------- as who reads a sum sees


@pytest.mark.parametrize("variance", [1e-6, 0.3, 4.0, 250.0, 5e4])
def test_tails_are_those_of_scipy(variance: float) -> None:
    law = SkellamNoise(variance)
    reach = max(4, int(5 * math.sqrt(variance)))
    values = np.unique(np.linspace(-reach, reach, 41, dtype=int))
    exact = stats.skellam.sf(values - 1, variance / 2, variance / 2)
    assert law.at_least(values) == pytest.approx(exact, abs=1e-11)
    assert law.at_least([-(2**70), 2**70]) == pytest.approx([1, 0], abs=1e-12)


def test_far_tails_are_those_of_the_bessel_function() -> None:
    with mpmath.workdps(40):
        for variance, value in ((4.0, 15), (250.0, 90)):
            exact = mpmath.nsum(
                lambda n, v=variance: mpmath.exp(-v) * mpmath.besseli(n, v), [value, value + 200]
            )
            assert abs(SkellamNoise(variance).at_least([value])[0] - exact) < 1e-12


@pytest.mark.parametrize("variance", [0.001, 0.7, 30.0, 4e4])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_radius_is_the_smallest_that_holds_the_noise(
    variance: float, confidence: float
) -> None:
    radius = SkellamNoise(variance).radius(confidence)
    inside = [
        float(1 - 2 * stats.skellam.sf(r, variance / 2, variance / 2)) for r in (radius, radius - 1)
    ]
    assert inside[0] >= confidence - 1e-12
    assert radius == 0 or inside[1] < confidence


def log_tail(variance: float, value: int) -> float:
    """Log₂ P(N > value), by the Bessel function."""
    with mpmath.workdps(60):
        total, n = mpmath.mpf(0), value + 1
        while True:
            term = mpmath.exp(-variance) * mpmath.besseli(n, variance)
            total += term
            if term < total * mpmath.mpf(10) ** -12:
                return float(mpmath.log(total, 2))
            n += 1


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.floats(-8, 3), st.sampled_from([1, 5, 20, 41, 70, 120]))
def test_the_tail_bound_is_never_too_short_and_hardly_too_long(power: float, bits: int) -> None:
    variance = 10.0**power
    law = SkellamNoise(variance)
    bound = law.tail_bound(2.0**-bits)
    assert log_tail(variance, bound) <= -bits
    if bits > 1:
        assert log_tail(variance, int(0.7 * bound) - 4) > -bits or bound <= 4


@pytest.mark.parametrize("variance", [1e9, 1e13, 1e17])
def test_much_noise_is_on_a_coarser_grid_and_all_but_normal(variance: float) -> None:
    law, deviation = SkellamNoise(variance), math.sqrt(variance)
    values = (np.array([-3, -1, 0.5, 1, 2, 4]) * deviation).astype(np.int64)
    normal = stats.norm.sf(values / deviation)
    # Values are rounded towards zero, to a thousandth of the deviation: no tail is too thin.
    assert law.at_least(values) == pytest.approx(normal, rel=0.005, abs=1e-6)
    assert (law.at_least(values[2:]) >= normal[2:] * (1 - 1e-3)).all()
    assert law.radius() == pytest.approx(stats.norm.isf(0.025) * deviation, rel=2e-3)
    assert law.tail_bound(2.0**-41) >= stats.norm.isf(2.0**-41) * deviation
    assert law.tail_bound(2.0**-41) < 1.1 * stats.norm.isf(2.0**-41) * deviation


@given(st.floats(1e-3, 1e6), st.integers(1, 9))
def test_more_noise_is_noise_of_the_same_kind(variance: float, times: int) -> None:
    law = SkellamNoise(variance)
    assert law.times(times).variance == pytest.approx(times * variance)
    assert law.of_difference == law.times(2)
    assert law.deviation**2 == pytest.approx(variance)
    assert law.coarser(8).deviation == pytest.approx(law.deviation / 8)


def test_without_noise_there_is_only_zero() -> None:
    nothing = SkellamNoise(4.0).times(0)
    assert nothing.at_least([-1, 0, 1]) == pytest.approx([1, 1, 0], abs=1e-15)
    assert nothing.radius() == 0
    assert nothing.tail_bound(2.0**-40) <= 1
