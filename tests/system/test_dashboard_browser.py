"""Every page of the dashboard in headless Chromium: accessible, self-contained, at any width.

With EARSHOT_PICTURES=FOLDER, pictures of them are written there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect
from support import dashboard_browser
from support import dashboard_records as made
from support.accessibility import WIDTHS, check_accessible, check_readable
from support.dashboard_server import PAGES, application, served

expect.set_options(timeout=60_000)  # as soon as it is so, and not five seconds on any machine

PATHS = {
    "overview": "/",
    "statistics": "/statistics",
    "running": f"/phases/{made.name_of(1).hex()}",
    "gathering": f"/phases/{made.name_of(2).hex()}",
    "failed": f"/phases/{made.name_of(3).hex()}",
    "never started": f"/phases/{made.name_of(4).hex()}",
    "learned": f"/phases/{made.name_of(10).hex()}",
    "counted": f"/phases/{made.name_of(30).hex()}",
    "discovered": f"/phases/{made.name_of(60).hex()}",
    "crowded": f"/phases/{made.name_of(50).hex()}",
}
PATHS |= {
    page: path
    for page in PAGES
    if (path := page.replace("<name>", made.name_of(1).hex())) not in PATHS.values()
}
EMPTY_PATHS = {"empty overview": "/", "empty statistics": "/statistics"}
UNKNOWN = "/phases/" + "0" * 32


def full_archive() -> made.HandMadeArchive:
    """Some months, and a phase with more environments, of longer names, than there is room for.

    Two phases have names of the longest length.
    """
    crowded = made.published_learning(50, made.NOW - 200 * made.DAY)
    names = tuple(f"{label} {'abcdefghij' * 6}"[:64] for label in made.LABELS)
    ending = made.result(50, environments=70, labels=names)
    gathering, running, *over = made.some_months()
    name = "Week 12, north: buses, trains and stations of the whole city"
    return made.HandMadeArchive(
        (
            msgspec.structs.replace(gathering, name=name),
            msgspec.structs.replace(running, name="n" * 64),
            msgspec.structs.replace(over[0], name=name),
            *over[1:],
            msgspec.structs.replace(crowded, ending=ending),
            made.published_discovery(60, made.NOW - 210 * made.DAY),
        )
    )


LARGE = (
    "counted", "crowded", "discovered", "empty statistics", "failed",
    "gathering", "learned", "never started", "statistics", "/phases/<name>/wall",
)  # fmt: skip
"""Pages that take seconds to look at; of the others each kind has one, walls in a file beside."""


@pytest.fixture(scope="module")
def archive() -> made.HandMadeArchive:
    return full_archive()


@pytest.fixture(scope="module")
def address(archive: made.HandMadeArchive) -> Iterator[str]:
    with served(application(archive)) as address:
        yield address


@pytest.fixture(scope="module")
def empty_address() -> Iterator[str]:
    with served(application(made.HandMadeArchive((), enrolled=0))) as address:
        yield address


class Watched:
    """A page of which everything that it asks for and complains about is kept."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints, self.requested = dashboard_browser.overheard(page)

    def visit(self, path: str) -> Page:
        response = self.page.goto(self.address + path)
        assert response is not None
        assert response.status == (404 if path == UNKNOWN else 200)
        return self.page


@pytest.fixture
def watched(chromium: Browser, address: str) -> Iterator[Watched]:
    context = chromium.new_context(reduced_motion="reduce")
    yield Watched(context.new_page(), address)
    context.close()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else [])
        for name in (*PATHS, *EMPTY_PATHS, "unknown")
    ],
)
def test_page_is_accessible_and_keeps_to_itself(
    name: str, watched: Watched, empty_address: str
) -> None:
    if name in EMPTY_PATHS:
        watched.address = empty_address
    page = watched.visit({**PATHS, **EMPTY_PATHS, "unknown": UNKNOWN}[name])
    page.wait_for_load_state("networkidle")
    folder = os.environ.get("EARSHOT_PICTURES")
    check_accessible(page, name, Path(folder) if folder else None)
    check_readable(page, name)
    # The browser itself notes the status of a page that is not there.
    complaints = [words for words in watched.complaints if "404" not in words or name != "unknown"]
    assert complaints == []
    strangers = [url for url in watched.requested if not url.startswith(watched.address + "/")]
    assert strangers == []
    assert any(url.endswith("dashboard.css") for url in watched.requested)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["overview", "discovered"])
def test_german_pages_are_accessible_and_their_longer_words_have_room(
    name: str, chromium: Browser, address: str
) -> None:
    context = chromium.new_context(reduced_motion="reduce", locale="de-DE")
    page = context.new_page()
    page.goto(address + PATHS[name])
    assert page.locator("html").get_attribute("lang") == "de"
    folder = os.environ.get("EARSHOT_PICTURES")
    check_accessible(page, f"german {name}", Path(folder) if folder else None)
    check_readable(page, f"german {name}")
    context.close()


def test_the_checker_sees_what_is_wrong(watched: Watched) -> None:
    page = watched.visit("/")
    page.evaluate(
        "document.querySelector('h1').insertAdjacentHTML('afterend',"
        " '<p id=pale>pale</p><img src=\"/static/icon.svg\">')"
    )
    page.evaluate("document.querySelector('#pale').style.color = '#ddd'")
    with pytest.raises(AssertionError, match=r"color-contrast[\s\S]*image-alt"):
        check_accessible(page, "spoiled")


FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  return {
    what: at.tagName === "A" ? at.getAttribute("href") : at.getAttribute("role") || at.tagName,
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""
"""The focused element: where it leads or what it is, whether it shows, whether it stands out."""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["overview", "statistics", "learned"])
def test_keyboard_reaches_every_link_and_every_table_in_order(
    name: str, width: str, watched: Watched
) -> None:
    watched.page.set_viewport_size(
        {"width": WIDTHS[width][0], "height": WIDTHS[width][1]},
    )
    page = watched.visit(PATHS[name])
    expected = page.evaluate(
        "[...document.querySelectorAll('a[href], [role=region], pre')].map(each =>"
        " each.tagName === 'A' ? each.getAttribute('href')"
        " : each.getAttribute('role') || each.tagName)"
    )
    assert len(expected) > 5
    reached = []
    for _ in expected:
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        assert focused["outlined"], focused
        assert focused["seen"], focused
        reached.append(focused["what"])
    assert reached == expected


def test_skip_link_leads_past_the_navigation(watched: Watched) -> None:
    page = watched.visit("/")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).not_to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_tables_scroll_by_keyboard_on_a_phone(watched: Watched) -> None:
    # So high that only the width is missing.
    watched.page.set_viewport_size({"width": 360, "height": 3000})
    page = watched.visit(PATHS["learned"])
    region = page.get_by_role("region", name="Sums of the second vote")
    last = region.get_by_role("columnheader", name="sport", exact=True)
    expect(last).not_to_be_in_viewport()
    region.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    expect(last).to_be_in_viewport()


@pytest.mark.parametrize(
    "name", ["overview", "running", "learned", "discovered", "counted", "failed"]
)
def test_no_column_is_cut_off_on_a_phone(name: str, watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.visit(PATHS[name])
    cut = page.evaluate(
        "[...document.querySelectorAll('table:not(.heat):not(.over-time)')].flatMap(table =>"
        " [...table.querySelectorAll('tbody :is(th, td)')].filter(cell =>"
        " cell.getBoundingClientRect().right > innerWidth - 15).map(cell => cell.textContent))"
    )
    assert cut == []


def test_a_label_stands_beside_its_dot_on_a_phone(watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.visit(PATHS["learned"])
    under = page.evaluate(
        "[...document.querySelectorAll('.named')].filter(each =>"
        " each.children[1].getBoundingClientRect().left <"
        " each.children[0].getBoundingClientRect().right).length"
    )
    assert page.locator(".named").count() == 8
    assert under == 0


def test_the_phases_stay_a_table_to_screen_readers_on_a_phone(watched: Watched) -> None:
    watched.page.set_viewport_size({"width": 360, "height": 740})
    page = watched.visit("/")
    table = page.get_by_role("table", name="phases, newest first")
    expect(table.get_by_role("row")).to_have_count(1 + len(full_archive().records))
    expect(table.get_by_role("rowheader").first).to_contain_text("Statistics phase")
    expect(table.get_by_role("row").nth(1).get_by_role("cell")).to_have_count(6)


def test_without_scripts_the_pages_say_the_same(chromium: Browser, address: str) -> None:
    plain = chromium.new_context(java_script_enabled=False)
    page = plain.new_page()
    page.goto(address + PATHS["running"])
    expect(page.get_by_role("heading", level=1)).to_have_text("131 of 190 phones have answered")
    plain.close()


def test_what_is_under_way_renews_itself_until_it_is_over(chromium: Browser) -> None:
    archive = made.HandMadeArchive((made.running(answered=131),))
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install()
    with served(application(archive)) as address:
        page.goto(address + PATHS["running"])
        title = page.get_by_role("heading", level=1)
        expect(title).to_have_text("131 of 190 phones have answered")
        page.evaluate("window.stayed = true")
        archive.records = (made.running(answered=158),)
        page.clock.run_for(10_000)
        expect(title).to_have_text("158 of 190 phones have answered")
        expect(page.locator(".bar-value").nth(3)).to_have_text("158 of 190")
        assert page.evaluate("window.stayed"), "the page was loaded again"
        archive.records = (made.published_learning(1, made.NOW),)
        page.clock.run_for(10_000)
        expect(title).to_contain_text("found 8 environments")
        assert page.evaluate("document.scripts.length") == 0
        context.close()


def test_what_renews_itself_keeps_its_language_and_chooses_none(chromium: Browser) -> None:
    archive = made.HandMadeArchive((made.running(answered=131),))
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install()
    with served(application(archive)) as address:
        page.goto(f"{address}{PATHS['running']}?language=de")
        context.request.get(f"{address}/?language=en")  # another tab
        archive.records = (made.running(answered=158),)
        page.clock.run_for(10_000)
        title = page.get_by_role("heading", level=1)
        expect(title).to_have_text("Geantwortet: 158 von 190 Telefonen")
        assert [each["value"] for each in context.cookies()] == ["en"]
        context.close()


@pytest.mark.slow
def test_the_pictures_for_the_documents_are_of_the_recommended_route(
    chromium: Browser, address: str, tmp_path: Path
) -> None:
    for file in dashboard_browser.take_pictures(chromium, address, tmp_path):
        assert file.read_bytes().startswith(b"\x89PNG")
        assert file.stat().st_size > 20_000
