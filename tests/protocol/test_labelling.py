"""Labelling phases by themselves: what a budget buys, and that clear answers are seldom noise."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parameters import labelling_parameters

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.acceptance import default_refusals
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.labelling_budget import noises
from earshot_protocol.privacy.accounting import NOTHING, epsilon_at, total
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.laws import DiscreteGaussianNoise, SkellamNoise
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.privacy.significance import LEVEL, answer_p_values
from earshot_protocol.rules import Rule
from earshot_protocol.wire import Matrix

numbers = st.floats(0.05, 14.0)
"""Values of ε, all within what the noise of secure sums reaches."""


def parameters(samples: int, votes: float, check: float, weight: int = 1) -> LabellingParameters:
    return labelling_parameters(
        samples=Matrix.of(np.ones((samples, 2))),
        votes_noise=votes,
        check_noise=check,
        largest_weight=weight,
    )


@settings(max_examples=12, deadline=None)
@given(numbers, st.integers(1, 500), st.floats(0.05, 0.95))
def test_noise_is_the_least_with_which_a_phase_costs_no_more(
    epsilon: float, samples: int, share: float
) -> None:
    noise = noises(epsilon, 1e-6, samples=samples, check_share=share)
    unit, plan = Unit.PHONE, parameters(samples, noise.votes, noise.check).plan()
    events = [each.event(unit) for each in plan.mechanisms.values()]
    assert composed_epsilon(events, 1e-6) <= epsilon
    less = parameters(samples, 0.999 * noise.votes, 0.999 * noise.check).plan()
    assert composed_epsilon([e.event(unit) for e in less.mechanisms.values()], 1e-6) > epsilon
    # The share of the cost, as ρ of zero-concentrated privacy, is as asked for.
    spent = [1 / noise.votes**2, 1 / noise.check**2]
    assert spent[1] / sum(spent) == pytest.approx(share)


@pytest.mark.parametrize(
    "wrong", [{"samples": 0}, {"samples": 5000}, {"check_share": 0.0}, {"check_share": 1.0}]
)
def test_a_budget_for_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParametersError, match=next(iter(wrong))):
        noises(2.0, 1e-6, **({"samples": 10} | wrong))  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 16), st.integers(1, 300))
def test_a_lighter_phone_pays_less_and_one_that_has_retired_nothing(
    weight: int, samples: int
) -> None:
    agreed = parameters(samples, 40.0, 30.0, weight)
    assert agreed.weights == tuple(range(weight, -1, -1))
    for unit in (Unit.PHONE, Unit.RECORDING):
        paid = [
            epsilon_at(1e-6, [each for each in agreed.expenses(w) if each.release.unit is unit])
            for w in agreed.weights
        ]
        assert paid == sorted(paid, reverse=True)
        assert paid[-1] == 0.0
    assert agreed.expenses(weight) == agreed.plan().expenses()
    assert {each.event for each in agreed.expenses(0)} == {NOTHING}
    assert total([each.release for each in agreed.expenses(0)])[Unit.PHONE].delta == 0.0


def test_a_default_phone_accepts_what_it_can_bear_with_one_vote() -> None:
    noise = noises(1.9, 1e-6, samples=50)
    heavy = parameters(50, noise.votes, noise.check, 16)
    assert {each.rule for each in default_refusals(heavy)} == {Rule.ENCODER}
    loud = noises(2.4, 1e-6, samples=50)
    refused = {each.rule for each in default_refusals(parameters(50, loud.votes, loud.check, 16))}
    assert refused >= {Rule.ENCODER, Rule.LARGEST_PHONE_EPSILON}


@pytest.mark.parametrize(
    "truth", [(40, 40, 20), (100, 0, 0), (0, 0, 0), (33, 33, 33), (50, 50, 0), (50, 48, 0)]
)
def test_hardly_any_phase_has_a_clear_answer_that_is_not_the_one_with_the_most_votes(
    truth: tuple[int, ...],
) -> None:
    """At most 5 of 100, whoever is proposed, ties included: 2,000 phases of 10 samples."""
    generator = np.random.default_rng(5)
    votes_law, check_law = SkellamNoise(144.0), SkellamNoise(81.0)
    phases, samples = 2000, 10

    def noise(variance: float, *shape: int) -> np.ndarray:
        one, other = generator.poisson(variance / 2, (2, *shape))
        return np.asarray(one - other)

    counts = np.broadcast_to(np.array(truth), (phases, samples, 3))
    votes = counts + noise(144.0, *counts.shape)
    proposed = votes.argmax(axis=2)
    agreed = np.take_along_axis(counts, proposed[..., None], axis=2)[..., 0]
    agreement = agreed + noise(81.0, phases, samples)
    sole = np.sum(np.array(truth) == max(truth)) == 1
    right = (proposed == int(np.argmax(truth))) & sole
    wrong = 0
    for row in range(phases):
        p_values = np.array(answer_p_values(votes[row], agreement[row], votes_law, check_law))
        wrong += bool(((p_values <= LEVEL) & ~right[row]).any())
    # Three standard deviations above 5 %.
    assert wrong <= phases * LEVEL + 3 * np.sqrt(phases * LEVEL)
    if truth == (100, 0, 0):
        assert min(answer_p_values(votes[0], agreement[0], votes_law, check_law)) < 1e-3


def test_there_is_no_p_value_without_a_sample() -> None:
    law = SkellamNoise(4.0)
    assert answer_p_values(np.empty((0, 3), np.int64), (), law, law) == ()


def test_a_sum_of_skellam_noises_is_one() -> None:
    one, other = SkellamNoise(3.0), SkellamNoise(1.5)
    values = np.arange(-12, 13)
    ours = one.plus(other).at_least(values)
    reach = np.arange(-80, 81)
    masses = [law.at_least(reach) - law.at_least(reach + 1) for law in (one, other)]
    convolved = np.convolve(*masses)
    tails = np.cumsum(convolved[::-1])[::-1][values + 160]
    assert ours == pytest.approx(tails, abs=1e-10)


@pytest.mark.parametrize("variance", [1.0, 8.0, 100.0, 1e4])
def test_p_values_of_skellam_noise_are_safe_for_what_two_operators_add(variance: float) -> None:
    added, taken = DiscreteGaussianNoise(variance, 2), SkellamNoise(2 * variance)
    values = np.arange(1, math.ceil(8 * taken.deviation))
    true, stated = added.at_least(values), taken.at_least(values)
    unlikely = true <= 0.04  # a label is clear from five per cent on
    assert unlikely.sum() > 4
    assert np.all(stated[unlikely] >= true[unlikely] - 1e-12)  # which is how exact tails are


def test_a_weight_of_one_is_not_written() -> None:
    agreed = parameters(3, 20.0, 20.0)
    assert b"largest_weight" not in msgspec.msgpack.encode(agreed)
    assert b"largest_weight" in msgspec.msgpack.encode(parameters(3, 20.0, 20.0, 2))
