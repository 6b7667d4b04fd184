"""The site as `make docs` builds it: strict, self-contained, and accessible at any width."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from support.accessibility import check_accessible
from support.dashboard_browser import overheard
from support.listening import answering

ROOT = Path(__file__).parents[2]
SITE = ROOT / "out" / "site"
PAGES = {
    "landing": "docs/site/index.html",
    "guide": "docs/simulating.html",
    "python": "docs/site/python.html",
    "typescript": "docs/site/typescript.html",
    "http": "docs/site/http.html",
    "gallery": "docs/gallery/index.html",
    "example": "docs/gallery/first_phase.html",
}

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *words: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site, built strictly: a warning or a broken link fails."""
    subprocess.run(["make", "docs"], cwd=ROOT, check=True, timeout=1800)  # noqa: S607
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=os.fspath(SITE))
    )
    with answering(server):
        yield f"http://127.0.0.1:{server.server_port}/"


def test_every_example_is_a_page_with_a_picture(address: str) -> None:
    for example in (ROOT / "docs" / "examples").glob("*.py"):
        page = (SITE / "docs" / "gallery" / f"{example.stem}.html").read_text("utf-8")
        assert f"sphx_glr_{example.stem}_001.png" in page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_asks_nobody_else(
    name: str, address: str, chromium: Browser
) -> None:
    pictures = os.environ.get("EARSHOT_PICTURES")
    page = chromium.new_page()
    complaints, requested = overheard(page)
    page.goto(address + PAGES[name])
    check_accessible(page, name, Path(pictures) if pictures else None)
    assert not complaints
    assert all(each.startswith((address, "data:")) for each in requested)


def test_the_root_leads_to_the_landing_page_and_search_finds(
    address: str, chromium: Browser
) -> None:
    page = chromium.new_page()
    page.goto(address)
    page.wait_for_url("**/docs/site/index.html")
    for reader in ("Simulate", "Embed", "Serve", "Understand"):
        assert page.get_by_role("heading", level=2).filter(has_text=reader).first.is_visible()
    page.goto(f"{address}search.html?q=prototype")
    page.get_by_role("link", name="Simulating").first.wait_for()
