"""A server opens a campaign's phases by itself, each once, whatever happens to it."""

from __future__ import annotations

import math
import os
import threading
from collections import Counter
from datetime import date, timedelta
from typing import Any, LiteralString

import msgspec
import pytest
from support.campaigns import BEGINS, campaign, publish
from support.dashboard_server import application
from support.endings import discovered
from support.moved_clock import MovedClock
from support.published_statistics import published as counted
from support.slots import counts

from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.accounting import TOLD_DELTA, epsilon_at
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import ExpectedContacts, RepeatedDiscovery, SumOptions
from earshot_server.campaigns.conduct import CampaignConductor
from earshot_server.campaigns.plan import Planning, planned
from earshot_server.campaigns.schedule import GATHERING, PhaseKind
from earshot_server.campaigns.slots import Slot, SlotState, phase_identifier
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.records import STOPPED_REASON, CampaignState
from earshot_server.store.archive import Archive
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry

DAY = timedelta(days=1)


@pytest.fixture
def driver(own_database: Database) -> Driver:
    return Driver(own_database, Optics(), 30 * 86_400.0)


def start(database: Database, **changes: Any) -> bytes:
    """A campaign of six weeks, which runs; its digest."""
    usual: dict[str, Any] = {
        "weeks": 6,
        "discovery": None,
        "labels": ("bar", "office"),
        "expected": ExpectedContacts(phones=200),
    }
    told = campaign(**(usual | changes))
    plan, discovery = planned(told), Planning(told).discovery
    digest = bytes.fromhex(plan.digest)
    rows = msgspec.msgpack.encode(plan), msgspec.msgpack.encode(discovery)
    CampaignRows(database).add(digest, *rows, "olga")
    return digest


def slots(database: Database, digest: bytes) -> tuple[Slot, ...]:
    conductor = CampaignConductor(database)
    return conductor.slots(conductor.one(digest))


def states(database: Database, digest: bytes) -> list[str]:
    return [slot.state.value for slot in slots(database, digest)]


def enrol(database: Database, phones: int, cohort: str = "") -> None:
    for _ in range(phones):
        Registry(database).enrol(os.urandom(32), bytes(16), 1000, cohort)


