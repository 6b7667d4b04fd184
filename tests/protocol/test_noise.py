"""The law of every noise, exactly where it can be computed and by goodness of fit where not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.goodness import ALPHA_LIMIT, fit_p_value, source, words
from support.refusals import refused

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noise


def laplace_pmf(scale: float, support: np.ndarray) -> np.ndarray:
    alpha = math.exp(-1 / scale)
    return (1 - alpha) / (1 + alpha) * alpha ** np.abs(support)


def gaussian_pmf(sigma: float, support: np.ndarray) -> np.ndarray:
    weights = np.exp(-np.square(support / sigma) / 2)
    return weights / weights.sum()


def negative_binomial_pmf(order: float, alpha: float, length: int) -> np.ndarray:
    """From the gamma function, not from the recurrence that the sampler uses."""
    return np.array(
        [
            math.exp(
                math.lgamma(x + order)
                - math.lgamma(order)
                - math.lgamma(x + 1)
                + order * math.log1p(-alpha)
                + x * math.log(alpha)
            )
            for x in range(length)
        ]
    )


SUPPORT = np.arange(-400, 401)


# ------------------------------------------------------------------------------ discrete Laplace


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0, 7.5])
def test_discrete_laplace_fits_its_law(scale: float) -> None:
    samples = noise.discrete_laplace(scale, 60_000, source(1))
    assert samples.dtype == np.int64
    assert fit_p_value(samples, laplace_pmf(scale, SUPPORT), SUPPORT) > ALPHA_LIMIT
    assert fit_p_value(samples, laplace_pmf(1.04 * scale, SUPPORT), SUPPORT) < ALPHA_LIMIT


@pytest.mark.parametrize("scale", [1.0, 20.0, 65536 * 8.0])
def test_digits_are_the_factors_of_a_geometric_law(scale: float) -> None:
    table = noise._laplace_digits(scale)
    with mpmath.workdps(80):
        alpha = mpmath.exp(-1 / mpmath.mpf(scale))
        for digit in range(len(table.high)):
            power = alpha ** (2**digit)
            exact = power / (1 + power) * 2**128
            assert abs(table.value(digit) - exact) <= 1.001
        assert alpha ** (2 ** len(table.high)) < mpmath.mpf(2) ** -128
        # The factors multiply to α^g / Σ α^g: no digit that matters is missing.
        ones = [mpmath.mpf(table.value(j)) / 2**128 for j in range(len(table.high))]
        none = mpmath.fprod(1 - one for one in ones)
        assert abs(none - (1 - alpha)) < mpmath.mpf(2) ** -120
        assert abs(none * ones[0] / (1 - ones[0]) - alpha * (1 - alpha)) < mpmath.mpf(2) ** -120


def test_large_scale_keeps_its_variance() -> None:
    scale = 2.0**40
    samples = noise.discrete_laplace(scale, 50_000, source(2)) / scale
    assert abs(np.mean(np.square(samples)) - 2) < 0.1
    assert len(np.unique(samples)) == 50_000
    widest = noise.discrete_laplace(noise.LARGEST_SCALE, 1000, lambda n: b"\0" * n)
    assert (widest == 0).all(), "all digits one on both sides must cancel without overflow"


def test_tied_words_are_refined() -> None:
    """The first digit's coin lands in the 64-bit cell of its threshold; low bits decide."""
    table = noise._laplace_digits(0.02)  # α = e^-50: one digit only, times two geometrics
    assert len(table.high) == 1
    high, low = int(table.high[0]), int(table.low[0])
    never = 2**64 - 1
    assert noise.discrete_laplace(0.02, 1, words(high, never, low - 1)) == [1]
    assert noise.discrete_laplace(0.02, 1, words(high, never, low)) == [0]
    assert noise.discrete_laplace(0.02, 1, words(high, high, low, low - 1)) == [-1]


# ----------------------------------------------------------------------------------- Pólya shares


@pytest.mark.parametrize(("shares", "scale"), [(2, 1.0), (3, 2.0), (5, 4.0)])
def test_shares_add_up_to_discrete_laplace_exactly(shares: int, scale: float) -> None:
    length = int(60 * scale)
    one = negative_binomial_pmf(1 / shares, math.exp(-1 / scale), length)
    share = np.convolve(one, one[::-1])
    total = share
    for _ in range(shares - 1):
        total = np.convolve(total, share)
    support = np.arange(len(total)) - len(total) // 2
    inner = np.abs(support) < length // 2
    np.testing.assert_allclose(total[inner], laplace_pmf(scale, support[inner]), atol=1e-12, rtol=0)


