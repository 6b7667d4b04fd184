"""The one place that finds a browser for the dashboard's tests, and brings one if there is none.

    PYTHONPATH=tests python -m support.browser

prints where it is. It looks on the PATH, then where Playwright keeps its own; if neither has one
that runs, the distribution's package is installed (as root, where there is apt), or Playwright's is
downloaded. Where all that fails, it says so with the one command to run, and exits with status 1.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from support import debian

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
PACKAGES = ("chromium", "fonts-dejavu-core")
"""What Debian calls a browser, and letters for it to draw."""


class NoBrowserError(Exception):
    """The machine has no browser that runs; says what to do."""


def executable() -> str:
    """Where a Chromium is that runs.

    Raises:
        NoBrowserError: neither on the PATH nor among Playwright's.
    """
    for name in NAMES:
        path = shutil.which(name)
        if path is not None and _runs(path):
            return path
    path = _of_playwright()
    if _runs(path):
        return path
    raise NoBrowserError(
        "the dashboard is tested in Chromium, and there is none that runs: not on the PATH "
        f"({', '.join(NAMES)}), not among Playwright's ({path}). Run: {_remedy()}"
    )


def bring() -> str:
    """Where a Chromium is that runs; one is installed if there is none.

    Raises:
        NoBrowserError: and none can be had.
    """
    try:
        return executable()
    except NoBrowserError:
        _say("there is no browser for the dashboard's tests")
    sources = (
        {f"installing {' '.join(PACKAGES)}": _install_packages} if debian.may_install() else {}
    )
    for attempt, install in {**sources, "downloading Playwright's Chromium": _download}.items():
        _say(f"{attempt} …")
        try:
            install()
            return executable()
        except (NoBrowserError, OSError, subprocess.SubprocessError) as error:
            _say(f"{attempt} failed: {_reason(error)}")
    return executable()


def _of_playwright() -> str:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def _runs(path: str) -> bool:
    """Whether it starts: libraries may be missing, or it is a stub that wants a snap."""
    try:
        run = subprocess.run(  # noqa: S603 - a browser
            [path, "--version"], capture_output=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return run.returncode == 0


def _install_packages() -> None:
    debian.install(*PACKAGES)


def _download() -> None:
    debian.run(sys.executable, "-m", "playwright", "install", "chromium")


def _remedy() -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install {' '.join(PACKAGES)}"
    if shutil.which("dnf"):
        return "sudo dnf install chromium"
    return f"{sys.executable} -m playwright install --with-deps chromium"


def _reason(error: Exception) -> str:
    said = getattr(error, "stderr", None) or getattr(error, "stdout", None) or str(error)
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), str(error))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(bring())
    except NoBrowserError as error:
        sys.exit(str(error))
