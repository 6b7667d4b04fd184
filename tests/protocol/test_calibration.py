"""From (ε, δ) to noise, and back: within 10⁻⁶, and never above what was asked for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.calibration import (
    check_delta,
    largest_scale,
    noise_multipliers,
)
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Pure, ZeroConcentrated
from earshot_protocol.privacy.mechanisms import Unit, VectorSum

DELTAS = st.sampled_from([1e-8, 1e-6, 1e-4])
UNITS = st.sampled_from(list(Unit))


@settings(max_examples=12)
@given(
    epsilon=st.floats(0.01, 5),
    delta=DELTAS,
    sums=st.integers(0, 3),
    share=st.floats(0.05, 0.95),
    unit=UNITS,
)
def test_a_whole_phase_of_vector_sums_costs_what_was_asked_for(
    epsilon: float, delta: float, sums: int, share: float, unit: Unit
) -> None:
    weights = [(1 - share) / max(1, sums)] * sums + [share]
    lengths = [640] * sums + [200]
    noises = noise_multipliers(epsilon, delta, weights, lengths, unit)
    made = [
        VectorSum(noise, length, delta, 50) for noise, length in zip(noises, lengths, strict=True)
    ]
    cost = composed_epsilon([each.event(unit) for each in made], delta)
    assert epsilon * (1 - 1e-6) <= cost <= epsilon
    # ρ of each is its share of all.
    for noise, weight in zip(noises, weights, strict=True):
        assert noise**-2 * sum(weights) == pytest.approx(
            weight * sum(each**-2 for each in noises), rel=1e-9
        )


def test_one_step_is_that_of_its_own_curve() -> None:
    scale = largest_scale(lambda scale: [ZeroConcentrated(scale)], 1.0, 1e-6)
    assert composed_epsilon([ZeroConcentrated(scale)], 1e-6) == pytest.approx(1.0, rel=1e-6)
    assert largest_scale(lambda scale: [Pure(scale), Pure(3 * scale)], 2.0, 1e-12) == pytest.approx(
        0.5, rel=1e-5
    )


def test_more_budget_is_less_noise() -> None:
    noises = [noise_multipliers(epsilon, 1e-6, [1], [100])[0] for epsilon in (0.1, 1, 10)]
    assert noises == sorted(noises, reverse=True)
    assert noise_multipliers(1, 1e-8, [1], [100]) > noise_multipliers(1, 1e-4, [1], [100])


# -------------------------------------------------------------------------------------- bad input


test_what_is_not_a_budget_is_named = refused(
    InvalidParametersError,
    *[
        row
        for wrong in (math.nan, math.inf, -1.0, 0.0)
        for row in (
            (r"^epsilon=", noise_multipliers, wrong, 1e-6, [1], [10]),
            (r"^delta=", noise_multipliers, 1, wrong, [1], [10]),
            (r"^delta=", largest_scale, lambda scale: [Pure(scale)], 1.0, wrong),
            (r"^delta=", check_delta, wrong, 100),
            (r"^weight=", noise_multipliers, 1, 1e-6, [1, wrong], [10, 10]),
        )
    ],
    *[
        (r"^weights: lengths need one each", noise_multipliers, 1, 1e-6, weights, lengths)
        for weights, lengths in (([], []), ([1], [10, 20]), ([1, 1], [10]))
    ],
    (r"^length=", noise_multipliers, 1, 1e-6, [1], [0]),
    (r"out of reach: .*give a larger delta$", noise_multipliers, 1, 1e-12, [1], [10]),
    (r"^delta=.*1/phones = 0\.001", check_delta, 1e-3, 1000),
    (r"^delta=.*1/phones = 0\.001", check_delta, 0.5, 1000),
)


def test_a_delta_below_one_over_phones_is_accepted() -> None:
    check_delta(0.9e-3, 1000)


def test_the_least_scale_may_cost_all_that_there_is() -> None:
    assert largest_scale(lambda scale: [Pure(1.0)], 1.0, 1e-300, 0.5, 2.0) == pytest.approx(2.0)
    assert largest_scale(lambda scale: [Pure(scale)], 0.5, 1e-300, 0.5, 2.0) == 0.5


@pytest.mark.parametrize("asked", [30.0, 60.0, 1e6])
@pytest.mark.parametrize("unit", [Unit.PHONE, Unit.REPLACED_PHONE])
def test_an_epsilon_out_of_reach_is_refused_with_the_largest_that_is_kept(
    asked: float, unit: Unit
) -> None:
    """What people are told of is composed, or the sum of each step: it is what was asked for."""
    weights, lengths = [0.35, 0.35, 0.3], [1280, 1280, 400]
    with pytest.raises(InvalidParametersError, match=r"beyond epsilon=29\.0\d,") as refused:
        noise_multipliers(asked, 1e-6, weights, lengths, unit)
    reached = float(str(refused.value).split("beyond epsilon=")[1].split(",")[0])
    noises = noise_multipliers(reached, 1e-6, weights, lengths, unit)
    sums = [VectorSum(*each, 1e-6, 50) for each in zip(noises, lengths, strict=True)]
    assert composed_epsilon([each.event(unit) for each in sums], 1e-6) == pytest.approx(reached)
    assert reached <= sum(each.cost(unit).epsilon for each in sums) < 1.001 * reached
