"""Errands to a helper that is well, down, silent, wrong, or refuses: phases wait for it by name."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.listening import PATIENCE
from support.networked import await_
from support.points import HeardPoints
from support.policies import without_budget
from support.reading import record
from support.served_helper import Response, ServedHelper, down, problem
from support.statistics_phase import PARAMETERS, counts

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.api import MESSAGEPACK
from earshot_protocol.messages import Failed, decode_helper_answer
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators import messages, transport
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.two_operators.messages import HelperTotal, OfferMade
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.sizes import sizes
from earshot_protocol.wire import encode
from earshot_server.backups.backing_up import back_up
from earshot_server.backups.restoring import restore
from earshot_server.credentials import Credentials
from earshot_server.discovery.optics import Optics
from earshot_server.helper.book import MemoryBook
from earshot_server.helper_line import HelperLine
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.processes.errands import MOST_AT_ONCE, HelperErrands
from earshot_server.records import FAILED, MOST_TRIES, PUBLISHED, RESTORED_REASON, RUNNING, Trouble
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

BY_TWO = msgspec.structs.replace(PARAMETERS, summation=SummationName.TWO_OPERATORS)
PHONES, CLASSES = BY_TWO.phones, BY_TWO.labels
LEADER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture
def helper() -> Iterator[ServedHelper]:
    with ServedHelper().running() as running:
        running.leaders = frozenset({LEADER.public_key().public_bytes_raw()})
        yield running


def make_driver(database: Database, helper: ServedHelper, timeout: float = PATIENCE) -> Driver:
    keys = LeaderKeys(LEADER, bytes.fromhex(helper.key))
    line = partial(HelperLine, helper.address, LEADER, timeout=timeout)
    errands = HelperErrands(database, keys, line, os.urandom(8).hex())
    return Driver(database, Optics(), 1e6, errands=errands)


@pytest.fixture
def driver(database: Database, helper: ServedHelper) -> Driver:
    return make_driver(database, helper)


def gathered(database: Database, parameters: object = BY_TWO) -> bytes:
    registry, phase = Registry(database), os.urandom(16)
    registry.gather(phase, parameters, 10, database.now() + 1000.0)  # type: ignore[arg-type]
    for _ in range(PHONES):
        registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10_000))
    return phase


def at(database: Database, phase: bytes) -> str:
    return record(database, phase).step.rpartition(": ")[2]


def until(driver: Driver, database: Database, phase: bytes, step: str) -> None:
    """Let the driver take turns, without pauses after troubles, until the phase is there."""

    def there() -> bool:
        driver.turn()
        return at(database, phase) == step

    await_(there, step)


def report(database: Database, phase: bytes, helper: ServedHelper, phones: int = PHONES) -> None:
    """Let phones report, each of whom heard buses as often as its number says, up to three."""
    coordinator = Coordinator(PostgresPhaseStore(database), None, phase)
    policy = without_budget(
        least_phones=3, leaders=tuple(helper.leaders), helpers=(bytes.fromhex(helper.key),)
    )
    for number in range(phones):
        buses = number % 4
        store = MemoryStore(np.ones((buses, 2), np.float32), [CLASSES[0]] * buses)
        hierarchy = LabelHierarchy.flat(CLASSES)
        with Phone(store, HeardPoints("points", 2), policy, hierarchy=hierarchy) as phone:
            answer = phone.answer(coordinator.task_for(number))
        assert answer is not None
        coordinator.accept(number, answer)


def publishes(driver: Driver, database: Database, phase: bytes) -> None:
    until(driver, database, phase, PUBLISHED)
    ending = record(database, phase).ending
    assert isinstance(ending, Statistics)
    first, *others = counts(ending)
    assert first == sum(number % 4 for number in range(PHONES))
    assert set(others) == {0}
    assert database.query("SELECT count(*) FROM errands") == [(0,)]


def in_vain(driver: Driver, database: Database, phase: bytes, reason: str) -> Trouble:
    """Let the driver ask once more, at once, and see why it was in vain."""
    before = record(database, phase).helper

    def told() -> bool:
        found = record(database, phase).helper
        if found is None or (before is not None and found.attempts == before.attempts):
            hurry(database)
            driver.turn()
            return False
        return True

    await_(told, "a trouble")
    found = record(database, phase)
    assert (found.status, found.trouble) == (RUNNING, None), "it waits, and is not given up"
    assert found.helper is not None
    assert found.helper.reason == reason
    return found.helper


def hurry(database: Database) -> None:
    database.query("UPDATE errands SET next_try = 0")


# ------------------------------------------------------------------------------------------- well


def test_each_task_is_carried_once_and_the_total_is_plain_addition(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    phase = gathered(database)
    until(driver, database, phase, "report")
    report(database, phase, helper)
    publishes(driver, database, phase)
    assert helper.asked == [transport.OFFER_PATH, transport.TOTAL_PATH]
    steps = [(step.expected, step.answered) for step in record(database, phase).steps]
    assert steps == [(1, 1), (PHONES, PHONES), (1, 1)]


def test_phones_that_stay_away_are_waited_for_until_the_window_is_over(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    phase = gathered(database)
    until(driver, database, phase, "report")
    report(database, phase, helper, PHONES - 1)
    database.query("UPDATE phases SET deadline = 0")
    until(driver, database, phase, "total")
    in_vain(driver, database, phase, "early")  # by the helper's clock
    helper.clock = lambda: database.now() + BY_TWO.step_seconds
    hurry(database)
    until(driver, database, phase, PUBLISHED)


def test_a_long_list_travels_in_parts(
    database: Database, driver: Driver, helper: ServedHelper, monkeypatch: pytest.MonkeyPatch
) -> None:
    (part,) = BY_TWO.plan().parts
    assert isinstance(part, SecureSum)
    agreed = BY_TWO.sum_parameters(part, (2 * len(CLASSES) + 1,))
    assert isinstance(agreed, TwoOperatorParameters)
    monkeypatch.setattr(transport, "LARGEST_PART", 5 * sum(sizes(agreed).entry))
    phase = gathered(database)
    until(driver, database, phase, "report")
    report(database, phase, helper)
    publishes(driver, database, phase)
    assert helper.asked[1:] == [transport.PART_PATH] * 3 + [transport.TOTAL_PATH]


# ------------------------------------------------------------------------------------------ trouble


def test_a_helper_that_is_down_is_asked_again_after_ever_longer_pauses(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    helper.trouble = down
    phase = gathered(database)
    attempts = list[int]()
    for _ in range(3):
        before = database.now()
        found = in_vain(driver, database, phase, "unreachable")
        attempts.append(found.attempts)
        pause = 5 * 2 ** (found.attempts - 1)
        assert before + pause <= found.next_try <= database.now() + pause
        asked = len(helper.asked)
        assert driver.turn() == 0
        assert len(helper.asked) == asked, "not before its time"
    assert attempts == sorted(set(attempts)), "each pause is longer"
    helper.trouble = None
    hurry(database)
    until(driver, database, phase, "report")
    assert record(database, phase).helper is None
    report(database, phase, helper)
    helper.trouble = down
    until(driver, database, phase, "total")
    in_vain(driver, database, phase, "unreachable")
    helper.trouble = None
    hurry(database)
    publishes(driver, database, phase)


def test_a_helper_that_says_nothing_holds_up_nobody_else_and_is_asked_once(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    enough = threading.Event()

    def hang(path: str) -> None:
        assert enough.wait(PATIENCE)

    helper.trouble = hang
    waiting = [gathered(database) for _ in range(MOST_AT_ONCE + 4)]
    driver.turn()
    driver.turn()
    await_(lambda: len(helper.asked) == MOST_AT_ONCE, "all errands")
    other = gathered(database, PARAMETERS)
    assert driver.turn() == 1, "a turn waits for no helper"
    assert record(database, other).step == "histogram: advertise keys"
    second = make_driver(database, helper)
    for _ in range(3):
        driver.turn()
    assert len(helper.asked) == MOST_AT_ONCE, "nothing twice at once, and no more than these"
    second.turn()  # it has the others, which nobody asks for now
    await_(lambda: len(helper.asked) == len(waiting), "the others")
    second.turn()
    assert len(helper.asked) == len(waiting)
    helper.trouble = None
    enough.set()
    for phase in waiting:

        def there(phase: bytes = phase) -> bool:
            hurry(database)
            driver.turn()
            return at(database, phase) == "report"

        await_(there, "an offer")


def test_a_phase_is_stopped_though_the_helper_never_answers(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    enough = threading.Event()

    def hang(path: str) -> None:
        enough.wait(PATIENCE)

    helper.trouble = hang
    phase = gathered(database)
    driver.turn()
    driver.turn()
    await_(lambda: helper.asked, "an errand")
    assert Registry(database).stop(phase, "stopped by an operator")
    leases = database.query("SELECT expires - seconds_now() FROM leases")
    assert 30 < leases[0][0] <= 90, "long enough to answer, and not for ever"
    database.query("UPDATE leases SET expires = 0")
    until(driver, database, phase, "stopped")
    enough.set()


def garbage(status: int, media: str, content: bytes) -> Callable[[str], Response]:
    return lambda path: (status, media, content)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (garbage(200, MESSAGEPACK, b"\xc1 nonsense"), "wrong_answer"),
        (garbage(200, MESSAGEPACK, b""), "wrong_answer"),
        (garbage(200, "text/html", b"<html>"), "wrong_answer"),
        (garbage(200, MESSAGEPACK, bytes(2**17)), "wrong_answer"),
        (garbage(302, "text/html", b"elsewhere"), "unavailable"),
        (garbage(500, "text/html", b"\x1b[31m"), "unavailable"),
        (garbage(409, "application/problem+json", b"{"), "unavailable"),
        (lambda path: problem("anything_at_all", 409), "unavailable"),
        (lambda path: problem("late", 200), "wrong_answer"),
        (lambda path: problem("too_many_offers", 503), "too_many_offers"),
        (lambda path: problem("against_policy", 409), "against_policy"),
        (lambda path: problem("unknown_leader", 401), "unknown_leader"),
        (lambda path: problem("bad_signature", 401), "bad_signature"),
        (lambda path: problem("too_few", 500), "too_few"),
    ],
)
def test_whatever_is_wrong_the_phase_waits_by_name(
    database: Database,
    driver: Driver,
    helper: ServedHelper,
    trouble: Callable[[str], Response],
    reason: str,
) -> None:
    helper.trouble = trouble
    phase = gathered(database)
    driver.turn()
    in_vain(driver, database, phase, reason)
    helper.trouble = None
    hurry(database)
    until(driver, database, phase, "report")


def test_a_helper_that_asks_for_a_pause_gets_it(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    helper.away = 600
    helper.trouble = lambda path: problem("early", 503)
    before = database.now()
    phase = gathered(database)
    driver.turn()
    found = in_vain(driver, database, phase, "early")
    assert before + 600 <= found.next_try <= database.now() + 600


def bent(helper: ServedHelper, change: Callable[[OfferMade | HelperTotal], object]) -> None:
    """Let the helper's answers be changed on the way."""
    honest = helper.answer

    def answer(path: str, fields: dict[str, str], body: bytes) -> Response:
        status, media, content = honest(path, fields, body)
        made = decode_helper_answer(content)
        assert isinstance(made, OfferMade | HelperTotal)
        return status, media, encode(change(made))  # type: ignore[arg-type]

    helper.answer = answer  # type: ignore[method-assign]


