"""The auditor's mathematics against closed forms, other libraries and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from earshot_protocol.privacy.mechanisms import BallotSum, VectorSum
from earshot_simulations.auditing.ballots import difference_loss, noise_law
from earshot_simulations.auditing.laws import Law, share_law
from earshot_simulations.auditing.losses import (
    Losses,
    discrete_gaussian_loss,
    discrete_laplace_loss,
    loss,
    outcome_epsilon,
    shifted,
)
from earshot_simulations.auditing.proportions import clopper_pearson
from earshot_simulations.auditing.samplers import discrete_gaussian_law, discrete_laplace_law
from earshot_simulations.auditing.sampling import CONFIDENCE, sampled_epsilon

STEP = 1e-5
ROUNDING = 1e-15


def laplace_delta(epsilon: float, scale: float) -> float:
    """Of discrete Laplace noise and a shift by one: its loss is 1/scale or −1/scale."""
    return max(0.0, -math.expm1(epsilon - 1 / scale)) / (1 + math.exp(-1 / scale))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Balle and Wang (ICML 2018), Theorem 8."""
    below = stats.norm.cdf(mu / 2 - epsilon / mu)
    return float(below - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2, 0.249])
def test_discrete_laplace_noise_by_both_ways_has_the_delta_of_its_closed_form(
    epsilon: float,
) -> None:
    exact = laplace_delta(epsilon, 4.0)
    for losses in (
        discrete_laplace_loss(1, 4.0, STEP),
        shifted(discrete_laplace_law(4.0), 1, STEP),
    ):
        assert losses.least_delta(epsilon) <= exact + ROUNDING
        assert losses.sufficient_delta(epsilon) >= exact - ROUNDING
        assert losses.sufficient_delta(epsilon) - losses.least_delta(epsilon) < 2 * STEP


@pytest.mark.parametrize(("shift", "scale"), [(3, 2.0), (4096, 4096 / 0.05), (20, 4.0)])
def test_a_large_shift_of_discrete_laplace_noise_is_as_it_is_by_enumeration(
    shift: int, scale: float
) -> None:
    noise = np.arange(-40 * math.ceil(scale), 40 * math.ceil(scale) + 1)
    values = (np.abs(noise - shift) - np.abs(noise)) / scale
    masses = np.exp(-np.abs(noise) / scale)
    masses /= masses.sum()
    epsilon = 0.6 * shift / scale
    exact = float(masses @ -np.expm1(np.minimum(0.0, epsilon - values)))
    losses = discrete_laplace_loss(shift, scale, STEP)
    assert losses.least_delta(epsilon) <= exact + 1e-12
    assert losses.sufficient_delta(epsilon) >= exact - 1e-12
    assert losses.least_delta(epsilon) == pytest.approx(exact, rel=1e-3)


def test_a_shift_of_millions_is_that_of_laplace_noise() -> None:
    losses, largest = discrete_laplace_loss(2**22, 2**22 / 2.0, 5 * STEP), 2.0
    for epsilon in (0.0, 1.0, 1.9):
        exact = -math.expm1((epsilon - largest) / 2)
        assert losses.least_delta(epsilon) <= exact + 1e-6
        assert losses.sufficient_delta(epsilon) >= exact - 1e-6
        assert losses.least_delta(epsilon) == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_wide_discrete_gaussian_noise_has_the_delta_of_gaussian_noise(mu: float) -> None:
    sigma = 500.0
    losses = discrete_gaussian_loss(mu * sigma, sigma, STEP)
    for epsilon in (0.0, mu, 2 * mu, mu * mu):
        exact = gaussian_delta(epsilon, mu)
        assert losses.least_delta(epsilon) == pytest.approx(exact, rel=1e-3, abs=1e-9)
        # Gaussian noise in cells is not discrete Gaussian noise, but as good as that.
        assert losses.sufficient_delta(epsilon) >= exact * (1 - 1e-4)


