"""Phones that say by which rule they refuse a phase, and what operators are shown of it."""

from __future__ import annotations

import datetime
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support import dashboard_records as made
from support.api_caller import Caller, Server, body_of, problem_of
from support.played_phase import PARAMETERS, PHONES, HeardPoints
from support.reading import record

from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.visits.outcome import Event
from earshot_client.visits.participation import Participation
from earshot_protocol.api import LARGEST_REFUSAL, PHASES, REFUSAL, Refuse
from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.rules import Rule
from earshot_protocol.wire import Answer, Task
from earshot_server.api.views import PhaseView
from earshot_server.dashboard import refusals
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.records import PhaseRecord
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@dataclass
class Line:
    """A transport to a server in the same process."""

    caller: Caller

    def task(self) -> Task:
        return self.caller.task()

    def send(self, answer: Answer) -> None:
        assert self.caller.answer(answer).status_code == 204

    def refuse(self, refusal: Refuse) -> None:
        assert self.caller.post(REFUSAL, refusal).status_code == 204


def running(server: Server, database: Database) -> tuple[bytes, list[Caller]]:
    """A phase in its first step, and its phones."""
    phase = server.start(PARAMETERS)
    callers = [server.phone() for _ in range(PHONES)]
    for caller in callers:
        caller.task()
    Driver(database, Optics(), keep_seconds=1e9).turn()
    return phase, callers


def counted(server: Server, phase: bytes) -> dict[str, int]:
    return body_of(server.read(f"{PHASES}/{phase.hex()}"), PhaseView).refusals


def participation(caller: Caller, policy: Policy) -> Participation:
    store = MemoryStore(np.zeros((3, 2), dtype=np.float32))
    return Participation(Phone(store, HeardPoints("points", 2), policy), store, Line(caller))


def test_a_phase_that_all_phones_refuse_says_so(server: Server, database: Database) -> None:
    phase, callers = running(server, database)
    parts = [participation(caller, Policy()) for caller in callers]
    for _ in range(2):  # a phone asks again in an hour, and says nothing new
        for part in parts:
            assert part.visit(NOON).event is Event.REFUSED
    assert counted(server, phase) == {"least_phones": PHONES}
    shown = server.read(f"/phases/{phase.hex()}").text
    assert f"All {PHONES} phones refuse this phase: too few phones take part ({PHONES})" in shown
    assert "least_phones" not in shown
    assert "it cannot succeed" in shown
    assert "gather more (--phones, --least-phones)" in shown
    assert "refuse this phase" in server.read("/").text
    figures = server.read("/metrics").text
    assert f'earshot_refusals_total{{rule="least_phones"}} {PHONES}.0' in figures


def test_a_phone_that_may_not_tell_stays_silent(server: Server, database: Database) -> None:
    phase, callers = running(server, database)
    part = participation(callers[0], Policy(tell_refusals=False))
    assert part.visit(NOON).event is Event.REFUSED
    assert counted(server, phase) == {}


def test_refusals_are_counted_once_per_phone_by_their_first_rule(
    server: Server, database: Database
) -> None:
    phase, callers = running(server, database)
    rules = [Rule.ENCODER] * 2 + [Rule.LEAST_CORRUPTED] * 5 + [Rule.ENCODER]
    for caller, rule in zip(callers, rules, strict=False):
        for said in (rule, rule, Rule.PROTOCOL):
            refusal = Refuse(phase=phase, rule=said)
            assert caller.post(REFUSAL, refusal).status_code == 204
    assert list(counted(server, phase).items()) == [("least_corrupted", 5), ("encoder", 3)]
    # Which phone said which is nowhere.
    columns = database.query(
        "SELECT column_name::text FROM information_schema.columns"
        " WHERE table_name = 'refusals' ORDER BY 1"
    )
    assert columns == [("phase",), ("phones",), ("rule",)]


