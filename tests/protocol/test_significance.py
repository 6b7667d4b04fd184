"""The test of what stands clear of the noise: exact laws, and how often noise alone passes it."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from earshot_protocol.privacy import laws
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.privacy.noise import polya_share
from earshot_protocol.privacy.significance import (
    LEVEL,
    are_clear,
    count_p_values,
    name_p_values,
)

PHASES = 4000
"""Drawn under pure noise."""
MOST = int(stats.binom.ppf(1 - 1e-6, PHASES, LEVEL))
"""More of them would show in but one of a million runs that the error rate is above `LEVEL`."""
SEED = 5


def drawn(
    noise: DiscreteLaplaceNoise, shape: tuple[int, ...], random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Noise by NumPy's own sampler, which knows nothing of shares or transforms."""
    success = -math.expm1(-1 / noise.scale)
    positive, negative = random.negative_binomial(noise.order, success, (2, *shape))
    return positive - negative


def exact_tail(scale: float, order: float, value: int) -> float:
    """P(X − Y ≥ value) by its definition, in 50 digits."""
    with mpmath.workdps(50):
        ratio, order = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(order)
        law = [(1 - ratio) ** order]
        while len(law) < 80 * scale * max(1, order) + 40:
            law.append(law[-1] * ratio * (len(law) - 1 + order) / len(law))
        below = [mpmath.mpf(0)]
        for probability in law:
            below.append(below[-1] + probability)
        return float(
            sum(law[y] * (1 - below[min(max(y + value, 0), len(law))]) for y in range(len(law)))
        )


def laplace_radius(scale: float) -> int:
    """Closed form: P(|x| ≤ r) = 1 − 2 α^(r+1) / (1 + α) of discrete Laplace noise."""
    ratio = math.exp(-1 / scale)
    radius = 0
    while 1 - 2 * ratio ** (radius + 1) / (1 + ratio) < 0.95:
        radius += 1
    return radius


def convolved_radius(scale: float, order: float) -> int:
    """From the probabilities of a negative binomial variable, by its recursion, and their sums."""
    ratio = math.exp(-1 / scale)
    law = [(1 - ratio) ** order]
    while len(law) < 60 * scale + 40 * order * scale:
        k = len(law)
        law.append(law[-1] * ratio * (k - 1 + order) / k)
    difference = np.convolve(law, law[::-1])
    middle = len(law) - 1
    radius = 0
    while difference[middle - radius : middle + radius + 1].sum() < 0.95:
        radius += 1
    return radius


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 4.0, 17.3, 200.0, 512.0])
def test_radius_of_discrete_laplace_noise_is_that_of_the_closed_form(scale: float) -> None:
    assert DiscreteLaplaceNoise(scale, 1.0).radius(0.95) == laplace_radius(scale)


@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
@pytest.mark.parametrize("order", [1.07, 1.33, 2.0, 8.0, 31.5])
def test_radius_of_more_shares_is_that_of_the_convolution(scale: float, order: float) -> None:
    assert DiscreteLaplaceNoise(scale, order).radius(0.95) == convolved_radius(scale, order)


@pytest.mark.parametrize("scale", [513.0, 2000.0, 2.0**14])
def test_radius_of_a_large_scale_is_near_the_closed_form(scale: float) -> None:
    # P(|x| ≤ r) = 0.95 at r = ln 20 · scale, but for less than one count.
    assert DiscreteLaplaceNoise(scale, 1.0).radius(0.95) == pytest.approx(
        math.log(20) * scale, rel=0.005
    )


def test_radius_of_many_large_noises_is_that_of_the_normal_law() -> None:
    scale, order = 2.0**14, 4096.0
    assert DiscreteLaplaceNoise(scale, order).radius(0.95) == pytest.approx(
        1.959964 * scale * math.sqrt(2 * order), rel=0.005
    )