def test_a_slot_opens_once_it_has_ended(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    digest = start(own_database)
    enrol(own_database, 3)
    clock.set(BEGINS + 7 * DAY - timedelta(minutes=1))
    assert driver.turn() == 0
    clock.set(BEGINS + 7 * DAY)
    assert driver.turn() == 1
    assert driver.turn() == 0
    (gathering,) = Registry(own_database).gatherings()
    assert gathering.phase == phase_identifier(digest.hex(), PhaseKind.STATISTICS, 1, 1)
    assert gathering.least == 100
    assert gathering.wanted == 100  # of three enrolled phones
    expected = clock.now().timestamp() + GATHERING.total_seconds()
    assert gathering.until == pytest.approx(expected, abs=60)
    parameters = gathering.parameters
    assert isinstance(parameters, StatisticsParameters)
    assert (parameters.since, parameters.until) == (date(2027, 1, 4), date(2027, 1, 11))
    plan = CampaignConductor(own_database).one(digest).plan
    assert (parameters.noise, parameters.contacts) == (plan.noise, plan.contacts)
    record = Archive(own_database).phase(gathering.phase)
    assert record is not None
    assert record.name == "week 1: Contacts in the north, 2027"
    first, *others = slots(own_database, digest)
    assert (first.state, first.attempts, first.enrolled) == (SlotState.RUNNING, 1, 3)
    assert not first.late
    assert {slot.state for slot in others} == {SlotState.PLANNED}


def test_all_phones_of_the_cohorts_may_join(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    start(own_database, cohorts=("north",))
    enrol(own_database, 130, "north")
    enrol(own_database, 7, "south")
    clock.set(BEGINS + 7 * DAY)
    driver.turn()
    registry = Registry(own_database)
    (gathering,) = registry.gatherings()
    assert gathering.wanted == 130
    southern = registry.enrol(os.urandom(32), bytes(16), 1000, "south")
    assert registry.join(gathering.phase, southern) is None


@pytest.mark.parametrize("summation", [SummationName.BELL, SummationName.TWO_OPERATORS])
def test_whatever_the_crowd_a_phase_costs_what_the_plan_says(summation: SummationName) -> None:
    """So that all enrolled phones may join, however many these are."""
    planning = Planning(campaign(weeks=2, sum=SumOptions(summation=summation)))
    for parameters in (planning.week, planning.discovery):
        assert parameters is not None
        costs = {
            tuple(
                (expense.release.unit, epsilon_at(TOLD_DELTA, [expense]))
                for expense in msgspec.structs.replace(parameters, phones=phones).plan().expenses()
            )
            for phones in (8, 100, 5000, 20_000, 1_000_000)
        }
        assert len(costs) == 1


def test_a_gathering_that_failed_is_repeated_once_and_late_slots_follow(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    digest = start(own_database)
    clock.set(BEGINS + 12 * DAY)
    driver.turn()
    assert slots(own_database, digest)[0].late
    clock.move(GATHERING)
    assert driver.turn() == 2  # it fails, and is repeated
    assert states(own_database, digest)[:2] == ["running", "due"]
    clock.move(GATHERING)
    assert driver.turn() == 2
    first, second, *_ = slots(own_database, digest)
    assert (first.state, first.attempts) == (SlotState.FAILED, 2)
    assert "0 phones have joined in time" in first.reason
    assert (second.state, second.attempts) == (SlotState.RUNNING, 1)


def test_a_month_without_a_server(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    digest = start(own_database)
    clock.set(BEGINS + 38 * DAY)
    assert driver.turn() == 1
    assert states(own_database, digest) == [
        *("missed", "missed", "missed"),
        *("running", "due", "planned"),
    ]
    clock.set(BEGINS + 7 * DAY)  # what was missed stays missed
    driver.turn()
    assert states(own_database, digest) == [
        *("missed", "missed", "missed"),
        *("running", "planned", "planned"),
    ]


@pytest.mark.parametrize(("days", "state"), [(25.4, "running"), (25.6, "failed")])
def test_a_phase_that_waited_for_its_server_asks_phones_for_nothing_after_its_last_day(
    own_database: Database, clock: MovedClock, driver: Driver, days: float, state: str
) -> None:
    """It may be open until the 25th day: a slot of 7, 14 to open in, and 4 for the phase."""
    digest = start(own_database, expected=ExpectedContacts(phones=8))
    enrol(own_database, 8)
    clock.set(BEGINS + 20 * DAY)
    driver.turn()
    registry, phase = Registry(own_database), bytes.fromhex(slots(own_database, digest)[0].phase)
    for (phone,) in own_database.query("SELECT phone FROM phones"):
        assert registry.join(phase, phone) is not None
    clock.set(BEGINS + days * DAY)
    for _ in range(2):
        driver.turn()
    first, second, *_ = slots(own_database, digest)
    assert (first.state, first.attempts) == (state, 1)
    assert ("by the last day in the campaign's plan" in first.reason) == (state == "failed")
    assert second.state == ("due" if state == "running" else "running")


def test_a_server_that_has_lost_its_helper_opens_nothing_by_two_operators(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    digest = start(own_database, sum=SumOptions(summation=SummationName.TWO_OPERATORS))
    driver.turn()  # purges, once an hour
    clock.set(BEGINS + 22 * DAY)
    assert driver.turn() == 0
    assert states(own_database, digest)[:3] == ["missed", "due", "due"]
    clock.set(BEGINS + 8 * DAY)  # what was missed stays missed
    assert states(own_database, digest)[:3] == ["missed", "planned", "planned"]
    ((reason,),) = own_database.query("SELECT reason FROM troubles")
    assert reason == "NoOperatorKeysError"


def test_a_stopped_phase_is_not_repeated(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    digest = start(own_database)
    clock.set(BEGINS + 7 * DAY)
    driver.turn()
    phase = bytes.fromhex(slots(own_database, digest)[0].phase)
    assert Registry(own_database).stop(phase, STOPPED_REASON)
    assert driver.turn() == 0
    assert states(own_database, digest)[0] == "failed"


@pytest.mark.parametrize("state", [CampaignState.PAUSED, CampaignState.STOPPED])
def test_nothing_opens_in_a_campaign_that_does_not_run(
    own_database: Database, clock: MovedClock, driver: Driver, state: CampaignState
) -> None:
    digest = start(own_database)
    CampaignRows(own_database).change(digest, state, "why")
    clock.set(BEGINS + 7 * DAY)
    assert driver.turn() == 0
    stopped = state is CampaignState.STOPPED
    assert states(own_database, digest)[:2] == (
        ["stopped", "stopped"] if stopped else ["due", "planned"]
    )


def test_campaigns_of_the_same_phones_take_turns(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    first = start(own_database, cohorts=("north",))
    other = start(own_database, cohorts=("south",))
    later = start(own_database, begins=date(2027, 1, 11), name="All")
    clock.set(BEGINS + 15 * DAY)
    assert driver.turn() == 2
    assert [states(own_database, each)[0] for each in (first, other, later)] == [
        *("running", "running", "due")
    ]


MAPPED = {
    "labels": ("bar", "office"),
    "expected": ExpectedContacts(phones=200),
    "discovery": RepeatedDiscovery(every_weeks=2, epsilon=1.0),
}


def mapped(database: Database, phase: bytes, names: tuple[str, ...]) -> None:
    """Let a discovery be published that found two places, with these names."""
    publish(database, discovered(phase=phase, label_names=names))


def test_the_newest_map_names_contacts(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    given = os.urandom(16)
    mapped(own_database, given, ("bar", "office", "street"))
    digest = start(own_database, map=given.hex(), weeks=4, **MAPPED)
    clock.set(BEGINS + 14 * DAY)
    seen = {}
    for _ in range(5):  # weeks 1 and 2, a map that fails and is repeated, and week 3
        driver.turn()
        slot = next(each for each in slots(own_database, digest) if each.state == "running")
        phase, kind, number = bytes.fromhex(slot.phase), slot.planned.kind, slot.planned.number
        seen[kind, number, slot.attempts] = slot
        if kind is PhaseKind.STATISTICS:
            Registry(own_database).stop(phase, STOPPED_REASON)
        elif slot.attempts == 1:
            Registry(own_database).end_gathering(phase, "it fails")
            clock.move(GATHERING)
        else:
            mapped(own_database, phase, ("office", "bar", "street"))
            clock.set(BEGINS + 21 * DAY)
    weeks = {number: slot for (kind, number, _), slot in seen.items() if kind == "statistics"}
    maps = [slot for (kind, *_), slot in seen.items() if kind == "discovery"]
    assert [slot.attempts for slot in maps] == [1, 2]
    assert [weeks[number].map for number in (1, 2)] == 2 * [given.hex()]
    assert (weeks[3].map, weeks[3].mapped is not None) == (maps[1].phase, True)
    discovery = Archive(own_database).phase(bytes.fromhex(maps[1].phase))
    week = Archive(own_database).phase(bytes.fromhex(weeks[3].phase))
    assert discovery is not None
    assert week is not None
    assert isinstance(week.parameters, StatisticsParameters)
    assert week.parameters.places is not None
    assert discovery.parameters.phones == 100


@pytest.mark.parametrize(
    ("names", "published", "discovered_anew", "asked"),
    [
        (("bar", "office", "street"), (1, 2, 3, 4), (True, True), {1, 3, 5}),
        (("bar", "office", "street"), (1, 2, 3, 4), (False, True), {1, 5}),  # the old map has one
        (("bar", "office", "street"), (2, 3, 4), (False, True), {1, 3, 5}),  # it has none yet
        (("bar", "office", "street"), (2, 4), (False, False), {1, 3, 5}),
        (("bar", "office", "street"), (1, 2, 3, 4), (False, False), {1}),
        (("café", "street", "street"), (1, 2, 3, 4), (False, True), {5}),  # no map before
    ],
)
def test_the_first_week_after_a_map_asks_for_a_confusion_matrix_that_it_lacks(
    own_database: Database,
    clock: MovedClock,
    driver: Driver,
    names: tuple[str, ...],
    published: tuple[int, ...],
    discovered_anew: tuple[bool, ...],
    asked: set[int],
) -> None:
    """Weeks that are not published fail once phones may have paid; discoveries are as given."""
    given = os.urandom(16)
    mapped(own_database, given, names)
    asking = MAPPED | {"sum": SumOptions(confusion=True)}
    digest = start(own_database, map=given.hex(), weeks=5, **asking)
    plan = CampaignConductor(own_database).one(digest).plan
    found = set()
    for planned_one in plan.phases:
        clock.set(max(planned_one.opens, clock.now()))
        driver.turn()
        (slot,) = (each for each in slots(own_database, digest) if each.state == "running")
        assert (slot.planned, slot.attempts) == (planned_one, 1)
        (gathering,) = Registry(own_database).gatherings()
        phase, number, parameters = gathering.phase, planned_one.number, gathering.parameters
        if isinstance(parameters, StatisticsParameters):
            parameters.check()
            found |= {number} if parameters.confusion else set()
            share = math.sqrt(2) if parameters.confusion else 1
            assert parameters.noise == plan.noise / share
        Registry(own_database).stop(phase, STOPPED_REASON)
        if isinstance(parameters, StatisticsParameters) and number in published:
            publish(own_database, counted(("bar", "office"), phase=phase))
        elif planned_one.kind is PhaseKind.DISCOVERY and discovered_anew[number - 1]:
            mapped(own_database, phase, ("office", "bar", "street"))
    assert found == asked


def test_a_week_that_is_repeated_asks_again(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    given = os.urandom(16)
    mapped(own_database, given, ("bar", "office", "street"))
    digest = start(own_database, map=given.hex(), sum=SumOptions(confusion=True))
    clock.set(BEGINS + 7 * DAY)
    for attempt in (1, 2):
        driver.turn()
        (gathering,) = Registry(own_database).gatherings()
        assert slots(own_database, digest)[0].attempts == attempt
        assert isinstance(gathering.parameters, StatisticsParameters)
        assert gathering.parameters.confusion
        Registry(own_database).end_gathering(gathering.phase, "it fails")
        clock.move(GATHERING)


def test_a_map_without_a_name_of_the_campaign_names_nothing(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    given = os.urandom(16)
    mapped(own_database, given, ("café", "street", "street"))
    digest = start(own_database, map=given.hex())
    clock.set(BEGINS + 7 * DAY)
    driver.turn()
    (gathering,) = Registry(own_database).gatherings()
    assert isinstance(gathering.parameters, StatisticsParameters)
    assert gathering.parameters.places is None
    assert slots(own_database, digest)[0].map == ""


@pytest.mark.parametrize("path", ["", "/{digest}", "/{digest}/series.csv"])
def test_a_page_of_a_year_asks_the_database_as_often_as_one_of_two_weeks(
    own_database: Database, clock: MovedClock, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    asked: list[str] = []
    query = Database.query

    def counting(database: Database, statement: LiteralString, *rest: Any) -> Any:
        asked.append(statement)
        return query(database, statement, *rest)

    client = application(Archive(own_database), CampaignConductor(own_database)).test_client()
    numbers = []
    for weeks in (2, 52):
        given = os.urandom(16)
        mapped(own_database, given, ("bar", "office", "street"))
        digest = start(own_database, name=f"{weeks} weeks", weeks=weeks)
        known = CampaignConductor(own_database).one(digest)
        for phase in known.plan.phases:
            identifier = os.urandom(16)
            parameters = known.parameters(phase, None, 200, confusion=False)
            Registry(own_database).gather(identifier, parameters, 100, 0.0)
            rows = CampaignRows(own_database)
            rows.open(digest, phase.kind, phase.number, 1, identifier, 200, given)
            publish(own_database, counts((300, 150), (300, 150), 100, phase=identifier))
        asked.clear()
        monkeypatch.setattr(Database, "query", counting)
        page = client.get("/campaigns" + path.format(digest=digest.hex()))
        monkeypatch.undo()
        numbers.append(len(asked))
        assert page.status_code == 200
        assert page.text.count(f"{weeks} of {weeks} weeks counted") == (path == "/{digest}")
        own_database.query("DELETE FROM campaign_phases")
        own_database.query("DELETE FROM campaigns")
    assert numbers[0] == numbers[1]


def test_many_drivers_open_one_phase(own_database: Database, clock: MovedClock) -> None:
    digest = start(own_database)
    clock.set(BEGINS + 15 * DAY)
    drivers = [Driver(own_database, Optics(), 1e9) for _ in range(4)]
    gate = threading.Barrier(len(drivers))
    opened: list[int] = []

    def work(driver: Driver) -> None:
        gate.wait()
        opened.append(driver.turn())

    threads = [threading.Thread(target=work, args=(each,)) for each in drivers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(opened) == 1
    assert Counter(states(own_database, digest)) == {"running": 1, "due": 1, "planned": 4}


def test_a_campaign_in_trouble_stops_nothing_else(
    own_database: Database, clock: MovedClock, driver: Driver
) -> None:
    driver.turn()  # purges, once an hour
    CampaignRows(own_database).add(bytes(32), b"no plan", b"\xc0", "olga")
    healthy = start(own_database)
    clock.set(BEGINS + 7 * DAY)
    gathering = os.urandom(16)
    parameters = CampaignConductor(own_database).one(healthy).week
    Registry(own_database).gather(gathering, parameters, 100, own_database.now() - 1)
    assert driver.turn() == 2
    assert states(own_database, healthy)[0] == "running"
    record = Archive(own_database).phase(gathering)
    assert record is not None
    assert record.status == "failed"
    assert own_database.query("SELECT reason FROM troubles WHERE phase = %s", (bytes(16),)) == [
        ("DamagedCampaignError",)
    ]
