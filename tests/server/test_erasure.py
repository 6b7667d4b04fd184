"""A phone that leaves, or is erased, takes its rows with it, and a phase under way goes on."""

from __future__ import annotations

import threading
from typing import Any

from support.api_caller import Caller, Server, body_of, problem_of
from support.networked import await_
from support.played_phase import PARAMETERS, PHONES, make_phones
from support.reading import record

from earshot_client.phone import Phone
from earshot_protocol.api import AUDIT, ENROL, LEAVE, TASK, AskTask, Leave
from earshot_protocol.messages import Wait
from earshot_server.api.views import Audit, PhoneCounts
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.records import PUBLISHED
from earshot_server.store.database import Database
from earshot_server.store.erasure import Erasure
from earshot_server.store.interface import PresentStep
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry


def leave(caller: Caller) -> None:
    assert caller.post(LEAVE, Leave()).status_code == 204


def everything(database: Database) -> dict[str, list[Any]]:
    """Every row of every table, as text."""
    tables = database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {
        name: [row for (row,) in database.query(f'SELECT t::text FROM "{name}" t')]  # type: ignore[arg-type]  # noqa: S608
        for (name,) in tables
    }


def gone(database: Database, caller: Caller) -> None:
    """No row of any table holds the phone's key, and none its number."""
    rows = everything(database)
    assert sum(map(len, rows.values())) > 3
    key = caller.public_key.hex()
    assert not [name for name, found in rows.items() if any(key in row for row in found)]
    numbered = database.query(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public'"
        " AND column_name = 'phone' AND table_name NOT IN ('tasks', 'answers') ORDER BY 1"
    )
    assert numbered == [("members",), ("phones",)]  # the others hold numbers within a phase
    for table in ("members", "phones"):
        query = f"SELECT count(*) FROM {table} WHERE phone = %s"  # noqa: S608
        assert database.query(query, (int(caller.name),)) == [(0,)]  # type: ignore[arg-type]
    assert not [row for row in rows["audit"] if caller.name in row.split(",")[2:]]


def answer_all(callers: dict[int, Caller], phones: dict[int, Phone]) -> None:
    for number, caller in callers.items():
        answer = phones[number].answer(caller.task())
        if answer is not None:
            assert caller.answer(answer).status_code == 204


# ---------------------------------------------------------------------------------- rows


def test_a_phone_that_leaves_is_in_no_table_and_unknown(server: Server, database: Database) -> None:
    code = server.invitation(uses=2)
    stays, goes = server.phone(code), server.phone(code)
    assert body_of(server.read(ENROL), PhoneCounts).enrolled == 2
    leave(goes)
    gone(database, goes)
    assert body_of(server.read(ENROL), PhoneCounts) == PhoneCounts(enrolled=1, in_phases=0)
    for path, body in ((TASK, AskTask()), (LEAVE, Leave())):
        problem_of(goes.post(path, body), 401, "signature")
    assert isinstance(stays.task(), Wait)
    # Its invitation is used up all the same, and what enrols again is another phone.
    problem_of(Caller(server.app).enrol(code), 403, "invitation-used-up")
    again = body_of(Caller(server.app, key=goes.key).enrol(server.invitation()), dict)
    assert again["phone"] != goes.name


def test_nobody_else_lets_a_phone_leave(server: Server, database: Database) -> None:
    victim, other = server.phone(), server.phone()
    forged = Caller(server.app, name=victim.name, key=other.key)
    problem_of(forged.post(LEAVE, Leave()), 401, "signature")
    problem_of(victim.post(LEAVE, Leave(), skew=-1000), 401, "stale-signature")
    problem_of(victim.post(LEAVE, {"phone": other.name}), 400, "malformed")
    assert Registry(database).public_key(int(victim.name)) == victim.public_key


def test_an_administrator_erases_a_phone_and_the_log_does_not_say_which(
    server: Server, database: Database
) -> None:
    caller = server.phone()
    path = f"{ENROL}/{caller.name}"
    fields = server.bearer
    assert server.app.test_client().delete(path, headers=fields).status_code == 204
    gone(database, caller)
    problem_of(server.app.test_client().delete(path, headers=fields), 404, "unknown-phone")
    leave(server.phone())
    entries = body_of(server.read(AUDIT), Audit).entries
    found = [(each.operator, each.action, each.subject, each.detail) for each in entries]
    assert ("operator", "erase phone", "", "") in found
    assert ("phone", "leave", "", "") in found
    assert len([each for each in found if each[1] in ("erase phone", "leave")]) == 2


# ---------------------------------------------------------------------------------- phases


def test_who_leaves_a_gathering_is_replaced(server: Server, database: Database) -> None:
    phase = server.start(PARAMETERS)
    callers = [server.phone() for _ in range(4)]
    for caller in callers:
        caller.task()
    leave(callers[1])
    leave(callers[3])
    gone(database, callers[1])
    assert record(database, phase).joined == 2
    members = database.query("SELECT phone, index FROM members ORDER BY index")
    assert members == [(int(callers[0].name), 0), (int(callers[2].name), 1)] or members == [
        (int(callers[0].name), 0),
        (int(callers[3].name), 1),
    ]
    late = [server.phone() for _ in range(PHONES - 2)]
    for caller in late:
        caller.task()
    indices = database.query("SELECT index FROM members ORDER BY index")
    assert [index for (index,) in indices] == list(range(PHONES))
    assert Driver(database, Optics(), 1e9).turn() == 1


