"""What two weeks' sums can tell, beside weeks drawn with exactly the noise that is added."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaigns import changed, lean

from earshot_protocol.privacy.sum_noise import SkellamShares
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.vectors import unit_steps
from earshot_server.campaigns.plan import Planning
from earshot_server.campaigns.reach import (
    kept,
    phones_needed,
    proposed_length,
    smallest_change,
)
from earshot_server.campaigns.weekly_sum import histogram

TRIALS = 4000
SHARES = 8
"""Phones that draw the noise of all: a share of noise has a largest variance."""


def is_told(first: float, second: float, deviation: float) -> bool:
    """Whether totals lie apart by 1.96 standard deviations, estimated from noise and totals."""
    return abs(second - first) > 1.959964 * math.sqrt(2 * deviation**2 + max(0, first + second))


@pytest.mark.parametrize(
    ("phones", "summation"),
    [
        (5000, SummationName.BELL),
        (5000, SummationName.TWO_OPERATORS),
        (10**6, "two-operators-unproved"),
    ],
)
def test_the_smallest_change_is_told_four_times_in_five(
    phones: int, summation: SummationName
) -> None:
    """With no change, it seems that there is one in one of twenty pairs of weeks."""
    made = Planning(lean(phones, SummationName(summation)))
    reach, week, source = made.reach(phones), made.week, np.random.default_rng(53)
    noise = histogram(week).mechanism.entry_noise
    size = (2, TRIALS, made.campaign.names_by_map + 1)
    if isinstance(noise, SkellamShares):
        all_stay = SkellamShares(noise.variance * phones / noise.survivors, SHARES)
        parts = [all_stay.share(size, source.bytes) for _ in range(SHARES)]
    else:
        parts = [noise.drawn(size, source.bytes) for _ in range(2)]  # type: ignore[union-attr]
    steps = unit_steps(week.entries) / week.contacts
    first, second = (sum(parts) / steps).sum(axis=-1)
    assert np.std(first) == pytest.approx(reach.deviation, rel=0.05)
    before = first + source.poisson(reach.contacts, TRIALS)
    for change, expected in ((0.0, 0.05), (reach.change, 0.8)):
        after = second + source.poisson(reach.contacts * (1 + change), TRIALS)
        told = [is_told(*pair, reach.deviation) for pair in zip(before, after, strict=True)]
        error = 4 * math.sqrt(expected * (1 - expected) / TRIALS)
        assert np.mean(told) == pytest.approx(expected, abs=error + 0.005)


@given(st.floats(1e-3, 1e9), st.floats(0, 1e9))
def test_a_smallest_change_is_where_the_distance_is_reached(count: float, noise: float) -> None:
    increase = count * smallest_change(count, noise)
    variance = 2 * noise**2 + 2 * count + increase
    assert increase == pytest.approx(2.8015852 * math.sqrt(variance), rel=1e-6)


def test_no_contacts_tell_nothing() -> None:
    assert smallest_change(0, 1) == math.inf


def test_the_proposed_length_errs_less_than_its_neighbours() -> None:
    """About three times the mean for small crowds, and up to six times it for large ones."""
    for phones, least, most in ((5000, 2.5, 3.5), (20_000, 3.5, 4.5), (100_000, 4, 6)):
        made = Planning(lean(phones, SummationName.TWO_OPERATORS))
        assert least <= made.week.contacts / 3 <= most
        errors = []
        for length in (made.week.contacts - 1, made.week.contacts, made.week.contacts + 1):
            reach = Planning(changed(made.campaign, "sum", contacts=length)).reach(phones)
            share = kept(length, 3.0)
            errors.append((reach.deviation * share / reach.contacts) ** 2 + (1 - share) ** 2)
        assert min(errors) == errors[1]


def test_a_projection_keeps_at_least_what_is_said() -> None:
    """Numbers of contacts with an exponential tail, spread over two places or in one."""
    source = np.random.default_rng(53)
    counts = source.exponential(3.0, 100_000)
    spread = np.stack([counts * 0.5, counts * 0.5])
    for vectors in (counts[None], spread):
        norms = np.linalg.norm(vectors, axis=0)
        left = (vectors * np.minimum(1, 9 / norms)).sum() / vectors.sum()
        assert left >= kept(9, 3) - 0.002
    assert proposed_length(3.0, 1e6, 1.0) == 3


def test_a_crowd_that_nobody_has_is_not_proposed() -> None:
    assert phones_needed(lambda phones: 0.2, 100) is None
    assert phones_needed(lambda phones: 1000 / phones, 100) == 10_000
    assert phones_needed(lambda phones: 1000 / phones, 10**6) == 10_000
