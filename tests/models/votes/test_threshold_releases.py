"""Costs of votes against thresholds that may be published: smooth, and never too small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.releases import smooth_sensitivity
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule
from earshot_models.votes.rules.grid_threshold import GridRule
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit

TEACHERS = 40
RULES = (
    GNThresholdRule(sigma=3.0, cut=12.0, winners=2),
    GNThresholdRule(sigma=3.0, cut=12.0, winners=2, threshold=25.0, check_sigma=4.0),
    AdaptiveRule(sigma=2.0, winners=1, threshold=25.0, check_sigma=4.0),
    GridRule(sigma=3.0, grid=(8.0, 16.0, 24.0), scale=6.0, winners=2),
)
NAMES = ("fixed", "checked", "adaptive", "grid")

tables = st.lists(
    st.lists(st.floats(0, TEACHERS), min_size=4, max_size=4), min_size=1, max_size=3
).map(np.array)


@pytest.mark.parametrize("voting", RULES, ids=NAMES)
@settings(max_examples=examples(40), deadline=None)
@given(table=tables, seed=st.integers(0, 2**16), order=st.sampled_from([1.5, 4.0, 12.0]))
def test_neighbours_costs_and_sensitivities_are_within_what_is_said(
    voting: Any, table: Any, seed: int, order: float
) -> None:
    """All queries of a neighbour move at once, each label by one vote at most."""
    generator = np.random.default_rng(seed)
    answered = generator.random(len(table)) < 0.7
    moved = np.clip(table + generator.uniform(-1, 1, table.shape).round(1), 0, TEACHERS)
    here, there = (voting.released(each, TEACHERS, answered, order) for each in (table, moved))
    tiny = 1e-12
    assert (
        abs(here.spent - there.spent) <= min(here.sensitivities[0], there.sensitivities[0]) + tiny
    )
    assert (here.sensitivities[:-1] <= there.sensitivities[1:] + tiny).all()
    assert (np.diff(here.sensitivities) >= -tiny).all()
    for beta in (0.05, 0.5):
        one, two = (smooth_sensitivity(each.sensitivities, beta) for each in (here, there))
        # The last distance is all teachers, beyond which nothing grows.
        assert one <= np.exp(beta) * two * (1 + 1e-9) + tiny


@pytest.mark.parametrize("voting", RULES, ids=NAMES)
@pytest.mark.parametrize("unit", [Unit.PHONE, Unit.REPLACED_PHONE])
def test_what_is_published_is_no_less_than_what_is_spent(voting: Any, unit: Unit) -> None:
    generator = np.random.default_rng(1)
    table = np.clip(generator.exponential(6, (60, 4)), 0, TEACHERS)
    table[:40, 0] = generator.uniform(20, TEACHERS, 40)
    answered = table[:, 0] > 15
    for order in (2.0, 8.0):
        found = voting.released(table, TEACHERS, answered, order, unit)
        exact = voting.divergences(table, TEACHERS, [order], Method.DEPENDENT, unit)
        spent = float((exact.asked[:, 0] + exact.answered[:, 0] * answered).sum())
        usual = voting.divergences(table, TEACHERS, [order], Method.INDEPENDENT, unit)
        most = float((usual.asked[:, 0] + usual.answered[:, 0] * answered).sum())
        assert spent <= found.spent * (1 + 1e-6)
        assert found.spent <= most * (1 + 1e-9)
        assert found.spent <= 1.1 * spent + 1e-3, "a bound that never falls is hardly more"
        assert found.sensitivities[-1] <= most * (1 + 1e-9)


def test_certain_labels_cost_nothing_and_change_nothing() -> None:
    clear = np.array([[40.0, 40.0, 0.0]] * 50)
    voting = GNThresholdRule(sigma=1.5, cut=20.0, winners=1)
    found = voting.released(clear, TEACHERS, np.ones(50, dtype=bool), 3.0)
    assert found.spent < 1e-6
    assert found.sensitivities[0] < 1e-6
    assert found.sensitivities[-1] > 1


def test_what_is_out_of_range_is_named() -> None:
    voting = GNThresholdRule(sigma=1.5, cut=20.0, winners=4)
    nobody = np.ones(1, dtype=bool)
    with pytest.raises(InvalidParametersError, match="the number of labels"):
        voting.released(np.ones((1, 3)), TEACHERS, nobody, 2.0)
    with pytest.raises(InvalidParametersError, match="orders"):
        voting.released(np.ones((1, 4)), TEACHERS, nobody, 1.0)
    with pytest.raises(InvalidInputError, match="0 to 40"):
        voting.released(np.full((1, 4), 41.0), TEACHERS, nobody, 2.0)
