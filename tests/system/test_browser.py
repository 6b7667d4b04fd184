"""The browser that the dashboard's tests need is found or brought, or its absence told at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from support import browser
from support.browser import NoBrowserError

ROOT = Path(__file__).parents[2]
RUNS, BROKEN = "#!/bin/sh\necho Chromium 1\n", "#!/bin/sh\nexit 127\n"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH, on a machine where nothing can be downloaded."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", "http://127.0.0.1:9")
    return folder


@pytest.mark.parametrize("name", browser.NAMES)
def test_a_browser_on_the_path_is_found_unless_it_does_not_run(name: str, empty: Path) -> None:
    wanted = program(empty / name, RUNS)
    if name != browser.NAMES[0]:
        program(empty / browser.NAMES[0], BROKEN)
    assert browser.bring() == browser.executable() == str(wanted)


def test_playwrights_own_is_found(empty: Path) -> None:
    with sync_playwright() as playwright:
        place = Path(playwright.chromium.executable_path)
    assert place.is_relative_to(os.environ["PLAYWRIGHT_BROWSERS_PATH"])
    program(place, RUNS)
    assert browser.executable() == str(place)


def test_the_distributions_package_is_installed_where_that_may_be(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    installed = empty / "chromium"
    program(
        empty / "apt-get",
        '#!/bin/sh\ncase "$*" in *install*chromium*)\n'
        f"printf '#!/bin/sh\\n' > {installed}; /bin/chmod 755 {installed};; esac\n",
    )
    assert browser.bring() == str(installed)
    assert "installing chromium" in capfd.readouterr().err


@pytest.mark.slow
def test_others_than_root_install_no_package(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(empty / "apt-get", f"#!/bin/sh\n: > {empty}/called\n")
    with pytest.raises(NoBrowserError, match=r"Run: sudo apt-get install chromium"):
        browser.bring()
    assert not (empty / "called").exists()


@pytest.mark.slow
def test_where_none_can_be_had_that_is_said_at_once(empty: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "support.browser"],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    assert time.monotonic() - began < 60
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert "there is none that runs" in last
    assert last.endswith("-m playwright install --with-deps chromium")


def test_make_runs_no_test_without_a_browser(tmp_path: Path) -> None:
    """With programs that only say that they were called, and a browser that cannot be had."""
    for name in ("pytest", "coverage", "ruff", "mypy", "lint-imports", "shellcheck"):
        program(tmp_path / name, f"#!/bin/sh\necho {name} >> {tmp_path}/called\n")
    python = program(tmp_path / "python", "#!/bin/sh\necho Run: something >&2\nexit 1\n")
    make = ("make", "-C", str(ROOT), "-o", ".venv/.installed", f"V={tmp_path}")
    for target in ("test", "ci", "test-all", "unit"):
        refused = subprocess.run(  # noqa: S603
            [*make, target], capture_output=True, text=True, check=False
        )
        assert refused.returncode != 0
        assert "Run: something" in refused.stderr
        assert not (tmp_path / "called").exists()
    python.write_text("#!/bin/sh\necho /usr/bin/chromium\n")
    subprocess.run([*make, "test"], capture_output=True, check=True)  # noqa: S603
    assert "pytest" in (tmp_path / "called").read_text().split()
