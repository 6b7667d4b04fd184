"""Discovery phases of former releases, which counted labels in every cell.

One that is under way ends by name after an upgrade; what was published is still read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from support.discovery_phase import PHONES, parameters, phone
from support.endings import formerly_discovered
from support.played_phase import Play

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import Failed, decode_task
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.places import Places
from earshot_protocol.wire import encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.kinds import decode_snapshot
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.ideal import IDEAL

REASON = "the phase began under a former release, which counted labels in every cell"
_PAIR = b"\x92"
_ADDED = ("cell_lengths", "prototypes", "prototype_rows", "lengths", "kinds")
_FORMER = {"label_votes": (), "labels": (), "name_p_values": ()}


def former(message: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot or a task of today as a former release would have written it."""
    kept = {name: value for name, value in message.items() if name not in _ADDED}
    if kept.get("parameters"):
        told = dict(kept["parameters"])
        del told["rows"]
        kept["parameters"] = told
    return kept


def as_former(store: MemoryPhaseStore, phase: bytes) -> None:
    """Write the snapshot and the task of the present step anew, without what was added since."""
    number, saved = store.snapshot(phase)
    state, running = decode_snapshot(saved)
    plain = former(msgspec.msgpack.decode(msgspec.msgpack.encode(state))) | _FORMER
    plain["sum"] = b""
    snapshot = msgspec.msgpack.encode(plain)
    if running:
        snapshot = _PAIR + snapshot + bytes(running)
    step = store.present_step(phase)
    common = step.common
    if common:
        task = former(msgspec.msgpack.decode(common))
        if task["type"] == "sum-labels":
            task |= {"type": "label-cells", "centroids": None}
        common = msgspec.msgpack.encode(task)
    tasks = [
        (each, task)
        for each in range(PHONES)
        if (task := store.assignment(phase, each).task) is not None
    ]
    changed = replace(step, number=number + 1, common=common)
    store.replace(phase, snapshot, changed, tasks)


STEPS = [
    *("cells 1: advertise keys", "cells 1: masked input"),
    *("labels: advertise keys", "labels: share keys", "labels: unmask"),
]


@pytest.fixture(params=STEPS)
def left(request: pytest.FixtureRequest) -> tuple[MemoryPhaseStore, Play]:
    """A phase that a former release left in one of its steps, and its phones."""
    store = MemoryPhaseStore()
    coordinator = Coordinator.start(store, Optics(), parameters(), now=0.0, summation=IDEAL)
    game = Play(coordinator, {number: phone(number, ideal=True) for number in range(PHONES)})
    game.until(request.param)
    as_former(store, coordinator.phase)
    return store, game


def test_a_phase_under_way_ends_by_name(left: tuple[MemoryPhaseStore, Play]) -> None:
    store, game = left
    phase = game.coordinator.phase
    upgraded = Coordinator(store, Optics(), phase, summation=IDEAL)
    state = upgraded.state
    assert isinstance(state.parameters, DiscoveryParameters)
    assert state.parameters.rows is None
    assert upgraded.adopt()
    ending = upgraded.task_for(0)
    assert isinstance(ending, Failed)
    assert ending.reason.startswith(REASON)
    assert not upgraded.adopt(), "it is over"
    for each in game.phones.values():
        assert each.answer(ending) is None
        assert each._membership() is None


def test_a_phone_that_asks_before_that_is_told_by_a_named_error() -> None:
    """A task of a former release is none of today's: it is not read as another."""
    store = MemoryPhaseStore()
    coordinator = Coordinator.start(store, Optics(), parameters(), now=0.0, summation=IDEAL)
    game = Play(coordinator, {number: phone(number, ideal=True) for number in range(PHONES)})
    game.until("labels: advertise keys")
    as_former(store, coordinator.phase)
    with pytest.raises(MalformedMessageError):
        Coordinator(store, None, coordinator.phase, summation=IDEAL).task_for(0)


def test_a_phase_of_this_release_is_not_ended() -> None:
    coordinator = Coordinator.start(
        MemoryPhaseStore(), Optics(), parameters(), now=0.0, summation=IDEAL
    )
    assert not coordinator.adopt()
    assert coordinator.step == "cells 1: advertise keys"


def test_a_result_of_a_former_release_is_read() -> None:
    told = formerly_discovered(label_votes=((9.5, 0.0), (0.0, 8.0), (0.5, -0.25)))
    plain = msgspec.msgpack.decode(encode(told))
    for name in ("choices", "cells", "cell_lengths", "lengths", "radius"):
        del plain[name]
    result = decode_task(msgspec.msgpack.encode(plain))
    assert result == told
    assert isinstance(result, Discovered)
    assert result.names == ("bus", "park", None)
    assert result.cell_labels == result.environments == (0, 1, 0)
    assert result.named == 2
    places = Places.of(result)
    assert places.radius is None
    assert places.nearest(np.array([[1.0, 0.1], [0.0, 1.0], [-1.0, 0.1]], np.float32)) == [
        *("bus", "park", None),
    ]
