"""A browser whose microphone hears a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
from playwright.sync_api import Browser, sync_playwright

from earshot_models.soundscapes import synthesize
from support.browser import executable
from support.dashboard_browser import ARGUMENTS

RATE = 48_000


@contextlib.contextmanager
def hearing(scene: str, folder: Path, *more: str) -> Iterator[Browser]:
    """A headless Chromium that hears nine seconds of a scene, over and over.

    Args:
        scene: one of the scenes that `earshot_models.soundscapes` synthesizes.
        folder: where its file goes.
        more: arguments of the browser's.
    """
    sound = synthesize(scene, 9, np.random.default_rng(5), RATE).reshape(-1)
    path = folder / "place.wav"
    soundfile.write(path, 0.2 * sound / np.abs(sound).max(), RATE, subtype="PCM_16")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=executable(),
            args=[
                *ARGUMENTS,
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-audio-capture={path}",
                *more,
            ],
        )
        try:
            yield running
        finally:
            running.close()
