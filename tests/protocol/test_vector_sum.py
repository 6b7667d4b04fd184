"""What `VectorSum` declares, against exact privacy losses of the law that phones draw."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.events import SkellamSum
from earshot_protocol.privacy.laws import SkellamNoise
from earshot_protocol.privacy.mechanisms import GRID, Unit, VectorSum
from earshot_protocol.privacy.noise import LARGEST_RATE, skellam_rate, skellam_share_bound
from earshot_protocol.voting.vectors import moved_by_direction

SUM = VectorSum(noise_multiplier=4.0, length=9, delta=1e-6, honest_survivors=50)


def exact_delta(variance: float, distance: int, epsilon: float) -> float:
    """Σ max(0, P(N = n) − e^ε P(N = n − distance)), the law from its characteristic function."""
    size = 2 ** math.ceil(math.log2(24 * math.sqrt(variance) + 4 * distance))
    angles = 2 * np.pi * np.fft.fftfreq(size)
    law = np.fft.fft(np.exp(variance * (np.cos(angles) - 1))).real / size
    here = np.roll(law, size // 2).clip(0)
    there = np.roll(here, distance)
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def test_the_event_in_three_units() -> None:
    distances = {unit: SUM.sensitivity(unit) for unit in Unit}
    assert distances == {
        Unit.PHONE: 4096,
        Unit.RECORDING: 8192,  # unless something smaller is proved
        Unit.REPLACED_PHONE: 8192,
    }
    for unit, distance in distances.items():
        # The L1 norm of nine entries is three times the L2 norm at most, by Cauchy and Schwarz.
        assert SUM.event(unit) == SkellamSum((4.0 * 4096) ** 2, 3 * distance, distance)


@pytest.mark.parametrize("multiplier", [1.5, 3.0, 8.0])
def test_the_cost_holds_for_the_law_and_is_near_it(multiplier: float) -> None:
    """One entry, of which all that a phone adds is the largest that fits."""
    mechanism = VectorSum(multiplier, 1, 1e-6, 50)
    for unit, distance in ((Unit.PHONE, GRID), (Unit.REPLACED_PHONE, 2 * GRID)):
        cost = mechanism.cost(unit)
        assert cost.delta == 1e-6
        assert exact_delta(mechanism.variance, distance, cost.epsilon) <= 1e-6
        assert exact_delta(mechanism.variance, distance, 0.75 * cost.epsilon) > 1e-6


def test_a_vector_along_one_entry_is_worth_as_much_as_one_along_many() -> None:
    """L2 is what counts: with much noise the L1 distance changes the cost by next to nothing."""
    costs = [VectorSum(4.0, length, 1e-6, 50).cost(Unit.PHONE).epsilon for length in (1, 4096)]
    assert costs[0] <= costs[1] < 1.001 * costs[0]


@given(st.floats(1.5, 50), st.integers(1, 5000), st.integers(1, 10_000))
@settings(max_examples=20, deadline=None)
def test_units_are_in_order_and_crowds_do_not_matter(
    multiplier: float, length: int, survivors: int
) -> None:
    mechanism = VectorSum(multiplier, length, 1e-6, survivors)
    phone, recording, replaced = (
        mechanism.cost(unit).epsilon for unit in (Unit.PHONE, Unit.RECORDING, Unit.REPLACED_PHONE)
    )
    assert phone < recording == replaced
    proved = dataclasses.replace(mechanism, recording=moved_by_direction(length, length))
    assert phone <= proved.cost(Unit.RECORDING).epsilon < replaced
    alone = dataclasses.replace(mechanism, honest_survivors=1)
    assert alone.cost(Unit.PHONE).epsilon == phone


def test_the_noise_of_a_sum_is_that_of_the_shares_in_it() -> None:
    assert SUM.noise(50) == SkellamNoise(SUM.variance)
    assert SUM.noise(100).deviation == pytest.approx(math.sqrt(2) * 4.0 * GRID)
    random = np.random.default_rng(8).bytes
    total = np.sum([SUM.noise_share((4000,), random) for _ in range(50)], axis=0)
    assert total.std() == pytest.approx(SUM.noise(50).deviation, rel=0.04)


def test_the_share_bound_leaves_room_for_the_longest_entry() -> None:
    for bits in (10, 40, 90):
        bound = SUM.share_bound(2.0**-bits)
        assert bound == GRID + skellam_share_bound(SUM.variance, 50, 2.0**-bits)
    drawn = np.abs(SUM.noise_share(50_000, np.random.default_rng(3).bytes)) + GRID
    assert np.mean(drawn > SUM.share_bound(2.0**-10)) <= 2.0**-10


@given(st.integers(1, 300), st.data())
def test_no_vector_has_more_in_all_than_the_largest_sum(length: int, data: st.DataObject) -> None:
    mechanism = VectorSum(1.0, length, 1e-6, 3)
    level = math.isqrt(GRID**2 // length)
    extra = data.draw(st.integers(0, 3))
    for vector in ([level] * length, [GRID, *[0] * (length - 1)], [level + extra] * length):
        if sum(x * x for x in vector) <= GRID**2:
            assert sum(vector) <= mechanism.largest_sum
    assert mechanism.largest_sum <= GRID * math.sqrt(length) + 1
    assert mechanism.largest_sum >= GRID


def test_entries_are_signed() -> None:
    assert (SUM.least_entry, SUM.largest_entry) == (-GRID, GRID)


def test_noise_that_so_few_phones_cannot_share_is_refused() -> None:
    most = math.sqrt(2 * LARGEST_RATE) / GRID
    assert skellam_rate(VectorSum(0.999 * most, 1, 1e-6, 1).variance, 1) < LARGEST_RATE
    for call in (VectorSum.share_bound, lambda each, _: each.noise_share(1)):
        with pytest.raises(InvalidParametersError, match=r"variance.*at most"):
            call(VectorSum(1.001 * most, 1, 1e-6, 1), 0.5)


def test_a_delta_that_the_secure_sum_uses_up_costs_everything() -> None:
    assert VectorSum(4.0, 9, 1e-13, 50).cost(Unit.PHONE).epsilon == math.inf
