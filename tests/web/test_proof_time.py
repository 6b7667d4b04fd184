"""How long a phone in TypeScript takes to prove its vector, in Node and in Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page
from support.dashboard_browser import browser
from support.web_pages import served
from support.web_phone import WebPhone

LONGEST_SECONDS = 0.3
TIMES = """
async ([length, times]) => {
  const { seconds } = await import("/tests/web/proof_time.ts");
  return seconds(length, times);
}
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served() as address, browser() as running:
        page = running.new_page()
        page.goto(address)
        yield page


@pytest.fixture(scope="module")
def web() -> Iterator[WebPhone]:
    with WebPhone() as phone:
        yield phone


@pytest.mark.slow
@pytest.mark.parametrize("length", [640, 2_560])
def test_a_proof_takes_less_than_a_third_of_a_second(
    web: WebPhone, page: Page, length: int
) -> None:
    """Of the processor in Node, the first proof as well; by the clock in Chromium, the fastest."""
    in_node, in_chromium = web.ask("seconds", length, 10), page.evaluate(TIMES, [length, 10])
    assert max(in_node) < LONGEST_SECONDS
    assert min(in_chromium) < LONGEST_SECONDS
