"""The tests of the phone's protocol in a real browser: the same files as in Node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from support.dashboard_browser import browser, overheard
from support.node import TESTS
from support.web_pages import served

FILES = sorted(TESTS.glob("*.test.ts"))
BROKEN = """
import assert from "node:assert/strict";
import { test } from "node:test";
test("no", () => assert.equal(1, 2));
test("none", () => assert.throws(() => 1));
test("yes", () => assert.deepEqual({ a: [1n] }, { a: [1n] }));
test("deep", () => assert.deepEqual({ a: [0] }, { a: [-0] }));
"""
OUTCOMES = """
async (file) => (await import("/tests/web/chromium/test.ts")).outcomes(`/tests/web/${file}`)
"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served({"/tests/web/broken.ts": BROKEN}) as address, browser() as running:
        page = running.new_page()
        page.goto(address)
        yield page


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_its_tests_pass_in_chromium(page: Page, path: Path) -> None:
    complaints, _ = overheard(page)
    found = page.evaluate(OUTCOMES, path.name)
    assert found["failed"] == []
    assert found["ran"] > 0
    assert complaints == []


def test_a_test_that_fails_is_noticed(page: Page) -> None:
    found = page.evaluate(OUTCOMES, "broken.ts")
    assert [failed.partition(":")[0] for failed in found["failed"]] == ["no", "none", "deep"]
