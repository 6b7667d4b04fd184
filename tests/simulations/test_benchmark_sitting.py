"""What `earshot bench sitting` says, without a browser, which tests/system has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.benchmarks.sitting import browsers
from earshot_simulations.benchmarks.sitting.benchmark import Sitting, benchmark
from earshot_simulations.benchmarks.sitting.report import table

SETUP = Sitting(12, 108, Path("nowhere"), 0, print)
FIGURES: dict[str, Any] = {
    "pages": 12,
    "phones": 108,
    "pages_that_took_part": 11,
    "pages_that_failed": ["page 3 at café: Timeout"],
    "pages_that_showed_the_result": 10,
    "status": "published",
    "failure": "",
    "joined": 11,
    "answered": {"labels: report": 11},
    "refusals": {"least_phones": 1},
    "gathering_seconds": 40.0,
    "step_seconds": {"labels: offer": 0.5, "labels: report": 3.2, "labels: total": 0.6},
    "result_seconds": 4.3,
    "reports_per_second": 3.4,
    "places": ["gastronomy", "nature", "public transport"],
    "named": ["nature", "sport"],
    "right": ["nature"],
    "wrong": ["sport"],
    "verdict": "11 phones cannot learn anything here",
    "browser_processes": 40,
    "browser_opening_cpu_seconds": 60.0,
    "browser_sitting_cpu_seconds": 7.0,
    "browser_memory_mb": 900.0,
    "server_errors": [],
    "machine": "a machine",
    **{f"{name}_cpu_seconds": 3.0 for name in ("driver", "web", "postgresql")},
    **{f"{name}_peak_memory_mb": 80.0 for name in ("driver", "web", "postgresql")},
}


def test_there_is_room_for_more_than_who_takes_part_so_that_an_operator_begins() -> None:
    asked = SETUP.start()
    assert asked.parameters.phones == 240
    assert asked.least() == 60
    assert asked.parameters.step_seconds == 30.0
    asked.agreed().check_feasible()


@pytest.mark.parametrize(
    ("name", "wrong"), [("pages", {"pages": 2}), ("phones", {"phones": -1}), ("seed", {"seed": -1})]
)
def test_numbers_that_cannot_be_measured_are_named_before_any_work(
    name: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidParametersError, match=name):
        benchmark(replace(SETUP, **wrong), lambda what, done, total: None)
    assert not SETUP.out.exists()


def test_the_report_says_what_failed_what_is_wrong_and_what_noise_has_to_do_with_it() -> None:
    said = table(FIGURES)
    for words in (
        "12 pages beside 108 phones in Python; 11 pages took part and 10 showed the result",
        "published 4.3 seconds after the phase began, 44 after its gathering did",
        "| labels: report | 3.2 | 11 |",
        "| gathering | 40.0 | 11 joined |",
        "1 of 3 are right, sport wrong",
        "The noise that protects each phone hides some",
        "11 phones cannot learn anything here",
        "1 pages failed, the first ones: page 3 at café: Timeout",
        "1 phones refused: too few phones take part.",
    ):
        assert words in said
    all_right = FIGURES | {"right": FIGURES["places"], "named": FIGURES["places"], "wrong": []}
    assert "noise" not in table(all_right)
    assert "3 of 3 are right." in table(all_right)


def test_a_machine_without_a_browser_is_told_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "chrome"
    playwright: Any = SimpleNamespace(chromium=SimpleNamespace(executable_path=str(own)))
    monkeypatch.setattr(browsers.shutil, "which", lambda name: None)
    with pytest.raises(BenchmarkError, match="python -m playwright install"):
        browsers.executable(playwright)
    monkeypatch.setattr(
        browsers.shutil, "which", lambda name: "/usr/bin/chrome" if name == "chrome" else None
    )
    assert browsers.executable(playwright) == "/usr/bin/chrome"
    own.touch()
    assert browsers.executable(playwright) == str(own)
