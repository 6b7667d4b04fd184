"""A phase of proved ballots through the coordinator: who lies is left out, by its number."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from support.liars import told
from support.operators import NOW, Operators
from support.played_phase import PARAMETERS, PHONES, POLICY, Play, make_phones

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.phases.learning import GlobalCentroids, Result
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.summations import TWO_OPERATORS
from earshot_protocol.two_operators.messages import SendReport
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore

PROVED = msgspec.structs.replace(
    PARAMETERS,
    summation=SummationName.TWO_OPERATORS,
    centroid_votes=3,
    top_global_centroids=3,
)


@pytest.mark.slow
def test_a_liar_costs_the_phase_its_own_ballot_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With three candidates and three votes, ones alone are a ballot."""
    operators = Operators(now=NOW)
    identity = operators.identity.public_key().public_bytes_raw()
    policy = dataclasses.replace(POLICY, leaders=(operators.keys.identity,), helpers=(identity,))
    phones = make_phones(TWO_OPERATORS)
    for phone in phones.values():
        phone._policy, phone._clock = policy, lambda: NOW
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), PROVED, NOW, leading=operators.keys
    )
    game = Play(coordinator, phones, now=NOW)
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
