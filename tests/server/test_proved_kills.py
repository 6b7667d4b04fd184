"""Proved phones over HTTP whose operators are killed at every write: one exact total, liars named.

What is killed is a fork of this process. A test before these may have imported JAX, which then
warns of every fork: its threads are not in the fork, where nothing needs them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.api_caller import Server
from support.killed_leader import LEADER, lasting_database
from support.killed_operators import Operators, operating
from support.kills import in_child
from support.liars import told
from support.points import HeardPoints
from support.policies import without_budget
from support.statistics_phase import PARAMETERS, counts

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import Wait
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators.messages import SendReport
from earshot_protocol.wire import Ending, Task
from earshot_server.proofs.engine import fastest
from earshot_server.records import PUBLISHED
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called.*JAX:RuntimeWarning"),
    pytest.mark.filterwarnings(r"ignore:This process .* is multi-threaded.*:DeprecationWarning"),
]

PHONES, CLASSES = 300, PARAMETERS.labels
LIES = (
    "a step too long",
    "the root of p in one entry",
    "1 and a root of −1",
    "another part of the helper",
    "another part of the leader",
    "another part of the helper for signs",
    "a changed seal",
    "a share of another length",
    "a report of another sum",
    "nothing but chance",
)
AT_ONCE = {
    "another part of the leader",
    "a share of another length",
    "a report of another sum",
    "nothing but chance",
}
"""Those that the leader refuses before it keeps them."""
LIARS = {17 + 27 * at: name for at, name in enumerate(LIES)}
COUNT: StatisticsParameters = msgspec.structs.replace(
    PARAMETERS, phones=PHONES, summation=SummationName.TWO_OPERATORS, step_seconds=3600.0
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a PostgreSQL that keeps what it has committed when it is killed."""
    fastest()  # or each fork would load the engine
    with lasting_database() as (address, _):
        yield address


class Member:
    """A phone that has heard as many buses as its number says, up to nine, or lies."""

    def __init__(self, number: int, operators: Operators, policy: Policy) -> None:
        self._lie = LIARS.get(number)
        self.heard = 0 if self._lie else number % 10
        hierarchy = LabelHierarchy.flat(CLASSES)
        store = MemoryStore(np.ones((self.heard, 2), np.float32), [CLASSES[0]] * self.heard)
        self.phone = Phone(store, HeardPoints("points", 2), policy, hierarchy=hierarchy)
        self.line = HttpTransport(
            operators.address("web"),
            Ed25519PrivateKey.generate(),
            tries=1000,
            pause=lambda seconds: time.sleep(min(seconds, 0.02)),
        )
        self.said = ""

    def visit(self) -> Task:
        """Do what is to be done; return the task."""
        task = self.line.task()
        opening = task.opening if isinstance(task, SumPartTask) else None
        if self._lie and isinstance(opening, SendReport) and opening.offer is not None:
            offer = opening.offer.offer
            for lie in (self._lie, "a changed seal"):  # if the first one is refused at once
                report = told(offer, opening.index, lie)
                assert report is not None
                try:
                    self.line.send(report)
                except MalformedMessageError as error:
                    self.said = str(error)
                else:
                    break
        elif not isinstance(task, Wait):
            answer = self.phone.answer(task)
            if answer is not None:
                self.line.send(answer)
        return task


def played(url: str, folder: Path) -> tuple[Operators, list[Member], Ending]:
    """Play a phase from the enrolment of its phones to its result."""
    with operating(url, folder) as operators:
        stage = operators.stage

        def gathering() -> list[str]:
            database = Database(url)
            phase = bytes(16)
            Registry(database).gather(phase, COUNT, 2, database.now() + 3600.0)
            code = Server.over(database, folder).invitation(PHONES)
            database.close()
            return [phase.hex(), code]

        _, (phase, code) = in_child(gathering)
        policy = without_budget(
            least_phones=3,
            leaders=(LEADER.public_key().public_bytes_raw(),),
            helpers=(stage.helper,),
        )
        members = [Member(number, operators, policy) for number in range(PHONES)]
        for member in members:
            member.line.enrol(code)
            assert isinstance(member.line.task(), Wait)
        operators.drive(phase, "offer", "report")
        operators.drive(phase, "report")
        for member in members:
            assert isinstance(member.visit(), SumPartTask)
        operators.drive(phase, "total", PUBLISHED)
        operators.drive(phase, PUBLISHED)
        endings = {msgspec.msgpack.encode(ending): ending for ending in endings_of(members)}
        ((_, ending),) = endings.items()
        seen = stage.seen(phase)
        assert seen.steps == [[1, 1], [PHONES, PHONES], [1, 1]]
        assert seen.left == 0, "reports and tasks are erased"
        assert stage.keys() == []
        for member in members:
            member.line.close()
        return operators, members, ending


def endings_of(members: list[Member]) -> Iterator[Ending]:
    for member in members:
        task = member.visit()
        assert isinstance(task, Ending)
        yield task


def test_killed_at_every_write_operators_give_the_total_of_plain_addition(
    url: str, tmp_path: Path
) -> None:
    operators, members, ending = played(url, tmp_path)
    assert isinstance(ending, Statistics)
    assert counts(ending) == (sum(member.heard for member in members), 0, 0, 0, 0)
    assert ending.phones == PHONES - len(LIARS)
    log = (tmp_path / "driver.log").read_text()
    named = set(map(int, re.findall(r"left out: phone (\d+): the helper cannot", log)))
    assert named == set(LIARS)
    assert {LIARS[number] for number in LIARS if members[number].said} == AT_ONCE
    for number, member in enumerate(members):
        assert f"phone {number}: " in member.said or not member.said
        steps = [each["step"] for each in member.phone.ledger.export()]
        assert steps == ([] if number in LIARS else ["histogram"] * 2), number
    deaths = {name: operators.deaths.of(name) for name in ("web", "driver", "helper")}
    print("deaths", deaths)
    assert deaths["web"] >= 25, deaths
    assert deaths["driver"] >= 50, deaths
    assert deaths["helper"] >= 35, deaths
