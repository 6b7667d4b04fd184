"""A browser for the dashboard, and the pictures of it that `support.dashboard_phase` takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from support.browser import executable as browser_path

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--process-per-site",
    "--disable-features=SpareRendererForSitePerProcess",
]
OVERVIEW, PHASE = "dashboard-overview.png", "dashboard-phase.png"


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = browser_path()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield running
        finally:
            running.close()


def overheard(page: Page) -> tuple[list[str], list[str]]:
    """Return lists of what a page will complain about, and of what it will request."""
    complaints: list[str] = []
    requested: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requested.append(request.url))
    return complaints, requested


def sign_in(page: Page, address: str, token: str) -> None:
    """Open a dashboard and give the operator's token."""
    page.goto(address + "/")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    mistake = page.get_by_role("alert")
    assert mistake.count() == 0, mistake.inner_text()


def take_pictures(
    running: Browser, address: str, folder: Path, token: str | None = None
) -> tuple[Path, Path]:
    """Write the two pictures of a dashboard: the overview, and its newest found environments.

    Args:
        running: the browser.
        address: of the server, such as `http://127.0.0.1:8080`.
        folder: where they go.
        token: the operator's; None if the server asks for none.

    Returns:
        The files.
    """
    context = running.new_context(
        viewport={"width": 1200, "height": 1000}, color_scheme="light", device_scale_factor=1.5
    )
    files = folder / OVERVIEW, folder / PHASE
    try:
        page = context.new_page()
        if token is None:
            page.goto(address + "/")
        else:
            sign_in(page, address, token)
        page.screenshot(path=files[0])
        published = page.locator("tr", has=page.locator(".status.published"))
        published.filter(has_text="Discovery phase").first.get_by_role("link").click()
        page.wait_for_url("**/phases/*")
        page.set_viewport_size({"width": 1200, "height": 1900})  # as far as the map
        page.screenshot(path=files[1])
    finally:
        context.close()
    return files
