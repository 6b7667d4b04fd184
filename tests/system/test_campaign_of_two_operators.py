"""A campaign of two operators as it is deployed, while everything is killed and the clock moves.

Web workers, driver, PostgreSQL and helper are processes of their own. Their clocks, and those of
the phones, are the one that the test moves. A proxy before the helper says when it dies.
"""

from __future__ import annotations

import csv
import http.client
import io
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import psutil
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.campaigns import campaign
from support.command import earshot
from support.helper_server import HelperProcess
from support.moved_clock import MovedClock
from support.networked import Fault, Forward, Proxy, ServerProcess, await_, faithful
from support.policies import without_budget
from support.web_phone import WebPhone

from earshot_client.expiry import KEEP_DAYS
from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.messages import Wait
from earshot_protocol.privacy.accounting import TOLD_DELTA, epsilon_at
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators.transport import OFFER_PATH, TOTAL_PATH
from earshot_protocol.wire import Ending
from earshot_server.api.views import CampaignExport, StartCampaign
from earshot_server.backups.backing_up import back_up
from earshot_server.backups.restoring import restore
from earshot_server.campaigns.campaign import ExpectedContacts, SumOptions
from earshot_server.campaigns.plan import Planning
from earshot_server.campaigns.schedule import STEP
from earshot_server.campaigns.series import series_of
from earshot_server.campaigns.slots import SlotState
from earshot_server.campaigns.weekly_sum import entry_deviation
from earshot_server.credentials import Credentials
from earshot_server.operator_client import ServerError
from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_simulations.engine.interface import HeardPoints

DAY = timedelta(days=1)
BEGINS = datetime(2027, 1, 4, tzinfo=UTC)
PLACES = ("bus", "park")
IN_PYTHON, WEEKS, DIMENSIONS = 8, 10, 8
PHONES = IN_PYTHON + 1
KEY = bytes(range(32))
WANTED = campaign(
    weeks=WEEKS,
    discovery=None,
    labels=PLACES,
    expected=ExpectedContacts(phones=PHONES),
    # Each process that is killed would load what verifies anew.
    sum=SumOptions(contacts=7, dropout=0.25, summation=SummationName.TWO_OPERATORS_UNPROVED),
)
_NODES_CLOCK = """\
import { readFileSync } from "node:fs";
const now = Date.now;
Date.now = () => now() + 1000 * Number(readFileSync(new URL("shift", import.meta.url)));
"""


class Member:
    """A phone in an encrypted file with a contact on each day; each visit is a process's life."""

    def __init__(self, number: int, run: Run) -> None:
        self.number, self._run = number, run
        self._path = run.folder / f"phone {number}.db"
        self._heard_until = BEGINS.date()
        self.known: tuple[bytes, ...] = ()
        self.refused = set[Rule | None]()
        self.line = HttpTransport(
            run.server.address,
            Ed25519PrivateKey.generate(),
            tries=600,
            known=lambda: self.known[-8:],
            clock=self._now,
        )
        self.line.enrol(run.invitation)

    def _now(self) -> float:
        return self._run.clock.now().timestamp()

    def opened(self) -> Phone:
        policy = without_budget(
            least_phones=3, leaders=(self._run.leader,), helpers=(self._run.helper.identity,)
        )
        return Phone(
            EncryptedStore(self._path, KEY, dimensions=DIMENSIONS),
            HeardPoints("points", DIMENSIONS),
            policy,
            hierarchy=LabelHierarchy.flat(PLACES),
            clock=self._now,
            uptime=self._now,
            keep_days=KEEP_DAYS,
        )

    def choice(self, day: date) -> str | None:
        """Its answer to the poll of a day: its place, or none on Sundays."""
        return None if day.weekday() == 6 else PLACES[self.number % len(PLACES)]

    def live(self, until: date) -> None:
        """Hear a contact on each day until then."""
        with closing(EncryptedStore(self._path, KEY, dimensions=DIMENSIONS)) as store:
            while self._heard_until < until:
                recording = store.add(np.full(DIMENSIONS, 0.5, np.float32), self._heard_until)
                if (choice := self.choice(self._heard_until)) is not None:
                    store.label(recording, choice)
                self._heard_until += DAY

    def heard_of(self, phase: bytes) -> bool:
        """Whether it has had a phase's result."""
        return phase in self.known

    def visit(self) -> None:
        task = self.line.task()
        if isinstance(task, Wait):
            return
        with self.opened() as phone:
            phone.expire()
            try:
                answer = phone.answer(task)
            except RefusedError as refused:
                self.refused.add(refused.rule)
                return
        if isinstance(task, Ending):
            self.known = (*self.known, task.phase)
        if answer is not None:
            self._run.disturb()
            with suppress(UnexpectedMessageError):  # it was taken, and has closed the step
                self.line.send(answer)

    def counted(self, since: date, until: date) -> list[bool]:
        """Return which contacts of these days are marked as counted."""
        with closing(EncryptedStore(self._path, KEY, dimensions=DIMENSIONS)) as store:
            return [
                each.counted
                for each in store.descriptions()
                if each.day is not None and since <= each.day < until
            ]


