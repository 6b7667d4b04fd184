"""A browser for the dashboard, and the pictures of it that the documents show.

    python -m support.dashboard_browser http://127.0.0.1:8080 data/operator.token docs

takes them from a server that runs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, HttpCredentials, Page, sync_playwright

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
OPERATOR = "operator"
"""The user of HTTP Basic; the server looks at the password alone."""


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


def take_pictures(
    running: Browser, address: str, folder: Path, password: str | None = None
) -> tuple[Path, Path]:
    """Write the two pictures of a dashboard: the overview, and its newest result.

    Args:
        running: the browser.
        address: of the server, such as `http://127.0.0.1:8080`.
        folder: where they go.
        password: the operator's token; None if the server asks for none.

    Returns:
        The files.
    """
    credentials: HttpCredentials | None = None
    if password is not None:
        credentials = {"username": OPERATOR, "password": password}
    context = running.new_context(
        viewport={"width": 1200, "height": 1000},
        color_scheme="light",
        device_scale_factor=1.5,
        http_credentials=credentials,
    )
    files = folder / OVERVIEW, folder / PHASE
    try:
        page = context.new_page()
        _open(page, address + "/")
        page.screenshot(path=files[0])
        published = page.locator("tr", has=page.locator(".status.published"))
        published.filter(has_text="Learning phase").first.get_by_role("link").click()
        page.wait_for_url("**/phases/*")
        page.screenshot(path=files[1])
    finally:
        context.close()
    return files


def _open(page: Page, address: str) -> None:
    response = page.goto(address)
    assert response is not None
    assert response.ok, f"{address}: {response.status} {response.status_text}"


if __name__ == "__main__":
    server, token, target = sys.argv[1:]
    with browser() as chromium:
        for written in take_pictures(
            chromium, server.rstrip("/"), Path(target), Path(token).read_text().strip()
        ):
            print(written)