def test_radius_holds_for_the_noise_that_phones_draw() -> None:
    honest, phones, scale = 6, 8, 4.0
    random = np.random.default_rng(51)
    draws = sum(polya_share(scale, honest, 60_000, random.bytes) for _ in range(phones))
    radius = DiscreteLaplaceNoise(scale, phones / honest).radius(0.95)
    within = np.mean(np.abs(draws) <= radius)
    closer = np.mean(np.abs(draws) < radius)
    assert closer - 0.003 < 0.95 <= within + 0.003
    assert within - closer > 0.006, "the two bounds could not fail"


@given(st.floats(0.1, 300), st.floats(1, 50), st.floats(1, 4))
def test_radius_grows_with_scale_and_order(scale: float, order: float, factor: float) -> None:
    assert DiscreteLaplaceNoise(scale * factor, order).radius(0.95) >= DiscreteLaplaceNoise(
        scale, order
    ).radius(0.95)
    assert DiscreteLaplaceNoise(scale, order * factor).radius(0.95) >= DiscreteLaplaceNoise(
        scale, order
    ).radius(0.95)


@pytest.mark.parametrize("scale", [0.3, 4.0, 11.0])
@pytest.mark.parametrize("order", [0.4, 1.0, 1.33, 5.0])
def test_tails_are_those_of_the_definition(scale: float, order: float) -> None:
    values = [-30, -3, -1, 0, 1, 2, 9, 40, 120]
    exact = [exact_tail(scale, order, value) for value in values]
    assert DiscreteLaplaceNoise(scale, order).at_least(values) == pytest.approx(
        exact, rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("scale", [2500.0, 2.0**14])
def test_tails_on_a_coarser_grid_are_no_smaller_than_the_closed_form(scale: float) -> None:
    ratio = math.exp(-1 / scale)
    values = np.array([1, 777, round(3 * scale), round(9 * scale)])
    exact = ratio**values / (1 + ratio)
    found = DiscreteLaplaceNoise(scale, 1.0).at_least(values)
    assert found == pytest.approx(exact, rel=0.002)
    assert (found >= exact * (1 - 1e-6)).all()


def test_on_a_coarser_grid_what_is_less_than_a_step_is_nothing() -> None:
    law = DiscreteLaplaceNoise(2.0**14, 1.0)
    grid, _ = laws._tail(law)
    assert grid > 1
    nothing, little, step = law.at_least([0, grid - 1, grid])
    assert nothing == little == pytest.approx(1 - step, abs=1e-12)


def test_without_noise_everything_positive_is_clear_and_ties_are_not() -> None:
    noise = BallotSum(1e6, 3, 400).noise(500)
    assert count_p_values([1, 0, -1], noise) == (0.0, 1.0, 1.0)
    assert name_p_values([[1, 0, 0], [0, 0, 0], [2, 2, 1]], noise) == (0.0, 1.0, 1.0)
    assert DiscreteLaplaceNoise(4.0, 0.0).radius(0.95) == 0


def test_noise_of_a_sum_is_that_of_the_shares_that_are_in_it() -> None:
    mechanism = BallotSum(0.5, 3, 300)
    assert mechanism.noise(390) == DiscreteLaplaceNoise(4.0, 1.3)
    values = np.arange(-40, 60)
    drawn_shares = sum(
        polya_share(4.0, 6, 40_000, np.random.default_rng([SEED, phone]).bytes)
        for phone in range(8)
    )
    found = (drawn_shares[:, None] >= values).mean(axis=0)
    assert found == pytest.approx(DiscreteLaplaceNoise(4.0, 8 / 6).at_least(values), abs=0.012)


def test_pure_noise_names_an_environment_in_one_phase_of_twenty_at_most() -> None:
    noise, random = DiscreteLaplaceNoise(4.0, 1.3), np.random.default_rng(SEED)
    tables = [drawn(noise, (6, 11), random) for _ in range(PHASES)]
    named = sum(any(are_clear(name_p_values(table, noise), 6)) for table in tables)
    assert named <= MOST
    largest_wins = sum((table.max(axis=1) > 0).any() for table in tables)
    assert largest_wins > 0.99 * PHASES, "the old rule would have passed"


def test_votes_that_are_even_are_told_apart_by_noise_in_one_phase_of_twenty_at_most() -> None:
    # One centroid and two labels: here the bound is nearly reached.
    noise, random = DiscreteLaplaceNoise(4.0, 1.3), np.random.default_rng(SEED)
    tables = 500 + drawn(noise, (PHASES, 2), random)
    named = sum(are_clear(name_p_values(table[None], noise), 1)[0] for table in tables)
    assert 0.2 * LEVEL * PHASES < named <= MOST


@pytest.mark.parametrize("labels", [1, 11])
def test_pure_noise_keeps_a_count_in_one_phase_of_twenty_at_most(labels: int) -> None:
    noise, random = DiscreteLaplaceNoise(4.0, 1.3), np.random.default_rng(SEED)
    counts = drawn(noise, (PHASES, labels), random)
    clear = sum(any(are_clear(count_p_values(row, noise), labels)) for row in counts)
    assert 0.4 * LEVEL * PHASES < clear <= MOST


def test_the_best_of_many_candidates_pay_for_all_that_were_looked_at() -> None:
    noise, random = DiscreteLaplaceNoise(4.0, 1.3), np.random.default_rng(SEED)
    counts = np.sort(drawn(noise, (PHASES, 40), random), axis=1)[:, -3:]
    clear = sum(any(are_clear(count_p_values(row, noise, 40), 3)) for row in counts)
    assert clear <= MOST
    forgotten = sum(any(are_clear(count_p_values(row, noise), 3)) for row in counts)
    assert forgotten > 2 * MOST, "the correction would not matter"


def test_the_two_environments_that_noise_named_gastronomy_are_unnamed() -> None:
    # 3 and 15 label votes beside noise of ±14, as published by a phase whose labels no phone knew.
    noise = DiscreteLaplaceNoise(4.0, 1.33)
    assert noise.radius(0.95) == 14
    table = np.zeros((2, 11), dtype=np.int64)
    table[0, 4], table[1, 4] = 3, 15
    assert are_clear(name_p_values(table, noise), 2) == (False, False)


def test_what_a_crowd_votes_for_is_named() -> None:
    noise, random = DiscreteLaplaceNoise(4.0, 1.3), np.random.default_rng(SEED)
    truth = np.zeros((6, 11), dtype=np.int64)
    truth[np.arange(6), [2, 4, 4, 9, 0, 10]] = 120
    truth[:, 7] = 20
    tables = [truth + drawn(noise, truth.shape, random) for _ in range(200)]
    named = [are_clear(name_p_values(table, noise), 6) for table in tables]
    assert np.mean(named) > 0.99


def test_a_name_needs_a_margin_and_votes() -> None:
    noise = DiscreteLaplaceNoise(4.0, 1.0)
    even, alone, below = name_p_values([[200, 195], [200, 3], [-90, -300]], noise)
    assert even == 1.0, "five votes ahead of 195"
    assert alone < 1e-6
    assert below == 1.0, "far ahead of the others, but nobody voted for it"
    assert name_p_values([[200], [2]], noise)[0] < 1e-6 < LEVEL < name_p_values([[2]], noise)[0]
    assert name_p_values(np.empty((0, 3)), noise) == ()


def test_what_was_not_tested_is_not_clear() -> None:
    assert are_clear((), 3) == (False, False, False)
    assert are_clear((0.0, 0.0), 3) == (False, False, False)
    assert are_clear((0.0, LEVEL, 0.0501), 3) == (True, True, False)


@given(st.floats(0.05, 40), st.floats(0.1, 20), st.integers(-200, 200))
def test_a_larger_number_is_never_less_clear(scale: float, order: float, value: int) -> None:
    smaller, larger = DiscreteLaplaceNoise(scale, order).at_least([value, value + 1])
    assert 0 <= larger <= smaller <= 1


def test_numbers_beyond_any_noise_and_any_word_are_clear() -> None:
    noise = DiscreteLaplaceNoise(4.0, 1.2)
    assert count_p_values([2**70, -(2**70), 2**63], noise) == (0.0, 1.0, 0.0)
    assert name_p_values([[2**62, -(2**62)]], noise) == (0.0,)
