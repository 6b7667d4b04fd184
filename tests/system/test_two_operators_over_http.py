"""Two dozen phones and two operators over HTTP: plain totals, killed phones, a helper that is away.

The server runs in processes of its own, over PostgreSQL; its helper answers in this one.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
import numpy as np
import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.command import earshot
from support.discovery_phase import by_plain_addition
from support.helper_server import HelperProcess, helper_running
from support.networked import ServerProcess, await_
from support.policies import without_budget
from support.served_helper import ServedHelper, down
from support.statistics_phase import counts

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.geometry import unit_rows
from earshot_protocol.messages import Wait
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Ending
from earshot_server.credentials import TOKEN_FILE, Credentials
from earshot_server.operator_client import OperatorClient
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import HeardPoints

PHONES, DIMENSIONS, CELLS, CONTACTS = 24, 8, 6, 10
CLASSES = ("bus", "café", "office")
ENCODER = HeardPoints(DEFAULT_ENCODER, DIMENSIONS)
KEY = bytes(range(32))
PLACES = unit_rows(np.random.default_rng(7).standard_normal((len(CLASSES), DIMENSIONS)))
STATISTICS = StatisticsParameters(
    phones=PHONES,
    labels=CLASSES,
    contacts=CONTACTS,
    noise=1e-6,  # no noise: a deviation of 0.004 steps, of which a contact has 409
    dropout=0.25,
    corrupted=0.05,
    # Nobody vanishes: no step may end by its deadline, however slow the machine is.
    step_seconds=3600.0,
    summation=SummationName.TWO_OPERATORS,
)
DISCOVERY = DiscoveryParameters(
    phones=PHONES,
    labels=CLASSES,
    dropout=0.25,
    corrupted=0.05,
    encoder=ENCODER.name,
    start=CentroidSet.of(np.random.default_rng(8).standard_normal((CELLS, DIMENSIONS))),
    most_cells=CELLS,
    sums=1,
    cells_noise=1e-4,
    labels_noise=1e-4,
    rows=len(CLASSES),
    step_seconds=3600.0,
    summation=SummationName.TWO_OPERATORS,
)


def heard(number: int) -> tuple[np.ndarray, list[str | None]]:
    random = np.random.default_rng([9, number])
    scenes = random.integers(len(CLASSES), size=CONTACTS)
    points = PLACES[scenes] + 0.1 * random.standard_normal((CONTACTS, DIMENSIONS))
    labels = [CLASSES[scene] if random.random() < 0.6 else None for scene in scenes]
    return unit_rows(points).astype(np.float32), labels


def undisturbed(parameters: DiscoveryParameters) -> Discovered:
    """The phase in one process, by plain addition of what phones add, with hardly any noise."""
    alone = msgspec.structs.replace(parameters, summation=SummationName.BELL)
    phones = [
        Phone(
            MemoryStore(*heard(number)),
            ENCODER,
            without_budget(least_phones=3),
            hierarchy=LabelHierarchy.flat(CLASSES),
            summation=IDEAL,
        )
        for number in range(PHONES)
    ]
    return by_plain_addition(alone, phones)


class Member:
    """A phone in an encrypted file; each of its visits is a process's life."""

    def __init__(
        self,
        number: int,
        folder: Path,
        address: str,
        policy: Policy,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.number, self._path, self._policy = number, folder / f"{number}.db", policy
        self._clock = clock
        self.known: tuple[bytes, ...] = ()
        self.line = HttpTransport(
            address,
            Ed25519PrivateKey.generate(),
            tries=600,
            known=lambda: self.known,
            clock=clock,
        )
        self.killed = list[str]()
        self.ending: Ending | None = None
        with closing(self._store()) as store:
            for point, choice in zip(*heard(number), strict=True):
                recording = store.add(point)
                if choice is not None:
                    store.label(recording, choice)

    def _store(self) -> EncryptedStore:
        return EncryptedStore(self._path, KEY, dimensions=DIMENSIONS)

    def opened(self) -> Phone:
        hierarchy = LabelHierarchy.flat(CLASSES)
        return Phone(self._store(), ENCODER, self._policy, hierarchy=hierarchy, clock=self._clock)

    def visit(self) -> None:
        """Do what is to be done, and be killed in a third of the visits each, before and after."""
        task = self.line.task()
        if isinstance(task, Wait):
            return
        with self.opened() as phone:
            answer = phone.answer(task)
        if isinstance(task, Ending):
            self.ending = task
            return
        assert answer is not None
        if self.number % 3 == 0:  # it dies after its commit, before it can send
            with self.opened() as phone:
                assert phone.answer(task) == answer, "the same bytes"
            self.killed.append("before")
        self.line.send(answer)
        if self.number % 3 == 1:  # it dies before it hears that the server has its report
            with self.opened() as phone:
                again = phone.answer(task)
            assert again == answer, "the same bytes"
            with suppress(UnexpectedMessageError):  # as the last of all, it has ended the step
                self.line.send(answer)
            self.killed.append("after")

    def steps(self) -> list[str]:
        """Return the steps in the ledger, each once a unit."""
        with self.opened() as phone:
            return sorted(entry["step"] for entry in phone.ledger.export())


@pytest.fixture(scope="module")
def helper() -> Iterator[ServedHelper]:
    with ServedHelper().running() as running:
        yield running


@pytest.fixture(scope="module")
def server(
    helper: ServedHelper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("leader")
    with ServerProcess(
        folder, None, "--helper", helper.address, "--helper-key", helper.key
    ) as running:
        leader = Credentials.load_or_create(folder, leads=True).leader
        helper.leaders = frozenset({bytes.fromhex(leader)})
        yield running


@pytest.fixture(autouse=True)
def well(helper: ServedHelper) -> Iterator[None]:
    yield
    helper.trouble, helper.clock = None, time.time


@pytest.fixture
def policy(server: ServerProcess, helper: ServedHelper) -> Policy:
    return without_budget(
        least_phones=3,
        leaders=tuple(helper.leaders),
        helpers=(bytes.fromhex(helper.key),),
    )


def gathered(
    server: ServerProcess,
    parameters: Parameters,
    policy: Policy,
    folder: Path,
    clock: Callable[[], float] = time.time,
) -> tuple[OperatorClient, str, list[Member]]:
    """Start a phase, and let all phones join: who joins first has the first number."""
    operator = server.operator()
    code = operator.invite(Invite(uses=PHONES)).code
    phase = operator.start(StartPhase(parameters=parameters, anyway=True))
    members = [Member(number, folder, server.address, policy, clock) for number in range(PHONES)]
    for member in members:
        member.line.enrol(code)
        if isinstance(news := member.line.task(), Outcome):  # what an earlier test published
            member.known = (news.phase,)
            member.line.task()
    return operator, phase, members


def told(members: list[Member]) -> Outcome:
    """Let all phones visit until each has the result, which is the same."""

    def all_have() -> bool:
        for member in members:
            if member.ending is None:
                member.visit()
        return all(member.ending is not None for member in members)

    await_(all_have, "the result", 300)
    endings = {msgspec.msgpack.encode(member.ending) for member in members}
    assert len(endings) == 1
    for member in members:
        member.line.close()
    ending = members[0].ending
    assert isinstance(ending, Outcome), ending
    return ending


@pytest.mark.slow
def test_the_dashboard_names_the_helper(server: ServerProcess, helper: ServedHelper) -> None:
    token = (server.data / TOKEN_FILE).read_text("utf-8").strip()
    asked = Request(server.address, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urlopen(asked, timeout=60) as response:  # noqa: S310 - our own server
        assert f"Helper, at {helper.address}<" in response.read().decode()


@pytest.mark.slow
def test_statistics_are_those_of_plain_addition_though_phones_are_killed(
    server: ServerProcess, policy: Policy, tmp_path: Path
) -> None:
    _, _, members = gathered(server, STATISTICS, policy, tmp_path)
    result = told(members)
    assert isinstance(result, Statistics)
    spoken = [label for number in range(PHONES) for label in heard(number)[1]]
    assert counts(result) == (*map(spoken.count, CLASSES), 0, 0, 0, spoken.count(None))
    assert {moment for member in members for moment in member.killed} == {"before", "after"}
    for member in members:
        assert member.steps() == ["histogram"] * 2, "once in each unit"


@pytest.mark.slow
def test_a_discovery_gives_what_plain_addition_gives(
    server: ServerProcess, helper: ServedHelper, policy: Policy, tmp_path: Path
) -> None:
    helper.asked.clear()
    expected = undisturbed(DISCOVERY)
    _, _, members = gathered(server, DISCOVERY, policy, tmp_path)
    result = told(members)
    assert isinstance(result, Discovered)
    assert result.names == expected.names == CLASSES
    found, plain = (unit_rows(each.centroids.array().astype(float)) for each in (result, expected))
    assert np.abs(found - plain).max() < 1e-3
    assert helper.asked == ["/v1/offer", "/v1/total"] * 2, "each task once"
    for member in members:
        assert member.steps() == sorted(["cells 1", "labels"] * 2)


@pytest.mark.slow
def test_a_phase_waits_by_name_for_a_helper_that_is_down_and_then_goes_on(
    server: ServerProcess, helper: ServedHelper, policy: Policy, tmp_path: Path
) -> None:
    helper.trouble = down
    operator, phase, members = gathered(server, STATISTICS, policy, tmp_path)
    await_(lambda: operator.phase(phase).helper is not None, "the trouble", 120)
    view = operator.phase(phase)
    assert view.helper is not None
    assert (view.helper.reason, view.trouble) == ("unreachable", None)
    assert view.step.endswith(": offer")
    shown = earshot("phase", "show", phase, "--server", server.address, "--data", server.data)
    assert "Waiting for the helper since" in shown.stdout, shown.stderr
    assert "two never put their data together" in shown.stdout
    assert all(isinstance(member.line.task(), Wait) for member in members[:3])
    helper.trouble = None
    result = told(members)
    assert isinstance(result, Statistics)
    spoken = [label for number in range(PHONES) for label in heard(number)[1]]
    assert counts(result) == (*map(spoken.count, CLASSES), 0, 0, 0, spoken.count(None))
    assert operator.phase(phase).helper is None


@pytest.mark.slow
@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_a_leader_whose_clock_is_an_hour_off_loses_nothing(
    server: ServerProcess, helper: ServedHelper, policy: Policy, tmp_path: Path, skew: float
) -> None:
    """Everybody else's clock is right: it signs by the helper's, and phones sign by its own."""

    def right() -> float:
        return time.time() + skew

    helper.clock = right
    helper.asked.clear()
    logged = server.log.stat().st_size
    operator, phase, members = gathered(server, STATISTICS, policy, tmp_path, right)
    result = told(members)
    assert isinstance(result, Statistics)
    spoken = [label for number in range(PHONES) for label in heard(number)[1]]
    assert counts(result) == (*map(spoken.count, CLASSES), 0, 0, 0, spoken.count(None))
    assert operator.phase(phase).refusals == {}
    assert helper.asked == ["/v1/offer"] * 2 + ["/v1/total"] * 2, "each signed anew, once"
    said = re.findall("helper's clock is (-?[0-9]+) seconds ahead", server.log.read_text()[logged:])
    assert [float(each) for each in said] == [pytest.approx(skew, abs=60)] * 2


@pytest.mark.slow
def test_a_phone_whose_app_names_no_helper_refuses_and_says_so(
    server: ServerProcess, policy: Policy, tmp_path: Path
) -> None:
    operator, phase, members = gathered(server, STATISTICS, policy, tmp_path)
    await_(lambda: operator.phase(phase).step.endswith(": report"), "an offer", 120)
    strangers = {
        "no helper": replace(policy, helpers=()),
        "another leader": replace(policy, leaders=(bytes(32),)),
    }
    for member, unlike in zip(members, strangers.values(), strict=False):
        task = member.line.task()
        member._policy = unlike
        with member.opened() as phone:
            with pytest.raises(RefusedError) as caught:
                phone.answer(task)
            assert caught.value.rule is Rule.UNKNOWN_HELPER
            phone.tell_refusal(task, caught.value, member.line)
            assert phone.ledger.export() == [], "nothing was spent"
        member._policy = policy
    assert operator.phase(phase).refusals == {"unknown_helper": len(strangers)}
    operator.stop(phase)
    for member in members:
        member.line.close()


@pytest.mark.slow
def test_both_operators_are_killed_in_every_step_and_the_total_is_the_undisturbed_one(
    tmp_path: Path,
) -> None:
    """The helper is the real service, in processes of its own, and comes back on its port."""
    folder, kills = tmp_path / "leader", list[str]()
    leader = bytes.fromhex(Credentials.load_or_create(folder, leads=True).leader)
    with (
        helper_running(tmp_path / "helper", leader) as second,
        ServerProcess(
            folder, None, "--helper", second.address, "--helper-key", second.identity.hex()
        ) as first,
    ):
        trusting = without_budget(least_phones=3, leaders=(leader,), helpers=(second.identity,))
        (tmp_path / "phones").mkdir()
        operator, phase, members = gathered(first, STATISTICS, trusting, tmp_path / "phones")
        for number, member in enumerate(members):
            step = operator.phase(phase).step
            if step not in kills:
                kills.append(step)
                (second if len(kills) % 2 else first).kill()
                (second if len(kills) % 2 else first).start()
            if number in (8, 16):
                second.kill()
                first.restart()
                second.start()
            await_(lambda: operator.phase(phase).step.endswith(": report"), "the report", 300)
            member.visit()
        second.kill()  # it is down when its total is asked for, and comes back
        await_(lambda: operator.phase(phase).step.endswith(": total"), "the total's step", 300)
        first.restart()
        second.start()
        result = told(members)
        left = [each.name for each in (second.data / "keys").iterdir() if each.suffix == ".key"]
    assert isinstance(result, Statistics)
    spoken = [label for number in range(PHONES) for label in heard(number)[1]]
    assert counts(result) == (*map(spoken.count, CLASSES), 0, 0, 0, spoken.count(None))
    assert left == [], "no key of a sum is left"
    for member in members:
        assert member.steps() == ["histogram"] * 2, "once in each unit"


CROWD = msgspec.structs.replace(STATISTICS, phones=300)
_THREADS = 6
"""A phone each at a time: more would wait for the same two cores."""


class Killer:
    """Kills something of both operators, again and again, at chance; each comes back."""

    def __init__(self, leader: ServerProcess, helper: HelperProcess, seed: int) -> None:
        self._leader, self._helper = leader, helper
        self._random = random.Random(seed)
        self.killed = list[str]()
        self._order = {
            "leader": leader.restart,
            "driver": lambda: self._kill(leader.drivers()),
            "workers": lambda: self._kill(leader.workers()),
            "database": lambda: self._kill(self._postgres()),
            "helper": self._restart_helper,
        }

    def kill(self, patience: float) -> None:
        """Wait for a while, and kill what chance says, or what it has spared so far."""
        time.sleep(self._random.uniform(0.0, patience))
        spared = [name for name in self._order if name not in self.killed]
        name = self._random.choice(spared or list(self._order))
        self.killed.append(name)
        with suppress(psutil.NoSuchProcess):  # it ends by itself, after another's death
            self._order[name]()

    def _postgres(self) -> list[psutil.Process]:
        try:
            lines = (self._leader.data / "postgresql" / "postmaster.pid").read_text().splitlines()
            postmaster = psutil.Process(int(lines[0]))
        except (FileNotFoundError, psutil.NoSuchProcess):
            return []  # it is about to come back
        return [postmaster, *postmaster.children(recursive=True)]

    def _restart_helper(self) -> None:
        self._helper.kill()
        self._helper.start()

    @staticmethod
    def _kill(processes: list[psutil.Process]) -> None:
        for each in processes:
            each.kill()


@pytest.mark.slow
def test_of_three_hundred_phones_none_is_lost_or_paid_twice_whatever_is_killed_at_chance(
    tmp_path: Path,
) -> None:
    """Leader, driver, workers, database and helper, while phones join, report and hear."""
    folder, seed = tmp_path / "leader", int.from_bytes(os.urandom(4))
    leader = bytes.fromhex(Credentials.load_or_create(folder, leads=True).leader)
    print("seed", seed)  # for whoever sees it fail
    with (
        helper_running(tmp_path / "helper", leader) as second,
        ServerProcess(
            folder, None, "--helper", second.address, "--helper-key", second.identity.hex()
        ) as first,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        policy = without_budget(least_phones=3, leaders=(leader,), helpers=(second.identity,))
        (tmp_path / "phones").mkdir()
        operator = first.operator()
        code = operator.invite(Invite(uses=CROWD.phones)).code
        operator.start(StartPhase(parameters=CROWD, anyway=True))
        members = [
            Member(number, tmp_path / "phones", first.address, policy)
            for number in range(CROWD.phones)
        ]

        def live_all() -> None:
            until = time.monotonic() + 900.0
            list(pool.map(lambda member: member.line.enrol(code), members))
            while waiting := [member for member in members if member.ending is None]:
                assert time.monotonic() < until, f"{len(waiting)} phones wait in vain"
                list(pool.map(visit, waiting))

        def visit(member: Member) -> None:
            with suppress(UnexpectedMessageError):  # it was the last, and has closed the step
                member.visit()

        killer = Killer(first, second, seed)
        lives = threading.Thread(target=live_all)
        lives.start()
        while lives.is_alive():
            killer.kill(1.0 + 0.3 * len(killer.killed))
        lives.join()
        left = [each.name for each in (second.data / "keys").iterdir() if each.suffix == ".key"]
    assert {msgspec.msgpack.encode(member.ending) for member in members} == {
        msgspec.msgpack.encode(members[0].ending)
    }, seed
    result = members[0].ending
    assert isinstance(result, Statistics), (seed, killer.killed)
    spoken = [label for number in range(CROWD.phones) for label in heard(number)[1]]
    assert counts(result) == (*map(spoken.count, CLASSES), 0, 0, 0, spoken.count(None)), seed
    assert left == []
    assert len(set(killer.killed)) == 5, killer.killed
    for member in members:
        member.line.close()
        assert member.steps() == ["histogram"] * 2, seed


@pytest.mark.slow
def test_operators_see_both_keys_and_the_proposal(
    server: ServerProcess, helper: ServedHelper
) -> None:
    there = ("--server", server.address, "--data", server.data)
    (leader,) = helper.leaders
    assert earshot("operator", "keys", *there).stdout == (
        f"leader  {leader.hex()}\nhelper  {helper.key}\n"
    )
    for kind in ([], ["--statistics"]):
        said = earshot("phase", "start", "--phones", "1000", "--dry-run", *kind, *there).stdout
        assert "(--summation two-operators). A phone visits once a sum, not 4 times" in said
    words = ("phase", "start", "--phones", "1000", "--summation", "two-operators", *there)
    seen = earshot(*words, "--dry-run", "--verbose").stdout
    assert "a sum by two operators, one message a phone" in seen
    assert "neighbours" not in seen