@pytest.mark.parametrize("step", ["offer", "total"])
@pytest.mark.parametrize(
    "change",
    [
        lambda made: msgspec.structs.replace(made, signature=bytes(64)),
        lambda made: msgspec.structs.replace(made, sum_id=bytes(16)),
        lambda made: HelperTotal(
            sum_id=made.sum_id, offer=bytes(32), reports=bytes(32), refused=b"", total=b""
        ),
    ],
)
def test_an_answer_that_the_sum_would_not_take_never_becomes_its_answer(
    database: Database,
    driver: Driver,
    helper: ServedHelper,
    step: str,
    change: Callable[[OfferMade | HelperTotal], object],
) -> None:
    honest = helper.answer
    phase = gathered(database)
    if step == "total":
        until(driver, database, phase, "report")
        report(database, phase, helper)
    bent(helper, change)
    until(driver, database, phase, step)
    in_vain(driver, database, phase, "wrong_answer")
    helper.answer = honest  # type: ignore[method-assign]
    hurry(database)
    if step == "offer":
        until(driver, database, phase, "report")
    else:
        publishes(driver, database, phase)


@pytest.mark.parametrize("step", ["offer", "total"])
def test_an_answer_that_another_key_signs_is_none(
    database: Database, driver: Driver, helper: ServedHelper, step: str
) -> None:
    """Somebody else's answer to the right task, which is right but for who says it."""
    phase = gathered(database)
    if step == "total":
        until(driver, database, phase, "report")
        report(database, phase, helper)
    own, helper.identity = helper.identity, Ed25519PrivateKey.generate()
    until(driver, database, phase, step)
    in_vain(driver, database, phase, "wrong_answer")
    helper.identity, helper.book = own, MemoryBook() if step == "offer" else helper.book
    hurry(database)
    if step == "offer":
        until(driver, database, phase, "report")
        return
    # The total that is kept has the other's signature, and will not get another one.
    in_vain(driver, database, phase, "wrong_answer")
    assert record(database, phase).steps[-1].answered == 0


