"""A browser for whoever looks at pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support import dashboard_browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with dashboard_browser.browser() as running:
        yield running
