"""The phone's closed forms beside dp-accounting: never below it, and never far above."""

from __future__ import annotations

import math
import subprocess
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as losses
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
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
from earshot_server.accounting.accountant import (
    ADDED_UP,
    BY_LOSS_DISTRIBUTIONS,
    BY_RENYI_DIVERGENCES,
    Composed,
    composed,
)
from earshot_server.accounting.library import EventAccountant, ProtocolEvent

STEP = 2**12


def skellam(multiplier: float, length: int = 320) -> SkellamSum:
    return SkellamSum((multiplier * STEP) ** 2, STEP * math.sqrt(length), STEP)


# --------------------------------------------------------------------- closed forms, second method


@pytest.mark.parametrize(
    ("epsilon", "times"),
    [pytest.param(0.05, 40, marks=pytest.mark.slow), (0.3, 1), (0.3, 10), (1.0, 5)],
)
def test_loss_distributions_agree_with_the_binomial_sum_of_randomized_response(
    epsilon: float, times: int
) -> None:
    """Kairouz, Oh and Viswanath 2015, Theorem 3.4, worked out from the binomial law itself."""
    chance = 1 / (1 + math.exp(-epsilon))
    ones = np.arange(times + 1)
    losses_of = epsilon * (2 * ones - times)
    law = stats.binom.pmf(ones, times, chance)

    def exact_delta(of_all: float) -> float:
        return float(np.sum(law * np.maximum(0, -np.expm1(of_all - losses_of))))

    for delta in (1e-3, 1e-6):
        found = composed([Pure(epsilon, times)], delta)
        low, high = 0.0, times * epsilon
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (low, middle) if exact_delta(middle) <= delta else (middle, high)
        assert found.epsilon == pytest.approx(high, rel=1e-6)
        assert composed([Pure(epsilon)] * times, delta).epsilon == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize(("scale", "shift"), [(0.7, 1), (4.0, 1), (4.0, 6), (25.0, 20)])
def test_discrete_laplace_agrees_with_its_closed_form(scale: float, shift: int) -> None:
    """δ(ε) = 1 − e^((ε − Δ/s)/2) at every loss that occurs."""
    for lower in range(1, shift // 2 + 1):
        epsilon = (shift - 2 * lower) / scale
        delta = -math.expm1(-lower / scale)
        event = DiscreteLaplaceSum(
            scale, shift, statistical_security=128, computational_security=128
        )
        assert composed([event], delta).epsilon == pytest.approx(epsilon, rel=1e-6, abs=1e-6)
    event = DiscreteLaplaceSum(scale, shift, statistical_security=128, computational_security=128)
    assert composed([event], 1e-15).epsilon == pytest.approx(shift / scale, rel=1e-6)


@pytest.mark.parametrize("shifts", [(1, 1), (3, 1), (2, 2, 1), (5, 4, 3)])
def test_no_spread_of_a_shift_loses_more_than_all_of_it_on_one_entry(
    shifts: tuple[int, ...],
) -> None:
    scale = 3.0

    def of(shift: int) -> losses.PrivacyLossDistribution:
        return losses.from_discrete_laplace_mechanism(
            1 / scale, shift, value_discretization_interval=1 / scale / 10
        )

    spread = losses.identity(value_discretization_interval=1 / scale / 10)
    for shift in shifts:
        spread = spread.compose(of(shift))
    for epsilon in np.linspace(0, sum(shifts) / scale, 41):
        one = of(sum(shifts)).get_delta_for_epsilon(epsilon)
        assert spread.get_delta_for_epsilon(epsilon) <= one + 1e-12


@pytest.mark.parametrize("rho", [0.001, 0.1, 3.0])
def test_zcdp_agrees_with_the_librarys_own_event(rho: float) -> None:
    accountant = RdpAccountant(ORDERS.tolist())
    accountant.compose(dp_accounting.ZCDpEvent(rho), 3)
    expected = accountant.get_epsilon(1e-6)
    assert composed([ZeroConcentrated(rho)] * 3, 1e-6).epsilon == pytest.approx(expected, rel=1e-9)
    assert composed_epsilon([ZeroConcentrated(rho)] * 3, 1e-6) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_curves_agree_with_the_librarys_where_it_has_them(epsilon: float) -> None:
    orders = [1.5, 2.0, 8.0, 33.0]
    response = RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE)
    response.compose(dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2))
    assert renyi(Pure(epsilon), np.array(orders)) == pytest.approx(response.rdp, rel=1e-6)
    laplace = RdpAccountant(orders)
    laplace.compose(dp_accounting.LaplaceDpEvent(1 / epsilon))
    fine = DiscreteLaplaceSum(10_000 / epsilon, 10_000)
    assert renyi(fine, np.array(orders)) == pytest.approx(laplace.rdp, rel=1e-4)


