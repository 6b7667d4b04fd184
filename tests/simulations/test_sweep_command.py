"""`earshot sweep`: nothing is run twice, what is finished is kept, and mistakes are named."""

from __future__ import annotations

import csv
import errno
import html
import json
import math
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from matplotlib import pyplot
from pyarrow import parquet
from support.command import Earshot
from support.full_disk import room_for

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning_budget import BUDGETS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import composed_total
from earshot_simulations import Discovery, PolicyChoice, Settings, SummationChoice, sweep
from earshot_simulations.phases.run import PHASE_FAILED, Run
from earshot_simulations.reporting import drawing
from earshot_simulations.sweeps import page, phase, results
from earshot_simulations.sweeps.estimate import estimate
from earshot_simulations.sweeps.phase import RANGES
from earshot_simulations.sweeps.plan import MOST_RUNS, SweepPlan
from earshot_simulations.sweeps.plan import read as read_plan
from earshot_simulations.sweeps.results import FILES, done
from earshot_simulations.sweeps.rows import FILE, opened
from earshot_simulations.sweeps.table import SweepTable
from earshot_simulations.versions import OtherVersionError

TINY = """
[settings]
phones = 24
recordings = 10
scenes = 3
corrupted = 0
policy = "anything"
summation = "ideal"
"""
SIX = (
    "seeds = 3\n"
    + TINY
    + """
[grid]
epsilon = [4, 20]
"""
)
BASE = {"phones": 24, "recordings": 10, "scenes": 3, "corrupted": 0.0, "policy": "anything"}


def described(folder: Path, text: str) -> Path:
    file = folder / "sweep.toml"
    file.write_text(text)
    return file


def score(settings: Settings) -> float:
    """What the stand-in for a phase comes to: a number that tells all runs apart."""
    return settings.seed / 8 + settings.phone_epsilon / 1024 + settings.labelled / 64


class Simulated:
    """Stands in for whole phases, and may be interrupted at one of them."""

    def __init__(self, make_run: Callable[..., Run]) -> None:
        self.calls: list[tuple[float, int]] = []
        self.stop_at: int | None = None
        self.fails_at: int | None = None
        self._make_run = make_run

    def __call__(self, settings: Settings) -> Run:
        if len(self.calls) == self.stop_at:
            raise KeyboardInterrupt
        self.calls.append((settings.epsilon, settings.seed))
        if settings.seed == self.fails_at:
            return self._make_run(ari_test=None, interrupted=f"{PHASE_FAILED}too few phones")
        return self._make_run(ari_test=score(settings), clear_label_accuracy=0.5)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, make_run: Callable[..., Run]) -> Simulated:
    fake = Simulated(make_run)
    monkeypatch.setattr(phase, "simulate", fake)
    return fake


# ------------------------------------------------------------------------------- what is finished


