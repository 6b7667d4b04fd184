"""A browser phone's store and lock, in pages that are closed and browsers that are killed."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import BrowserContext, Error, Page, Playwright, sync_playwright
from support.browser import executable
from support.dashboard_browser import ARGUMENTS, browser
from support.web_pages import served

KILLS = 8
_MODULE = "const { server, tried } = await import('/tests/web/chromium/visitor.ts');"
_SILENT = f"""
async () => {{
  {_MODULE}
  await new Promise((asked) => {{
    server.before = () => {{
      asked();
      return new Promise((answer) => (window.answer = answer));
    }};
    window.visit = tried("visit");
  }});
}}
"""
"""Visits a server that is asked, and answers only when it is let."""
_COMMIT = """
async () => {
  const { SealedRows } = await import("/client/web/store/sealed_rows.ts");
  const store = new SealedRows();
  let found = null;
  try {
    found = [...(await store.read("")).keys()];
  } catch (error) {
    if (error.name !== "LostStoreError") throw error;
    await store.erase();
  }
  void (async () => {
    for (let number = (found?.length ?? 0) + 1; ; number++) {
      const row = `row/${String(number).padStart(6, "0")}`;
      // Now and then everything is sealed anew, in which a browser may be killed as well.
      await store.commit(new Map([[row, new Uint8Array(600)]]), number % 3 === 0);
      await fetch(`/released/${number}`);
    }
  })();
  return found;
}
"""
"""Commits rows for ever, and after each asks for an address: what a phone would send.

The rows that there were, or null where the store says that it is lost.
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as running:
        yield running


def test_of_two_tabs_one_visits_both_hear_and_a_closed_one_frees_the_phone(address: str) -> None:
    with browser() as running:
        context = running.new_context()
        first, second = context.new_page(), context.new_page()
        for page in (first, second):
            page.goto(address)

        def tries(page: Page, work: str) -> object:
            return page.evaluate(f"async () => {{ {_MODULE} return tried({work!r}); }}")

        assert [tries(second, "visit"), tries(first, "hear")] == ["waiting", 1]
        first.evaluate(_SILENT)
        assert [tries(second, "visit"), tries(second, "hear")] == ["BusyError", 2]
        assert [tries(first, "visit"), tries(first, "recordings")] == ["BusyError", 2]
        first.close()
        assert [tries(second, "visit"), tries(second, "recordings")] == ["waiting", 2]


def test_a_visit_of_a_phone_that_another_tab_erases_ends_and_writes_nothing(address: str) -> None:
    with browser() as running:
        context = running.new_context()
        first, second = context.new_page(), context.new_page()

        def does(page: Page, script: str) -> object:
            return page.evaluate(f"async () => {{ {_MODULE} return {script}; }}")

        for begins_anew, error in ((False, "LostStoreError"), (True, "NotEnrolledError")):
            for page in (first, second):
                page.goto(address)
            assert does(first, "[await tried('hear'), await tried('visit')]") == [1, "waiting"]
            first.evaluate(_SILENT)
            does(second, "tried('erase')")
            if begins_anew:
                assert does(second, "tried('hear')") == 1
            assert does(first, "(window.answer(), window.visit)") == error
            assert does(first, "server.requests.at(-1)") == "/v1/task"
            assert does(second, "tried('recordings')") == int(begins_anew)
            assert does(second, "tried('erase')") is None


class Opened:
    """A browser with a profile that outlives it, and what its page said it had released."""

    def __init__(self, playwright: Playwright, profile: Path, address: str) -> None:
        self._profile = profile
        self.context: BrowserContext = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable(), args=ARGUMENTS
        )
        self.page: Page = self.context.new_page()
        self.released: list[int] = []
        self.page.on("request", lambda request: self._note(request.url))
        self.page.goto(address)

    def _note(self, url: str) -> None:
        found = re.search(r"/released/(\d+)$", url)
        if found:
            self.released.append(int(found[1]))

    def kill(self) -> None:
        """End all of its processes at once."""
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(str(self._profile) in part for part in process.cmdline()):
                    process.kill()
        with contextlib.suppress(Error):
            self.context.close()


@pytest.mark.slow
def test_a_browser_that_is_killed_at_chance_has_all_that_it_released_or_says_it_is_lost(
    address: str, tmp_path: Path
) -> None:
    """Chromium itself removes a database that it takes for damaged."""
    chance, released, all_of_them = random.Random(40), 0, 0
    with sync_playwright() as playwright:
        for _ in range(KILLS):
            opened = Opened(playwright, tmp_path / "profile", address)
            found: list[str] | None = opened.page.evaluate(_COMMIT)
            rows = found or []
            assert rows == [f"row/{number:06}" for number in range(1, len(rows) + 1)]
            assert found is None or len(rows) >= released, "released, and lost"
            opened.page.wait_for_timeout(chance.uniform(100, 1500))
            opened.kill()
            released = max(opened.released, default=len(rows))
            all_of_them += len(opened.released)
    assert all_of_them > KILLS
