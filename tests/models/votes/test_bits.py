"""Answers of two, whatever the number behind them is, against mpmath's own search."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.outcomes import ERROR, check_divergence
from earshot_protocol.errors import InvalidParametersError


def by_hand(at: float, distance: float, order: float) -> mpmath.mpf:
    """D_λ(Bern Φ(a) ‖ Bern Φ(a + d)), at 50 digits."""
    total = mpmath.mpf(0)
    for sign in (1, -1):
        p = mpmath.ncdf(sign * mpmath.mpf(at))
        q = mpmath.ncdf(sign * (mpmath.mpf(at) + mpmath.mpf(distance)))
        total += p**order * q ** (1 - order)
    return mpmath.log(total) / (order - 1)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 7.0, 46.0, 150.0])
@pytest.mark.parametrize("order", [1.001, 2.0, 9.5, 60.0])
def test_it_is_the_largest_of_all_numbers(deviation: float, order: float) -> None:
    found = float(bit_divergence(deviation, [order])[0])
    gaussian = order / (2 * deviation**2)
    assert found <= gaussian * (1 + 1e-12)
    if order / deviation > 30:
        assert found == pytest.approx(gaussian)  # what the noisy number costs stands in
        return
    with mpmath.workdps(50):
        points = np.linspace(-order / deviation - 8, order / deviation + 8, 161)
        values = [by_hand(at, 1 / deviation, order) for at in points.tolist()]
        best = points[int(np.argmax([float(each) for each in values]))]
        low, high = best - 0.3, best + 0.3
        for _ in range(60):  # by thirds: it has one summit there
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            if by_hand(left, 1 / deviation, order) < by_hand(right, 1 / deviation, order):
                low = left
            else:
                high = right
        expected = float(by_hand(low, 1 / deviation, order))
    assert expected <= found <= expected * (1 + 1e-8) + 2 * ERROR


def test_small_noise_per_order_tells_as_much_as_the_number_and_large_noise_two_thirds() -> None:
    small, large = bit_divergence(46.0, [1.0001])[0], bit_divergence(0.5, [14.0])[0]
    assert small / (1.0001 / (2 * 46**2)) == pytest.approx(2 / math.pi, rel=1e-3)
    assert large / (14 / (2 * 0.5**2)) > 0.9
    at_two = [bit_divergence(s, [2.0])[0] * s**2 for s in (1000.0, 30.0, 3.0, 1.0, 0.5)]
    assert (np.diff(at_two) > 0).all()


def test_no_number_costs_more_than_that() -> None:
    orders = np.array([1.5, 4.0, 30.0])
    numbers = np.linspace(-60, 60, 2401)
    exact = check_divergence(numbers, 0.0, 7.0, orders)
    bound = bit_divergence(7.0, orders)
    assert (exact <= bound + 2 * ERROR).all()
    np.testing.assert_allclose(exact.max(axis=0), bound, rtol=1e-3)


def test_a_smaller_move_costs_less_than_its_square_of_a_whole_one() -> None:
    orders = np.array([1.1, 2.0, 10.0, 40.0])
    for deviation in (2.0, 7.0, 40.0):
        whole = bit_divergence(deviation, orders)
        for part in (0.1, 0.5, 0.9):
            moved = bit_divergence(deviation, orders, part)
            assert (moved <= whole * part**2 + 2 * ERROR).all()


def test_orders_without_end_are_those_of_noise() -> None:
    found = bit_divergence(4.0, [1e9])
    assert found[0] == 1e9 / 32


@pytest.mark.parametrize("wrong", [(0.0, [2.0], 1.0), (1.0, [1.0], 1.0), (1.0, [2.0], 0.0)])
def test_what_is_out_of_range_is_named(wrong: tuple[float, list[float], float]) -> None:
    with pytest.raises(InvalidParametersError):
        bit_divergence(*wrong)