def test_narrow_discrete_gaussian_noise_is_as_it_is_by_enumeration() -> None:
    losses, exact = (
        discrete_gaussian_loss(3, 6.5, STEP),
        shifted(discrete_gaussian_law(6.5), 3, STEP),
    )
    for epsilon in (0.0, 0.5, 1.5):
        delta = exact.least_delta(epsilon)
        assert losses.least_delta(epsilon) == pytest.approx(delta, rel=1e-3, abs=1e-10)


@pytest.mark.parametrize(("count", "delta"), [(2, 1e-6), (21, 1e-6), (100, 1e-6)])
def test_compositions_are_those_of_dp_accounting(count: int, delta: float) -> None:
    ours = discrete_laplace_loss(1, 8.0, STEP).times(count).epsilon(delta)
    each = library.from_discrete_laplace_mechanism(1 / 8.0, value_discretization_interval=1e-4)
    theirs = each.self_compose(count).get_epsilon_for_delta(delta)
    assert ours.high - ours.low < 0.01
    assert ours.low - 1e-4 * count <= theirs <= ours.high + 1e-4 * count


def test_composed_gaussian_noise_is_the_gaussian_noise_of_the_closed_form() -> None:
    ours = discrete_gaussian_loss(100, 400.0, 5 * STEP).times(9).epsilon(1e-6)
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, 0.75) > 1e-6 else (low, middle)
    assert ours.low <= low + 1e-6
    assert ours.high >= low - 1e-6
    assert ours.high - ours.low < 1e-3


def test_outcomes_that_a_neighbour_never_gives_are_infinite_losses() -> None:
    p, q = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    assert outcome_epsilon(p, q, 1e-6, 0.0).low == math.inf
    assert outcome_epsilon(p, q, 0.6, 0.0).high < 1e-12
    assert loss(p, q, STEP).epsilon(1e-6).low == math.inf


def test_outcomes_are_measured_exactly() -> None:
    p, q = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    measured = outcome_epsilon(p, q, 0.1, 0.0)
    assert measured.low == pytest.approx(math.log(0.5 / 0.4), abs=1e-9)
    assert measured.high == pytest.approx(measured.low, abs=1e-9)


@pytest.mark.parametrize(("scale", "shares"), [(4.0, 900), (0.7, 3), (20.0, 50)])
def test_the_law_of_polya_shares_is_read_from_their_sampler(scale: float, shares: int) -> None:
    mechanism = BallotSum(2 / scale, 3, shares)
    law = share_law(mechanism.noise_share)
    reach = 40 * math.ceil(scale)
    one = stats.nbinom.pmf(np.arange(reach), 1 / shares, -math.expm1(-1 / scale))
    exact = np.convolve(one, one[::-1])
    read = np.zeros(len(exact))
    inside = (law.values > -reach) & (law.values < reach)
    read[law.values[inside] + reach - 1] = law.masses[inside]
    assert np.abs(read - exact).sum() < 1e-12
    assert law.doubt < 1e-12


def test_the_sum_of_all_shares_is_discrete_laplace_noise() -> None:
    law, exact = noise_law(BallotSum(0.5, 3, 900), 900), discrete_laplace_law(4.0)
    for value in (-30, -1, 0, 7, 100):
        mass = law.masses[value - law.first]
        assert mass == pytest.approx(exact.masses[value - exact.first], rel=1e-9)


def test_the_sum_of_skellam_shares_has_the_law_of_skellam_noise() -> None:
    mechanism = VectorSum(0.05, 4, 1e-6, 30)
    law = noise_law(mechanism, 30)
    exact = stats.skellam.pmf(law.values, mechanism.variance / 2, mechanism.variance / 2)
    assert np.abs(law.masses - exact).sum() <= law.doubt + 1e-9
    assert law.doubt < 1e-9