class NodeMember:
    """A phone in TypeScript that has all its contacts at the bus, on the day on which it comes."""

    def __init__(self, web: WebPhone, run: Run) -> None:
        about = {
            "server": run.server.address,
            "invitation": run.invitation,
            "leader": run.leader.hex(),
            "helper": run.helper.identity.hex(),
            "encoder": "points",
            "classes": PLACES,
        }
        self._web = web
        self._phone = web.ask("open", about, 7 * [[1.0] * DIMENSIONS], 7 * ["bus"])
        self._ended: set[bytes] = set()

    def visit(self) -> None:
        self._web.ask("visit", self._phone)
        ending = self._web.ask("ending", self._phone)
        if ending is not None:
            self._ended.add(bytes.fromhex(ending[1]))

    def heard_of(self, phase: bytes) -> bool:
        """Whether it has had a phase's result."""
        return phase in self._ended

    def steps(self) -> list[str]:
        """Steps in its ledger, each once a unit."""
        steps: list[str] = self._web.ask("steps", self._phone)
        return steps


class DyingHelper:
    """What lies between leader and helper: the helper dies once, and comes back.

    Args:
        helper: The helper.
        moment: `before` it hears the request, `during` its work at chance, or `after` it has kept
            its answer, which the leader never hears.
        paths: Requests at which it dies.
    """

    def __init__(self, helper: HelperProcess, moment: str, *paths: str) -> None:
        self._helper, self._moment, self._paths = helper, moment, paths
        self.died = False

    def __call__(self, path: str, forward: Forward) -> tuple[int, dict[str, str], bytes] | None:
        if self.died or path not in self._paths:
            return forward()
        self.died = True
        if self._moment == "during":
            killer = threading.Timer(random.uniform(0.0, 0.02), self._helper.kill)
            killer.start()
            answer = None
            with suppress(OSError, http.client.HTTPException):
                answer = forward()
            killer.join()
            self._helper.start()
            return answer
        if self._moment == "after":
            assert forward()[0] == 200
        self._helper.kill()
        self._helper.start()
        return None


