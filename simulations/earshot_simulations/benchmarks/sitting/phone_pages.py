"""Pages of phones, used as people use them: join, listen, label the place, take part."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, Error, Page

from earshot_protocol.progress import Progress
from earshot_simulations.benchmarks.sitting.python_phones import RECORDINGS

_AT_ONCE = 4
"""Pages that are opened and used at the same time."""
_PATIENCE = 120_000.0
"""Milliseconds to wait for any state of a page."""
_WIDTH = 390
_IDLE = "body:not([aria-busy])"
"""Selector of a page that is ready for the next click."""


class PhonePage(NamedTuple):
    """A page that takes part.

    Attributes:
        place: Name of the place that it hears.
        page: The page.
    """

    place: str
    page: Page


class OpenedPages(NamedTuple):
    """Pages of a sitting.

    Attributes:
        pages: Pages that take part.
        failures: Reasons why other pages do not.
    """

    pages: tuple[PhonePage, ...]
    failures: tuple[str, ...]


async def opened(
    by_place: Mapping[str, Browser],
    count: int,
    link: str,
    progress: Progress,
    pictures: Path,
) -> OpenedPages:
    """Open pages by an invitation's link, at each place in turn, and let each take part.

    Args:
        by_place: Browser of each place.
        count: Pages in all.
        link: Link of the invitation.
        progress: Callback that receives the number of pages done, failed ones included.
        pictures: Folder for a picture of the first page after it has heard something.
    """
    slots, places = asyncio.Semaphore(_AT_ONCE), list(by_place)
    done: list[PhonePage] = []
    failures: list[str] = []

    async def one(number: int) -> None:
        place = places[number % len(places)]
        async with slots:
            try:
                page = await _joined(by_place[place], link)
                for heard in range(1, RECORDINGS + 1):
                    await _named(page, place, heard, pictures if number == 0 else None)
                await _taking_part(page)
            except Error as error:
                failures.append(f"page {number} at {place}: {str(error).splitlines()[0]}")
            else:
                done.append(PhonePage(place, page))
            progress("pages", len(done) + len(failures), count)

    await asyncio.gather(*map(one, range(count)))
    return OpenedPages(tuple(done), tuple(failures))


async def _joined(browser: Browser, link: str) -> Page:
    """Open a page as a new phone, and accept the invitation."""
    context = await browser.new_context(
        viewport={"width": _WIDTH, "height": 844}, locale="en", permissions=["microphone"]
    )
    context.set_default_timeout(_PATIENCE)
    page = await context.new_page()
    await page.goto(link)
    await page.click('[data-do="join"]')
    await page.click('a[href="#listen"]')
    await page.wait_for_selector(_IDLE)
    return page


async def _named(page: Page, place: str, heard: int, pictures: Path | None) -> None:
    """Record a second, and label it with the place."""
    await page.click('[data-do="listen"]')
    await page.select_option('select[name="choice"]', place)
    await page.wait_for_selector(_IDLE)
    if pictures is not None:
        await page.screenshot(path=pictures / "page-heard.png")
    await page.click('[data-do="label"]')
    await page.wait_for_selector('select[name="choice"]', state="detached")
    await page.wait_for_selector(f'{_IDLE}[data-recordings="{heard}"]')


async def _taking_part(page: Page) -> None:
    await page.click('a[href="#part"]')
    # A person agrees to a group as small as this one; by default, phones want a hundred.
    await page.click('[data-do="small"]')
    await page.wait_for_selector(_IDLE)
    await page.click('[data-do="part"]')
    await page.wait_for_selector("body[data-event]")
    # As on phones short of memory: hearing leaves 30 MB of garbage.
    await page.evaluate("gc()")
    for worker in page.workers:
        await worker.evaluate("gc()")


async def ended(pages: tuple[PhonePage, ...], phase: str, seconds: float) -> int:
    """Return how many pages have shown the ending of a phase within some seconds."""

    async def shown(each: PhonePage) -> bool:
        try:
            await each.page.wait_for_selector(f'body[data-ended="{phase}"]', timeout=1000 * seconds)
        except Error:
            return False
        return True

    return sum(await asyncio.gather(*map(shown, pages)))


async def events(pages: tuple[PhonePage, ...]) -> Mapping[str, int]:
    """Count the pages by the event of their last visit."""
    found: dict[str, int] = {}
    for each in pages:
        event = await each.page.evaluate("document.body.dataset.event ?? 'none'")
        found[event] = found.get(event, 0) + 1
    return found


async def pictured(page: Page, picture: Path) -> None:
    """Take a picture of a page in which nothing has to scroll."""
    height = await page.evaluate(
        "['#page', '#status'].reduce((sum, each) => "
        "sum + document.querySelector(each).scrollHeight, 0)"
    )
    await page.set_viewport_size({"width": _WIDTH, "height": height})
    await page.screenshot(path=picture)