def test_an_interrupted_sweep_goes_on_and_comes_to_the_same_table(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    file = described(tmp_path, SIX)
    words = ("sweep", file, "--jobs", 1, "--out")
    assert earshot(*words, tmp_path / "whole")[0] == 0
    at_once, simulated.calls = simulated.calls, []
    assert len(set(at_once)) == 6

    simulated.stop_at = 4
    status, out, err = earshot(*words, tmp_path / "parts")
    assert (status, len(simulated.calls)) == (130, 4)
    assert f"finished work is in {tmp_path / 'parts'}" in out
    assert "Traceback" not in err
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [FILE]

    simulated.stop_at = None
    assert earshot(*words, tmp_path / "parts")[0] == 0
    assert simulated.calls == at_once  # in all: nothing twice, nothing left out
    for name in FILES:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()

    # Of a finished one nothing is left to do.
    assert earshot(*words, tmp_path / "parts")[0] == 0
    assert simulated.calls == at_once


def test_points_and_seeds_may_be_added_and_none_taken_away(
    tmp_path: Path, simulated: Simulated
) -> None:
    base = Settings(**{**BASE, "policy": PolicyChoice.ANYTHING})  # type: ignore[arg-type]
    sweep(base, {"epsilon": [4.0]}, tmp_path, seeds=2)
    sweep(base, {"epsilon": [4.0, 8.0]}, tmp_path, seeds=[0, 1, 7])
    assert sorted(simulated.calls) == [(e, s) for e in (4.0, 8.0) for s in (0, 1, 7)]
    kept = (tmp_path / FILE).read_bytes()
    for points, seeds in (({"epsilon": [4.0]}, [0, 1, 7]), ({"epsilon": [4.0, 8.0]}, 2)):
        with pytest.raises(InvalidInputError, match=r"holds \d runs that are not in this sweep"):
            sweep(base, points, tmp_path, seeds=seeds)
    with pytest.raises(InvalidInputError, match="holds 6 runs that are not in this sweep"):
        sweep(replace(base, labelled=0.5), {"epsilon": [4.0, 8.0]}, tmp_path, seeds=[0, 1, 7])
    assert (tmp_path / FILE).read_bytes() == kept
    assert len(simulated.calls) == 6


def test_a_table_of_another_version_is_refused_and_kept(
    tmp_path: Path, simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = SweepPlan.of(BASE, {"epsilon": [4.0]}, 2)
    ours = distribution.version()
    monkeypatch.setattr(distribution, "version", lambda: "0.0.1")
    done(plan, tmp_path)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(distribution, "version", lambda: ours)
    with pytest.raises(OtherVersionError, match=rf"by Earshot 0.0.1, but this is {ours}"):
        done(SweepPlan.of(BASE, {"epsilon": [4.0]}, 2), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_a_disk_that_fills_is_named_and_what_is_finished_is_kept(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    words = ("sweep", described(tmp_path, SIX), "--jobs", 1, "--out")
    assert earshot(*words, tmp_path / "roomy")[0] == 0
    lines = (tmp_path / "roomy" / FILE).read_bytes().splitlines(keepends=True)
    simulated.calls.clear()
    two_and_a_half = len(b"".join(lines[:2])) + len(lines[2]) // 2
    with room_for(two_and_a_half):
        status, out, err = earshot(*words, tmp_path / "full")
    assert (status, out) == (2, "")
    assert "cannot be written" in err
    assert "finished work is kept" in err
    assert (tmp_path / "full" / FILE).read_bytes().startswith(b"".join(lines[:2]))
    assert earshot(*words, tmp_path / "full")[0] == 0
    # The third had no room: it alone was done again.
    assert len(simulated.calls) == 7
    for name in FILES:
        assert (tmp_path / "full" / name).read_bytes() == (tmp_path / "roomy" / name).read_bytes()


def test_no_room_for_the_table_is_named_too(tmp_path: Path, simulated: Simulated) -> None:
    plan = SweepPlan.of(BASE, {"epsilon": [4.0, 8.0]}, 2)
    done(plan, tmp_path / "roomy")
    size = (tmp_path / "roomy" / FILE).stat().st_size
    assert (tmp_path / "roomy" / "sweep.html").stat().st_size > size
    with room_for(size), pytest.raises(InvalidInputError, match="no room for that sweep"):
        done(plan, tmp_path / "full")
    names = {path.name for path in (tmp_path / "full").iterdir()}
    assert "sweep.html" not in names
    assert not any(name.startswith(".") for name in names)
    assert (tmp_path / "full" / FILE).read_bytes() == (tmp_path / "roomy" / FILE).read_bytes()


def test_only_a_machine_without_room_is_said_to_have_none(
    tmp_path: Path, simulated: Simulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "park/0.wav")

    monkeypatch.setattr(results, "measured", refusing)
    plan = SweepPlan.of(BASE, {"epsilon": [4.0]}, 1)
    with pytest.raises(InvalidInputError, match=r"sweep has failed \(.*Permission.*park/0\.wav"):
        done(plan, tmp_path / "runs")


SIXTY = (
    "seeds = 10\n"
    + TINY
    + """
[grid]
epsilon = [4, 12, 20]
labelled = [0.3, 0.9]
"""
)


ENDING = """
import os, sys
from earshot_client.command import main
from earshot_simulations.sweeps.rows import Rows

append, left, sent = Rows.append, *map(int, sys.argv[1:3])

def ending(self, *row):
    global left
    append(self, *row)
    left -= 1
    if not left:  # a terminal tells the whole group
        os.killpg(0, sent)

Rows.append = ending
sys.argv = ["earshot", *sys.argv[3:]]
main()
"""


@pytest.mark.slow
def test_sixty_runs_that_are_killed_in_the_middle_go_on(tmp_path: Path) -> None:
    """Whole phases in two processes, ended by Ctrl-C and then by a kill."""
    file, out = described(tmp_path, SIXTY), tmp_path / "out"
    words = ["sweep", str(file), "--jobs", "2", "--out"]

    def lines() -> list[str]:
        kept = out / FILE
        return kept.read_text().splitlines() if kept.exists() else []

    def ended_by(sent: signal.Signals, after: int) -> int:
        """The exit status of a sweep that a signal ends after so many new lines."""
        return subprocess.run(  # noqa: S603 - the program is written above
            [sys.executable, "-c", ENDING, str(after), str(int(sent)), *words, str(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        ).returncode

    assert ended_by(signal.SIGINT, 12) == 130
    first = lines()
    assert 12 <= len(first) < 60
    assert ended_by(signal.SIGKILL, 10) == -signal.SIGKILL
    second = [line for line in lines() if line.endswith("}")]
    assert second[: len(first)] == first
    for folder in (out, tmp_path / "whole"):
        command = [sys.executable, "-m", "earshot_client", *words, str(folder)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    assert lines()[: len(second)] == second
    keys = [json.loads(line)["key"] for line in lines()]
    assert len(keys) == len(set(keys)) == 60
    for name in set(FILES) - {FILE}:  # whose lines are in the order in which runs ended
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with (out / "table.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    means = [
        sum(float(row["clear_label_accuracy"]) for row in rows if row["epsilon"] == epsilon) / 20
        for epsilon in ("4.0", "12.0", "20.0")
    ]
    assert means == sorted(means)


# ---------------------------------------------------------------------------------- table and page


def test_csv_and_parquet_hold_every_run_with_all_its_digits(
    tmp_path: Path, simulated: Simulated
) -> None:
    plan = SweepPlan.of(BASE, {"labelled": [0.25, 0.5], "epsilon": [4, 8]}, [3, 1])
    found = done(plan, tmp_path)
    typed = parquet.read_table(tmp_path / "table.parquet")
    with (tmp_path / "table.csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert list(rows[0])[:3] == ["labelled", "epsilon", "seed"]
    assert typed.column_names == list(rows[0])
    expected = [
        (labelled, epsilon, seed)
        for labelled in (0.25, 0.5)
        for epsilon in (4.0, 8.0)
        for seed in (3, 1)
    ]
    for row, read, (labelled, epsilon, seed) in zip(rows, typed.to_pylist(), expected, strict=True):
        assert (read["labelled"], read["epsilon"], read["seed"]) == (labelled, epsilon, seed)
        settings = Settings(labelled=labelled, epsilon=epsilon, seed=seed)
        assert float(row["ari_test"]) == read["ari_test"] == score(settings)
        assert (row["failure"], read["failure"]) == ("", None)
    about = json.loads(typed.schema.metadata[b"earshot"])
    assert about["version"] == distribution.version()
    assert about["settings"]["phones"] == 24
    assert not {"epsilon", "labelled", "seed", "jobs"} & set(about["settings"])
    means = found.estimates("ari_test")
    values = [score(Settings(labelled=0.25, epsilon=8, seed=seed)) for seed in (3, 1)]
    assert str(means[1]) == str(estimate(values, RANGES["ari_test"]))


def test_a_phase_that_failed_counts_as_nothing_and_is_said(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    simulated.fails_at = 1
    status, out, _ = earshot(
        "sweep", described(tmp_path, SIX), "--out", tmp_path / "o", "--jobs", 1
    )
    assert status == 0
    assert "2 of 6 runs failed and count as 0" in out
    assert "2 runs failed" in (tmp_path / "o" / "sweep.html").read_text()
    with (tmp_path / "o" / "table.csv").open(newline="") as table:
        failed = [row for row in csv.DictReader(table) if row["failure"]]
    assert [(row["seed"], row["ari_test"]) for row in failed] == [("1", "0.0"), ("1", "0.0")]


def figures_of(plan: SweepPlan) -> SweepTable:
    """A table whose figure is known: ten times ε, and the seed, and nothing of the rest."""
    return SweepTable(
        plan,
        tuple(
            tuple({"centroids": 10 * settings.epsilon + settings.seed} for settings in arm.phases)
            for arm in plan.arms
        ),
    )


def test_lines_are_of_other_settings_and_intervals_are_of_seeds() -> None:
    few = figures_of(SweepPlan.of(BASE, {"labelled": [0.5, 0.25], "epsilon": [8, 4]}, 3))
    drawn = page.lines(few, "centroids", "epsilon")
    assert [line.name for line in drawn] == ["labelled 0.5", "labelled 0.25"]
    expected = estimate([40, 41, 42])
    for line in drawn:
        assert [value for value, _ in line.points] == [4.0, 8.0]
        assert line.points[0][1] == expected
    # Too many lines for a picture: their mean seed by seed, whose interval is that of seeds still.
    many = figures_of(SweepPlan.of(BASE, {"recordings": list(range(10, 17)), "epsilon": [4, 8]}, 3))
    (together,) = page.lines(many, "centroids", "epsilon")
    assert (together.name, together.points[0][1]) == ("", expected)
    # Points one by one need not be a grid.
    listed = figures_of(SweepPlan.of(BASE, [{"epsilon": 4}, {"epsilon": 8, "labelled": 0.5}], [0]))
    lines = {line.name: line.points for line in page.lines(listed, "centroids", "epsilon")}
    assert lines == {
        "labelled 0.3": ((4.0, estimate([40])),),
        "labelled 0.5": ((8.0, estimate([80])),),
    }


def test_no_line_and_no_mean_joins_two_routes(tmp_path: Path) -> None:
    grid = {"discovery": ["local", "secure-sum"], "recordings": list(range(10, 17))}
    crossed = figures_by_route(SweepPlan.of(BASE, {**grid, "labelled": [0.3, 0.6]}, 2))
    routes = page.by_route(crossed)
    assert list(routes) == ["local", "secure-sum"]
    for route, part in routes.items():
        assert part.plan.varied == ("recordings", "labelled")
        # Fourteen combinations are too many lines: their mean is over one route alone.
        (line,) = page.lines(part, "ari_test", "labelled")
        assert [found.mean for _, found in line.points] == [float(route == "local")] * 2
    text = page.render(crossed)
    titles = re.findall(r"<h2>(By .*?)</h2>", text)
    assert titles == [
        "By discovery",
        *(f"By {name}, {way}" for name in ("recordings", "labelled") for way in routes),
    ]
    assert "local a recording, secure-sum a phone" in text


def test_settings_of_one_route_are_no_axis_of_the_other() -> None:
    points = [
        {"discovery": "local", "label_votes": 1},
        {"discovery": "local", "label_votes": 2},
        {"discovery": "secure-sum", "sums": 2},
        {"discovery": "secure-sum", "sums": 3},
    ]
    routes = page.by_route(figures_by_route(SweepPlan.of(BASE, points, 1)))
    assert {route: part.plan.varied for route, part in routes.items()} == {
        "local": ("label_votes",),
        "secure-sum": ("sums",),
    }
    one = figures_by_route(SweepPlan.of(BASE, {"epsilon": [4, 8]}, 1))
    assert page.by_route(one) == {"": one}


@pytest.mark.parametrize(("setting", "joined"), [("discovery", False), ("labelled", True)])
def test_between_names_no_line_is_drawn(setting: str, joined: bool) -> None:
    values: dict[str, list[Any]] = {
        "discovery": ["local", "secure-sum"],
        "labelled": [0.3, 0.6],
    }
    results = figures_by_route(SweepPlan.of(BASE, {setting: values[setting]}, 1))
    picture = page._picture(page.lines(results, "ari_test", setting), "ari_test", setting)
    assert picture is not None
    paths = re.findall(rf'<path d="([^"]*)"[^>]*stroke: {drawing.PALETTE[0]}', picture.svg)
    assert paths
    # An interval stands upright; what has two places on the axis joins them.
    joins = [len(set(re.findall(r"[ML] (\S+) \S+", path))) > 1 for path in paths]
    marks = "".join(re.findall(r"<defs>.*?</defs>", picture.svg, re.DOTALL))
    drawn = [each for each, path in zip(joins, paths, strict=True) if path not in marks]
    assert any(drawn) is joined


def figures_by_route(plan: SweepPlan) -> SweepTable:
    """A table whose figure is 1 on the local route and 0 on the other, and a seed's little more."""
    return SweepTable(
        plan,
        tuple(
            tuple(
                {
                    "ari_test": float(settings.discovery is Discovery.LOCAL),
                    "label_accuracy": settings.labelled
                    + settings.recordings / 100
                    + settings.seed / 8,
                }
                for settings in arm.phases
            )
            for arm in plan.arms
        ),
    )


def test_the_page_has_a_picture_for_every_figure_and_setting(
    tmp_path: Path, simulated: Simulated
) -> None:
    plan = SweepPlan.of(BASE, {"epsilon": [4, 8], "data": ["blobs", "soundscapes"]}, 2)
    done(plan, tmp_path)
    text = (tmp_path / "sweep.html").read_text()
    assert "8 runs: 4 points × 2 seeds, over epsilon, data." in text
    for setting in ("epsilon", "data"):
        assert f"<h2>By {setting}</h2>" in text
        assert f"clustering (ARI), held out by {setting}." in text
    # What all runs have in common is no picture: all names are right as often.
    assert "right name, held out by" not in text
    # Nor is what a setting does not move: the cost is that of ε, whatever is heard.
    assert "ε per phone by epsilon." in text
    assert "ε per phone by data." not in text
    values = [score(Settings(epsilon=4.0, seed=seed)) for seed in (0, 1)]
    first = estimate(values, RANGES["ari_test"])
    assert f"blobs: 4: {first}, 8: " in text
    prose = re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)
    assert re.findall(r"[^\W_]+_\w+", prose) == []
    assert not re.search(r'(src|href)="(?!data:|#)', text)


@pytest.mark.parametrize(
    ("points", "recording", "phone"),
    [
        ({"epsilon": [4, 8]}, ", at δ = 10⁻⁶", ", at δ = 10⁻⁶"),
        ({"delta": [1e-7, 1e-5]}, ", at δ ≤ 10⁻⁵", ", at δ ≤ 10⁻⁵"),
        # On the local route only sums need a δ, each its own.
        ({"discovery": ["local"]}, ", at δ = 9.6 · 10⁻¹²", ", at δ = 3 · 10⁻¹¹"),
        ({"epsilon": [math.inf]}, "", ""),
    ],
)
def test_an_epsilon_is_shown_with_the_delta_at_which_it_holds(
    points: dict[str, list[Any]], recording: str, phone: str, tmp_path: Path, simulated: Simulated
) -> None:
    done(SweepPlan.of(BASE, points, 1), tmp_path)
    text = (tmp_path / "sweep.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    names = set(re.findall(r"ε per (?:recording|phone)(?:, at δ [^<\"]*)?(?=[<\"])", text))
    assert names == {f"ε per recording{recording}", f"ε per phone{phone}"}


def test_names_of_settings_and_values_become_text(tmp_path: Path, simulated: Simulated) -> None:
    hostile = "<script>alert(1)</script>"
    found = done(SweepPlan.of(BASE, {"epsilon": [4, 8]}, 2), tmp_path)
    arms = tuple(
        replace(arm, labels={hostile: f"{hostile}{arm.labels['epsilon']}"})
        for arm in found.plan.arms
    )
    plan = replace(found.plan, varied=(hostile,), arms=arms)
    text = page.render(replace(found, plan=plan))
    assert "<script" not in text
    assert f"<h2>By {html.escape(hostile)}</h2>" in text
    assert f"{html.escape(hostile)}8" in text


def test_a_sweep_of_one_point_is_seeds_alone(tmp_path: Path, simulated: Simulated) -> None:
    found = done(SweepPlan.of(BASE, [{}], 2), tmp_path)
    assert found.plan.varied == ()
    assert "2 runs: 1 point × 2 seeds, nothing varies." in (tmp_path / "sweep.html").read_text()


def test_json_is_one_object_with_every_point(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    words = ("sweep", described(tmp_path, SIX), "--out", tmp_path / "o", "--jobs", 1, "--json")
    told = json.loads(earshot(*words)[1])
    assert (told["runs"], told["failures"], told["seeds"]) == (6, 0, [0, 1, 2])
    assert [point["settings"] for point in told["points"]] == [{"epsilon": 4.0}, {"epsilon": 20.0}]
    values = [score(Settings(epsilon=4.0, seed=seed)) for seed in range(3)]
    expected = estimate(values, RANGES["ari_test"])
    assert expected.ends is not None
    assert told["points"][0]["figures"]["ari_test"] == {
        "mean": expected.mean,
        "interval_95": list(expected.ends),
    }


# ------------------------------------------------------------------------------- without any noise


def no_constant(name: str) -> None:
    raise AssertionError(f"JSON has no {name}")


def test_the_line_without_noise_is_a_number_in_every_file(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    file = described(tmp_path, SIX.replace("[4, 20]", "[inf, 4]"))
    words = ("sweep", file, "--jobs", 1, "--out", tmp_path / "o")
    status, out, err = earshot(*words)
    assert status == 0, err
    assert "epsilon inf\n" in out
    typed = parquet.read_table(tmp_path / "o" / "table.parquet")
    for name in ("epsilon", "epsilon_phone", "epsilon_recording"):
        assert str(typed.schema.field(name).type) == "double"
        assert [math.isinf(value) for value in typed[name].to_pylist()] == [True] * 3 + [False] * 3
    frame = pandas.read_csv(tmp_path / "o" / "table.csv")
    assert frame["epsilon"].tolist() == [math.inf] * 3 + [4.0] * 3
    lines = (tmp_path / "o" / FILE).read_text().splitlines()
    kept = [json.loads(line, parse_constant=no_constant) for line in lines]
    asked = [row["configuration"]["settings"]["epsilon"] for row in kept]
    assert sorted(asked, key=str) == [4.0] * 3 + ["inf"] * 3
    spent = [row["figures"]["epsilon_phone"] for row in kept]
    assert [each == "inf" for each in spent] == [each == "inf" for each in asked]
    # What is finished is read again as it was.
    calls = len(simulated.calls)
    told = json.loads(earshot(*words, "--json")[1], parse_constant=no_constant)
    assert len(simulated.calls) == calls
    assert [point["settings"] for point in told["points"]] == [{"epsilon": "inf"}, {"epsilon": 4.0}]
    assert told["points"][0]["figures"]["epsilon_phone"]["mean"] is None
    found = done(read_plan(file), tmp_path / "o")
    assert found.to_frame()["epsilon"].dtype == float
    assert [row["epsilon_phone"] for row in found.rows()[:3]] == [math.inf] * 3
    assert "∞ (no noise)" in (tmp_path / "o" / "sweep.html").read_text()


def test_a_sweep_without_any_noise_says_so_in_every_file(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    file = described(tmp_path, SIX.replace("[4, 20]", "[inf]"))
    status, out, err = earshot("sweep", file, "--jobs", 1, "--json", "--out", tmp_path / "o")
    assert status == 0, err
    assert json.loads(out, parse_constant=no_constant)["settings"]["epsilon"] == "inf"
    typed = parquet.read_table(tmp_path / "o" / "table.parquet")
    about = json.loads(typed.schema.metadata[b"earshot"], parse_constant=no_constant)
    assert about["settings"]["epsilon"] == "inf"
    assert "∞ (no noise)" in (tmp_path / "o" / "sweep.html").read_text()


@pytest.mark.parametrize("finite", [[], [4.0], [4.0, 8.0], [1.0, 100.0]])
def test_the_point_without_noise_stands_apart_from_the_line(finite: list[float]) -> None:
    """To the right of every number, whatever the scale, and joined to none of them."""
    points = tuple((value, estimate([0.5, 0.6])) for value in [*finite, math.inf])
    drawn: list[Any] = []
    figure = pyplot.figure()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drawing, "picture", lambda draw, height, alt: drawn.append((draw, alt)))
        page._picture([page.PictureLine("", points)], "ari_test", "epsilon")
    axes = figure.add_subplot()
    (draw, alt) = drawn[0]
    draw(axes)
    lines = [container.lines[0].get_xdata() for container in axes.containers]
    assert [len(line) for line in lines] == ([len(finite)] if finite else []) + [1]
    assert all(math.isfinite(x) for line in lines for x in line)
    assert all(x < lines[-1][0] for line in lines[:-1] for x in line)
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert labels == [*(f"{value:g}" for value in finite), "∞ (no noise)"]
    assert "∞ (no noise): 0.550" in alt
    pyplot.close(figure)


def test_a_row_holds_whatever_number_a_measure_gives(tmp_path: Path) -> None:
    given = {
        "whole": np.int64(3),
        "share": np.float32(0.5),
        "most": math.inf,
        "least": -math.inf,
        "none": math.nan,
        "failure": None,
        "words": "too few",
    }
    with opened(tmp_path / FILE) as rows:
        rows.append("key", {"version": "1"}, given)
        then = dict(rows["key"])
    with opened(tmp_path / FILE) as rows:
        now = dict(rows["key"])
    json.loads((tmp_path / FILE).read_text(), parse_constant=no_constant)
    assert repr(now) == repr(then)
    assert [type(value) for value in now.values()][:5] == [int, float, float, float, float]
    assert (now["whole"], now["share"], now["most"], now["least"]) == (3, 0.5, math.inf, -math.inf)


# -------------------------------------------------------------------------------------- mistakes

GRID = TINY + "[grid]\n"
LIST = TINY + "[[list]]\n"
MISTAKES: dict[str, tuple[str, str]] = {
    "not TOML": ("seeds = ", "is not TOML"),
    "unknown key": ("seed = 3\n" + GRID, "there is no such key of a sweep; did you mean seeds?"),
    "unknown setting": (
        GRID.replace("phones", "phone") + "epsilon=[1]",
        "phone: there is no such setting; did you mean phones",
    ),
    "unknown varied": (GRID + "epsilom = [1, 2]", "no such setting; did you mean epsilon?"),
    "unknown within": (GRID + "budget.clusterin = [1, 2]", "did you mean budget.clustering"),
    "empty grid": (GRID, "the grid is empty: name at least one setting"),
    "empty values": (GRID + "epsilon = []", "epsilon=[]: must be a list of at least one value"),
    "no values": (GRID + "epsilon = 3", "epsilon=3: must be a list"),
    "letters as values": (GRID + 'data = "blobs"', "data='blobs': must be a list"),
    "a value twice": (GRID + "epsilon = [1, 1.0]", "a value occurs twice"),
    "empty list": ("list = []\n" + TINY, "the list is empty"),
    "neither": (TINY, "must have either [grid]"),
    "both": (GRID + "epsilon = [1]\n[[list]]\nepsilon = 2", "must have either [grid]"),
    "a list that is a table": (TINY + "[list]\nepsilon = 2", "list={'epsilon': 2}: must be tables"),
    "a point twice": (LIST + "epsilon = 2\n[[list]]\nepsilon = 2.0", "points 1 and 2 are the same"),
    "no seeds": ("seeds = 0\n" + GRID + "epsilon = [1]", "seeds=0"),
    "an empty list of seeds": ("seeds = []\n" + GRID + "epsilon = [1]", "seeds=[]"),
    "a seed twice": ("seeds = [1, 1]\n" + GRID + "epsilon = [1]", "a list of different ones"),
    "a seed that is none": ("seeds = [-1]\n" + GRID + "epsilon = [1]", "seeds=-1"),
    "seeds in words": ('seeds = "five"\n' + GRID + "epsilon = [1]", "seeds='five'"),
    "its own seed": (GRID + "seed = [1, 2]", "seed: not a setting of a sweep"),
    "its own processes": (TINY + "jobs = 2\n[grid]\nepsilon = [1]", "jobs: not a setting"),
    "no number": (GRID + 'epsilon = ["much"]', "point epsilon=much: epsilon: expected `float`"),
    "out of range": (GRID + "labelled = [0.5, 2]", "point labelled=2: labelled=2"),
    "what no phone agrees to": (
        GRID.replace("anything", "default") + "epsilon = [1]",
        "no phone would take part by default",
    ),
    "for the other discovery": (GRID + "local_centroids = [3, 4]", "local_centroids: not for disc"),
    "shared for the other": (
        TINY + "clustering_runs = 4\n[grid]\nepsilon = [1, 2]",
        "clustering_runs: not for discovery = secure-sum, but for local",
    ),
    "more than a morning": (
        GRID + "".join(f"{name} = {list(range(1, 101))}\n" for name in ("phones", "recordings"))
        + "epsilon = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]",
        f"must be a whole number, from 1 to {MOST_RUNS}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_sweep_file_that_is_wrong_is_one_line_before_any_work(
    mistake: str, tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    text, message = MISTAKES[mistake]
    if mistake == "more than a morning":
        text = re.sub(r"\n(phones|recordings) = \d+(?=\n)", "", text, count=2)
    file = described(tmp_path, text)
    status, out, err = earshot("sweep", file, "--out", tmp_path / "out")
    assert (status, out, len(err.splitlines())) == (2, "", 1), err
    assert err.startswith(f"earshot: {file}: ")
    assert message in err
    assert simulated.calls == []
    assert not (tmp_path / "out").exists()


def test_a_sweep_file_that_is_not_there_and_a_folder_of_others_are_named(
    tmp_path: Path, simulated: Simulated, earshot: Earshot
) -> None:
    assert "there is no such file" in earshot("sweep", tmp_path / "no", "--out", tmp_path / "o")[2]
    assert "cannot be read" in earshot("sweep", tmp_path, "--out", tmp_path / "o")[2]
    (tmp_path / "notes.txt").write_text("mine")
    file = described(tmp_path, SIX)
    assert "is not empty" in earshot("sweep", file, "--out", tmp_path)[2]
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / FILE).write_text("my notes\n")
    assert "line 1: not a row of a sweep" in earshot("sweep", file, "--out", tmp_path / "o")[2]
    assert simulated.calls == []


def test_both_discoveries_may_be_swept_together() -> None:
    plan = SweepPlan.of(
        BASE | {"clustering_runs": 2},
        [{"discovery": "local"}, {"discovery": "secure-sum", "epsilon": 8}],
        1,
    )
    assert plan.varied == ("discovery", "epsilon")
    assert [arm.phases[0].discovery for arm in plan.arms] == [
        Discovery.LOCAL,
        Discovery.SECURE_SUM,
    ]


def test_a_budget_varies_as_a_whole_or_by_its_steps(tmp_path: Path) -> None:
    local = BASE | {"discovery": "local"}
    whole = SweepPlan.of(
        local, [{"budget": "none"}, {"budget": {"clustering": 1.0, "selection": 1e6}}], 1
    )
    assert "budget.clustering" in whole.varied
    text = TINY + 'discovery = "local"\n[grid]\nbudget.clustering = [1, 2]'
    steps = read_plan(described(tmp_path, text))
    assert steps.varied == ("budget.clustering",)
    budgets = [arm.phases[0].budget for arm in steps.arms]
    assert [budget and budget.clustering for budget in budgets] == [1.0, 2.0]
    usual = BUDGETS[Geometry.EUCLIDEAN].selection
    assert [budget and budget.selection for budget in budgets] == [usual] * 2


def test_epsilon_varies_on_the_local_route_and_beside_a_budget(tmp_path: Path) -> None:
    text = TINY + 'discovery = "local"\ndata = "soundscapes"\n[grid]\nepsilon = [1, 2]'
    varied = read_plan(described(tmp_path, text))
    assert varied.varied == ("epsilon",)
    costs = [
        composed_total(arm.phases[0].expenses())[Unit.RECORDING].epsilon for arm in varied.arms
    ]
    assert costs == pytest.approx([1.0, 2.0], rel=1e-9)
    local = BASE | {"discovery": "local"}
    listed = SweepPlan.of(local, [{"budget.clustering": 3.0}, {"epsilon": 2.0}], 1)
    assert [arm.labels for arm in listed.arms] == [
        {"budget.clustering": 3.0, "epsilon": None},
        {"budget.clustering": None, "epsilon": 2.0},
    ]
    with pytest.raises(InvalidParametersError, match="epsilon and budget: give one of them"):
        SweepPlan.of(local, [{"budget.clustering": 3.0, "epsilon": 2.0}], 1)


def test_from_python_a_sweep_has_the_settings_of_its_base(
    tmp_path: Path, simulated: Simulated
) -> None:
    base = Settings(
        phones=24,
        data="soundscapes",
        discovery=Discovery.LOCAL,
        corrupted=0.0,
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.IDEAL,
        seed=9,
    )
    found = sweep(base, {"labelled": [0.25, 0.5]}, tmp_path, seeds=2)
    for arm, labelled in zip(found.plan.arms, (0.25, 0.5), strict=True):
        expected = replace(base, labelled=labelled)
        assert [replace(each, jobs=base.jobs, seed=9) for each in arm.phases] == [expected] * 2
    with pytest.raises(InvalidParametersError, match="nothing: there is no such setting"):
        sweep(base, {"nothing": [1]}, tmp_path)