class Run:
    """Two operators, phones, and a campaign.

    Attributes:
        gone: Weeks that were published before a restore and are not known any more.
    """

    def __init__(
        self,
        folder: Path,
        postgres: EmbeddedPostgres,
        clock: MovedClock,
        helper: HelperProcess,
        proxy: Proxy,
    ) -> None:
        self.folder, self.postgres, self.clock = folder, postgres, clock
        self.helper, self.proxy = helper, proxy
        data = folder / "leader"
        self.leader = bytes.fromhex(Credentials.load_or_create(data, leads=True).leader)
        self.server = self._server(data, postgres.url)
        self.gone: tuple[str, ...] = ()
        self.disturbance: Callable[[], None] | None = None
        self._disturbing: list[threading.Thread] = []

    def _server(self, data: Path, url: str) -> ServerProcess:
        helper = ("--helper", self.proxy.address, "--helper-key", self.helper.identity.hex())
        return ServerProcess(data, url, *helper)

    def another_server(self) -> ServerProcess:
        """Return a server with the same credentials and database."""
        data = shutil.copytree(self.server.data, self.folder / "another leader")
        return self._server(data, self.postgres.url)

    @contextmanager
    def restored(self, backup: Path) -> Iterator[None]:
        """Lose the server, and go on with one that is restored from a backup."""
        self.server.kill()
        data, url = self.folder / "restored", self.postgres.url.replace("/postgres?", "/restored?")
        with closing(psycopg.connect(self.postgres.url, autocommit=True)) as connection:
            connection.execute("CREATE DATABASE restored")
        restore(backup, data, url)
        with closing(Database(url)) as database:
            self.clock = MovedClock(database, self.clock.now(), self.folder / "clocks")
            # `restore` ran before this database's clock was moved.
            now = self.clock.now().timestamp()
            database.query("UPDATE campaigns SET restored = %s", (now,))
            lost, self.server = self.server, self._server(data, url)
            self.server.port, self.server.address = lost.port, lost.address
            with self.server:
                self.operator = self.server.operator()
                yield

    def begin(self, web: WebPhone) -> None:
        self.operator = self.server.operator()
        self.invitation = self.operator.invite(Invite(uses=PHONES)).code
        self.members = [Member(number, self) for number in range(IN_PYTHON)]
        self.node = NodeMember(web, self)
        order = StartCampaign(campaign=WANTED, anyway=True)
        self.digest = self.operator.start_campaign(order).campaign

    @property
    def export(self) -> CampaignExport:
        """What the server says of the campaign; it may be killed in the middle of an answer."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(ServerError):
                return self.operator.campaign(self.digest)
            time.sleep(0.2)
        return self.operator.campaign(self.digest)

    def shown(self) -> list[str]:
        return [f"{slot.state.value}{' late' if slot.late else ''}" for slot in self.export.slots]

    def to(self, days: int) -> None:
        """Go to a day of the campaign."""
        self.clock.set(BEGINS + days * DAY)
        for member in self.members:
            member.live((BEGINS + days * DAY).date())

    def disturb(self) -> None:
        """Begin what is to happen while a phone sends its answer, once."""
        disturbance, self.disturbance = self.disturbance, None
        if disturbance is not None:
            self._disturbing.append(threading.Thread(target=disturbance))
            self._disturbing[-1].start()

    def play(
        self, week: int, fault: Fault = faithful, disturbance: Callable[[], None] | None = None
    ) -> None:
        """Let phones visit until a week has been counted and all of them have heard of it."""
        self.proxy.fault = fault
        self.disturbance = disturbance
        await_(lambda: self.visited(week), f"week {week}")
        for each in self._disturbing:
            each.join()
        assert self.disturbance is None
        assert getattr(fault, "died", True)
        slot = self.export.slots[week - 1]
        assert slot.state is SlotState.PUBLISHED, slot
        assert slot.result is not None
        assert slot.result.phones == PHONES
        self.check_marks()

    def visited(self, week: int) -> bool:
        """Let phones visit, and return whether all have heard of a week's result."""
        self.visit()
        with suppress(DatabaseUnavailableError):  # it was killed
            self.clock.move(timedelta(seconds=20))  # so that retries and leases of the dead are due
        phase = bytes.fromhex(self.export.slots[week - 1].phase)
        return all(each.heard_of(phase) for each in (self.node, *self.members))

    def visit(self) -> None:
        """Let all phones visit the server."""
        for each in (self.node, *self.members):
            each.visit()

    def in_trouble(self, week: int, reason: str) -> bool:
        """Let phones visit, and return whether a week waits for the helper by that name."""
        self.visit()
        phase = self.export.slots[week - 1].phase
        trouble = self.operator.phase(phase).helper if phase else None
        return trouble is not None and trouble.reason == reason

    def check_marks(self) -> None:
        """All contacts of counted weeks that are still there are marked, and no others."""
        for slot in self.export.slots:
            since, until = slot.planned.since, slot.planned.until
            assert since is not None
            assert until is not None
            for member in self.members:
                was = slot.state is SlotState.PUBLISHED or slot.phase in self.gone
                assert {*member.counted(since, until)} <= {was}

    def kill_workers(self) -> None:
        for each in self.server.workers():
            each.kill()

    def kill_driver(self) -> None:
        for each in self.server.drivers():
            each.kill()

    def kill_postgres(self) -> None:
        pid = int((self.folder / "database/postgresql/postmaster.pid").read_text().split()[0])
        postmaster = psutil.Process(pid)
        for each in (postmaster, *postmaster.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        await_(self.postgres.revive, "the database's end")

    def kill_both(self) -> None:
        self.helper.kill()
        self.server.restart()
        self.helper.start()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    clocks = tmp_path / "clocks"
    clocks.mkdir()
    with embedded(tmp_path / "database") as postgres, closing(Database(postgres.url)) as database:
        database.migrate()
        clock = MovedClock(database, BEGINS + DAY, clocks)
        monkeypatch.setenv("PYTHONPATH", str(clocks))
        (clocks / "clock.mjs").write_text(_NODES_CLOCK, "utf-8")
        monkeypatch.setenv("NODE_OPTIONS", f"--import={(clocks / 'clock.mjs').as_uri()}")
        helper = HelperProcess(tmp_path / "helper")
        helper.start()
        with Proxy(helper.port).running() as proxy:
            run = Run(tmp_path, postgres, clock, helper, proxy)
            with run.server, WebPhone("crowd_oracle.ts") as web:
                run.begin(web)
                try:
                    yield run
                finally:
                    for member in run.members:
                        member.line.close()
        helper.stop()


@pytest.mark.slow
def test_a_campaign_counts_each_contact_once_whatever_is_killed(run: Run) -> None:
    run.to(7)
    await_(lambda: run.in_trouble(1, "unknown_leader"), "a helper that does not know its leader")
    run.helper.allow(run.leader, "--least-reports", "2")
    run.clock.move(timedelta(minutes=5))
    run.play(1, DyingHelper(run.helper, "before", TOTAL_PATH))

    run.to(14)
    run.play(2, DyingHelper(run.helper, "after", OFFER_PATH), run.kill_workers)

    # Nobody serves for two slots.
    run.server.kill()
    run.to(29)
    run.server.start()
    run.play(3, DyingHelper(run.helper, "during", OFFER_PATH), run.server.restart)
    run.play(4, DyingHelper(run.helper, "during", TOTAL_PATH), run.kill_postgres)

    # Another server has the same database, so there are two drivers; a helper is down.
    with run.another_server():
        run.to(35)
        run.helper.kill()
        await_(lambda: run.in_trouble(5, "unreachable"), "a helper that is down")
        run.helper.start()
        run.clock.move(timedelta(hours=1))
        run.play(5, DyingHelper(run.helper, "after", TOTAL_PATH), run.kill_driver)

        run.to(42)
        run.play(6, DyingHelper(run.helper, "before", OFFER_PATH), run.kill_both)

    # A helper is down for so long that contacts would be deleted before phones are asked.
    run.to(62)
    run.helper.kill()
    await_(lambda: run.in_trouble(7, "unreachable"), "a helper that is down")
    run.to(66)
    await_(lambda: run.shown()[6] == "failed late", "the end of the wait")
    run.helper.start()
    run.play(8)
    run.play(9)

    # A clock put forward by a month, and set back.
    run.to(100)
    await_(lambda: run.export.campaign.status == "over", "the end")
    run.to(50)
    time.sleep(1.0)  # many turns of the driver
    assert run.shown() == [
        *("published", "published", "published late", "published late"),
        *("published", "published", "failed late", "published late", "published late", "missed"),
    ]
    assert run.export.campaign.status == "over"
    assert [slot.attempts for slot in run.export.slots] == [1] * 9 + [0]
    assert "by the last day in the campaign's plan" in run.export.slots[6].reason
    check_ledgers(run)
    check_figures(run)
    check_files(run)
    assert not [*(run.helper.data / "keys").glob("*.key")], "no key of a sum is left"


@pytest.mark.slow
def test_a_server_that_is_restored_repeats_no_week_of_two_operators(run: Run) -> None:
    run.helper.allow(run.leader, "--least-reports", "2")
    run.visit()  # the phone in TypeScript enrols when it first comes
    backup = run.folder / "backup"
    back_up(backup, run.server.data, run.postgres.url)
    run.to(7)
    run.play(1)
    run.gone = (run.export.slots[0].phase,)
    with run.restored(backup):
        assert run.export.campaign.status == "paused"
        assert run.operator.resume_campaign(run.digest).status == "running"

        def all_refuse() -> bool:
            run.visit()
            return all(member.refused == {Rule.REPEATED} for member in run.members)

        await_(all_refuse, "phones that refuse the week under its former name")
        run.clock.move(STEP)
        await_(lambda: run.shown()[0] == "failed", "the week's end")
        first = run.export.slots[0]
        assert (first.phase, first.attempts) == (*run.gone, 1)
        check_ledgers(run)
        run.to(14)
        run.play(2)
        assert run.shown()[:2] == ["failed", "published"]
        check_ledgers(run)


def check_ledgers(run: Run) -> None:
    """Each phone has paid once for each week, exactly what the plan says."""
    counted = [*run.gone, *(slot.phase for slot in run.export.slots if slot.result is not None)]
    planning, plan = Planning(WANTED), run.export.plan
    assert run.node.steps() == ["histogram"] * 2 * len(counted)
    for member in run.members:
        with member.opened() as phone:
            paid = Counter(entry["phase"] for entry in phone.ledger.export())
            assert paid == Counter(2 * counted)
            for unit in (Unit.PHONE, Unit.RECORDING):
                spent = epsilon_at(TOLD_DELTA, phone.ledger.expenses_of(unit))
                weeks = planning.expenses_of_a_week(unit) * len(counted)
                assert spent == epsilon_at(TOLD_DELTA, weeks)
                told = next(c for c in plan.costs if (c.unit, c.delta) == (unit, TOLD_DELTA))
                assert spent <= told.epsilon


def check_figures(run: Run) -> None:
    """Counts are the truth within six deviations of the noise, each and all together."""
    deviation = entry_deviation(Planning(WANTED).week)
    errors = []
    for slot in run.export.slots:
        result, since = slot.result, slot.planned.since
        if result is None:
            continue
        assert since is not None
        spoken = Counter(
            member.choice(since + day * DAY) for member in run.members for day in range(7)
        )
        spoken["bus"] += 7 * (since == BEGINS.date())
        truth = [*(spoken[place] for place in PLACES), 0, 0, spoken[None]]
        errors.append(np.array([*result.labelled, *result.named, result.unknown]) - truth)
    found = np.array(errors) / deviation
    assert np.abs(found).max() < 6
    assert abs(found.sum()) < 6 * found.size**0.5
    assert 0.5 < found.std() < 1.7, "the noise of two operators"


def check_files(run: Run) -> None:
    """The exported series has all weeks, and the phones of each that was counted."""
    out = run.folder / "series"
    there = ("--server", run.server.address, "--data", run.server.data)
    wrote = earshot("campaign", "export", WANTED.name, "--out", out, *there)
    assert wrote.returncode == 0, wrote.stderr
    rows = csv.DictReader(io.StringIO((out / "series.csv").read_text("utf-8")))
    alls = [row for row in rows if row["kind"] == "all"]
    assert [row["phones"] for row in alls] == [
        str(PHONES) if slot.state is SlotState.PUBLISHED else "" for slot in run.export.slots
    ]
    assert [row["reason"] for row in alls[9:]] == ["did not begin in time"]
    series = series_of(run.export.plan, run.export.slots, run.clock.now())
    assert [week.number for week in series.counted] == [1, 2, 3, 4, 5, 6, 8, 9]
