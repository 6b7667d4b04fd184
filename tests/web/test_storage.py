"""A browser phone whose storage is full, or is cleared while its page is open: errors by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page
from support.dashboard_browser import browser
from support.web_pages import served

UNAVAILABLE, LOST = "StoreUnavailableError", "LostStoreError"
SPACE = 256 * 2**10
"""Bytes that a browser keeps for a page: few enough to be filled."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


class Visitor:
    """A page with a phone that has heard twice and is enrolled; its server has a task now.

    Args:
        running: the browser.
        address: of the page.
        space: bytes that the browser keeps for the page, or None for as many as usual.
    """

    def __init__(self, running: Browser, address: str, space: int | None = None) -> None:
        self._address = address
        self._page: Page = running.new_context().new_page()
        self._browser: CDPSession = self._page.context.new_cdp_session(self._page)
        self._page.goto(address)
        # From the beginning: Chromium looks at it now and then, and counts in between.
        self.limit(space)
        assert [self.tries(work) for work in ("hear", "hear", "visit")] == [1, 2, "waiting"]
        self.page("server.tasks.push(...tasks)")

    def page(self, script: str) -> Any:
        """What a script gives, in a page that has the phone and its server."""
        module = "const { phone, server, tasks, tried } = await import"
        return self._page.evaluate(
            f"""async () => {{
              {module}("/tests/web/chromium/visitor.ts");
              return {script};
            }}"""
        )

    def tries(self, work: str) -> Any:
        return self.page(f"tried({work!r})")

    def fill(self) -> int:
        """Hear until there is no space; the number of recordings that are kept."""
        kept = next(kept for kept in range(1000) if self.tries("hear") == UNAVAILABLE)
        recordings: int = self.tries("recordings")
        assert recordings == 2 + kept
        return recordings

    def has(self) -> list[Any]:
        """Recordings and entries of the ledger, and answers at the server."""
        return [*map(self.tries, ("recordings", "ledger")), self.page("server.answers.length")]

    def reload(self) -> None:
        self._page.reload()

    def limit(self, space: int | None) -> None:
        more = {} if space is None else {"quotaSize": space}
        self._browser.send("Storage.overrideQuotaForOrigin", {"origin": self._address, **more})

    def clear(self, kinds: str) -> None:
        told = {"origin": self._address, "storageTypes": kinds}
        self._browser.send("Storage.clearDataForOrigin", told)

    def close(self) -> None:
        self._page.context.close()


@pytest.fixture
def visitor(running: Browser, address: str) -> Iterator[Visitor]:
    made = Visitor(running, address)
    yield made
    made.close()


@pytest.fixture
def narrow(running: Browser, address: str) -> Iterator[Visitor]:
    made = Visitor(running, address, SPACE)
    yield made
    made.close()


def test_a_full_disk_is_named_and_nothing_leaves_that_the_ledger_lacks(narrow: Visitor) -> None:
    kept = narrow.fill()
    for work in ("visit", "hear", "forget", "visit"):
        assert narrow.tries(work) == UNAVAILABLE, work
        assert narrow.has() == [kept, 0, 0]
    narrow.reload()  # with a server of its own
    assert narrow.has() == [kept, 0, 0]
    narrow.page("server.tasks.push(...tasks)")
    assert narrow.tries("visit") == UNAVAILABLE
    assert narrow.has() == [kept, 0, 0]
    narrow.limit(None)
    assert narrow.tries("visit") == "answered"
    assert narrow.has() == [kept, 2, 1]
    assert narrow.tries("forget") is None
    narrow.reload()
    assert narrow.has() == [kept - 1, 2, 0]


def test_who_wants_to_erase_needs_no_space_for_it(narrow: Visitor) -> None:
    narrow.fill()
    narrow.limit(1)
    assert narrow.tries("erase") is None
    assert narrow.has() == [0, 0, 0]
    narrow.limit(None)
    narrow.reload()
    assert narrow.has() == [0, 0, 0]


@pytest.mark.parametrize("kinds", ["indexeddb", "all"])
def test_storage_that_is_cleared_under_an_open_page_is_lost_by_name(
    visitor: Visitor, kinds: str
) -> None:
    assert visitor.tries("visit") == "answered"
    visitor.clear(kinds)
    for work in ("visit", "hear", "forget", "ledger", "recordings", "visit"):
        assert visitor.tries(work) == LOST, work
    assert visitor.page("server.answers.length") == 1
    assert visitor.page("server.requests.at(-1)") == "/v1/answer"
    visitor.reload()
    # A page that is opened later sees that something is missing if the file of its key is there.
    assert visitor.tries("recordings") == (LOST if kinds == "indexeddb" else 0)
    assert visitor.tries("erase") is None
    assert [visitor.tries(work) for work in ("hear", "visit")] == [1, "waiting"]
    assert visitor.has() == [1, 0, 0]


@pytest.mark.parametrize("kinds", ["indexeddb", "all"])
def test_storage_that_is_cleared_during_a_visit_lets_nothing_out(
    visitor: Visitor, kinds: str
) -> None:
    visitor.page("(server.before = () => new Promise((go) => (window.go = go)), null)")
    visitor.page("(window.visit = tried('visit'), null)")
    visitor.page("new Promise((asks) => setInterval(() => window.go && asks(null), 10))")
    visitor.clear(kinds)
    visitor.page("(server.before = () => {}, go())")
    assert visitor.page("visit") == LOST
    assert visitor.page("server.answers.length") == 0
    assert visitor.tries("visit") == LOST
    assert visitor.tries("erase") is None
    assert visitor.has() == [0, 0, 0]
