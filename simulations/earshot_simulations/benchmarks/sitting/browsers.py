"""Browsers, one for each place, whose pages hear the file given to the browser's process."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from playwright.async_api import Browser, Playwright, async_playwright

from earshot_models.soundscapes import synthesize
from earshot_simulations.benchmarks.api.usage import cpu_seconds, family, memory_share
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.benchmarks.sitting.python_phones import RATE
from earshot_simulations.benchmarks.sitting.wav import write

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_ARGUMENTS = (
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # One process for a page and its service worker, and no spare ones: hundreds share a machine.
    "--process-per-site",
    "--disable-features=SpareRendererForSitePerProcess,PreloadTopChromeWebUI,WebUIOmniboxPopup",
    "--js-flags=--expose-gc",
)
_SECONDS = 30
"""Seconds of sound of a place, which a browser repeats."""


class BrowserCost(NamedTuple):
    """Cost of all browsers' processes.

    Attributes:
        cpu_seconds: CPU seconds since they started.
        memory: Memory in bytes; shared pages count once.
        processes: Number of processes.
    """

    cpu_seconds: float
    memory: int
    processes: int


class PlacedBrowsers:
    """Browsers of a sitting.

    Attributes:
        by_place: Browser whose pages hear the place of this name.
        silent: Browser that hears nothing, for the operator.
    """

    def __init__(self, by_place: Mapping[str, Browser], silent: Browser, own: Path) -> None:
        self.by_place = by_place
        self.silent = silent
        self._own = own

    def cost(self) -> BrowserCost:
        """Measure the cost of all browsers so far, including the operator's."""
        processes = [
            each
            for child in psutil.Process().children()
            for each in family(child)
            if _is_ours(each, self._own)
        ]
        return BrowserCost(
            sum(map(cpu_seconds, processes)), sum(map(memory_share, processes)), len(processes)
        )


@asynccontextmanager
async def browsers(
    places: tuple[str, ...], seed: int, folder: Path
) -> AsyncIterator[PlacedBrowsers]:
    """Start a browser for each place, and one for the operator; they end with the block.

    Args:
        places: Names of scenes to synthesize.
        seed: Seed of the sound.
        folder: Folder for files of sound.

    Raises:
        BenchmarkError: There is no browser.
    """
    async with async_playwright() as playwright, AsyncExitStack() as stack:
        path = executable(playwright)

        async def started(*arguments: str) -> Browser:
            browser = await playwright.chromium.launch(
                executable_path=path, args=[*_ARGUMENTS, *arguments]
            )
            stack.push_async_callback(browser.close)
            return browser

        by_place = {}
        for number, place in enumerate(places):
            clips = synthesize(place, _SECONDS, np.random.default_rng([seed, number]), RATE)
            file = folder / f"place-{number}.wav"
            write(file, clips.ravel(), RATE)
            by_place[place] = await started(f"--use-file-for-fake-audio-capture={file}")
        yield PlacedBrowsers(by_place, await started(), Path(path))


def executable(playwright: Playwright) -> str:
    """Return the path of a Chromium: Playwright's own, or the first one on the PATH.

    Raises:
        BenchmarkError: There is none; the message states how to install one.
    """
    own = playwright.chromium.executable_path
    found = [own] if os.path.exists(own) else [*filter(None, map(shutil.which, _NAMES))]
    if not found:
        raise BenchmarkError(
            "pages need a Chromium, and there is none: neither Playwright's own nor on the PATH "
            f"({', '.join(_NAMES)}). Run: python -m playwright install --with-deps chromium"
        )
    return found[0]


def _is_ours(process: psutil.Process, browser: Path) -> bool:
    try:
        words = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return "--remote-debugging-" in words or "--type=" in words or str(browser) in words
