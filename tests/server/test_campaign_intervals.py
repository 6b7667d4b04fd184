"""Intervals hold what they say, by repetition with exact noise and Poisson contacts.

The noise is drawn as phones and operators draw it, Skellam and discrete Gaussian; what should be
held is known, as the tests choose the rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from earshot_server.campaigns import intervals
from earshot_server.campaigns.intervals import CONFIDENCE, NoisySum, level, together

Floats = npt.NDArray[np.float64]
REPETITIONS = 4000
Z = level(CONFIDENCE)


def skellam(random: np.random.Generator, deviation: float, size: tuple[int, ...]) -> Floats:
    """Noise in steps of a thousandth of a contact."""
    rate = (1000 * deviation) ** 2 / 2
    return (random.poisson(rate, size) - random.poisson(rate, size)) / 1000


def discrete_gaussian(
    random: np.random.Generator, deviation: float, size: tuple[int, ...]
) -> Floats:
    """Noise in whole contacts, by its probabilities."""
    reach = np.arange(-math.ceil(9 * deviation), math.ceil(9 * deviation) + 1)
    chances = np.exp(-(reach**2) / (2 * deviation**2))
    return random.choice(reach, size, p=chances / chances.sum()).astype(np.float64)


def held(figures: list[intervals.PublishedFigure], true: float) -> float:
    return float(np.mean([each.least <= true <= each.most for each in figures]))


NOISES = [skellam, discrete_gaussian]
"""One server's noise and that of two operators."""


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("contacts", "share", "deviation"),
    [
        (15_000, 0.05, 57.0),  # 5,000 phones, 3 contacts each, B = 10
        (15_000, 0.002, 57.0),  # a place within the noise
        (300_000, 0.10, 75.0),  # 100,000 phones
        (2_000, 0.30, 57.0),  # all contacts 7 times their noise
        (300, 0.40, 1.0),  # nearly no noise
    ],
)
def test_intervals_of_counts_and_shares_hold_in_95_of_100_cases(
    noise: Callable[..., Floats], contacts: int, share: float, deviation: float
) -> None:
    random = np.random.default_rng(53)
    rates = contacts * np.array([share, 0.5 - share / 2, 0.5 - share / 2])
    entries = random.poisson(rates, (REPETITIONS, 3)) + noise(random, deviation, (REPETITIONS, 3))
    sums = [[NoisySum(total, deviation**2) for total in row] for row in entries.tolist()]
    counts = [intervals.count(row[0], Z) for row in sums]
    shares = [intervals.share(row[0], together(row), Z) for row in sums]
    published = [each for each in shares if each is not None]
    assert len(published) == REPETITIONS
    assert 0.93 <= held(counts, rates[0]) <= 0.97
    assert 0.93 <= held(published, share) <= 0.97
    assert np.mean([each.value for each in published]) == pytest.approx(share, abs=0.01)


def test_a_share_has_no_figure_where_its_whole_may_be_noise() -> None:
    """Not even by chance: 24 entries without a contact never look like a whole."""
    random = np.random.default_rng(54)
    entries = skellam(random, 57.0, (REPETITIONS, 24))
    sums = [[NoisySum(total, 57.0**2) for total in row] for row in entries.tolist()]
    assert all(intervals.share(row[0], together(row), Z) is None for row in sums)


def test_shares_that_are_published_hold_wherever_a_third_are() -> None:
    """Those that are published are no chance selection, down to contacts that hardly are clear."""
    random = np.random.default_rng(55)
    rates = np.array([180.0, 420.0])
    entries = random.poisson(rates, (REPETITIONS, 2)) + skellam(random, 100.0, (REPETITIONS, 2))
    shares = [
        intervals.share(NoisySum(part, 1e4), NoisySum(part + rest, 2e4), Z)
        for part, rest in entries.tolist()
    ]
    published = [each for each in shares if each is not None]
    assert len(published) > REPETITIONS / 3
    assert held(published, 0.3) >= 0.92


def drawn(
    random: np.random.Generator, rates: Floats, phones: npt.NDArray[np.int64], deviation: float
) -> Floats:
    """Totals of weeks × places, with the noise of two entries each.

    Args:
        random: Source of randomness.
        rates: Contacts per phone, (weeks, places).
        phones: Phones of each week.
        deviation: Standard deviation of the noise on an entry.
    """
    size = (REPETITIONS, *rates.shape)
    noise = skellam(random, deviation, size) + skellam(random, deviation, size)
    return random.poisson(rates * phones[:, None], size) + noise


def comparisons(
    totals: Floats, phones: npt.NDArray[np.int64], deviation: float, deviations: float
) -> list[list[intervals.RateChange]]:
    """Compare the last week with those before, for each repetition and place."""
    ratio, variance = phones[-1] / phones[:-1].sum(), 2 * deviation**2
    return [
        [
            intervals.compared(
                NoisySum(column[-1], variance),
                together(NoisySum(each, variance) for each in column[:-1]),
                ratio,
                deviations,
            )
            for column in repetition
        ]
        for repetition in totals.transpose(0, 2, 1).tolist()
    ]