def test_a_phase_goes_on_without_those_who_left(server: Server, database: Database) -> None:
    """One leaves after its answer to an open step, one in the middle of a sum."""
    phase = server.start(PARAMETERS)
    phones = make_phones()
    callers = {number: server.phone() for number in phones}
    driver = Driver(database, Optics(), 1e9)
    for caller in callers.values():
        caller.task()
    driver.turn()
    answer_all(callers, phones)
    leaving = callers.pop(3)
    leave(leaving)
    gone(database, leaving)
    assert record(database, phase).steps[0].answered == PHONES - 1
    steps = 0
    while record(database, phase).finished is None:
        database.query("UPDATE phases SET deadline = 0")  # nobody waits for who has left
        assert driver.turn() == 1
        steps += 1
        answer_all(callers, phones)
        if steps == 2:
            leaving = callers.pop(7)
            leave(leaving)
            gone(database, leaving)
    ended = record(database, phase)
    assert ended.status == PUBLISHED, ended.ending
    assert [step.answered for step in ended.steps][:3] == [PHONES - 1, PHONES - 1, PHONES - 2]


def answered(server: Server, database: Database) -> tuple[bytes, Caller, PostgresPhaseStore]:
    """A phase whose first step a phone and another have answered."""
    phase, caller = server.start(PARAMETERS), server.phone()
    caller.task()
    Registry(database).end_gathering(phase)
    store = PostgresPhaseStore(database)
    store.create(phase, b"snapshot", PresentStep(0, "step", 4e9, 3), [(0, b"a"), (1, b"b")])
    store.add_answer(phase, 0, 0, b"of the phone")
    store.add_answer(phase, 0, 1, b"of another")
    return phase, caller, store


def test_an_answer_to_a_closed_step_stays_until_the_next_one_opens(
    server: Server, database: Database
) -> None:
    phase, caller, store = answered(server, database)
    store.close(phase, 0)
    leave(caller)
    assert tuple(store.answers(phase)) == ((0, b"of the phone"), (1, b"of another"))
    store.replace(phase, b"next", PresentStep(1, "step", 4e9, 3), [])
    assert tuple(store.answers(phase)) == ()


def test_of_an_open_step_answer_and_task_go(server: Server, database: Database) -> None:
    phase, caller, store = answered(server, database)
    leave(caller)
    assert tuple(store.answers(phase)) == ((1, b"of another"),)
    assert database.query("SELECT phone FROM tasks") == [(1,)]


def test_joining_and_leaving_at_once_leaves_no_hole(server: Server, database: Database) -> None:
    registry, erasure = Registry(database), Erasure(database)
    phase = server.start(PARAMETERS)
    phones = [registry.enrol(bytes([number]) * 32, bytes(16), 100) for number in range(1, 25)]
    threads = [
        threading.Thread(target=work, args=arguments)
        for phone in phones
        for work, arguments in (
            (registry.join, (phase, phone)),
            (erasure.erase, (phone, "somebody", "erase phone")),
        )
        if work is registry.join or phone % 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for phone in phones:
        if phone % 2:
            erasure.erase(phone, "somebody", "erase phone")
    indices = [index for (index,) in database.query("SELECT index FROM members ORDER BY index")]
    assert indices == list(range(record(database, phase).joined))
    left = database.query("SELECT count(*) FROM members WHERE mod(phone, 2) = 1")
    assert left == [(0,)]


def waiting(database: Database, count: int) -> None:
    """Return once so many wait for a lock."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    await_(lambda: database.query(waiting) == [(count,)], "all that wait for a lock")


def test_whoever_was_renumbered_while_it_waited_leaves_no_hole(
    server: Server, database: Database
) -> None:
    """Two leave at once; the first one's number goes to the second, whose own is then another."""
    registry, erasure = Registry(database), Erasure(database)
    phase = server.start(PARAMETERS)
    phones = [registry.enrol(bytes([number]) * 32, bytes(16), 100) for number in range(1, 7)]
    assert [registry.join(phase, phone) for phone in phones] == [0, 1, 2, 3, 4, 5]
    leaving = [
        threading.Thread(target=erasure.erase, args=(phones[place], "somebody", "erase phone"))
        for place in (1, 5)
    ]
    with database.transaction() as connection:
        connection.execute("SELECT FROM gatherings WHERE phase = %s FOR UPDATE", (phase,))
        for started, thread in enumerate(leaving, start=1):
            thread.start()
            waiting(database, started)
    for thread in leaving:
        thread.join()
    assert sorted(database.query("SELECT phone, index FROM members")) == [
        (phones[0], 0), (phones[2], 2), (phones[3], 3), (phones[4], 1),
    ]  # fmt: skip
    assert record(database, phase).joined == 4
    assert registry.join(phase, registry.enrol(bytes([9]) * 32, bytes(16), 100)) == 4
