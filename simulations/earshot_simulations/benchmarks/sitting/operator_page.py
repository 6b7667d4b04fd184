"""The operator's browser: sign in, show an invitation on the wall page, begin the phase."""

from __future__ import annotations

import contextlib
from pathlib import Path

from playwright.async_api import Browser, Error, Page

_PATIENCE, _MOMENT = 60_000.0, 5_000.0
"""Milliseconds to wait for a required and for an optional state of the page."""


class OperatorPage:
    """Wall page of a phase in an operator's browser.

    Args:
        page: Page in which the operator is signed in.
        pictures: Folder for pictures of it.
    """

    def __init__(self, page: Page, pictures: Path) -> None:
        self._page = page
        self._pictures = pictures

    @classmethod
    async def signed_in(
        cls, browser: Browser, address: str, token: str, pictures: Path
    ) -> OperatorPage:
        """Open the dashboard and sign in."""
        context = await browser.new_context(viewport={"width": 1920, "height": 1080}, locale="en")
        context.set_default_timeout(_PATIENCE)
        page = await context.new_page()
        await page.goto(f"{address}/sign-in")
        await page.fill('input[name="token"]', token)
        await page.click("main form button")
        await page.wait_for_url(f"{address}/")
        return cls(page, pictures)

    async def invitation(self, wall: str) -> str:
        """Show an invitation on the wall page at this address, and return its link."""
        await self._page.goto(wall)
        await self._page.click('form[action$="/wall"] button')
        return await self._page.inner_text("pre.code")

    async def begin(self) -> None:
        """Begin the phase with the phones that have joined."""
        await self._page.click('form[action$="/begin"] button')

    async def answering(self) -> None:
        """Show how many phones have answered, unless the step is over too soon."""
        await self._page.reload()  # sooner than its own reload in two seconds
        with contextlib.suppress(Error):
            await self._page.wait_for_selector("progress", timeout=_MOMENT)

    async def over(self) -> None:
        """Wait until the page has reloaded and shows the end of the phase."""
        await self._page.wait_for_selector("main:not([data-every])")

    async def picture(self, name: str) -> None:
        """Take a picture of the wall."""
        await self._page.screenshot(path=self._pictures / name, full_page=True)