def test_skellam_of_fine_steps_costs_what_gaussian_noise_does() -> None:
    gaussian = PLDAccountant()
    gaussian.compose(dp_accounting.GaussianDpEvent(6.0), 10)
    exact = gaussian.get_epsilon(1e-6)
    found = composed([skellam(6.0)] * 10, 1e-6)
    assert found.method == BY_RENYI_DIVERGENCES
    assert exact < found.epsilon < 1.08 * exact


# ------------------------------------------------------------------------ the phone and the library

EPSILONS = st.floats(1e-3, 6)
SOME_ORDERS = (1.5, 2.0, 4.0, 8.0, 32.0, 128.0)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Pure, EPSILONS, st.integers(1, 5)),
    st.builds(BoundedRange, EPSILONS, st.integers(1, 5)),
    st.builds(ZeroConcentrated, st.floats(1e-4, 3)),
    st.builds(DiscreteLaplaceSum, st.floats(0.5, 100), st.integers(1, 8)),
    st.builds(skellam, st.floats(0.5, 60)),
    st.builds(
        lambda rho: RenyiCurve(SOME_ORDERS, tuple(rho * order for order in SOME_ORDERS)),
        st.floats(1e-4, 3),
    ),
    st.builds(Approximate, EPSILONS, st.floats(1e-12, 1e-8)),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    events=st.lists(EVENTS, min_size=1, max_size=4),
    times=st.sampled_from([1, 2, 12, 40]),
    delta=st.sampled_from([1e-7, 1e-6, 1e-4]),
)
def test_the_phone_says_never_less_and_little_more(
    events: list[Event], times: int, delta: float
) -> None:
    phone = composed_epsilon(events * times, delta)
    library = composed(events * times, delta)
    # Losses that are no multiples of each other are rounded up by the library, too.
    assert library.epsilon * (1 - 1e-4) <= phone
    assert phone <= 1.02 * library.epsilon + 1e-9


@pytest.mark.parametrize(
    "phase",
    [
        (skellam(7.0), skellam(7.0), skellam(10.0)),
        (Pure(0.5), Pure(0.5, 4), DiscreteLaplaceSum(4.0, 2), DiscreteLaplaceSum(4.0, 2)),
        (ZeroConcentrated(0.03), Pure(0.05, 10), DiscreteLaplaceSum(20.0, 2)),
        (DiscreteLaplaceSum(8.0, 1), DiscreteLaplaceSum(8.0, 1)),
    ],
)
def test_twelve_phases_are_within_five_per_cent_of_the_library(phase: tuple[Event, ...]) -> None:
    phone = composed_epsilon(phase * 12, 1e-5)
    library = composed(phase * 12, 1e-5)
    assert library.epsilon * (1 - 1e-6) <= phone <= 1.05 * library.epsilon
    assert phone <= 12 * composed_epsilon(phase, 1e-5 / 12)


def test_the_method_is_named() -> None:
    assert composed([Pure(1.0)], 0.0) == Composed(1.0, 0.0, ADDED_UP)
    assert composed([Pure(1e5), Pure(3.0)], 0.0).method == ADDED_UP
    assert composed([Pure(0.05, 100)]).method == BY_LOSS_DISTRIBUTIONS
    assert composed([ZeroConcentrated(0.1)]).method == BY_RENYI_DIVERGENCES
    assert composed([ZeroConcentrated(0.1)], 0.0).epsilon == math.inf
    assert composed([]) == Composed(0.0, 1e-6, ADDED_UP)


def test_what_real_sums_lose_is_counted() -> None:
    weak = DiscreteLaplaceSum(4.0, 2, statistical_security=20, computational_security=128)
    assert composed([weak], 1e-6).epsilon == math.inf
    strong = DiscreteLaplaceSum(4.0, 2)
    found = composed([strong] * 100, 1e-6)
    assert found.epsilon < 0.7 * 100 * 0.5
    assert composed_epsilon([strong] * 100, 1e-6) <= found.epsilon * 1.07


def test_our_accountant_still_composes_the_librarys_events() -> None:
    mixed = EventAccountant(ORDERS.tolist())
    mixed.compose(dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(5.0)]))
    mixed.compose(dp_accounting.SelfComposedDpEvent(ProtocolEvent(ZeroConcentrated(0.02)), 2))
    alone = EventAccountant(ORDERS.tolist()).compose(ProtocolEvent(ZeroConcentrated(0.06)))
    assert mixed.get_epsilon(1e-6) == pytest.approx(alone.get_epsilon(1e-6), rel=1e-9)
    assert mixed.supports(ProtocolEvent(Pure(1.0)))


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 2.0])
def test_a_delta_out_of_range_is_named(wrong: float) -> None:
    with pytest.raises(InvalidParametersError, match=r"^delta="):
        composed([Pure(1.0)], wrong)


def test_the_library_is_loaded_when_it_is_needed() -> None:
    code = (
        "import sys, earshot_server.accounting.accountant, earshot_server.phases.spending; "
        "sys.exit('dp_accounting' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=False)  # noqa: S603
    assert run.returncode == 0
