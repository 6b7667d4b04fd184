"""Phases of proved inputs through the coordinator: who lies is left out, by its number."""

from __future__ import annotations

import copy
import dataclasses
from typing import NamedTuple

import msgspec
import pytest
from support.liars import told
from support.lying_helper import SPOILED, signed, without_the_first
from support.operators import NOW, Operators, total_of
from support.played_phase import PARAMETERS, PHONES, POLICY, Play, make_phones
from support.statistics_phase import PARAMETERS as STATISTICS
from support.statistics_phase import counts

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.phases.learning import GlobalCentroids, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.messages import AddUp, HelperTotal, SendReport
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore

PROVED = msgspec.structs.replace(
    PARAMETERS,
    summation=SummationName.TWO_OPERATORS,
    centroid_votes=3,
    top_global_centroids=3,
)


def begun(operators: Operators, parameters: Parameters) -> Play:
    """A phase that phones may play, which trust both operators."""
    identity = operators.identity.public_key().public_bytes_raw()
    policy = dataclasses.replace(POLICY, leaders=(operators.keys.identity,), helpers=(identity,))
    phones = make_phones(TWO_OPERATORS)
    for phone in phones.values():
        phone._policy, phone._clock = policy, lambda: NOW
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), parameters, NOW, leading=operators.keys
    )
    return Play(coordinator, phones, now=NOW)


@pytest.mark.slow
def test_a_liar_costs_the_phase_its_own_ballot_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With three candidates and three votes, ones alone are a ballot."""
    operators = Operators(now=NOW)
    game = begun(operators, PROVED)
    coordinator = game.coordinator
    while (step := game.coordinator.step) != "published":
        if coordinator.state.parameters.plan().asks_helper(step):
            coordinator.accept(HELPER, operators.helper.answer(coordinator.task_for(HELPER)))
            game.now += 1
            assert coordinator.advance(game.now)
            continue
        task = coordinator.task_for(4)
        if isinstance(task, GlobalCentroids) and isinstance(task.opening, SendReport):
            assert task.opening.offer is not None
            offer = task.opening.offer.offer
            assert offer.parameters.proof == Counts(1, 3, 3)
            with pytest.raises(MalformedMessageError, match=r"^phone 4: a public share"):
                coordinator.accept(4, told(offer, 4, "another part of the leader"))
            coordinator.accept(4, told(offer, 4, "another part of the helper"))
            game.present -= {4}
        game.step()
        operators.now = NOW + PROVED.step_seconds + 1
        game.present |= {4}
    result = coordinator.result()
    assert isinstance(result, Result)
    assert "phone 4: the helper cannot count its report" in caplog.text
    assert coordinator.state.inputs == {"centroid vote": PHONES - 1, "label vote": PHONES}
    assert len(result.centroid_votes) == 3


class Asked(NamedTuple):
    """A phase whose phones have all reported, its helper, and the honest total."""

    operators: Operators
    coordinator: Coordinator
    task: AddUp
    total: HelperTotal
    without_the_first: HelperTotal
    """A total of all reports but the first."""

    def ended(self, total: HelperTotal) -> Coordinator:
        """The same phase, after this total."""
        store = copy.deepcopy(self.coordinator._store)
        again = Coordinator(store, Optics(), self.coordinator.phase, leading=self.operators.keys)
        again.accept(HELPER, total)
        assert again.advance(self.operators.now)
        return again


@pytest.fixture(scope="module")
def asked() -> Asked:
    """A count of contacts, in which each phone has six of each scene."""
    operators = Operators(now=NOW)
    wanted = msgspec.structs.replace(STATISTICS, summation=SummationName.TWO_OPERATORS)
    game = begun(operators, wanted)
    coordinator = game.coordinator
    coordinator.accept(HELPER, operators.helper.answer(coordinator.task_for(HELPER)))
    assert coordinator.advance(NOW)
    game.step()
    operators.now = game.now
    task = coordinator.task_for(HELPER)
    assert isinstance(task, AddUp)
    fewer = without_the_first(operators.helper, task)
    total = total_of(operators.helper.answer(task))
    return Asked(operators, coordinator, task, total, fewer)


def test_an_honest_helper_s_total_is_published(asked: Asked) -> None:
    result = asked.ended(asked.total).result()
    assert isinstance(result, Statistics)
    assert counts(result) == (6 * PHONES, 6 * PHONES, 0, 0, 0)


@pytest.mark.parametrize("name", SPOILED)
def test_a_helper_that_lies_ends_the_phase_by_name(asked: Asked, name: str) -> None:
    bend, says = SPOILED[name]
    sum_ = asked.coordinator._read().sum
    assert sum_ is not None
    terms = sum_.parameters
    ended = asked.ended(
        signed(asked.operators.identity, asked.total, bend(asked.task, asked.total, terms))
    )
    assert ended.step == "failed"
    assert says in ended.state.failure


def test_a_helper_that_refuses_an_honest_phone_costs_that_phone_alone(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    """It adds up all others, and nobody can tell: the leader names whom it left out."""
    result = asked.ended(asked.without_the_first).result()
    assert isinstance(result, Statistics)
    assert result.phones == PHONES - 1
    assert counts(result) == (6 * (PHONES - 1), 6 * (PHONES - 1), 0, 0, 0)
    assert caplog.text.count("the helper cannot count its report") == 1