def test_of_many_at_once_each_phone_is_counted_once(database: Database) -> None:
    registry = Registry(database)
    phase = b"p" * 16
    registry.gather(phase, PARAMETERS, 3, 4e9)
    phones = [registry.enrol(bytes([number]) * 32, b"i" * 16, 99) for number in range(4)]
    for phone in phones:
        registry.join(phase, phone)
    barrier = threading.Barrier(8)

    def refuse(number: int) -> None:
        barrier.wait()
        registry.refuse(phase, phones[number % 4], Rule.SUM)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(refuse, range(8)))
    assert record(database, phase).refusals == {"sum": 4}


def test_only_members_of_a_phase_under_way_are_heard(server: Server, database: Database) -> None:
    phase, callers = running(server, database)
    refusal = Refuse(phase=phase, rule=Rule.ENCODER)
    stranger = server.phone()
    problem_of(stranger.post(REFUSAL, refusal), 409, "unexpected")
    other = Refuse(phase=b"?" * 16, rule=Rule.ENCODER)
    problem_of(callers[0].post(REFUSAL, other), 409, "unexpected")
    server.order(f"{PHASES}/{phase.hex()}/stop")
    problem_of(callers[0].post(REFUSAL, refusal), 409, "unexpected")
    assert counted(server, phase) == {}


def test_a_refusal_is_a_name_from_the_list_and_nothing_else(
    server: Server, database: Database
) -> None:
    phase, callers = running(server, database)
    pack = msgspec.msgpack.encode
    for body in (
        {"phase": phase, "rule": "because"},
        {"phase": phase, "rule": "encoder", "heard": "a siren"},
        {"phase": phase},
        {"phase": phase[1:], "rule": "encoder"},
    ):
        problem_of(callers[0].post(REFUSAL, pack(body)), 400, "malformed")
    large = pack({"phase": phase, "rule": "x" * LARGEST_REFUSAL})
    problem_of(callers[0].post(REFUSAL, large), 413, "too-large")
    assert counted(server, phase) == {}


def test_refusals_of_one_phone_are_limited_like_all_its_requests(
    database: Database, tmp_path: Path
) -> None:
    server = Server.over(database, tmp_path, phone_requests_per_minute=3)
    caller, refusal = server.phone(), Refuse(phase=b"?" * 16, rule=Rule.SUM)
    kinds = [caller.post(REFUSAL, refusal).status_code for _ in range(5)]
    assert kinds == [409, 409, 409, 429, 429]


def test_a_refusal_of_a_phase_that_nobody_knows_is_not_counted(database: Database) -> None:
    with pytest.raises(UnexpectedMessageError, match="this phone is not in the phase"):
        Registry(database).refuse(b"p" * 16, 1, Rule.SUM)


# ---------------------------------------------------------------------------------- in words


def test_every_rule_has_a_meaning() -> None:
    assert set(refusals.MEANINGS) == {rule.value for rule in Rule}


def refused(**counts: int) -> PhaseRecord:
    return msgspec.structs.replace(made.running(), refusals=counts)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (made.running(), ""),
        (refused(encoder=1), "1 phone refuses this phase: the phone has another encoder (1)"),
        (
            refused(encoder=30, sum=10),
            "40 phones refuse this phase: the phone has another encoder (30); the parameters of a "
            "secure sum are not those of the phase, or not safe (10)",
        ),
        (refused(encoder=41), "it cannot succeed unless some of them answer nevertheless"),
        (
            refused(encoder=200),
            "All 200 phones refuse this phase: the phone has another encoder (200)",
        ),
    ],
)
def test_it_is_said_how_many_refuse_and_whether_the_phase_can_succeed(
    record: PhaseRecord, said: str
) -> None:
    # Of 200 phones, 160 must answer.
    summary = refusals.summary(record)
    assert said in summary
    assert bool(said) == bool(summary)
    assert ("cannot succeed" in summary) == (sum(record.refusals.values()) > 40)


def test_a_rule_of_a_later_version_is_shown_as_it_is() -> None:
    (row,) = refusals.rows({"sunshine": 3})
    assert (row.rule, row.phones) == ("sunshine", 3)
    assert "does not know" in row.meaning
