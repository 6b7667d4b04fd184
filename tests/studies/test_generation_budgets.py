"""Noise from a budget, against laws worked out at 50 digits: enough, and hardly more than that."""

from __future__ import annotations

import math

import mpmath
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_studies.pate_aae import budgets

DELTA = 1e-5


def gaussian_delta(ratio: float, epsilon: float) -> mpmath.mpf:
    """δ of Gaussian noise, `ratio` times as wide as neighbours are apart (Balle and Wang 2018)."""
    with mpmath.workdps(50):
        wide, loss = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        inner, outer = 1 / (2 * wide) - loss * wide, -1 / (2 * wide) - loss * wide
        return mpmath.ncdf(inner) - mpmath.exp(loss) * mpmath.ncdf(outer)


def pure_delta(each: float, queries: int, epsilon: float) -> mpmath.mpf:
    """δ of so many answers that are purely private (Kairouz, Oh and Viswanath 2015, 3.3)."""
    with mpmath.workdps(50):
        loss, chance = mpmath.mpf(each), 1 / (1 + mpmath.exp(-mpmath.mpf(each)))
        total = mpmath.mpf(0)
        for ones in range(queries + 1):
            of_all = loss * (2 * ones - queries)
            weight = (
                mpmath.binomial(queries, ones) * chance**ones * (1 - chance) ** (queries - ones)
            )
            total += weight * max(0, 1 - mpmath.exp(epsilon - of_all))
        return total


def sampled_delta(noise: float, rate: float, epsilon: float) -> mpmath.mpf:
    """δ of one batch: a Gaussian against a mixture of two, the worse of both directions."""
    with mpmath.workdps(50):
        wide, share, loss = mpmath.mpf(noise), mpmath.mpf(rate), mpmath.mpf(epsilon)

        def beyond(point: mpmath.mpf, mean: int) -> mpmath.mpf:
            return mpmath.ncdf((mean - point) / wide)

        def mixed(point: mpmath.mpf) -> mpmath.mpf:
            return (1 - share) * beyond(point, 0) + share * beyond(point, 1)

        # Where the mixture is e^ε times as dense as the Gaussian, and e^-ε times.
        found = []
        for ratio in (mpmath.exp(loss), mpmath.exp(-loss)):
            inner = (ratio - 1 + share) / share
            if inner <= 0:
                found.append(mpmath.mpf(0))
                continue
            point = wide**2 * mpmath.log(inner) + mpmath.mpf(1) / 2
            if ratio > 1:
                found.append(mixed(point) - ratio * beyond(point, 0))
            else:
                found.append((1 - beyond(point, 0)) - (1 - mixed(point)) / ratio)
        return max(found)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("queries", [1, 500])
@pytest.mark.parametrize("unit", [Unit.PHONE, Unit.REPLACED_PHONE])
def test_gaussian_noise_is_the_least_that_keeps_the_budget(
    epsilon: float, queries: int, unit: Unit
) -> None:
    sigma = budgets.labels(epsilon, DELTA, queries, budgets.NoisyMax.GNMAX, unit)
    apart = math.sqrt(queries * (2 if unit is Unit.REPLACED_PHONE else 1))
    assert gaussian_delta(sigma / apart, epsilon) <= DELTA
    assert gaussian_delta(0.999 * sigma / apart, epsilon) > DELTA


@pytest.mark.parametrize(
    ("epsilon", "queries"),
    [
        (1.0, 1),
        pytest.param(0.1, 30, marks=pytest.mark.slow),
        pytest.param(3.0, 30, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("unit", [Unit.PHONE, Unit.REPLACED_PHONE])
def test_laplace_noise_is_nearly_the_least_that_pure_privacy_allows(
    epsilon: float, queries: int, unit: Unit
) -> None:
    scale = budgets.labels(epsilon, DELTA, queries, budgets.NoisyMax.LNMAX, unit)
    apart = 2 if unit is Unit.REPLACED_PHONE else 1
    # The library's grid of losses rounds by a millionth or so.
    assert pure_delta(apart / scale, queries, epsilon * (1 + 1e-5)) <= DELTA
    assert pure_delta(apart / (0.99 * scale), queries, epsilon) > DELTA
    assert scale <= apart * queries / epsilon


@pytest.mark.parametrize(
    ("epsilon", "rate"), [(0.5, 0.1), (0.5, 1.0), pytest.param(4.0, 0.02, marks=pytest.mark.slow)]
)
def test_one_batch_has_the_least_noise_that_keeps_the_budget(epsilon: float, rate: float) -> None:
    clips = 1000
    noise = budgets.dp_sgd(epsilon, DELTA, clips, 1, round(rate * clips))
    assert sampled_delta(noise, rate, epsilon) <= DELTA
    assert sampled_delta(noise - 0.01, rate, epsilon) > DELTA


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(3.0, marks=pytest.mark.slow)])
def test_many_batches_cost_no_more_than_renyi_divergences_say_and_not_much_less(
    epsilon: float,
) -> None:
    noise = budgets.dp_sgd(epsilon, DELTA, 1800, 300, 64)
    accountant = RdpAccountant()
    event = PoissonSampledDpEvent(64 / 1800, GaussianDpEvent(noise))
    accountant.compose(SelfComposedDpEvent(event, 300))
    assert epsilon < accountant.get_epsilon(DELTA) < 1.3 * epsilon


def test_real_or_generated_costs_what_any_label_does() -> None:
    for mechanism in budgets.MECHANISMS:
        args = (2.0, DELTA, 7, mechanism, Unit.REPLACED_PHONE)
        assert budgets.pate_gan(*args) == budgets.labels(*args)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.0, DELTA, 7, budgets.NoisyMax.GNMAX), "epsilon"),
        ((math.nan, DELTA, 7, budgets.NoisyMax.LNMAX), "epsilon"),
        ((1.0, 1.0, 7, budgets.NoisyMax.GNMAX), "delta"),
        ((1.0, DELTA, 0, budgets.NoisyMax.GNMAX), "queries"),
        ((1.0, DELTA, 7, "confident"), "lnmax or gnmax"),
        ((1.0, DELTA, 7, budgets.NoisyMax.GNMAX, Unit.RECORDING), "unit"),
    ],
    ids=["no budget", "nan", "delta", "no query", "mechanism", "unit"],
)
def test_votes_without_a_budget_are_refused(arguments: tuple[float, ...], said: str) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        budgets.labels(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "delta", "clips", "batch", "said"),
    [
        (1.0, 0.01, 100, 10, "1/100"),
        (-1.0, DELTA, 100, 10, "epsilon"),
        (1.0, DELTA, 100, 101, "at most"),
        (1.0, DELTA, 0, 1, "clips"),
    ],
)
def test_training_without_a_budget_is_refused(
    epsilon: float, delta: float, clips: int, batch: int, said: str
) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        budgets.dp_sgd(epsilon, delta, clips, 10, batch)
