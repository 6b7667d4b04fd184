"""Text that a former release took from a server and stored, and that none is now, is dropped."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np
import pytest
from support.endings import result
from support.line import Line
from support.parameters import learning_parameters

from earshot_client.encoder import default_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.visits.endings import Endings
from earshot_client.visits.outcome import Event
from earshot_client.visits.participation import Participation
from earshot_protocol.errors import UnexpectedMessageError, WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.secure_sum.messages import ShareKeys
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Task, encode

PHASE = bytes(16)
EVIL = ("bus\r\nX-Evil: 1", "\u202esub", "bus\n", "x" * 65)


def visited(store: MemoryStore, task: Task) -> Event:
    phone = Phone(store, default_encoder(), Policy.per_recording())
    return Participation(phone, store, Line(task)).visit(datetime(2026, 3, 1, 12)).event


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("value", ["result", "labelled"])
def test_a_stored_result_names_nothing_and_the_next_one_replaces_it(value: str, evil: str) -> None:
    store = MemoryStore()
    store.put(value, encode(result(label_names=(evil, "park"))))
    phone = Phone(store, default_encoder())
    assert getattr(phone, value) is None
    with pytest.raises(WrongStateError, match="no published centroids"):
        phone.scene(np.random.default_rng(1).normal(0, 0.1, 16_000), 16_000)
    assert visited(store, result()) is Event.ENDED
    assert Phone(store, default_encoder()).result == result()


@pytest.mark.parametrize("evil", ["a\nb", "\x1b[2J", "x" * 1025])
def test_a_stored_ending_is_not_told(evil: str) -> None:
    store = MemoryStore()
    endings = Endings(store)
    endings.note(Wait(seconds=1.0))
    assert endings.note(Failed(phase=PHASE, reason=evil))
    assert endings.untold() is None
    assert endings.known() == (PHASE,)


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("field", ["encoder", "labels"])
def test_a_stored_phase_is_none_and_another_may_be_joined(field: str, evil: str) -> None:
    store = MemoryStore()
    parameters = learning_parameters(
        phones=100, geometry=Geometry.SPHERICAL, encoder=DEFAULT_ENCODER
    )
    asked = Cluster(phase=PHASE, index=3, parameters=parameters)
    assert visited(store, asked) is Event.ANSWERED
    bad = msgspec.msgpack.decode(store.get("membership") or b"")
    bad["parameters"][field] = evil if field == "encoder" else [evil]
    store.put("membership", msgspec.msgpack.encode(bad))
    store.delete("answered")
    phone = Phone(store, default_encoder(), Policy.per_recording())
    assert phone.shortfall == ""
    with pytest.raises(UnexpectedMessageError, match="not in"):
        phone.answer(ShareKeys(sum_id=PHASE, neighbours=(), public_keys=b""))
    assert visited(store, Wait(seconds=9.0)) is Event.WAITING
    other = msgspec.structs.replace(asked, phase=b"another phase 01")
    assert visited(store, other) is Event.ANSWERED
