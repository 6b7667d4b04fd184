"""Smoothed counts beside generalized least squares with dense matrices, and beside the truth."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_server.campaigns.smoothing import DRIFTS, GROUPS, smoothed

Reals = npt.NDArray[np.float64]


def series(weeks: int, seed: int, columns: int = 1, drift: float = 30.0) -> Reals:
    """Noisy counts around levels of about 500 that move by `drift` a week."""
    source = np.random.default_rng(seed)
    levels = 500 + np.cumsum(source.normal(0, drift, (weeks, columns)), axis=0)
    return source.poisson(np.maximum(levels, 0)) + source.normal(0, 60, (weeks, columns))


def dense(
    counts: Reals,
    noise: Reals,
    phones: Reals,
    breaks: tuple[int, ...],
    deviation: float,
    group: float,
) -> tuple[Reals, Reals, float]:
    """One series with known variances: its contacts, their variances, the restricted likelihood.

    The levels of a stretch without a break are an unknown constant and a random walk. Contacts are
    the best linear unbiased prediction (universal kriging), and the likelihood is that of what is
    left of the counts without their constants.
    """
    weeks = np.flatnonzero(~np.isnan(counts))
    rates, own = counts[weeks] / phones[weeks], noise[weeks] / phones[weeks] ** 2
    chance = group * max(rates.mean(), 0) / phones[weeks]
    drift = deviation**2 * (own + chance).mean()
    stretch = np.array([sum(week >= each for each in breaks) for week in weeks])
    known = np.stack([stretch == each for each in np.unique(stretch)], axis=1).astype(float)
    starts = np.array([weeks[stretch == each][0] for each in stretch])
    walk = drift * np.minimum.outer(weeks - starts, weeks - starts)
    walk *= stretch[:, np.newaxis] == stretch
    total = walk + np.diag(chance + own)
    contacts = walk + np.diag(chance)
    inverse = np.linalg.inv(total)
    normal = known.T @ inverse @ known
    constants = np.linalg.solve(normal, known.T @ inverse @ rates)
    left = rates - known @ constants
    means = known @ constants + contacts @ inverse @ left
    gap = known - contacts @ inverse @ known
    spread = contacts - contacts @ inverse @ contacts + gap @ np.linalg.solve(normal, gap.T)
    likelihood = -(np.linalg.slogdet(total)[1] + np.linalg.slogdet(normal)[1]) / 2
    likelihood -= left @ inverse @ left / 2
    size = phones[weeks]
    return means * size, np.diag(spread) * size**2, float(likelihood)


@pytest.mark.parametrize("drift", [0.0, 5.0, 60.0])
def test_smoothed_counts_are_those_of_generalized_least_squares(drift: float) -> None:
    counts = series(30, 1, 2, drift)
    counts[:, 1] -= 700  # such as the noise of a place where nobody was
    counts[[0, 7, 8], 0] = counts[20] = np.nan
    source = np.random.default_rng(2)
    noise, phones = source.uniform(2e3, 6e3, (30, 2)), source.uniform(800, 1200, 30)
    breaks = (13, 20, 29)
    found = smoothed(counts, noise, phones, breaks)
    seen = ~np.isnan(counts).any(axis=1)
    whole = np.where(seen[:, np.newaxis], counts, np.nan)
    for column in range(2):
        each = [
            dense(whole[:, column], noise[:, column], phones, breaks, deviation, group)
            for group, deviation in product(GROUPS, DRIFTS)
        ]
        means, spreads, likelihood = (np.array(part) for part in zip(*each, strict=True))
        weights = np.tile(DRIFTS, len(GROUPS)) * np.exp(likelihood - likelihood.max())
        weights /= weights.sum()
        mean = weights @ means
        assert found.counts[seen, column] == pytest.approx(mean, rel=1e-9)
        variance = weights @ (spreads + (means - mean) ** 2)
        assert found.variances[seen, column] == pytest.approx(variance, rel=1e-8)
    assert np.isnan(found.counts[[0, 7, 8, 20]]).all()
    assert np.isnan(found.variances[[0, 7, 8, 20]]).all()


@given(st.integers(1, 9), st.integers(0, 99), st.lists(st.integers(0, 9), max_size=2))
def test_series_do_not_touch_one_another_and_time_has_no_direction(
    weeks: int, seed: int, breaks: list[int]
) -> None:
    counts, noise = series(weeks, seed, 2), np.full((weeks, 2), 3600.0)
    phones = np.random.default_rng(seed).uniform(500, 1500, weeks)
    both = smoothed(counts, noise, phones, breaks)
    alone = smoothed(counts[:, :1], noise[:, :1], phones, breaks)
    assert both.counts[:, :1] == pytest.approx(alone.counts, rel=1e-12)
    turned = smoothed(counts[::-1], noise, phones[::-1], [weeks - each for each in breaks])
    assert turned.counts[::-1] == pytest.approx(both.counts, rel=1e-7)
    assert turned.variances[::-1] == pytest.approx(both.variances, rel=1e-7)


def test_a_week_alone_between_breaks_stays_as_it_is() -> None:
    counts = series(9, 3)
    found = smoothed(counts, np.full((9, 1), 3600.0), np.ones(9), [4, 5])
    assert found.counts[4] == pytest.approx(counts[4])
    assert found.variances[4] == pytest.approx(3600)
    assert (found.variances[[3, 5]] < 3600).all()


def test_contacts_that_follow_the_crowd_are_not_changes() -> None:
    """Half of the phones stay away for a week: half as many contacts are no drift."""
    phones = np.full(20, 1000.0)
    phones[9] = 500
    counts = 0.5 * phones[:, np.newaxis] + np.random.default_rng(5).normal(0, 20, (20, 1))
    found = smoothed(counts, np.full((20, 1), 400.0), phones)
    assert found.counts[9, 0] == pytest.approx(250, abs=15)
    assert found.counts[[8, 10], 0] == pytest.approx(500, abs=30)


def test_counts_far_above_the_noise_are_hardly_smoothed() -> None:
    """A place that closes from one week to the next is seen to close."""
    counts = np.repeat([10_000.0, 0.0], 10)[:, np.newaxis]
    found = smoothed(counts, np.full((20, 1), 400.0), np.ones(20))
    assert found.counts[:, 0] == pytest.approx(counts[:, 0], abs=20)


def test_a_series_without_any_sum_has_none_smoothed() -> None:
    nothing = np.full((3, 2), np.nan)
    found = smoothed(nothing, np.ones((3, 2)), np.zeros(3))
    assert np.isnan(found.counts).all()
    assert np.isnan(found.variances).all()


@pytest.mark.parametrize(("drift", "largest_error"), [(0.0, 50), (15.0, 50), (60.0, 60)])
@pytest.mark.parametrize("weeks", [13, 52])
def test_intervals_hold_the_contacts_of_a_week(
    weeks: int, drift: float, largest_error: float
) -> None:
    """In all weeks, and in the newest one; where little moves, they are a bit too wide."""
    source = np.random.default_rng(53)
    levels = 1500 + np.cumsum(source.normal(0, drift, (weeks, 200)), axis=0)
    contacts = source.poisson(levels).astype(float)
    counts = contacts + source.normal(0, 80, contacts.shape)
    found = smoothed(counts, np.full(counts.shape, 80.0**2), np.full(weeks, 3000.0))
    held = np.abs(found.counts - contacts) <= 1.959964 * np.sqrt(found.variances)
    assert 0.94 <= held.mean() <= (0.995 if drift == 0 else 0.98)
    assert held[-1].mean() >= 0.92
    assert np.sqrt(np.mean((found.counts - contacts) ** 2)) < largest_error


def test_intervals_hold_contacts_that_come_in_threes() -> None:
    """At the variance of independent events they would hold 90 %."""
    source = np.random.default_rng(53)
    levels = 750 * np.exp(np.cumsum(source.normal(0, 0.035, (52, 200)), axis=0))
    contacts = 3.0 * source.poisson(levels / 3)
    counts = contacts + source.normal(0, 80, contacts.shape)
    found = smoothed(counts, np.full(counts.shape, 80.0**2), np.full(52, 5000.0))
    held = np.abs(found.counts - contacts) <= 1.959964 * np.sqrt(found.variances)
    assert held.mean() >= 0.935
    assert np.sqrt(np.mean((found.counts - contacts) ** 2)) < 0.65 * 80
