"""The wall page of a sitting in headless Chromium: from a phone's width to a projector of 4K.

With EARSHOT_PICTURES=FOLDER, pictures of it are written there.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support import dashboard_browser
from support import dashboard_records as made
from support.accessibility import check_accessible, check_readable
from support.api_caller import Server, body_of
from support.dashboard_server import application, served
from support.textbook_link import read
from support.unsafe_postgres import UNSAFE

from earshot_protocol.api import AUDIT
from earshot_server.api.app import ApiSettings, create_app
from earshot_server.api.views import Audit
from earshot_server.credentials import Credentials
from earshot_server.processes.embedded import embedded
from earshot_server.records import PhaseRecord
from earshot_server.store.database import Database

expect.set_options(timeout=60_000)
PAGE = "https://phone.example.org/"
EXTREMES = {"the smallest phone": (320, 640), "a projector of 4K": (3840, 2160)}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One with a helper and a page, over a database of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as folder,
        embedded(Path(folder, "postgresql"), UNSAFE) as postgres,
    ):
        database = Database(postgres.url)
        database.migrate()
        credentials = Credentials.load_or_create(Path(folder, "data"), leads=True)
        settings = ApiSettings(database, credentials, helper_key="ab" * 32, phone_page=PAGE)
        yield Server(create_app(settings), credentials)
        database.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(reduced_motion="reduce")
    yield context.new_page()
    context.close()


def check(page: Page, name: str) -> None:
    """Check the wall at every width and in both schemes, and keep its pictures if asked to."""
    folder = os.environ.get("EARSHOT_PICTURES")
    check_accessible(page, name, Path(folder) if folder else None)
    check_readable(page, name)
    for where, (width, height) in EXTREMES.items():
        page.set_viewport_size({"width": width, "height": height})
        overhang = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overhang <= 0, f"{name} on {where}: {overhang} pixels too wide"
        if folder:
            page.screenshot(path=Path(folder) / f"{name} {width}.png".replace(" ", "-"))
    size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)")
    assert size > 100, "a room does not read it"
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_sitting_is_started_shown_and_begun_by_keyboard(page: Page, server: Server) -> None:
    complaints, requested = dashboard_browser.overheard(page)
    with served(server.app) as address:
        dashboard_browser.sign_in(page, address, server.credentials.operator_token)
        page.get_by_role("navigation").get_by_role("link", name="Start a phase").click()
        page.get_by_label("Now, in a sitting").check()
        page.get_by_label("Name").fill("Class 7b")
        page.get_by_label("Phones", exact=True).fill("20")
        page.get_by_label("Phones that are enough").fill("3")
        page.get_by_role("button", name="See what it would do").click()
        expect(
            page.get_by_text("unless its operator allows fewer", exact=False).first
        ).to_be_visible()
        page.get_by_label("start it anyway").check()
        page.get_by_role("button", name="Start the phase").click()
        page.wait_for_url("**/wall")
        expect(page.get_by_role("heading", level=1)).to_have_text("0 of 20 phones are here")
        check(page, "wall")
        wall = page.url
        page.goto(f"{wall}?language=de")
        expect(page.get_by_role("heading", level=1)).to_have_text("0 von 20 Telefonen sind da")
        check(page, "german wall")
        page.goto(f"{wall}?language=en")
        page.goto(wall)

        page.get_by_role("button", name="Show an invitation").press("Enter")
        expect(page.get_by_role("img", name="QR code of the link below")).to_be_visible()
        link = page.locator("pre code").inner_text()
        code = str(read(link.removeprefix(PAGE + "#"))["invitation"])
        check(page, "wall with an invitation")
        for _ in range(3):
            server.phone(code).task()
        # It renews itself, and what it was given once is still there.
        expect(page.get_by_role("heading", level=1)).to_have_text("3 of 20 phones are here")
        assert page.locator("pre code").inner_text() == link
        begin = page.get_by_role("button", name="Begin with those who are here")
        expect(begin).to_be_visible()
        check(page, "wall with enough phones")
        entries = body_of(server.read(AUDIT), Audit).entries
        assert [each.action for each in entries].count("invite") == 1
        asked = [url for url in requested if re.search(r"/wall(\?|$)", url)]
        assert len(asked) >= 3  # the page, the invitation, and what it renewed itself by

        # The phase goes on without this page: it notices, and sends no form again.
        wall = page.url
        phase = re.findall(r"/phases/([0-9a-f]{32})/wall", wall)[0]
        methods: list[str] = []
        page.on("request", lambda each: methods.append(each.method))
        server.order(f"/v1/phases/{phase}/stop")
        expect(page.get_by_role("heading", level=1)).to_have_text("An operator stopped this phase")
        assert page.url == wall
        assert set(methods) == {"GET"}
        assert page.locator("pre code").count() == 0
        check(page, "wall of a stopped phase")
        page.reload()  # has nothing to send again either
        entries = body_of(server.read(AUDIT), Audit).entries
        assert [each.action for each in entries].count("invite") == 1
        page.get_by_role("link", name="All about this phase").click()
        page.get_by_role("link", name="Wall page").click()
        page.wait_for_url("**/wall")
    assert [said for said in complaints if "Failed to load resource" not in said] == []
    assert [url for url in requested if not url.startswith(address + "/")] == []


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(made.running(), id="running"),
        pytest.param(made.published_discovery(60, made.NOW), id="discovered"),
        pytest.param(made.empty_discovery(62, made.NOW), id="nothing", marks=pytest.mark.slow),
        pytest.param(made.too_few(), id="failed", marks=pytest.mark.slow),
    ],
)
def test_a_wall_is_accessible_whatever_it_shows(page: Page, record: PhaseRecord) -> None:
    complaints, requested = dashboard_browser.overheard(page)
    with served(application(made.HandMadeArchive([record]))) as address:
        page.goto(f"{address}/phases/{record.phase.hex()}/wall")
        check(page, f"wall {record.status} {record.phase.hex()[:2]}")
    assert complaints == []
    assert [url for url in requested if not url.startswith(address + "/")] == []
