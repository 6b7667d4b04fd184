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
_HOLD = """
async () => {
  const { alone } = await import("/client/web/store/locks.ts");
  return new Promise((resolve) => {
    void alone("earshot-phone", () => {
      resolve("held");
      return new Promise(() => {});
    });
  });
}
"""
_TRY = """
async () => {
  const { alone } = await import("/client/web/store/locks.ts");
  try {
    return await alone("earshot-phone", async () => "worked");
  } catch (error) {
    return error.name;
  }
}
"""
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


def test_of_two_tabs_one_works_and_a_closed_one_frees_the_phone(address: str) -> None:
    with browser() as running:
        context = running.new_context()
        first, second = context.new_page(), context.new_page()
        for page in (first, second):
            page.goto(address)
        assert second.evaluate(_TRY) == "worked"
        assert first.evaluate(_HOLD) == "held"
        assert second.evaluate(_TRY) == "BusyError"
        first.close()
        assert second.evaluate(_TRY) == "worked"


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
