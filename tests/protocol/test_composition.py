"""Events composed by the phone's closed forms, against sums and integrals worked out by mpmath."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import Composition, composed_epsilon, distance
from earshot_protocol.privacy.divergences import ORDERS, renyi
from earshot_protocol.privacy.events import (
    Approximate,
    BoundedRange,
    DiscreteLaplaceSum,
    Event,
    Pure,
    RenyiCurve,
    SkellamSum,
    ZeroConcentrated,
)

SOME_ORDERS = np.array([1.001, 1.3, 2.0, 2.5, 7.0, 40.0, 300.0])
STEP = 2**12
"""Whole steps per unit of length, as vectors are summed."""


def skellam(multiplier: float, length: int = 64) -> SkellamSum:
    return SkellamSum((multiplier * STEP) ** 2, STEP * math.sqrt(length), STEP)


def divergence(first: list[mpmath.mpf], second: list[mpmath.mpf], order: float) -> float:
    alpha = mpmath.mpf(order)
    terms = (p**alpha * q ** (1 - alpha) for p, q in zip(first, second, strict=True))
    return float(mpmath.log(mpmath.fsum(terms)) / (alpha - 1))


# ---------------------------------------------------------------------------------------- curves


@pytest.mark.parametrize("epsilon", [1e-7, 0.01, 1.0, 30.0, 2e8])
def test_pure_is_randomized_response(epsilon: float) -> None:
    with mpmath.workdps(60):
        chance = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        law = [chance, 1 - chance]
        if epsilon > 100:
            expected = [epsilon - mpmath.log(1) / (order - 1) for order in SOME_ORDERS]
        else:
            expected = [divergence(law, law[::-1], order) for order in SOME_ORDERS]
    assert renyi(Pure(epsilon), SOME_ORDERS) == pytest.approx(expected, rel=1e-7)
    assert renyi(Pure(epsilon, 5), SOME_ORDERS) == pytest.approx(np.multiply(5, expected), rel=1e-7)
    assert (renyi(Pure(epsilon)) <= epsilon * (1 + 1e-12)).all()


@pytest.mark.parametrize(("scale", "shift"), [(0.7, 1), (2.0, 1), (2.0, 7), (40.0, 3)])
def test_discrete_laplace_is_the_sum_over_its_law(scale: float, shift: int) -> None:
    reach = int(scale * 60) + 3 * shift
    with mpmath.workdps(60):
        decay = mpmath.exp(-1 / mpmath.mpf(scale))

        def law(centre: int) -> list[mpmath.mpf]:
            norm = (1 - decay) / (1 + decay)
            return [norm * decay ** abs(k - centre) for k in range(-reach, reach + 1)]

        orders = SOME_ORDERS[:5]
        expected = [divergence(law(0), law(shift), order) for order in orders]
    found = renyi(DiscreteLaplaceSum(scale, shift), orders)
    assert found == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.01, 1000), st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_an_l1_distance_on_one_entry_is_the_worst(scale: float, shifts: list[int]) -> None:
    spread = sum(renyi(DiscreteLaplaceSum(scale, shift)) for shift in shifts)
    assert (spread <= renyi(DiscreteLaplaceSum(scale, sum(shifts))) * (1 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize(("variance", "shifts"), [(2.0, (1,)), (6.0, (2, 1)), (40.0, (3, 3, 1))])
def test_skellam_is_bounded_between_whole_orders_too(
    variance: float, shifts: tuple[int, ...]
) -> None:
    reach = int(12 * math.sqrt(variance)) + 40
    orders = np.array([1.3, 2.0, 2.5, 3.0, 4.7, 6.0])
    with mpmath.workdps(50):
        tail = [mpmath.besseli(k, variance) for k in range(reach + max(shifts) + 1)]

        def law(centre: int) -> list[mpmath.mpf]:
            factor = mpmath.exp(-variance)
            return [factor * tail[abs(k - centre)] for k in range(-reach, reach + 1)]

        exact = [sum(divergence(law(0), law(shift), order) for shift in shifts) for order in orders]
    bound = renyi(SkellamSum(variance, sum(shifts), math.hypot(*shifts)), orders)
    assert (bound >= exact).all()
    gaussian = orders * sum(shift**2 for shift in shifts) / (2 * variance)
    assert (bound >= gaussian).all()


@pytest.mark.parametrize(("variance", "l1"), [(0.05, 40.0), (0.7, 3.0), (2.0, 1.0), (90.0, 12.0)])
def test_skellam_at_whole_orders_is_the_formula_of_the_theorem(variance: float, l1: float) -> None:
    for order in (2.0, 3.0, 17.0):
        squared = l1 / 2
        small = ((2 * order - 1) * squared + 6 * l1) / (4 * variance**2)
        bound = order * squared / (2 * variance) + min(small, 3 * l1 / (2 * variance))
        (found,) = renyi(SkellamSum(variance, l1, math.sqrt(squared)), np.array([order]))
        assert found == pytest.approx(bound, rel=1e-12)


def test_skellam_of_fine_steps_is_as_good_as_gaussian() -> None:
    between = np.linspace(4.0, 50.0, 100)
    assert renyi(skellam(3.0), between) == pytest.approx(between / 18, rel=0.02)
    whole = np.arange(2.0, 50.0)
    assert renyi(skellam(3.0), whole) == pytest.approx(whole / 18, rel=1e-4)


def test_exponential_mechanism_is_never_worse_than_pure() -> None:
    for epsilon in (1e-3, 0.5, 2.0, 50.0):
        curve = renyi(BoundedRange(epsilon, 3))
        pure, concentrated = renyi(Pure(epsilon, 3)), 3 * ORDERS * epsilon**2 / 8
        assert curve == pytest.approx(np.minimum(pure, concentrated), rel=1e-12)
    assert composed_epsilon((BoundedRange(0.2, 50),), 1e-6) < composed_epsilon(
        (Pure(0.2, 50),), 1e-6
    )


def test_a_known_curve_holds_at_smaller_orders_and_beyond_it_nothing_is_known() -> None:
    curve = RenyiCurve((2.0, 4.0, 10.0), (0.1, 0.5, 0.4))
    found = renyi(curve, np.array([1.5, 2.0, 2.0001, 4.0, 7.0, 10.0, 10.1]))
    assert found.tolist() == [0.1, 0.1, 0.4, 0.4, 0.4, 0.4, math.inf]


def test_a_curve_of_a_known_mechanism_costs_what_the_mechanism_does() -> None:
    whole = RenyiCurve(tuple(ORDERS.tolist()), tuple(renyi(ZeroConcentrated(0.02)).tolist()))
    for count in (1, 40):
        expected = composed_epsilon([ZeroConcentrated(0.02)] * count, 1e-6)
        assert composed_epsilon([whole] * count, 1e-6) == pytest.approx(expected, rel=1e-12)
    few = [2.0, 3.0, 5.0, 9.0, 17.0, 33.0]
    part = RenyiCurve(tuple(few), tuple(renyi(ZeroConcentrated(0.02), np.array(few)).tolist()))
    assert composed_epsilon([whole], 1e-6) <= composed_epsilon([part], 1e-6) < math.inf
    assert composed_epsilon([part], 0.0) == math.inf


# ----------------------------------------------------------------------------------- composition

EVENTS: list[Event] = [
    Pure(0.3),
    Pure(0.01, 40),
    BoundedRange(0.2, 3),
    ZeroConcentrated(0.05),
    DiscreteLaplaceSum(4.0, 2),
    skellam(8.0),
    Approximate(0.5, 1e-8),
    RenyiCurve((2.0, 8.0, 32.0), (0.01, 0.05, 0.3)),
]


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.1, 3.0, 1e4])
def test_zcdp_alone_is_its_best_order(rho: float) -> None:
    def epsilon(order: mpmath.mpf) -> mpmath.mpf:
        return (
            order * rho
            + mpmath.log1p(-1 / order)
            - (mpmath.log(1e-6) + mpmath.log(order)) / (order - 1)
        )

    near = 1 + math.sqrt(math.log(1e6) / rho)
    grid = (1 + (near - 1) * 2 ** (power / 400) for power in range(-800, 800))
    best = float(min(epsilon(mpmath.mpf(order)) for order in grid))
    found = composed_epsilon((ZeroConcentrated(rho),), 1e-6)
    assert best * (1 - 1e-6) <= found <= best * 1.001


def test_of_few_pure_releases_the_sum_is_taken() -> None:
    assert composed_epsilon((Pure(1.0), Pure(0.5, 2)), 0.0) == 2.0
    assert composed_epsilon((Pure(3.0), BoundedRange(0.5)), 1e-9) <= 3.5
    assert composed_epsilon((Pure(0.1, 1000),), 1e-6) < 30


def test_of_nothing_nothing_is_lost() -> None:
    assert composed_epsilon((), 0.0) == 0.0


@pytest.mark.parametrize("event", [ZeroConcentrated(0.1), DiscreteLaplaceSum(1.0, 1)])
def test_what_is_not_known_is_infinite(event: Event) -> None:
    assert composed_epsilon((event,), 0.0) == math.inf
    assert composed_epsilon((event,) * 3, 1e-15) == math.inf or distance(event) == 0


@pytest.mark.parametrize("times", [2.1, 2.2, 2.5, 3.0, 3.6, 5.0])
def test_a_sum_takes_no_more_of_delta_than_its_epsilon_needs(times: float) -> None:
    """(1 + e^ε) d of it, where ε is at most that of pure privacy."""
    event = DiscreteLaplaceSum(40.0, 2, statistical_security=10, computational_security=60)
    delta, taken = times * distance(event), 1.01 * (1 + math.exp(2 / 40)) * distance(event)
    enough = Composition((event,)).ideal_epsilon(delta - taken)
    assert composed_epsilon((event,), delta) <= enough < 2 / 40


def test_real_sums_spend_delta_of_their_own() -> None:
    event = DiscreteLaplaceSum(2.0, 2)
    assert distance(event) == 2 * 2.0**-40 + 2.0**-128
    assert (
        distance(DiscreteLaplaceSum(2.0, 2, statistical_security=10, computational_security=20))
        == 2 * 2.0**-10 + 2.0**-20
    )
    assert distance(Pure(1.0)) == 0.0
    for events, epsilon, spent, close in (
        ((event,), 1.0, (1 + math.e) * 2.0**-39, 1e-9),
        ((event,) * 6, 6.0, 6 * (1 + math.e) * 2.0**-39, 1e-9),
        ((event, skellam(1e6)), 1.01, 2 * (1 + math.exp(1.01)) * 2.0**-39, 0.1),
    ):
        assert composed_epsilon(events, spent * (1 + close)) <= epsilon
        assert composed_epsilon(events, spent * (1 - close)) > epsilon
    assert composed_epsilon((event,), 3 * 2.0**-39) == math.inf
    assert composed_epsilon((event,), 4 * 2.0**-39) == pytest.approx(1.0)


@pytest.mark.slow
@given(
    epsilon=st.floats(0.05, 2),
    security=st.integers(3, 12),
    count=st.integers(1, 4),
    moved=st.tuples(*[st.floats(-1, 1)] * 8),
)
def test_no_real_sum_that_close_to_an_ideal_one_loses_more(
    epsilon: float, security: int, count: int, moved: tuple[float, ...]
) -> None:
    event = DiscreteLaplaceSum(1 / epsilon, 1, statistical_security=security)
    chance = 1 / (1 + math.exp(epsilon))
    ideal = np.array([[1 - chance, chance, 0, 0], [chance, 1 - chance, 0, 0]])
    # Two outcomes of ideal sums, and two that only real ones have.
    change = np.reshape(moved, (2, 4)) * distance(event)
    change -= change.mean(axis=1, keepdims=True)
    real = np.maximum(ideal + change, 0)
    real /= real.sum(axis=1, keepdims=True)
    far = max(1.0, float(np.abs(real - ideal).sum(axis=1).max() / 2 / distance(event)))
    real = ideal + (real - ideal) / far
    one, other = (functools.reduce(np.multiply.outer, [law] * count).ravel() for law in real)
    for delta in np.geomspace(1e-4, 1, 24).tolist():
        found = composed_epsilon((event,) * count, delta)
        if found < math.inf:
            exact = float(np.maximum(one - math.exp(found) * other, 0).sum())
            assert exact <= delta * (1 + 1e-9)


def test_many_real_sums_stay_near_ideal_ones() -> None:
    """(1 + e^ε) times their distance would be all of δ here."""
    real = composed_epsilon([skellam(5.0)] * 144, 1e-6)
    ideal = composed_epsilon([ZeroConcentrated(1 / 50)] * 144, 1e-6)
    assert math.exp(ideal) * 144 * 2.0**-39 > 1e-6
    assert ideal < real < 1.05 * ideal


def test_twelve_phases_cost_far_less_than_their_sum() -> None:
    event = ZeroConcentrated(0.0673)
    one = composed_epsilon((event,), 1e-6)
    assert composed_epsilon((event,) * 12, 1e-6) < 0.35 * 12 * one


@given(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=12))
def test_more_delta_is_never_more_epsilon(events: list[Event]) -> None:
    costs = [composed_epsilon(events, delta) for delta in (0.0, 1e-9, 1e-6, 1e-3, 0.1, 1.0)]
    assert costs == sorted(costs, reverse=True)


@given(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=8))
def test_order_does_not_count_and_more_is_never_less(events: list[Event]) -> None:
    costs = [composed_epsilon(events[: k + 1], 1e-5) for k in range(len(events))]
    assert costs == sorted(costs)
    assert composed_epsilon(events[::-1], 1e-5) == pytest.approx(costs[-1], rel=1e-9)


def test_budgets_of_any_size_stay_finite() -> None:
    for event in (Pure(1e6, 200), Pure(1e-9), ZeroConcentrated(1e-12), ZeroConcentrated(1e7)):
        for count in (1, 1000):
            epsilon = composed_epsilon((event,) * count, 1e-6)
            assert 0 <= epsilon < math.inf
    assert composed_epsilon((Pure(1e6, 200), ZeroConcentrated(0.1)), 1e-6) < 2e8 + 10


# -------------------------------------------------------------------------------------- bad input


test_a_number_out_of_range_is_named = refused(
    InvalidParametersError,
    *[
        (f"^{name}[=:]", composed_epsilon, (event,), 1e-6)
        for wrong in (math.nan, -1.0)
        for name, event in (
            ("epsilon", Pure(wrong)),
            ("epsilon", BoundedRange(wrong)),
            ("epsilon", Approximate(wrong, 0.1)),
            ("delta", Approximate(1.0, wrong)),
            ("rho", ZeroConcentrated(wrong)),
            ("scale", DiscreteLaplaceSum(wrong, 1)),
            ("sensitivity", DiscreteLaplaceSum(1.0, wrong)),
            ("variance", SkellamSum(wrong, 1, 1)),
            ("l1", SkellamSum(1.0, wrong, 1)),
            ("l2", SkellamSum(1.0, 1, wrong)),
        )
    ],
    *[
        (f"^{name}[=:]", composed_epsilon, (event,), 1e-6)
        for name, event in (
            ("times", Pure(1.0, 0)),
            ("orders", RenyiCurve((), ())),
            ("orders", RenyiCurve((1.0, 2.0), (0.1, 0.2))),
            ("orders", RenyiCurve((3.0, 2.0), (0.1, 0.2))),
            ("orders", RenyiCurve((2.0, math.nan), (0.1, 0.2))),
            ("divergences", RenyiCurve((2.0, 3.0), (0.1,))),
            ("divergences", RenyiCurve((2.0, 3.0), (0.1, -0.2))),
            ("divergences", RenyiCurve((2.0, 3.0), (math.nan, 0.2))),
            ("scale", DiscreteLaplaceSum(0.0, 1)),
            ("variance", SkellamSum(math.inf, 1, 1)),
        )
    ],
    *[(r"^delta=", composed_epsilon, (Pure(1.0),), wrong) for wrong in (math.nan, -0.1, 1.5)],
)


@pytest.mark.parametrize("variance", [5e-324, 1e-300, 1e-290, 1e-200, 1e-20])
@pytest.mark.parametrize("beside", [(), (Pure(1e308),), (ZeroConcentrated(1e305),)])
def test_noise_that_is_none_costs_everything(variance: float, beside: tuple[Event, ...]) -> None:
    """Products that leave the range of floats are no numbers, and were once taken for ε = 0."""
    events = (SkellamSum(variance, 4096.0, 4096.0), *beside)
    assert composed_epsilon(events, 1e-5) == math.inf


@pytest.mark.parametrize("huge", [1e200, 1e308])
def test_numbers_of_any_size_are_an_answer(huge: float) -> None:
    assert composed_epsilon([SkellamSum(huge, 4096.0, 4096.0)], 1e-5) < 1e-6
    for event in (BoundedRange(huge), ZeroConcentrated(huge), Pure(huge), SkellamSum(1.0, 1, huge)):
        assert composed_epsilon([event, event], 1e-5) >= huge


def test_a_release_that_costs_hardly_anything_is_composed_with_others() -> None:
    hardly, other = DiscreteLaplaceSum(1e17, 1), DiscreteLaplaceSum(4.0, 2)
    alone = composed_epsilon([other] * 3, 1e-6)
    assert alone <= composed_epsilon([hardly, *[other] * 3], 1e-6) <= 1.01 * alone
