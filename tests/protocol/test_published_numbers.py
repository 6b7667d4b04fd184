"""Defaults and limits that documents promise, and closed forms that they rest on."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest
from support.parameters import labelling_parameters, learning_parameters

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import (
    acceptance,
    discovery,
    discovery_budget,
    labelling,
    labelling_budget,
    learning,
    learning_budget,
    parameters,
)
from earshot_protocol.phases.learning import Budget
from earshot_protocol.privacy import accounting, composition, ledger, noise, significance
from earshot_protocol.privacy.accounting import Expense, Release, composed_cost
from earshot_protocol.privacy.composition import Composition
from earshot_protocol.privacy.conversions import zcdp_delta
from earshot_protocol.privacy.divergences import ORDERS
from earshot_protocol.privacy.events import Approximate, Event, Pure, ZeroConcentrated
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise
from earshot_protocol.privacy.losses import Laplace, PureLosses
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.secure_sum import parameters as sums

PUBLISHED: list[tuple[Any, dict[str, object]]] = [
    (
        learning_budget,
        {
            "BUDGETS": {
                Geometry.EUCLIDEAN: Budget(1.0, 0.25, 0.5, 0.5),
                Geometry.SPHERICAL: Budget(2.0, 0.125, 0.25, 0.5),
            },
            "DIMENSIONS": 24,
            "RECORDINGS": 200,
            "LOCAL_CENTROIDS": 6,
            "TOP_LOCAL_CENTROIDS": 2,
            "TOP_GLOBAL_CENTROIDS": 10,
            "CENTROID_VOTES": 3,
        },
    ),
    (
        discovery_budget,
        {"EPSILON": 2.0, "DELTA": 1e-6, "SUMS": 2, "LABEL_SHARE": 0.3, "DIMENSIONS": 64},
    ),
    (discovery_budget, {"MOST_CELLS": 40}),
    (labelling_budget, {"EPSILON": 2.0, "CHECK_SHARE": 0.5}),
    (acceptance, {"COUNTED_RECORDINGS": 1000}),
    (
        parameters,
        {"LARGEST_CROWD": 10**8, "NOISE_CROWD": 10**4, "LARGEST_LABELS": 256},
    ),
    (parameters, {"DIGEST_BYTES": 32, "LARGEST_RELEASES": 4096}),
    (
        learning,
        {
            "LARGEST_RECORDINGS": 10**6,
            "LARGEST_LOCAL_CENTROIDS": 256,
            "LARGEST_GLOBAL_CENTROIDS": 4096,
            "LARGEST_RUNS": 16,
        },
    ),
    (discovery, {"MOST_SUMS": 3, "SMALLEST_NOISE": 1e-9, "LARGEST_NOISE": 1e9}),
    (labelling, {"LARGEST_SAMPLES": 4096, "LARGEST_WEIGHT": 16}),
    (labelling, {"SMALLEST_NOISE": 1e-6, "LARGEST_NOISE": 1e9}),
    (accounting, {"TOLD_DELTA": 1e-6, "LARGEST_STEP": 64, "LARGEST_MECHANISM": 256}),
    (
        noise,
        {
            "LARGEST_SCALE": 2.0**52,
            "LARGEST_SHARED_SCALE": 2.0**14,
            "LARGEST_RATE": 2.0**26,
            "SMALLEST_SIGMA": 2.0**-10,
        },
    ),
    (significance, {"LEVEL": 0.05}),
    (ledger, {"PHASE_BYTES": 16, "GENESIS": bytes(32)}),
    (sums, {"LARGEST_DEGREE": 254, "LARGEST_LENGTH": 2**24}),
]


@pytest.mark.parametrize(
    ("module", "numbers"), PUBLISHED, ids=[module.__name__ for module, _ in PUBLISHED]
)
def test_what_is_published_is_what_is_in_force(module: Any, numbers: dict[str, object]) -> None:
    assert {name: getattr(module, name) for name in numbers} == numbers


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
@pytest.mark.parametrize("order", [1 / 900, 1.0, 2.5])
def test_the_deviation_of_discrete_laplace_noise(scale: float, order: float) -> None:
    """Twice the variance of NegativeBinomial(order, α) is 2 · order · α / (1 − α)²."""
    ratio = mpmath.exp(-1 / mpmath.mpf(scale))
    exact = mpmath.sqrt(2 * mpmath.mpf(order) * ratio) / (1 - ratio)
    assert DiscreteLaplaceNoise(scale, order).deviation == pytest.approx(float(exact), rel=1e-12)


def test_a_threshold_may_ask_for_all_votes_that_there_are() -> None:
    labelling_parameters(threshold=100.0).check()


@pytest.mark.parametrize("event", [Pure(1.0), ZeroConcentrated(math.inf)])
@pytest.mark.parametrize(("delta", "epsilon"), [(1.0, 0.0), (1.5, 0.0), (-1e-9, math.inf)])
def test_a_delta_of_one_promises_nothing_and_one_below_zero_nobody_keeps(
    event: Event, delta: float, epsilon: float
) -> None:
    assert Composition([event]).ideal_epsilon(delta) == epsilon


def test_at_a_delta_of_one_what_adds_up_to_more_is_still_private() -> None:
    assert Composition([Approximate(1.0, 0.6)] * 2).epsilon(1.0) == 2.0
    assert Composition([Pure(1.0)]).ideal_epsilon(0.0) == 1.0


def test_what_a_single_release_states_is_what_is_told() -> None:
    one = Expense(Release("a step", Unit.RECORDING, 1.0, 0.0, "noise"), Pure(1.0))
    assert composed_cost([one]) == Cost(1.0, 0.0)


def test_defaults_of_a_phase() -> None:
    found = learning_parameters()
    assert (found.clustering_runs, found.step_seconds) == (1, 86_400.0)
    assert labelling_parameters().step_seconds == 86_400.0


def test_a_delta_is_at_most_one() -> None:
    for rho in (1e-9, 1.0, 1e6):
        assert zcdp_delta(rho, 0.0) <= 1.0


def test_losses_are_told_with_what_transforms_may_round_by() -> None:
    assert PureLosses([Laplace(1.0, 1, 1)]).epsilon(2.0**-53) == math.inf


def test_what_is_kept_for_all_is_changed_by_nobody() -> None:
    for kept in (ORDERS, composition._shared_curve(Pure(1.0)), sums._log2_binomials(30)):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 2.0
