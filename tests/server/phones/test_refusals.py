"""What a phone says of its refusals, and to whom."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from support.line import Line
from support.parameters import learning_parameters
from support.phone_server import PhoneServer, Reply, problem, serving
from support.played_phase import HeardPoints

from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.enrolment import enrol, signing_key
from earshot_client.transport.http import HttpTransport
from earshot_client.transport.interface import Transport
from earshot_client.visits.outcome import Event, Visit
from earshot_client.visits.participation import Participation
from earshot_protocol.api import MESSAGEPACK, REFUSAL, TASK, Refuse, decode_body
from earshot_protocol.errors import RefusedError, RemoteError
from earshot_protocol.phases.learning import Cluster
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.messages import ShareKeys
from earshot_protocol.wire import encode

PHASE = b"p" * 16


def cluster(phase: bytes = PHASE, **changes: object) -> Cluster:
    return Cluster(phase=phase, index=0, parameters=learning_parameters(**changes))


def phone(store: MemoryStore | None = None, policy: Policy | None = None) -> Phone:
    return Phone(store or MemoryStore(), HeardPoints("points", 2), policy or Policy.per_recording())


def visit(member: Phone, line: Transport) -> Visit:
    return Participation(member, member._store, line).visit(datetime(2026, 3, 1, 12))


def refuses(member: Phone, line: Line) -> None:
    assert visit(member, line).event is Event.REFUSED


def test_a_phase_is_refused_aloud_once() -> None:
    store = MemoryStore()
    line = Line(cluster(phones=99))
    for _ in range(3):
        refuses(phone(store), line)  # also after it was started anew
    assert len(line.refused) == 1
    line.tasks = [cluster(b"q" * 16, phones=99)]
    refuses(phone(store), line)
    assert [each.phase for each in line.refused] == [PHASE, b"q" * 16]


def test_what_the_server_did_not_hear_is_said_again() -> None:
    store, line = MemoryStore(), Line(cluster(phones=99), to_refusals=RemoteError("busy"))
    refuses(phone(store), line)
    line.to_refusals = None
    refuses(phone(store), line)
    assert len(line.refused) == 1


def test_a_phone_that_is_not_to_tell_says_nothing() -> None:
    line = Line(cluster(phones=99))
    refuses(phone(policy=Policy(tell_refusals=False)), line)
    assert line.refused == []


def test_a_task_that_names_no_phase_is_of_the_one_that_the_phone_is_in() -> None:
    task = ShareKeys(sum_id=PHASE, neighbours=(1,), public_keys=b"")
    member = phone()
    line = Line(task)
    member.tell_refusal(task, RefusedError("why", Rule.SUM), line)
    assert line.refused == []  # it is in none
    member.answer(cluster())
    member.tell_refusal(task, RefusedError("why", Rule.SUM), line)
    assert line.refused == [Refuse(phase=PHASE, rule=Rule.SUM)]


@pytest.mark.parametrize("status", [204, 409])
def test_it_goes_over_http_signed_and_small(status: int) -> None:
    def reply(path: str, name: str, body: bytes) -> Reply:
        if path == TASK:
            return Reply(encode(cluster(phones=99)))
        assert path == REFUSAL
        return Reply(status=204) if status == 204 else problem(409, "unexpected")

    with serving(PhoneServer(reply)) as server:
        store = MemoryStore()
        transport = HttpTransport(server.url, signing_key(store), tries=1)
        enrol(store, transport, "welcome")
        refused = visit(phone(store), transport)
        assert refused.event is Event.REFUSED
        assert "least_phones" in refused.detail
        transport.close()
        ((_, body),) = [each for each in server.requests if each[0] == REFUSAL]
        assert decode_body(body, MESSAGEPACK, Refuse) == Refuse(phase=PHASE, rule=Rule.LEAST_PHONES)
        assert len(body) < 100


@pytest.mark.parametrize("recordings", [0, 1, 500])
def test_what_is_told_does_not_depend_on_what_a_phone_heard(recordings: int) -> None:
    points = np.zeros((recordings, 2), dtype=np.float32)
    line = Line(cluster(phones=99))
    refuses(phone(MemoryStore(points)), line)
    assert line.refused == [Refuse(phase=PHASE, rule=Rule.LEAST_PHONES)]
    accepted = Line(cluster())
    visit(phone(MemoryStore(points)), accepted)
    assert (len(accepted.sent), accepted.refused) == (1, [])
