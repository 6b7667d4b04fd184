from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parameters import learning_parameters

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import (
    CENTROID_VOTE,
    CLUSTER,
    LABEL_VOTE,
    SELECT,
    Budget,
    PhaseParameters,
)
from earshot_protocol.privacy.accounting import (
    Expense,
    Release,
    composed_cost,
    epsilon_at,
    expenses,
    total,
)
from earshot_protocol.privacy.events import Pure
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, BallotSum, Unit

epsilons = st.floats(0.01, 20.0)


def parameters(
    budget: Budget, geometry: Geometry = Geometry.EUCLIDEAN, **changed: object
) -> PhaseParameters:
    counts: dict[str, object] = {
        "phones": 500,
        "recordings": 30,
        "local_centroids": 6,
        "top_local_centroids": 2,
        "top_global_centroids": 10,
        "centroid_votes": 3,
        "label_votes": 5,
    }
    return learning_parameters(budget=budget, geometry=geometry, delta=1e-6, **(counts | changed))


budgets = st.builds(
    Budget, clustering=epsilons, selection=epsilons, centroid_vote=epsilons, label_vote=epsilons
)


@given(budget=budgets, top=st.integers(1, 6), geometry=st.sampled_from(Geometry))
def test_a_recording_costs_what_the_budget_says(
    budget: Budget, top: int, geometry: Geometry
) -> None:
    cost = total(parameters(budget, geometry, top_local_centroids=top).plan().releases())
    expected = budget.clustering + top * budget.selection + budget.centroid_vote + budget.label_vote
    assert cost[Unit.RECORDING].epsilon == pytest.approx(expected, rel=1e-12)


def test_a_recording_costs_the_delta_of_the_clustering_and_of_two_secure_sums() -> None:
    budget = Budget(1.0, 0.25, 0.5, 0.75)
    sums = (2 + math.exp(0.5) + math.exp(0.75)) * (2 * 2.0**-40 + 2.0**-128)
    for geometry, clustering in ((Geometry.EUCLIDEAN, 0.0), (Geometry.SPHERICAL, 1e-6)):
        cost = total(parameters(budget, geometry).plan().releases())[Unit.RECORDING]
        assert cost.delta == pytest.approx(clustering + sums, rel=1e-9)


def test_a_phone_costs_its_recordings_and_half_its_votes() -> None:
    spent = parameters(Budget(1.0, 0.25, 0.5, 0.75)).plan().releases()
    by_step = {release.step: release for release in spent if release.unit is Unit.PHONE}
    assert by_step[CLUSTER].epsilon == pytest.approx(30 * 1.0)
    assert by_step[SELECT].epsilon == pytest.approx(30 * 2 * 0.25)
    assert by_step[CENTROID_VOTE].epsilon == pytest.approx(3 * 0.5 / 2)
    assert by_step[LABEL_VOTE].epsilon == pytest.approx(5 * 0.75 / 2)


def test_every_step_is_released_once_in_every_unit() -> None:
    spent = parameters(Budget(1.0, 0.25, 0.5, 0.75)).plan().releases()
    assert [(release.step, release.unit) for release in spent] == [
        (step, unit)
        for step in (CLUSTER, SELECT, CENTROID_VOTE, LABEL_VOTE)
        for unit in LEDGER_UNITS
    ]
    assert all(release.mechanism for release in spent)


@given(budget=budgets, dropout=st.integers(0, 60), corrupted=st.integers(0, 35))
def test_votes_count_on_the_noise_of_honest_survivors_only(
    budget: Budget, dropout: int, corrupted: int
) -> None:
    phase = parameters(budget, dropout=dropout / 100, corrupted=corrupted / 100)
    mechanisms = phase.plan().mechanisms
    for vote, epsilon, votes in (
        (CENTROID_VOTE, budget.centroid_vote, 3),
        (LABEL_VOTE, budget.label_vote, 5),
    ):
        noise = mechanisms[vote]
        assert isinstance(noise, BallotSum)
        assert noise.scale == 2 / epsilon
        assert noise.votes == votes
        assert noise.honest_survivors == 500 - 5 * (dropout + corrupted)


def test_the_total_of_nothing_is_nothing_and_delta_stops_at_one() -> None:
    assert all(cost.epsilon == cost.delta == 0 for cost in total(()).values())
    many = [Release("vote", Unit.PHONE, 1.0, 0.4, "ballots")] * 3
    cost = total(iter(many))
    assert (cost[Unit.PHONE].epsilon, cost[Unit.PHONE].delta) == (3.0, 1.0)
    assert cost[Unit.RECORDING].epsilon == 0


def test_costs_that_leave_the_range_of_floats_are_infinite() -> None:
    """A phone without a limit of ε may have agreed to any finite one, and to another after it."""
    spent = [
        Expense(Release("histogram", Unit.PHONE, 1.5e308, 0.0, "drawn"), Pure(1.5e308))
        for _ in range(2)
    ]
    assert epsilon_at(0.0, spent) == math.inf
    assert epsilon_at(1e-6, spent) == math.inf
    assert composed_cost(spent).epsilon == math.inf
    assert epsilon_at(1e-6, spent[:1]) == pytest.approx(1.5e308)
    for epsilon in (1e-9, 0.37, 1.7e308):
        mechanism = BallotSum(epsilon=epsilon, votes=1, honest_survivors=None)
        assert mechanism.cost(Unit.RECORDING).epsilon == epsilon


def test_releases_take_their_costs_from_the_mechanism() -> None:
    noise = BallotSum(0.5, votes=3, honest_survivors=10)
    for release, event in expenses("a vote", noise):
        cost = noise.cost(release.unit)
        assert event == noise.event(release.unit)
        assert (release.step, release.mechanism) == ("a vote", noise.name)
        assert (release.epsilon, release.delta) == (cost.epsilon, cost.delta)