@pytest.mark.parametrize(("crowd", "deviation"), [(5_000, 57.0), (100_000, 75.0), (20_000, 1.0)])
def test_quiet_weeks_of_twelve_places_are_told_of_in_5_of_100(crowd: int, deviation: float) -> None:
    """The chance that any place gets a word is what is promised, not that of each place."""
    random = np.random.default_rng(56)
    phones = np.array([crowd, crowd * 9 // 10, crowd * 11 // 10, crowd, crowd * 8 // 10])
    shares = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.04, 0.03, 0.02, 0.01, 0.0])
    totals = drawn(random, np.tile(3 * shares, (5, 1)), phones, deviation)
    found = comparisons(totals, phones, deviation, level(CONFIDENCE, 12))
    told = np.mean([any(each.sign for each in week) for week in found])
    assert 0.03 <= told <= 0.06
    by_place = np.mean([[each.sign for each in week] for week in found], axis=0)
    assert abs(by_place).max() < 0.01, "up and down are equally rare"


@pytest.mark.parametrize("change", [-0.4, 0.0, 0.6])
def test_intervals_of_changes_hold(change: float) -> None:
    random = np.random.default_rng(57)
    phones = np.array([20_000, 18_000, 15_000])
    rates = np.array([[0.2], [0.2], [0.2 * (1 + change)]])
    found = [each for week in comparisons(drawn(random, rates, phones, 90.0), phones, 90.0, Z)
             for each in week]  # fmt: skip
    figures = [each.change for each in found if each.change is not None]
    assert len(figures) == len(found)
    assert 0.93 <= held(figures, change) <= 0.97
    for each in found:
        assert each.change is not None
        outside = not each.change.least <= 0 <= each.change.most
        assert bool(each.sign) == outside, "a word is told where 0 lies outside, and only there"


def test_a_place_that_opens_rises_without_a_ratio() -> None:
    """Before there was nothing, over which nothing is divided."""
    opened = intervals.compared(NoisySum(900.0, 6400.0), NoisySum(-30.0, 12800.0), 1.0, Z)
    assert (opened.sign, opened.change) == (1, None)


def test_without_noise_they_are_intervals_of_textbooks() -> None:
    """Wilson's of a share, and the score interval of a Poisson rate."""
    of_share = intervals.share(NoisySum(30.0, 0.0), NoisySum(100.0, 0.0), Z)
    assert of_share is not None
    centre, half = (30 + Z**2 / 2) / (100 + Z**2), Z / (100 + Z**2) * math.sqrt(21 + Z**2 / 4)
    assert of_share.least == pytest.approx(centre - half)
    assert of_share.most == pytest.approx(centre + half)
    of_count = intervals.count(NoisySum(100.0, 0.0), Z)
    assert (of_count.most - 100) ** 2 == pytest.approx(Z**2 * of_count.most)
    assert (of_count.least - 100) ** 2 == pytest.approx(Z**2 * of_count.least)


@pytest.mark.parametrize(
    ("total", "variance", "clear"),
    [
        *((36, 0.0, False), (37, 0.0, True)),
        *((54, 20.0, True), (60, 35.0, True), (60, 41.0, False)),
        *((0, 0.0, False), (-100, 0.0, False), (0.5, 0.0, False)),
    ],
)
def test_a_total_is_clear_at_six_deviations_for_intervals_of_three(
    total: float, variance: float, clear: bool
) -> None:
    """D² > 4 z² (v + D): Fieller's g is below a quarter."""
    assert NoisySum(total, variance).is_clear(3.0) is clear


TOTALS = st.floats(-1e4, 1e9)
VARIANCES = st.floats(0, 1e12)
COMMON = st.just(()) | st.tuples(*[st.floats(-1e6, 1e6)] * 2)
SUMS = st.builds(NoisySum, TOTALS, VARIANCES, COMMON)


@settings(max_examples=examples(100))
@given(SUMS, SUMS, st.floats(1e-3, 1e3), st.sampled_from([1.0, Z, 4.5]))
def test_whatever_the_totals_are_intervals_are_in_order(
    first: NoisySum, second: NoisySum, ratio: float, deviations: float
) -> None:
    counted = intervals.count(first, deviations)
    assert 0 <= counted.least <= counted.most < math.inf
    whole = together((first, second))
    of_share = intervals.share(first, whole, deviations)
    assert (of_share is None) == (not whole.is_clear(deviations))
    assert of_share is None or 0 <= of_share.least <= of_share.most <= 1
    found = intervals.compared(first, second, ratio, deviations)
    assert (found.change is None) == (not second.is_clear(deviations))
    if found.change is not None:
        assert -1 <= found.change.least <= found.change.most < math.inf
        assert found.sign <= 0 or found.change.most > 0
        assert found.sign >= 0 or found.change.least < 0
