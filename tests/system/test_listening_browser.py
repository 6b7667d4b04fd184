"""The page to listen on in headless Chromium: it plays, by keyboard too, and is accessible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from support import dashboard_browser
from support.accessibility import check_accessible

from earshot_simulations.generation import page as listening_page
from earshot_simulations.generation.page import Listening, PlayedSound


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    seconds = np.arange(8000) / 8000
    tone = (0.1 * np.sin(2 * np.pi * 440 * seconds)).astype(np.float32)
    page = Listening(
        kicker="generated sound",
        headline="Three samples of a generator that is not private.",
        warnings=["Any of these samples may be noise.", "Not private."],
        origin="Trained on sensitive sound without noise.",
        sounds=[
            PlayedSound(f"Sample {each}", tone / each, 8000, "Teachers say: 7")
            for each in (1, 2, 3)
        ],
        facts=[("Fréchet distance", "12.3")],
        unseen=4,
    )
    path = Path(tmp_path_factory.mktemp("page")) / "listen.html"
    listening_page.write(page, path)
    return path.as_uri()


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context()
    page = context.new_page()
    complaints, requested = dashboard_browser.overheard(page)
    page.goto(address)
    yield page
    assert complaints == []
    assert [url for url in requested if not url.startswith("data:")] == [address]
    context.close()


def wait_until(page: Page, expression: str) -> None:
    """As `wait_for_function`, which the page's policy forbids: it evaluates words."""
    for _ in range(3000):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"five minutes without {expression}")


def test_the_page_is_accessible(page: Page) -> None:
    check_accessible(page, "listening")


def test_sounds_load_under_the_pages_own_policy_and_none_plays_by_itself(page: Page) -> None:
    wait_until(page, "[...document.querySelectorAll('audio')].every(a => a.readyState >= 1)")
    found = page.evaluate(
        "[...document.querySelectorAll('audio')].map(a => [a.duration, a.paused, a.error])"
    )
    assert found == [[1, True, None]] * 3
    pictures = page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
    assert pictures == [True] * 3


def test_a_player_is_reached_and_started_by_keyboard(page: Page) -> None:
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "AUDIO":
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Sample 1"
    page.keyboard.press("Space")
    wait_until(page, "document.querySelector('audio').played.length > 0")
    others = page.evaluate("[...document.querySelectorAll('audio')].slice(1).map(a => a.paused)")
    assert others == [True, True]