@pytest.mark.parametrize(("shares", "scale"), [(1, 1.0), (3, 2.0), (900, 2.0), (10**6, 20.0)])
def test_table_is_the_negative_binomial_cdf(shares: int, scale: float) -> None:
    table = noise._polya_table(scale, shares)
    with mpmath.workdps(80):
        order = mpmath.mpf(1) / shares
        alpha = mpmath.exp(-1 / mpmath.mpf(scale))
        cumulative = mpmath.mpf(0)
        for x in range(len(table.high) - 1):
            cumulative += mpmath.rf(order, x) / mpmath.factorial(x) * alpha**x
            exact = cumulative * (1 - alpha) ** order * 2**128
            assert -0.001 <= exact - table.value(x) <= 1.001
    assert table.value(len(table.high) - 1) == 2**128 - 1


@pytest.mark.parametrize(("shares", "rounds"), [(1, 50_000), (50, 20_000), (1000, 3000)])
def test_sums_of_shares_fit_the_law_and_the_thesis_noise_does_not(shares: int, rounds: int) -> None:
    scale = 2.0
    random = source(3)
    total = sum(noise.polya_share(scale, shares, rounds, random) for _ in range(shares))
    law = laplace_pmf(scale, SUPPORT)
    assert fit_p_value(total, law, SUPPORT) > ALPHA_LIMIT
    # Planted fault (thesis 8.2.3): shares Lap(v / (ε n')) sum to far too little when n' > 1.
    generator = np.random.default_rng(4)
    faulty = sum(generator.laplace(0, scale / shares, rounds) for _ in range(shares))
    rounded = np.rint(faulty).astype(np.int64)
    if shares == 1:
        assert abs(rounded.std() / total.std() - 1) < 0.05
    else:
        assert fit_p_value(rounded, law, SUPPORT) < 1e-12


def test_half_the_noise_is_noticed() -> None:
    random = source(5)
    total = sum(noise.polya_share(1.0, 20, 20_000, random) for _ in range(20))
    assert fit_p_value(total, laplace_pmf(2.0, SUPPORT), SUPPORT) < 1e-12


def test_polya_ties_are_refined_where_thresholds_crowd() -> None:
    """Near the end of the table many thresholds share an upper word of 64 ones."""
    table = noise._polya_table(2.0, 900)
    top = 2**64 - 1
    crowded = int(np.searchsorted(table.high, top))
    assert len(table.high) - crowded > 20
    for index in (0, crowded, crowded + 7, len(table.high) - 2):
        high, low = int(table.high[index]), int(table.low[index])
        assert noise.polya_share(2.0, 900, 1, words(high, 0, low)) == [index + 1]
        assert noise.polya_share(2.0, 900, 1, words(high, 0, low - 1)) == [index]
        assert noise.polya_share(2.0, 900, 1, words(0, high, low)) == [-index - 1]


@given(
    scale=st.floats(0.05, 30),
    shares=st.integers(1, 5000),
    exponent=st.integers(1, 120),
)
def test_share_bound_is_the_least_by_union(scale: float, shares: int, exponent: int) -> None:
    bound = noise.polya_share_bound(scale, shares, 2.0**-exponent)
    table = noise._polya_table(scale, shares)
    # 2 P(X > B) ≤ 2^-exponent, in units of 2^-128; P(X > B) is 1 minus the B-th threshold.
    assert 2 * (2**128 - table.value(bound)) <= 2 ** (128 - exponent)
    if bound > 0:
        assert 2 * (2**128 - table.value(bound - 1)) > 2 ** (128 - exponent)