def test_long_sums_by_their_characteristic_function_are_as_term_by_term() -> None:
    generator = np.random.default_rng(0)
    law = Law(-2500, generator.dirichlet(np.ones(5001)))
    short, long = Law(law.first, law.masses).plus(law).plus(law), law.times(3)
    apart = np.zeros(20_003)
    for sign, each in ((1, short), (-1, long)):
        apart[each.values + 10_001] += sign * each.masses
    assert np.abs(apart).sum() <= short.doubt + long.doubt + 1e-12
    assert long.doubt < 1e-9


def test_fewer_shares_are_measured_as_less_noise_and_more_as_more() -> None:
    mechanism = BallotSum(0.5, 3, 100)
    difference = np.array([1, -1])
    fewer, exactly, more = (
        difference_loss(noise_law(mechanism, shares), difference).epsilon(1e-6)
        for shares in (80, 100, 130)
    )
    assert more.high < exactly.low < 0.5 < fewer.low


def test_bounds_on_a_probability_hold_as_often_as_they_say() -> None:
    generator, chance = np.random.default_rng(1), 0.03
    hits = generator.binomial(500, chance, 4000)
    bounds = np.array([clopper_pearson(int(each), 500, 0.05) for each in hits])
    assert (bounds[:, 0] > chance).mean() <= 0.05 + 0.01
    assert (bounds[:, 1] < chance).mean() <= 0.05 + 0.01
    assert clopper_pearson(0, 100, 0.05)[0] == 0.0
    assert clopper_pearson(0, 100, 0.05)[1] == pytest.approx(1 - 0.05 ** (1 / 100))


def test_trials_show_less_than_the_truth_and_not_much_less() -> None:
    generator, epsilon = np.random.default_rng(2), 1.0
    ours = np.where(generator.random(20_000) < 1 / (1 + math.exp(-epsilon)), epsilon, -epsilon)
    theirs = np.where(generator.random(20_000) < 1 / (1 + math.exp(epsilon)), epsilon, -epsilon)
    found = sampled_epsilon(ours, theirs, 0.0)
    assert 0.8 * epsilon < found.low <= epsilon
    assert found.high == math.inf
    assert CONFIDENCE > 0.999


@settings(max_examples=60, deadline=None)
@given(
    some.integers(0, 2**32),
    some.integers(1, 400),
    some.sampled_from([1e-5, 1e-2, 3.0]),
    some.floats(-0.5, 1.5),
)
def test_a_delta_is_the_sum_over_all_losses_at_every_epsilon(
    seed: int, length: int, step: float, place: float
) -> None:
    """Against a sum of each loss's share, added up without rounding."""
    generator = np.random.default_rng(seed)
    first = int(generator.integers(-length, length))
    masses = generator.dirichlet(np.full(length, 0.05)) * 0.9
    losses = Losses(step, first, masses, infinite=0.1)
    epsilon = max(0.0, (first + place * length) * step)
    exact = 0.1 + math.fsum(
        mass * -math.expm1(min(0.0, epsilon - (first + at) * step))
        for at, mass in enumerate(masses.tolist())
    )
    assert losses.least_delta(epsilon) <= exact + 1e-15
    assert losses.sufficient_delta(epsilon) >= exact - 1e-15
    assert losses.sufficient_delta(epsilon) - losses.least_delta(epsilon) < 1e-12


def test_tails_that_are_cut_from_long_sums_stay_in_doubt() -> None:
    """Against the same sum by convolutions term by term, of which nothing is cut."""
    one = discrete_gaussian_loss(1.0, 6.0, 1e-3)
    each, whole = one.masses, np.ones(1)
    for _ in range(12):
        whole = np.convolve(whole, each)
    long = one.times(12)
    assert len(long.masses) < len(whole) / 2
    assert 0 < long.doubt - 12 * one.doubt < 1e-11
    values = (12 * one.first + np.arange(len(whole))) * one.step
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        exact = float(whole @ -np.expm1(np.minimum(0.0, epsilon - values)))
        assert abs(long._divergence(epsilon)[0] - exact) <= long.doubt
