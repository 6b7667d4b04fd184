"""Nights of a phase: the simulation against the binomial law, by hand and by its picture."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from earshot_client.command import main
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.secure_sum.interface import SummationName
from earshot_simulations.benchmarks import nights
from earshot_simulations.benchmarks.nights import RUNS, benchmark, least_staying, steps_of

ROOT = Path(__file__).resolve().parents[2]
BELL, TWO = "bell", "two-operators"


def chance(steps: int, open_for: int, present: float, sums: int = 3, needed: int = 800) -> float:
    """P(all sums of a phase of 1,000 phones keep enough): a phone comes to each step, or is out."""
    stays = (1 - (1 - present) ** open_for) ** steps
    return float(binom.sf(needed - 1, 1000, stays)) ** sums


def by_law(steps: int, present: float) -> int:
    """Return the fewest nights of a step for which a phase ends well, but for one in 100."""
    return next(open_for for open_for in range(1, 50) if chance(steps, open_for, present) > 0.99)


@functools.cache
def rows() -> list[dict[str, Any]]:
    return benchmark([0.5, 0.6, 0.7, 0.8, 0.9])


@pytest.mark.slow
def test_three_sums_take_36_nights_in_four_steps_each_and_6_in_one() -> None:
    bell, two = (row for row in rows() if row["present"] == 0.7)
    assert (bell["summation"], bell["steps"], bell["nights"]) == (BELL, 4, 3 * 4 * 3)
    assert (two["summation"], two["steps"], two["nights"]) == (TWO, 1, 3 * 1 * 2)
    assert chance(4, 2, 0.7) < 1e-9 < 0.9999 < chance(4, 3, 0.7)
    assert chance(1, 1, 0.7) < 1e-9 < 0.9999 < chance(1, 2, 0.7)


def test_steps_are_as_long_as_the_binomial_law_says() -> None:
    for row in rows():
        assert row["nights_per_step"] == by_law(row["steps"], row["present"])
        assert row["nights"] == 3 * row["steps"] * row["nights_per_step"]


def test_the_least_that_stays_is_the_smallest_of_as_many_binomial_numbers() -> None:
    for steps, open_for in ((4, 3), (1, 2), (2, 1)):
        stays = (1 - 0.3**open_for) ** steps
        found = least_staying(steps, open_for, 0.7, 1000, 3, 0)
        # Of 600 sums the least lies between these, but for one time in 10^6.
        assert binom.ppf(1e-6 / (3 * RUNS), 1000, stays) <= found
        assert found <= binom.ppf(1 - 1e-6 ** (1 / (3 * RUNS)), 1000, stays)


def test_a_step_of_the_helper_is_no_visit() -> None:
    assert steps_of(SummationName.BELL) == 4
    assert steps_of(SummationName.TWO_OPERATORS) == 1


def test_a_crowd_that_may_lose_nobody_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nights, "MOST_NIGHTS", 4)
    with pytest.raises(InvalidParametersError, match="4 nights are not enough; give a larger"):
        benchmark([0.3], dropout=0.0)


def test_the_command_prints_rows_and_draws_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "nights.svg"
    options = ["--phones", "200", "--picture", str(picture), "--json"]
    monkeypatch.setattr(sys, "argv", ["earshot", "bench", "nights", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    shown = json.loads(capsys.readouterr().out)["nights"]
    assert [row["present"] for row in shown[::2]] == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert [row["summation"] for row in shown[:2]] == [BELL, TWO]
    assert picture.read_text().startswith("<?xml")


def test_the_page_says_what_was_simulated() -> None:
    page = (ROOT / "docs" / "simulating.md").read_text("utf-8")
    for bell, two in zip(rows()[::2], rows()[1::2], strict=True):
        shown = f"| {100 * bell['present']:.0f} in 100 | {bell['nights']} | {two['nights']} |"
        assert shown in page
    assert (ROOT / "docs" / "nights.png").exists()
