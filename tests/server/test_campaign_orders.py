"""What may be started as a campaign, who may, and what becomes of it, by API and by command."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.api_caller import Server, body_of, problem_of
from support.campaigns import BEGINS, campaign
from support.desk import OperatorsBrowser
from support.moved_clock import MovedClock

from earshot_protocol.api import AUDIT, CAMPAIGNS, OPERATORS
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.api.views import (
    CampaignExport,
    CampaignView,
    CampaignViews,
    NewOperator,
    OperatorToken,
    StartCampaign,
)
from earshot_server.campaigns.campaign import Campaign, ExpectedContacts, SumOptions
from earshot_server.discovery.optics import Optics
from earshot_server.phases.set_back import SET_BACK, end_if_set_back
from earshot_server.processes.driver import Driver
from earshot_server.records import CampaignState
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Database
from earshot_server.store.operators import Role
from earshot_server.store.registry import Registry

DAY = timedelta(days=1)


def short(**changes: Any) -> Campaign:
    """A campaign of six weeks over two places."""
    usual: dict[str, Any] = {
        "weeks": 6,
        "discovery": None,
        "labels": ("bar", "office"),
        "expected": ExpectedContacts(phones=200),
    }
    return campaign(**(usual | changes))


def started(desk: Server, wanted: Campaign, *, anyway: bool = False) -> CampaignView:
    body = StartCampaign(campaign=wanted, anyway=anyway)
    return body_of(desk.order(CAMPAIGNS, body), CampaignView, 201)


def refused(desk: Server, wanted: Campaign, *, anyway: bool = False) -> str:
    """Why it is not started."""
    body = StartCampaign(campaign=wanted, anyway=anyway)
    return problem_of(desk.order(CAMPAIGNS, body), 422, "invalid-parameters").detail


def test_a_campaign_is_started_seen_and_stopped(
    desk: Server, own_database: Database, clock: MovedClock
) -> None:
    view = started(desk, short())
    assert (view.status, view.weeks, view.states) == ("running", 6, {"planned": 6})
    assert view.next == BEGINS + 7 * DAY
    clock.set(BEGINS + 7 * DAY)
    assert Driver(own_database, Optics(), 1e9).turn() == 1
    one = f"{CAMPAIGNS}/{view.campaign}"
    found = body_of(desk.read(one), CampaignExport)
    assert found.plan.digest == view.campaign
    assert found.slots[0].state == "running"
    assert body_of(desk.read(CAMPAIGNS), CampaignViews).campaigns == (found.campaign,)
    for _ in range(2):
        stopped = body_of(desk.order(f"{one}/stop"), CampaignView)
        assert (stopped.status, stopped.next) == ("stopped", None)
        assert stopped.states == {"failed": 1, "stopped": 5}
    assert Registry(own_database).gatherings() == ()
    assert "it was stopped, for good" in refused(desk, short())
    entries = json.loads(desk.read(AUDIT).data)["entries"]
    assert [each["action"] for each in entries[:2]] == ["stop campaign", "start campaign"]
    problem_of(desk.read(f"{CAMPAIGNS}/{bytes(32).hex()}"), 404, "unknown-campaign")
    problem_of(desk.order(f"{one}/resume"), 409, "unexpected")


def test_viewers_read_and_start_nothing(desk: Server) -> None:
    view = started(desk, short())
    new = NewOperator(name="vera", role=Role.VIEWER)
    token = body_of(desk.order(OPERATORS, new), OperatorToken, 201).token
    client, bearer = desk.app.test_client(), {"Authorization": f"Bearer {token}"}
    one = f"{CAMPAIGNS}/{view.campaign}"
    for path in (CAMPAIGNS, one):
        assert client.get(path, headers=bearer).status_code == 200
        assert client.get(path).status_code == 401
    for path in (CAMPAIGNS, f"{one}/stop", f"{one}/resume"):
        problem_of(client.post(path, headers=bearer), 403, "role")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"begins": date(2026, 12, 13)}, "the first phase could open until 2027-01-03"),
        ({"map": "ab" * 16}, "must be a phase of this server that has published"),
        (
            {"sum": SumOptions(summation=SummationName.TWO_OPERATORS)},
            "this server has no helper",
        ),
        ({"follows": short(begins=date(2026, 6, 1))}, "has run no campaign with the digest"),
        ({"weeks": 60}, "weeks=60"),
        ({"labels": ("bar", "bar")}, "labels repeat"),
        ({"choices": (("bar",),)}, "choices for 1 of 2 labels"),
        ({"follows": short(begins=date(2026, 6, 1), weeks=60)}, "weeks=60"),
    ],
)
def test_what_cannot_run_here_is_refused_by_name(
    desk: Server, changes: dict[str, Any], why: str
) -> None:
    assert why in refused(desk, short(**changes), anyway=True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cohorts": ("north",)}, "cohort north has no phones"),
        ({"expected": ExpectedContacts(phones=50)}, "phones=50"),
    ],
)
def test_what_would_not_go_as_planned_is_started_anyway(
    desk: Server, changes: dict[str, Any], why: str
) -> None:
    assert why in refused(desk, short(**changes))
    assert started(desk, short(**changes), anyway=True).status == "running"


def test_the_past_is_refused_beyond_what_is_made_good(desk: Server) -> None:
    assert started(desk, short(begins=date(2026, 12, 15))).next == datetime(
        2026, 12, 22, tzinfo=UTC
    )


def test_campaigns_that_count_the_same_contacts_are_refused(
    desk: Server, own_database: Database
) -> None:
    for cohort in ("north", "south"):
        Registry(own_database).enrol(cohort.encode().ljust(32), bytes(16), 9, cohort)
    view = started(desk, short(cohorts=("north",)))
    edited = refused(desk, short(cohorts=("north",), weeks=7), anyway=True)
    assert view.campaign[:12] in edited
    assert "a file that was edited since is another campaign" in edited
    assert "from 2027-01-04 to 2027-02-15" in refused(desk, short(name="All"), anyway=True)
    assert started(desk, short(cohorts=("south",))).status == "running"
    after = short(cohorts=("north",), begins=date(2027, 2, 15))
    assert "is not in this plan's ε" in refused(desk, after)
    assert started(desk, after, anyway=True).status == "running"
    assert "it runs" in refused(desk, after)


def test_a_campaign_takes_over_from_another(
    desk: Server, own_database: Database, clock: MovedClock
) -> None:
    before = short()
    first = started(desk, before)
    follows = short(name="New labels", begins=date(2027, 1, 18), follows=before)
    taking = started(desk, follows)
    old = f"{CAMPAIGNS}/{first.campaign}"
    view = body_of(desk.read(old), CampaignExport).campaign
    assert (view.ends, view.states) == (date(2027, 1, 18), {"planned": 2, "stopped": 4})
    third = short(name="Other", begins=date(2027, 1, 25), follows=before)
    assert "takes over from the campaign “Contacts" in refused(desk, third)
    body_of(desk.order(f"{CAMPAIGNS}/{taking.campaign}/stop"), CampaignView)
    view = body_of(desk.read(old), CampaignExport).campaign
    assert (view.ends, view.states) == (date(2027, 2, 15), {"planned": 6})
    again = started(desk, short(name="Again", begins=date(2027, 1, 18), follows=before))
    clock.set(BEGINS + 25 * DAY)
    driver = Driver(own_database, Optics(), 1e9)
    assert driver.turn() == 1  # the old one's second week: the first is too late
    body_of(desk.order(f"{CAMPAIGNS}/{again.campaign}/stop"), CampaignView)
    assert body_of(desk.read(old), CampaignExport).campaign.ends == date(2027, 1, 18)


def test_a_long_chain_of_campaigns_is_refused(desk: Server) -> None:
    last = short(weeks=1, begins=date(2020, 1, 1))
    for day in range(1, 70):
        last = short(weeks=1, begins=date(2020, 1, 1) + day * DAY, follows=last)
    assert "follows: 69 campaigns, one after another; at most 60" in refused(desk, last)


@pytest.mark.parametrize("stops", [True, False])
def test_days_that_were_counted_are_not_counted_again(
    desk: Server, own_database: Database, clock: MovedClock, stops: bool
) -> None:
    """Phones would send zeros for contacts that they have marked."""
    before = short()
    first = started(desk, before)
    clock.set(BEGINS + 7 * DAY)
    assert Driver(own_database, Optics(), 1e9).turn() == 1
    if stops:
        CampaignRows(own_database).change(bytes.fromhex(first.campaign), CampaignState.STOPPED)
    again = short(name="Again", begins=date(2027, 1, 10), follows=before)
    why = refused(desk, again, anyway=True)
    assert "from 2027-01-04 to 2027-01-11, and none counts twice; begin on 2027-01-11" in why
    later = short(name="Again", begins=date(2027, 1, 11), follows=before)
    assert started(desk, later).status == "running"


def test_days_whose_gathering_was_stopped_may_be_counted_by_another(
    desk: Server, own_database: Database, clock: MovedClock
) -> None:
    first = started(desk, short())
    clock.set(BEGINS + 7 * DAY)
    assert Driver(own_database, Optics(), 1e9).turn() == 1
    body_of(desk.order(f"{CAMPAIGNS}/{first.campaign}/stop"), CampaignView)
    assert started(desk, short(name="Again"), anyway=True).status == "running"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE campaigns SET plan = 'no plan' WHERE campaign = %s",
        "UPDATE campaigns SET discovery = '' WHERE campaign = %s",
        "UPDATE campaigns c SET plan = o.plan FROM campaigns o"
        " WHERE c.campaign = %s AND o.campaign <> c.campaign",
    ],
)
def test_a_damaged_campaign_is_named_and_the_others_go_on(
    desk: Server, own_database: Database, clock: MovedClock, damage: str
) -> None:
    other = started(desk, short(name="Other", begins=date(2027, 3, 1)))
    view = started(desk, short(), anyway=True)
    own_database.query(damage, (bytes.fromhex(view.campaign),))
    listed = body_of(desk.read(CAMPAIGNS), CampaignViews)
    assert listed.campaigns == (other,)
    assert [(each.campaign, each.operator) for each in listed.damaged] == [
        (view.campaign, view.operator)
    ]
    one = f"{CAMPAIGNS}/{view.campaign}"
    for response in (desk.read(one), desk.order(f"{one}/stop")):
        said = problem_of(response, 409, "damaged-campaign").detail
        assert view.campaign in said
        assert "is damaged in the database" in said
    assert "it runs" in refused(desk, short(), anyway=True)
    told = f"campaign {view.campaign[:12]} is damaged in the database: it may have counted"
    assert told in refused(desk, short(name="Third", begins=date(2029, 1, 1)))
    clock.set(datetime(2027, 3, 8, tzinfo=UTC))
    assert Driver(own_database, Optics(), 1e9).turn() == 1
    export = body_of(desk.read(f"{CAMPAIGNS}/{other.campaign}"), CampaignExport)
    assert export.slots[0].state == "running"
    browser = OperatorsBrowser(desk)
    browser.sign_in()
    page = browser.get(f"/campaigns/{view.campaign}")
    assert page.status_code == 409
    assert "<h1>This campaign is damaged</h1>" in page.text
    own_database.query("UPDATE campaigns SET state = 'stopped'")
    assert told not in refused(desk, short(name="Third", cohorts=("west",)))


def test_a_restore_pauses_a_campaign_until_it_is_resumed(
    desk: Server, own_database: Database, clock: MovedClock, tmp_path: Path
) -> None:
    view = started(desk, short(cohorts=("north",)), anyway=True)
    other = started(desk, short(name="Other", begins=date(2028, 6, 5)), anyway=True)
    body_of(desk.order(f"{CAMPAIGNS}/{other.campaign}/stop"), CampaignView)
    driver = Driver(own_database, Optics(), 1e9)
    clock.set(BEGINS + 7 * DAY)
    assert driver.turn() == 1
    clock.set(BEGINS + 17 * DAY)
    (tmp_path / SET_BACK).touch()
    assert end_if_set_back(own_database, tmp_path) == 1
    one = f"{CAMPAIGNS}/{view.campaign}"
    assert driver.turn() == 0
    found = body_of(desk.read(one), CampaignExport)
    assert found.campaign.status == "paused"
    assert found.campaign.reason == "restored from a copy of its database"
    assert found.campaign.states == {"failed": 1, "missed": 1, "planned": 4}
    assert "after the backup" in found.slots[1].reason
    assert "is paused" in refused(desk, short(cohorts=("north",)))
    assert body_of(desk.order(f"{one}/resume"), CampaignView).status == "running"
    # One that was started after the backup may have run before, too.
    again = started(desk, short(name="Again", cohorts=("south",)), anyway=True)
    slots = body_of(desk.read(f"{CAMPAIGNS}/{again.campaign}"), CampaignExport).slots
    assert [slot.state.value for slot in slots[:3]] == ["missed", "missed", "planned"]
    assert "after the backup" in slots[0].reason
    clock.set(BEGINS + 21 * DAY)
    assert driver.turn() == 2
    rows = CampaignRows(own_database)
    assert {row.state for row in rows.all()} == {"running", "stopped"}


def test_a_campaign_survives_its_journey(desk: Server) -> None:
    """Everything that a plan or a file may say comes back from JSON as it was."""
    view = started(desk, short(choices=(("bar", "pub"), ("office",))), anyway=True)
    found = body_of(desk.read(f"{CAMPAIGNS}/{view.campaign}"), CampaignExport)
    encoded = msgspec.json.encode(found)
    assert msgspec.json.encode(msgspec.json.decode(encoded, type=CampaignExport)) == encoded