class Held:
    """A helper's answers to the first request of a kind, held back until a test lets them go."""

    def __init__(self, helper: ServedHelper, path: str) -> None:
        self._helper, self._path, self._honest = helper, path, helper.answer
        self.change: Callable[[HelperTotal], HelperTotal] = lambda total: total
        self.go, self.asked = threading.Event(), threading.Event()
        helper.answer = self._answer  # type: ignore[method-assign]

    def _answer(self, path: str, fields: dict[str, str], body: bytes) -> Response:
        status, media, content = self._honest(path, fields, body)
        if path != self._path or self.asked.is_set():
            return status, media, content
        self.asked.set()
        assert self.go.wait(PATIENCE)
        made = decode_helper_answer(content)
        if isinstance(made, HelperTotal):
            made = self.change(made)
        return status, media, encode(made)


def over() -> bool:
    return not any(thread.name == "errand" for thread in threading.enumerate())


@pytest.mark.parametrize("path", [transport.OFFER_PATH, transport.TOTAL_PATH])
def test_an_answer_after_the_phase_s_end_changes_nothing(
    database: Database,
    driver: Driver,
    helper: ServedHelper,
    path: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    held = Held(helper, path)
    phase = gathered(database)
    if path == transport.TOTAL_PATH:
        until(driver, database, phase, "report")
        report(database, phase, helper)
    driver.turn()
    driver.turn()
    assert held.asked.wait(PATIENCE)
    assert Registry(database).stop(phase, "stopped by an operator")
    database.query("UPDATE leases SET expires = 0")
    until(driver, database, phase, "stopped")
    ending = record(database, phase).ending
    caplog.clear()
    held.go.set()
    await_(over, "the end of the errand")
    assert record(database, phase).ending == ending
    assert database.query("SELECT count(*) FROM answers") == [(0,)]
    assert database.query("SELECT count(*) FROM errands") == [(0,)]
    (said,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert "comes too late" in said


@pytest.mark.parametrize("closed", [False, True], ids=["in its step", "after its step"])
@pytest.mark.parametrize("differs", [False, True], ids=["the same", "another"])
def test_of_two_totals_the_first_counts(
    database: Database,
    driver: Driver,
    helper: ServedHelper,
    closed: bool,
    differs: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first driver is taken for dead, and its helper gives its answer after the second's."""

    def other(total: HelperTotal) -> HelperTotal:
        changed = msgspec.structs.replace(total, total=bytes(len(total.total)))
        signature = messages.sign(helper.identity, messages.HELPERS_TOTAL, changed.body())
        return msgspec.structs.replace(changed, signature=signature)

    held = Held(helper, transport.TOTAL_PATH)
    held.change = other if differs else held.change
    phase = gathered(database)
    until(driver, database, phase, "report")
    report(database, phase, helper)
    until(driver, database, phase, "total")
    driver.turn()
    assert held.asked.wait(PATIENCE)
    database.query("UPDATE leases SET expires = 0")
    second = make_driver(database, helper)
    second.turn()
    await_(lambda: record(database, phase).steps[-1].answered == 1, "the second's answer")
    if closed:
        publishes(second, database, phase)
    caplog.clear()
    held.go.set()
    await_(over, "the end of both errands")
    worse = [each for each in caplog.records if each.levelno > logging.WARNING]
    assert worse == []
    publishes(second, database, phase)


@pytest.mark.parametrize(
    "name", ["already_answered", "late", "too_few", "wrong_list", "unknown_sum"]
)
def test_what_will_never_be_answered_ends_the_phase_by_name(
    database: Database, driver: Driver, helper: ServedHelper, name: str
) -> None:
    phase = gathered(database)
    until(driver, database, phase, "report")
    report(database, phase, helper)
    helper.trouble = lambda path: problem(name, 409, "a text that nobody else needs to read")
    until(driver, database, phase, FAILED)
    ending = record(database, phase).ending
    assert isinstance(ending, Failed)
    assert ending.reason == f"the helper refuses this sum: {name}"
    assert database.query("SELECT count(*) FROM answers") == [(0,)], "shares are erased"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("offer", "the helper has not offered this sum in time"),
        ("total", "the helper has not given its total in time"),
    ],
)
def test_after_its_deadline_a_sum_without_the_helper_fails_by_name(
    database: Database, driver: Driver, helper: ServedHelper, step: str, reason: str
) -> None:
    phase = gathered(database)
    if step == "total":
        until(driver, database, phase, "report")
        report(database, phase, helper)
    helper.trouble = down
    until(driver, database, phase, step)
    in_vain(driver, database, phase, "unreachable")
    database.query("UPDATE phases SET deadline = 0")
    until(driver, database, phase, FAILED)
    ending = record(database, phase).ending
    assert isinstance(ending, Failed)
    assert ending.reason == reason
    driver._purged = -1e9
    driver.turn()
    assert database.query("SELECT count(*) FROM errands") == [(0,)]


# --------------------------------------------------------------------------- a server without one


def test_a_server_without_a_helper_starts_no_such_phase_and_ends_one_by_name(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    running = gathered(database)
    until(driver, database, running, "report")
    alone = Driver(database, Optics(), 1e6)
    refused, other = gathered(database), gathered(database, PARAMETERS)
    alone.turn()
    ending = record(database, refused).ending
    assert isinstance(ending, Failed)
    assert "needs a helper" in ending.reason
    assert record(database, other).status == RUNNING
    trouble = record(database, running).trouble
    assert trouble is not None
    assert trouble.reason == "NoOperatorKeysError"
    for _ in range(MOST_TRIES):
        database.query("UPDATE troubles SET next_try = 0")
        alone.turn()
    ending = record(database, running).ending
    assert isinstance(ending, Failed)
    assert "NoOperatorKeysError" in ending.reason
    assert record(database, other).status == RUNNING


def test_a_server_that_gets_its_helper_back_goes_on(
    database: Database, driver: Driver, helper: ServedHelper
) -> None:
    phase = gathered(database)
    until(driver, database, phase, "report")
    Driver(database, Optics(), 1e6).turn()
    assert record(database, phase).trouble is not None
    database.query("UPDATE troubles SET next_try = 0")
    report(database, phase, helper)
    publishes(make_driver(database, helper), database, phase)


# ------------------------------------------------------------------------------------- restored


def test_a_restored_leader_ends_open_sums_by_name_and_publishes_nothing_twice(
    own_database: Database,
    own_database_url: str,
    postgres: object,
    helper: ServedHelper,
    tmp_path: Path,
) -> None:
    """The helper would give the same bytes again; its leader would draw other noise for them."""
    driver = make_driver(own_database, helper)
    Credentials.load_or_create(tmp_path / "data", leads=True)
    phase = gathered(own_database)
    until(driver, own_database, phase, "report")
    report(own_database, phase, helper)
    helper.trouble = down
    until(driver, own_database, phase, "total")
    back_up(tmp_path / "backup", tmp_path / "data", own_database_url)
    helper.trouble = None
    hurry(own_database)
    publishes(driver, own_database, phase)
    asked = len(helper.asked)

    own_database.query("CREATE DATABASE two_restored")
    empty = own_database_url.replace(
        own_database_url.rpartition("/")[2].partition("?")[0], "two_restored"
    )
    try:
        restore(tmp_path / "backup", tmp_path / "new", empty)
        with closing(Database(empty)) as database:
            found = record(database, phase)
            assert found.status == FAILED
            assert isinstance(found.ending, Failed)
            assert found.ending.reason.startswith(RESTORED_REASON)
            again = make_driver(database, helper)
            assert (again.turn(), again.turn()) == (0, 0)
            assert database.query("SELECT count(*) FROM answers") == [(0,)], "no share is left"
        assert len(helper.asked) == asked, "nobody asks for the total again"
    finally:
        own_database.query("DROP DATABASE two_restored WITH (FORCE)")
    one, other = (
        Credentials.load_or_create(tmp_path / name, leads=True).leader for name in ("data", "new")
    )
    assert one == other, "apps pin it"
