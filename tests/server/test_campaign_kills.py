"""A campaign whose driver, web worker or database is killed at every write: all of it or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.api_caller import Server
from support.campaigns import campaign
from support.killed_leader import bereft, killed, lasting_database, moments
from support.kills import in_child
from support.moved_clock import MovedClock
from support.networked import await_

from earshot_protocol.api import CAMPAIGNS
from earshot_server.api.views import StartCampaign
from earshot_server.campaigns.campaign import ExpectedContacts
from earshot_server.campaigns.conduct import CampaignConductor
from earshot_server.campaigns.plan import planned
from earshot_server.campaigns.schedule import PhaseKind
from earshot_server.campaigns.slots import phase_identifier
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.registry import Registry

# What is killed is a fork of this process. A test before these may have imported JAX, which then
# warns of every fork: its threads are not in the fork, where nothing needs them.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called.*JAX:RuntimeWarning"),
]

BEGINS = datetime(2027, 1, 4, tzinfo=UTC)
PLAN = planned(campaign(weeks=5, discovery=None, expected=ExpectedContacts(phones=200)))
DIGEST = bytes.fromhex(PLAN.digest)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A PostgreSQL that keeps what it has committed when it is killed."""
    with lasting_database() as (address, _):
        yield address


def begun(url: str) -> None:
    """A campaign whose first slot is too late and whose second one is due."""
    with closing(Database(url)) as database:
        database.query("TRUNCATE campaigns, campaign_phases, missed_phases, gatherings CASCADE")
        MovedClock(database, BEGINS + timedelta(days=22))
        encode = msgspec.msgpack.encode
        CampaignRows(database).add(DIGEST, encode(PLAN), encode(None), "olga")


def turned(url: str) -> None:
    """One turn of a driver for the campaign."""
    with closing(Database(url)) as database:
        CampaignConductor(database).turn(DIGEST)


def lost(url: str) -> None:
    """The same, which may lose its database."""
    with suppress(DatabaseUnavailableError):
        turned(url)


def found(url: str) -> list[list[str]]:
    """States of all slots, the phases that gather, and those that are noted as missed."""
    with closing(Database(url)) as database:
        conductor = CampaignConductor(database)
        slots = conductor.slots(conductor.one(DIGEST))
        return [
            [slot.state.value for slot in slots],
            [each.phase.hex() for each in Registry(database).gatherings()],
            [str(number) for _, number in sorted(CampaignRows(database).missed(DIGEST))],
        ]


def again(run: Callable[[], object]) -> Any:
    """Run in a process of its own, again until the database is there."""
    results: list[object] = []

    def there() -> bool:
        try:
            results.append(run())
        except DatabaseUnavailableError:
            return False
        return True

    def patiently() -> object:
        await_(there, "the database")
        return results[0]

    return in_child(patiently)[1]


@pytest.mark.parametrize("disturb", [killed, bereft])
def test_a_slot_opens_once_whenever_a_driver_dies(
    url: str, disturb: Callable[[Callable[[], object], int], object]
) -> None:
    again(partial(begun, url))
    passed = again(lambda: moments(partial(turned, url)))
    assert {text.split()[0] for _, _, text in passed} >= {"INSERT", "COMMIT"}
    once = phase_identifier(PLAN.digest, PhaseKind.STATISTICS, 2, 1).hex()
    whole = [["missed", "running", "due", "planned", "planned"], [once], ["1"]]
    nothing = [["missed", "due", "due", "planned", "planned"], [], []]
    seen = []
    for number, *_ in passed:
        again(partial(begun, url))
        died, _ = in_child(partial(disturb, partial(lost, url), number))
        assert died == (disturb is killed)
        left = again(partial(found, url))
        assert left in (whole, nothing)  # never half of it
        seen.append(left == whole)
        for _ in range(2):
            again(partial(turned, url))
            assert again(partial(found, url)) == whole
    assert {*seen} == {True, False}


def emptied(url: str) -> None:
    """No campaign, at a time at which one may start."""
    begun(url)
    with closing(Database(url)) as database:
        database.query("TRUNCATE campaigns CASCADE")
        MovedClock(database, BEGINS)


def ordered(url: str, folder: Path) -> int:
    """An operator starts the campaign."""
    with closing(Database(url)) as database:
        body = StartCampaign(campaign=PLAN.campaign, anyway=True)
        return Server.over(database, folder).order(CAMPAIGNS, body).status_code


def started(url: str) -> list[int]:
    """Campaigns, and entries of the audit log about them."""
    with closing(Database(url)) as database:
        ((campaigns, entries),) = database.query(
            "SELECT (SELECT count(*) FROM campaigns),"
            " (SELECT count(*) FROM audit WHERE action = 'start campaign')"
        )
        return [campaigns, entries]


@pytest.mark.parametrize("disturb", [killed, bereft])
def test_a_campaign_starts_wholly_or_not_at_all(
    url: str, tmp_path: Path, disturb: Callable[[Callable[[], object], int], object]
) -> None:
    run = partial(ordered, url, tmp_path)
    again(partial(emptied, url))
    assert again(run) == 201
    again(partial(emptied, url))
    passed = again(lambda: moments(run))
    for number, *_ in passed:
        again(partial(emptied, url))
        _, before = again(partial(started, url))
        in_child(partial(disturb, run, number))
        campaigns, entries = again(partial(started, url))
        assert campaigns == entries - before
        assert again(run) == (422 if campaigns else 201)
        assert again(partial(started, url)) == [1, before + 1]