def test_share_bound_holds_for_samples() -> None:
    bound = noise.polya_share_bound(3.0, 4, 1e-3)
    samples = np.abs(noise.polya_share(3.0, 4, 100_000, source(6)))
    assert np.mean(samples > bound) <= 1e-3
    assert np.mean(samples > bound // 2) > 1e-3, "a bound that much larger says nothing"


# ------------------------------------------------------------------------------ discrete Gaussian


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.7, 20.0])
def test_discrete_gaussian_fits_its_law(sigma: float) -> None:
    samples = noise.discrete_gaussian(sigma, 60_000, source(7))
    assert samples.dtype == np.int64
    assert fit_p_value(samples, gaussian_pmf(sigma, SUPPORT), SUPPORT) > ALPHA_LIMIT
    assert fit_p_value(samples, gaussian_pmf(1.03 * sigma, SUPPORT), SUPPORT) < ALPHA_LIMIT


def test_discrete_gaussian_of_large_sigma() -> None:
    sigma = 2.0**45
    samples = noise.discrete_gaussian(sigma, 20_000, source(8)) / sigma
    assert stats.kstest(samples, "norm").pvalue > ALPHA_LIMIT


def test_acceptance_in_doubles_and_in_decimals_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = noise.discrete_gaussian(5.3, 500, source(9))
    monkeypatch.setattr(noise, "_DOUBT", 2.0)  # now no comparison is left to doubles
    np.testing.assert_array_equal(quick, noise.discrete_gaussian(5.3, 500, source(9)))


@pytest.mark.parametrize(("sigma", "proposal"), [(0.4, 1), (5.3, 0), (5.3, -17), (1e6, 12345)])
def test_exact_acceptance_probability(sigma: float, proposal: int) -> None:
    with mpmath.workdps(80):
        variance = mpmath.mpf(sigma) ** 2
        distance = abs(proposal) - variance / (math.floor(sigma) + 1)
        exact = mpmath.exp(-(distance**2) / (2 * variance)) * 2**128
        assert -0.001 <= exact - noise._exact_acceptance(proposal, sigma) <= 1.001


# ------------------------------------------------------------------------------ shapes and refusals


SAMPLERS: list[Callable[..., np.ndarray]] = [
    noise.discrete_laplace,
    lambda scale, *rest: noise.polya_share(scale, 10, *rest),
    noise.discrete_gaussian,
    lambda variance, *rest: noise.skellam_share(variance, 10, *rest),
]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("size", [0, 1, 7, (), (3,), (2, 3), (0, 4), (2, 3, 4)])
def test_size_is_the_shape(sampler: Callable[..., np.ndarray], size: int | tuple[int, ...]) -> None:
    shape = size if isinstance(size, tuple) else (size,)
    assert np.shape(sampler(1.5, size)) == shape


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_source_decides_everything(sampler: Callable[..., np.ndarray]) -> None:
    again = [sampler(9.0, 50, source(seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(again[0], again[1])
    assert (again[0] != again[2]).any()
    assert (sampler(9.0, 50) != sampler(9.0, 50)).any()


test_bad_numbers_are_refused = refused(
    InvalidParametersError,
    *[
        (r"(scale|sigma|variance)=", sampler, bad, 3)
        for sampler in SAMPLERS
        for bad in (0.0, -1.0, math.nan, math.inf, -math.inf, 1e300)
    ],
    *[("shares", noise.polya_share, 1.0, bad, 3) for bad in (0, -3, 2.5, math.nan, "many")],
    *[("probability", noise.polya_share_bound, 1.0, 3, bad) for bad in (0.0, 1.0, -0.1, math.nan)],
)


def test_vanishing_scale_means_no_noise() -> None:
    assert not noise.discrete_laplace(1e-9, 100).any()
    assert not noise.polya_share(1e-9, 5, 100).any()
    assert noise.polya_share_bound(1e-9, 5, 2.0**-60) == 0


@pytest.mark.parametrize("proposal", [-3, 0, 2, 7])
def test_a_gaussian_coin_whose_first_half_ties_is_settled_by_the_second(proposal: int) -> None:
    sigma = 2.5
    exact = noise._exact_acceptance(proposal, sigma)
    upper, lower = divmod(exact, 2**64)
    for second, accepted in ((lower - 1, True), (lower, False), (2**64 - 1, False)):
        drawn = iter([upper, second])

        def random(count: int, drawn: Iterator[int] = drawn) -> bytes:
            return next(drawn).to_bytes(count, "little")

        assert noise._gaussian_acceptance(np.array([proposal]), sigma, random) == accepted
        assert next(drawn, None) is None, "both halves are drawn, and no more"
