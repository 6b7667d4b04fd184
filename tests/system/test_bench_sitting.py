"""`earshot bench sitting`: a whole sitting of real pages, measured."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PAGES, PHONES = 4, 116


def size_of(picture: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


def test_a_sitting_is_played_measured_and_pictured_and_ends_in_names(tmp_path: Path) -> None:
    run = subprocess.run(  # noqa: S603 - our own command
        [
            *(sys.executable, "-m", "earshot_client", "bench", "sitting", "--json"),
            *("--pages", str(PAGES), "--phones", str(PHONES), "--out", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert run.returncode == 0, run.stderr
    figures = json.loads(run.stdout)
    assert figures["status"] == "published", figures
    assert figures["pages_that_failed"] == []
    assert figures["refusals"] == {}
    assert figures["server_errors"] == []
    taken = figures["pages_that_took_part"], figures["joined"], [*figures["answered"].values()]
    assert taken == (PAGES, PAGES + PHONES, [PAGES + PHONES])
    assert figures["pages_that_showed_the_result"] == PAGES
    assert len(figures["step_seconds"]) == 3
    assert 0 < figures["result_seconds"] < 120
    assert figures["reports_per_second"] > 0
    for name in ("driver", "web", "postgresql", "browser_opening"):
        assert figures[f"{name}_cpu_seconds"] > 0
    assert figures["browser_processes"] > PAGES
    assert figures["browser_memory_mb"] > 100
    # Forty phones for each place: noise hid none of the three in 40 such phases.
    assert figures["verdict"].startswith("120 phones can learn up to ")
    assert figures["right"] == figures["places"]
    assert json.loads((tmp_path / "figures.json").read_text("utf-8")) == figures
    for name in ("wall-gathering", "wall-running", "wall-end"):
        assert size_of(tmp_path / f"{name}.png") >= (1920, 1080)
    for name in ("page-heard", "page-end"):
        assert size_of(tmp_path / f"{name}.png")[0] == 390
    assert "/wall" in run.stderr
    assert str(tmp_path) in run.stderr
