"""A campaign that a server runs with phones: six weeks in which everything happens to it."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.api_caller import Server, body_of
from support.campaigns import campaign, publish
from support.endings import discovered
from support.moved_clock import MovedClock
from support.points import AGREES, HeardPoints

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.api import CAMPAIGNS
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.privacy.accounting import TOLD_DELTA, epsilon_at
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.wire import Ending
from earshot_server.api.views import CampaignExport, CampaignView, StartCampaign
from earshot_server.backups.backing_up import back_up
from earshot_server.backups.restoring import restore
from earshot_server.campaigns.campaign import Campaign, ExpectedContacts, SumOptions
from earshot_server.campaigns.plan import Planning
from earshot_server.campaigns.schedule import GATHERING, STEP
from earshot_server.campaigns.series import series_of
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.store.database import Database

DAY = timedelta(days=1)
BEGINS = datetime(2027, 1, 4, tzinfo=UTC)
PLACES = ("bus", "park")
PHONES = 10
WEEKS = 9
WANTED = campaign(
    weeks=WEEKS,
    discovery=None,
    labels=PLACES,
    expected=ExpectedContacts(phones=8),
    sum=SumOptions(contacts=12, dropout=0.25),
)


class Member:
    """A phone that has a contact on each day, and its line to whatever server there is."""

    def __init__(self, server: Server, clock: MovedClock, number: int) -> None:
        days = [(BEGINS + place * DAY).date() for place in range(7 * WEEKS)]
        points = np.full((len(days), 2), number / PHONES, np.float32)
        now = lambda: self.clock.now().timestamp()  # noqa: E731
        self.clock = clock
        self.phone = Phone(
            MemoryStore(points, [PLACES[number % 2]] * len(days), days),
            HeardPoints("points", 2),
            AGREES,
            hierarchy=LabelHierarchy.flat(PLACES),
            clock=now,
            uptime=now,
        )
        self.caller = server.phone()
        self.known: tuple[bytes, ...] = ()
        self.refused: set[bytes] = set()

    def visit(self) -> None:
        task = self.caller.task(self.known)
        try:
            answer = self.phone.answer(task)
        except (RefusedError, UnexpectedMessageError):
            self.refused.add(task.phase)  # type: ignore[attr-defined]
            return
        if isinstance(task, Ending):
            self.known = (*self.known, task.phase)[-8:]
        if answer is not None:
            assert self.caller.answer(answer).status_code == 204

    @property
    def paid(self) -> list[str]:
        """Phases that it has paid for, once for each unit, oldest first."""
        return [entry["phase"] for entry in self.phone.ledger.export()]


class Run:
    """A server, two drivers, and phones."""

    def __init__(self, database: Database, folder: Path, wanted: Campaign = WANTED) -> None:
        self.serve(database, folder)
        self.clock = MovedClock(database, BEGINS)
        self.members = [Member(self.server, self.clock, number) for number in range(PHONES)]
        body = StartCampaign(campaign=wanted, anyway=True)
        self.digest = body_of(self.server.order(CAMPAIGNS, body), CampaignView, 201).campaign

    def serve(self, database: Database, folder: Path) -> None:
        self.server = Server.over(database, folder)
        self.drivers = [Driver(database, Optics(), 1e9) for _ in range(2)]

    def drive(self) -> int:
        return sum(driver.turn() for driver in self.drivers)

    def play(self) -> None:
        """Let phones come until no phase is under way."""
        self.drive()
        for _ in range(40):
            for member in self.members:
                member.visit()
            if not self.drive() and not self.states["running"]:
                return
        raise AssertionError("the phase does not end")

    @property
    def export(self) -> CampaignExport:
        return body_of(self.server.read(f"{CAMPAIGNS}/{self.digest}"), CampaignExport)

    @property
    def states(self) -> Counter[str]:
        return Counter(slot.state.value for slot in self.export.slots)

    def shown(self) -> list[str]:
        return [f"{slot.state.value}{' late' if slot.late else ''}" for slot in self.export.slots]


@pytest.fixture
def run(own_database: Database, tmp_path: Path) -> Run:
    return Run(own_database, tmp_path / "data")


def restored(run: Run, database: Database, folder: Path) -> None:
    """Go on with a server that was restored; its clock goes on, too."""
    clock = MovedClock(database, run.clock.now())
    # `restore` ran before this database's clock was moved.
    database.query("UPDATE campaigns SET restored = %s", (clock.now().timestamp(),))
    run.clock = clock
    run.serve(database, folder)
    for member in run.members:
        member.caller.app, member.clock = run.server.app, clock
    assert run.export.campaign.status == "paused"
    assert run.drive() == 0
    resumed = run.server.order(f"{CAMPAIGNS}/{run.digest}/resume")
    assert body_of(resumed, CampaignView).status == "running"


def check_ledgers(run: Run, *gone: str) -> None:
    """Each phone has paid once for each phase, exactly what the plan says, and counted it once.

    Args:
        run: The campaign.
        gone: Phases that were published before a restore and are not known any more.
    """
    counted = [slot.phase for slot in run.export.slots if slot.result is not None]
    planning, plan = Planning(WANTED), run.export.plan
    for member in run.members:
        assert Counter(member.paid) == Counter(2 * [*counted, *gone])
        for unit in (Unit.PHONE, Unit.RECORDING):
            spent = epsilon_at(TOLD_DELTA, member.phone.ledger.expenses_of(unit))
            weeks = len(counted) + len(gone)
            assert spent == epsilon_at(TOLD_DELTA, planning.expenses_of_a_week(unit) * weeks)
            told = next(c for c in plan.costs if (c.unit, c.delta) == (unit, TOLD_DELTA))
            assert spent <= told.epsilon


@pytest.mark.slow
def test_a_campaign_lives_through_everything(
    run: Run, own_database_url: str, other_url: str, tmp_path: Path
) -> None:
    run.clock.set(BEGINS + 7 * DAY)
    run.play()
    assert run.shown()[:2] == ["published", "planned"]

    # Nobody serves for two slots: late ones follow, the oldest first, one at a time.
    run.clock.set(BEGINS + 22 * DAY)
    run.play()
    assert run.shown()[:4] == ["published", "published late", "published late", "planned"]

    # The phones of a week do not come: it is repeated, and they do.
    run.clock.set(BEGINS + 28 * DAY)
    run.drive()
    run.clock.move(GATHERING)
    run.drive()
    run.play()
    assert (run.shown()[3], run.export.slots[3].attempts) == ("published late", 2)

    # A backup is made while the fifth week is counted; then it is published, and the server lost.
    run.clock.set(BEGINS + 35 * DAY)
    run.drive()
    for _ in range(2):
        for member in run.members:
            member.visit()
        run.drive()
    back_up(tmp_path / "backup", tmp_path / "data", own_database_url)
    run.play()
    assert run.shown()[4] == "published"
    gone = run.export.slots[4].phase
    restore(tmp_path / "backup", tmp_path / "new", other_url)
    with closing(Database(other_url, pool_size=8)) as database:
        restored(run, database, tmp_path / "new")
        assert (run.shown()[4], run.export.slots[4].phase) == ("failed", gone)
        run.clock.set(BEGINS + 42 * DAY)
        run.play()
        assert run.shown()[4:6] == ["failed", "published"]

        # A clock put forward by a month, and set back.
        run.clock.set(BEGINS + 80 * DAY)
        run.drive()
        run.clock.set(BEGINS + 50 * DAY)
        run.drive()
        assert run.shown() == [
            *("published", "published late", "published late", "published late"),
            *("failed", "published", "missed", "missed", "missed"),
        ]
        assert run.export.campaign.status == "over"
        assert not any(member.refused for member in run.members)
        check_ledgers(run, gone)
        series = series_of(run.export.plan, run.export.slots, run.clock.now())
        assert [week.number for week in series.counted] == [1, 2, 3, 4, 6]
        assert [week.reason for week in series.weeks[6:]] == 3 * ["did not begin in time"]
        assert all(week.phones == PHONES for week in series.counted)


@pytest.mark.slow
def test_phones_pay_for_one_confusion_matrix_of_a_map_what_the_plan_says(
    own_database: Database, tmp_path: Path
) -> None:
    publish(own_database, discovered(phase=bytes(16)))
    asked = msgspec.structs.replace(WANTED.sum, confusion=True)
    wanted = msgspec.structs.replace(WANTED, weeks=2, map=bytes(16).hex(), sum=asked)
    run = Run(own_database, tmp_path / "data", wanted)
    for week in (1, 2):
        run.clock.set(BEGINS + 7 * week * DAY)
        run.play()
    results = [slot.result for slot in run.export.slots]
    assert [len(each.confusion) for each in results if each is not None] == [len(PLACES) ** 2, 0]
    assert {slot.map for slot in run.export.slots} == {wanted.map}
    for cost in run.export.plan.costs:
        for member in run.members:
            spent = epsilon_at(cost.delta, member.phone.ledger.expenses_of(cost.unit))
            assert spent == cost.punctual_epsilon


@pytest.mark.slow
def test_phones_refuse_a_week_that_they_counted_before_a_restore(
    run: Run, own_database_url: str, other_url: str, tmp_path: Path
) -> None:
    back_up(tmp_path / "backup", tmp_path / "data", own_database_url)
    run.clock.set(BEGINS + 7 * DAY)
    run.play()
    gone = run.export.slots[0].phase
    restore(tmp_path / "backup", tmp_path / "new", other_url)
    with closing(Database(other_url, pool_size=8)) as database:
        restored(run, database, tmp_path / "new")
        for _ in range(12):
            run.drive()
            for member in run.members:
                member.visit()
            run.clock.move(STEP)
        first = run.export.slots[0]
        assert (first.state, first.attempts, first.phase) == ("failed", 1, gone)
        assert all(member.refused == {bytes.fromhex(gone)} for member in run.members)
        check_ledgers(run, gone)
        run.clock.set(BEGINS + 14 * DAY)
        run.play()
        assert run.shown()[:2] == ["failed", "published"]
        check_ledgers(run, gone)
