"""An operator signs in, starts, invites and stops in headless Chromium, against a whole server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support import dashboard_browser
from support.accessibility import check_accessible, check_readable
from support.api_caller import Server, body_of
from support.dashboard_server import served
from support.unsafe_postgres import UNSAFE

from earshot_protocol.api import AUDIT, PHASES
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.api.views import Audit, Phases
from earshot_server.credentials import Credentials
from earshot_server.processes.embedded import embedded
from earshot_server.store.database import Database

expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Database, Path]]:
    """A database, and the folder of the credentials that belong to it."""
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as folder,
        embedded(Path(folder, "postgresql"), UNSAFE) as postgres,
    ):
        database = Database(postgres.url)
        database.migrate()
        yield database, Path(folder, "data")
        database.close()


@pytest.fixture(scope="module")
def server(kept: tuple[Database, Path]) -> Server:
    return Server.over(*kept)


@pytest.fixture(scope="module")
def address(server: Server) -> Iterator[str]:
    with served(server.app) as address:
        yield address


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(reduced_motion="reduce")
    yield context.new_page()
    context.close()


def check(page: Page, name: str) -> None:
    """Check a page at both widths and in both schemes, and keep its pictures if asked to."""
    folder = os.environ.get("EARSHOT_PICTURES")
    check_accessible(page, name, Path(folder) if folder else None)
    check_readable(page, name)
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.slow
def test_an_operator_starts_invites_and_stops(page: Page, server: Server, address: str) -> None:
    complaints, requested = dashboard_browser.overheard(page)
    page.goto(address + "/statistics")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    check(page, "sign in")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("No operator has this token")
    check(page, "wrong token")
    page.get_by_label("Token").fill(server.credentials.operator_token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/statistics")
    expect(page.get_by_role("contentinfo")).to_contain_text("Signed in as operator (admin)")

    page.get_by_role("navigation").get_by_role("link", name="Invite phones").click()
    check(page, "invite")
    page.get_by_label("Phones", exact=True).fill("three")
    page.get_by_role("button", name="See what it would do").click()
    expect(page.get_by_role("alert")).to_contain_text("give a whole number")
    check(page, "mistaken invitation")
    page.get_by_label("Phones", exact=True).fill("3")
    page.get_by_role("button", name="See what it would do").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3 phones may enrol until")
    check(page, "invitation")
    page.get_by_role("button", name="Sign the code").click()
    expect(page.get_by_text("Copy the code now")).to_be_visible()
    check(page, "invited")
    code = page.locator("pre code").inner_text()
    phones = [server.phone(code) for _ in range(3)]
    server.invitation(uses=5)
    page.get_by_role("navigation").get_by_role("link", name="Invite phones").click()
    expect(page.get_by_role("row")).to_have_count(3)
    check(page, "invitations")
    page.get_by_role("link", name="Revoke").click()  # of those that are not used up
    expect(page.get_by_text("0 phones of 5 have enrolled")).to_be_visible()
    check(page, "revoke")
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("revoked")

    page.get_by_role("navigation").get_by_role("link", name="Start a phase").click()
    page.get_by_role("link", name="count contacts").click()
    expect(page.get_by_label("Contacts of a phone")).to_have_value("8")
    check(page, "start statistics")
    page.get_by_role("link", name="find environments").click()
    check(page, "start")
    page.get_by_role("link", name="Deutsch").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Eine Phase starten")
    check(page, "german start")
    page.get_by_role("link", name="English").click()
    page.get_by_label("Name").fill("Week 12")
    page.get_by_label("Phones", exact=True).fill("2")
    page.get_by_label("Budget").fill("two")
    page.get_by_role("button", name="See what it would do").click()
    mistake = page.get_by_role("alert").get_by_role("link", name="Budget")
    expect(page.get_by_label("Budget")).to_have_value("two")
    check(page, "mistaken phase")
    mistake.click()
    expect(page.locator("#epsilon")).to_be_in_viewport()
    page.get_by_label("Budget").fill("2")
    page.get_by_label("Phones", exact=True).fill("10")
    page.get_by_role("button", name="See what it would do").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("10 phones can")
    check(page, "verdict")
    page.get_by_role("button", name="Start the phase").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was started")
    assert body_of(server.read(PHASES), Phases).phases == ()
    check(page, "verdict once more")
    page.get_by_label("start it anyway").check()
    page.get_by_role("button", name="Start the phase").click()
    page.wait_for_url("**/phases/*")
    expect(page.get_by_role("heading", level=1)).to_have_text("0 of 10 phones have joined")
    check(page, "started")
    for phone in phones:
        phone.task()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("3 of 10 phones have joined")

    page.get_by_role("link", name="Stop this phase").click()
    check(page, "stop")
    page.get_by_role("button", name="Stop the phase").click()
    expect(page.get_by_role("alert")).to_contain_text("say why")
    check(page, "stop without a reason")
    page.get_by_label("Reason").fill("too few phones")
    page.get_by_role("button", name="Stop the phase").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("An operator stopped this phase")
    check(page, "stopped")
    entries = body_of(server.read(AUDIT), Audit).entries
    assert [(each.operator, each.action) for each in entries] == [
        ("operator", "stop phase"),
        ("operator", "start phase"),
        ("operator", "revoke invitation"),
        ("operator", "invite"),
        ("operator", "invite"),
    ]
    assert entries[0].detail == "too few phones"

    page.get_by_role("contentinfo").get_by_role("link", name="Operators").click()
    check(page, "operators")
    page.get_by_label("Name").fill("olga")
    page.get_by_role("button", name="Add the operator").click()
    check(page, "token")
    page.get_by_role("link", name="All operators").click()
    page.get_by_role("link", name="olga").click()
    check(page, "operator")

    page.goto(address + "/nothing")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is nothing at this path")
    check(page, "not there")
    page.get_by_role("link", name="All phases").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.goto(address + "/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert [words for words in complaints if "Failed to load resource" not in words] == []
    assert [url for url in requested if not url.startswith(address + "/")] == []


def test_an_operator_chooses_who_adds_up(page: Page, kept: tuple[Database, Path]) -> None:
    database, folder = kept
    credentials = Credentials.load_or_create(folder, leads=True)
    app = create_app(ApiSettings(database, credentials, helper_key="ab" * 32))
    server, complaints = Server(app, credentials), dashboard_browser.overheard(page)[0]
    with served(app) as address:
        dashboard_browser.sign_in(page, address, credentials.operator_token)
        page.goto(address + "/start")
        both = page.get_by_role("group", name="Who adds up")
        expect(both.get_by_label("Two operators")).to_be_checked()
        expect(both).to_contain_text("Proposed, as this server has a helper")
        check(page, "start with a helper")
        page.get_by_label("Name").fill("Week 14")
        page.get_by_label("Phones", exact=True).fill("200")
        page.get_by_role("button", name="See what it would do").click()
        expect(page.get_by_text("these two never put their data together")).to_be_visible()
        check(page, "verdict with a helper")
        page.get_by_role("button", name="Change it").click()
        expect(both.get_by_label("Two operators")).to_be_checked()
        both.get_by_label("This server alone").check()  # by its words, which are the button's
        expect(both.get_by_label("Two operators")).not_to_be_checked()
        page.get_by_role("button", name="See what it would do").click()
        expect(page.get_by_text("they trust this server to follow the protocol")).to_be_visible()
        page.get_by_role("button", name="Change it").click()
        expect(both.get_by_label("This server alone")).to_be_checked()
        both.get_by_label("This server alone").press("ArrowUp")  # without a mouse
        page.get_by_role("button", name="See what it would do").click()
        page.get_by_role("button", name="Start the phase").click()
        page.wait_for_url("**/phases/*")
        expect(page.get_by_text("these two never put their data together")).to_be_visible()
        found = body_of(server.read(PHASES), Phases).phases
    (phase,) = [each for each in found if each.name == "Week 14"]
    assert phase.parameters.summation is SummationName.TWO_OPERATORS
    assert [words for words in complaints if "Failed to load resource" not in words] == []


def test_a_session_that_ends_loses_nothing_that_was_typed(
    chromium: Browser, server: Server, address: str
) -> None:
    token = server.credentials.operator_token
    context = chromium.new_context(java_script_enabled=False)  # all of it works without
    page = context.new_page()
    dashboard_browser.sign_in(page, address, token)
    page.goto(address + "/start")
    page.get_by_label("Name").fill("Week 13")
    context.clear_cookies()
    page.get_by_role("button", name="See what it would do").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You are not signed in")
    with context.expect_page() as opened:
        page.get_by_role("link", name="Sign in, in another tab").click()
    other = opened.value
    other.get_by_label("Token").fill(token)
    other.get_by_role("button", name="Sign in").click()
    other.get_by_role("button", name="Sign out").wait_for()
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("This form is of an earlier session")
    expect(page.get_by_label("Name")).to_have_value("Week 13")
    page.get_by_role("button", name="See what it would do").click()
    expect(page.get_by_text("Not started yet: “Week 13”")).to_be_visible()
    context.close()


def test_pictures_are_not_taken_with_a_wrong_token(
    chromium: Browser, address: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="No operator has this token"):
        dashboard_browser.take_pictures(chromium, address, tmp_path, "wrong")
