"""Operators stop and resume campaigns on the dashboard; viewers only read."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from support.api_caller import Server, body_of
from support.campaigns import BEGINS, campaign
from support.desk import OperatorsBrowser
from support.moved_clock import MovedClock

from earshot_protocol.api import AUDIT, CAMPAIGNS, OPERATORS
from earshot_server.api.views import (
    Audit,
    CampaignExport,
    CampaignView,
    NewOperator,
    OperatorToken,
    StartCampaign,
)
from earshot_server.campaigns.campaign import ExpectedContacts
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Database
from earshot_server.store.operators import Role


@pytest.fixture
def page(desk: Server) -> str:
    """Path of the page of a campaign that runs."""
    wanted = campaign(
        weeks=6,
        discovery=None,
        labels=("bar", "office"),
        expected=ExpectedContacts(phones=200),
    )
    started = body_of(desk.order(CAMPAIGNS, StartCampaign(campaign=wanted)), CampaignView, 201)
    return f"/campaigns/{started.campaign}"


@pytest.fixture
def browser(desk: Server) -> OperatorsBrowser:
    browser = OperatorsBrowser(desk)
    assert browser.sign_in().status_code == 303
    return browser


def status(desk: Server, page: str) -> str:
    return body_of(desk.read(f"/v1{page}"), CampaignExport).campaign.status


def audited(desk: Server) -> list[tuple[str, str]]:
    entries = body_of(desk.read(AUDIT), Audit).entries
    return [(each.action, each.detail) for each in entries if "campaign" in each.action]


def test_a_phase_that_opened_leads_to_its_campaign_and_back(
    browser: OperatorsBrowser, page: str, own_database: Database, clock: MovedClock
) -> None:
    clock.set(BEGINS + timedelta(days=7))
    assert Driver(own_database, Optics(), 1e9).turn() == 1
    browser.sign_in()  # a session lasts for hours
    shown = browser.get(page).text
    assert "Under way: week 1." in shown
    found = re.search(r'<a href="(/phases/[0-9a-f]{32})">Week 1</a>', shown)
    assert found
    assert f'<a href="{page}">Contacts in the north, 2027</a>' in browser.get(found[1]).text


def test_an_operator_stops_a_campaign_with_a_reason(
    desk: Server, browser: OperatorsBrowser, page: str
) -> None:
    assert f'<a href="{page}/stop">Stop this campaign</a>' in browser.get(page).text
    form = browser.fields(browser.get(f"{page}/stop"))
    assert browser.post(f"{page}/stop", form | {"reason": ""}).status_code == 422
    assert browser.post(f"{page}/stop", {"reason": "no money"}).status_code == 403
    assert status(desk, page) == "running"
    done = browser.post(f"{page}/stop", form | {"reason": "no money"})
    assert (done.status_code, done.location) == (303, page)
    assert status(desk, page) == "stopped"
    assert audited(desk)[0] == ("stop campaign", "no money")
    assert "/stop" not in browser.get(page).text
    assert "This campaign is stopped already" in browser.get(f"{page}/stop").text


def test_an_operator_resumes_a_campaign_that_a_restore_paused(
    desk: Server, browser: OperatorsBrowser, page: str, own_database: Database
) -> None:
    assert "This campaign is not paused" in browser.get(f"{page}/resume").text
    CampaignRows(own_database).restore("the server was restored")
    assert f'<a href="{page}/resume">Resume this campaign</a>' in browser.get(page).text
    form = browser.fields(browser.get(f"{page}/resume"))
    assert browser.post(f"{page}/resume", {"form_key": "old"}).status_code == 403
    assert status(desk, page) == "paused"
    for _ in range(2):  # a second click changes nothing
        assert browser.post(f"{page}/resume", form).location == page
    assert status(desk, page) == "running"
    assert audited(desk) == [
        ("resume campaign", ""),
        ("start campaign", "Contacts in the north, 2027"),
    ]


def test_viewers_see_all_and_stop_nothing(desk: Server, page: str) -> None:
    new = NewOperator(name="vera", role=Role.VIEWER)
    token = body_of(desk.order(OPERATORS, new), OperatorToken, 201).token
    viewer = OperatorsBrowser(desk)
    assert viewer.get(page).location == f"/sign-in?to={page}"
    viewer.sign_in(token)
    for path in ("/campaigns", page):
        assert viewer.get(path).status_code == 200
    assert "/stop" not in viewer.get(page).text
    key = {"form_key": viewer.fields(viewer.get(page))["form_key"], "reason": "spite"}
    for path in ("stop", "resume"):
        assert viewer.get(f"{page}/{path}").status_code == 403
        assert viewer.post(f"{page}/{path}", key).status_code == 403
    assert status(desk, page) == "running"


def test_an_unknown_campaign_has_no_form(browser: OperatorsBrowser) -> None:
    found = browser.get(f"/campaigns/{'0' * 64}/stop")
    assert (found.status_code, "There is no such campaign" in found.text) == (404, True)
