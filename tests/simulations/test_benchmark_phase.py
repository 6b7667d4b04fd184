"""`earshot bench phase`: figures against known runs and laws, and what is done is kept."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.command import earshot

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.benchmarks import phase
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.benchmarks.growth import extrapolated, growth
from earshot_simulations.benchmarks.phase_picture import draw
from earshot_simulations.phases.run import PHASE_FAILED, Run
from earshot_simulations.phases.settings import Discovery, EngineChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.versions import OtherVersionError

BASE = Settings(discovery=Discovery.LOCAL, recordings=50, dropout=0.05, jobs=1, seed=1)


def known(settings: Settings) -> Figures:
    """A phone pays 2·k milliseconds, ten kilobytes up and one down for each thousand phones."""
    degree = {1000: 34, 10_000: 38, 100_000: 40}[settings.phones]
    return {
        "discovery": settings.discovery.value,
        "summation": settings.summation.value,
        "engine": settings.engine.value,
        "phones": settings.phones,
        "dropout": 0.05,
        "corrupted": 0.05,
        "survivors": settings.phones,
        "neighbours": degree,
        "centroids": 10,
        "seconds": settings.phones / 100,
        "phones_cpu_seconds": 1.0,
        "server_cpu_seconds": 2.0,
        "peak_memory_mb": 1000.0,
        "phone_cpu_ms": 2.0 * degree,
        "phone_bytes_up": 10_000.0,
        "phone_bytes_down": float(settings.phones),
        "ari_test": 0.9,
        "processes": 1,
        "machine": "an abacus",
    }


# -------------------------------------------------------------------------------------- growth


def test_the_slope_of_a_power_is_the_power() -> None:
    phones = [1000, 3000, 20_000, 100_000]
    found = growth(phones, [7 * n**0.25 for n in phones])
    assert found.slope == pytest.approx(0.25)
    assert found.wide == pytest.approx(0, abs=1e-7)
    assert found.ratio == pytest.approx(100**0.25)


def test_the_interval_is_that_of_a_line_through_three_points() -> None:
    # At 0, 1 and 2 decades lie 0, 1 and 1: the slope is 1/2, the residuals -1/6, 1/3 and -1/6, so
    # the standard error is √(1/6 / 1 / 2); t with one degree of freedom is tan(0.475 π).
    found = growth([1, 10, 100], [1, 10, 10])
    assert found.slope == pytest.approx(0.5)
    assert found.wide == pytest.approx(math.tan(0.475 * math.pi) * math.sqrt(1 / 12))
    assert found.ratio == pytest.approx(10)


def test_two_sizes_have_a_slope_and_no_interval() -> None:
    found = growth([1000, 100_000], [5, 50])
    assert (found.slope, found.wide) == (pytest.approx(0.5), None)
    assert str(found) == "n^(0.500), ×10.00"


@pytest.mark.parametrize(
    ("phones", "figures"), [([10, 10], [1, 2]), ([10], [1]), ([1, 2], [0, 1]), ([0, 1], [1, 1])]
)
def test_what_has_no_slope_is_refused(phones: list[float], figures: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="two sizes or more"):
        growth(phones, figures)


def test_what_is_said_compares_with_k_and_with_so_few_sizes() -> None:
    rows = [known(replace(BASE, phones=phones)) for phones in (1000, 10_000, 100_000)]
    found = phase.growths(rows)
    assert found["phone_cpu_ms"].slope == pytest.approx(found["neighbours"].slope)
    assert found["phone_cpu_ms"].ratio == pytest.approx(40 / 34)
    assert found["phone_bytes_up"].slope == pytest.approx(0)
    assert found["phone_bytes_down"].slope == pytest.approx(1)
    said = phase.statements(rows)
    assert re.fullmatch(r"a phone's CPU: n\^\(0\.035 ± 0\.\d+\), ×1\.18", said[0])
    assert re.match(r"what k alone would explain \(34 → 40\): n\^\(0\.035 ± ", said[3])
    assert said[-1] == (
        "from 1,000 to 100,000 phones: 3 sizes, one run each; "
        "95 % intervals by Student's t with 1 degree of freedom"
    )
    assert "no interval, as two sizes always lie on a line" in phase.statements(rows[:2])[-1]
    assert phase.statements(rows[:1]) == ["one size only: no growth can be measured"]


# --------------------------------------------------------------------------------------- figures


def test_a_phone_s_figures_are_those_of_one_that_stays(make_run: Callable[..., Run]) -> None:
    # Of eight steps each costs one phone 10 ms, 1,000 bytes up and 2,000 down.
    found = phase.row(replace(BASE, phones=100), make_run(seconds=12.5, peak_memory_mb=64.0))
    assert found["phone_cpu_ms"] == pytest.approx(80)
    assert found["phone_bytes_up"] == pytest.approx(8000)
    assert found["phone_bytes_down"] == pytest.approx(16_000)
    assert found["phones_cpu_seconds"] == pytest.approx(sum(0.99 - 0.01 * n for n in range(8)))
    assert found["server_cpu_seconds"] == pytest.approx(8 * 0.25 + 1.75)
    assert (found["seconds"], found["peak_memory_mb"]) == (12.5, 64.0)
    assert (found["survivors"], found["centroids"]) == (92, 4)
    ideal = phase.row(replace(BASE, phones=100, summation=SummationChoice.IDEAL), make_run())
    assert ideal["neighbours"] is None


def test_a_phase_without_a_result_is_no_figure(make_run: Callable[..., Run]) -> None:
    with pytest.raises(BenchmarkError, match=r"the phase of 500 phones ended: .*too few"):
        phase.row(BASE, make_run(interrupted=f"{PHASE_FAILED}too few"))
    with pytest.raises(KeyboardInterrupt):
        phase.row(BASE, make_run(interrupted="interrupted by Ctrl-C"))


def test_the_table_has_units_and_says_where() -> None:
    lines = phase.table([known(replace(BASE, phones=100_000))]).splitlines()
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|")
    assert lines[2] == (
        "| local | real | local | 100,000 | 40 | 1,000 | 1 | 2 | 1.05 | 80.0 | 10.0 | 100.0 |"
    )
    assert lines[-1] == "an abacus; 1 process"


def test_a_nation_is_extrapolated_from_the_largest_crowd_and_says_so() -> None:
    sizes = (1000, 100_000)
    rows = [known(replace(BASE, phones=phones, jobs=2)) for phones in sizes]
    rows[1] = {**rows[1], "phones_cpu_seconds": 7200.0, "server_cpu_seconds": 1000.0}
    rows[1] |= {"seconds": 6000.0, "processes": 2}
    found = extrapolated(rows[1], 1_000_000)
    k = found.neighbours
    assert k > 40
    # 80 ms for each of 10⁶ phones at k = 40, and 1,000 s for a tenth of them.
    assert found.phones_hours == pytest.approx(80_000 / 3600 * k / 40)
    assert found.server_hours == pytest.approx(10_000 / 3600 * k / 40)
    assert found.gigabytes_up == pytest.approx(10 * k / 40)
    # Two processes in 5,000 s did 7,200 s of phones' work.
    assert found.efficiency == pytest.approx(0.72)
    assert found.hours(16) == pytest.approx(found.phones_hours / 16 / 0.72 + found.server_hours)
    text = phase.page(rows)
    assert "| extrapolated, not measured | from | k |" in text
    assert f"| local, 1,000,000 phones | 100,000 | {k} | " in text
    ideal = [{**each, "neighbours": None} for each in rows]
    assert "extrapolated" not in phase.page(ideal)


# ------------------------------------------------------------------------------- what is finished


def test_what_is_done_is_kept_and_not_done_again(tmp_path: Path) -> None:
    done: list[int] = []
    room = 2

    def measure(settings: Settings) -> Figures:
        if len(done) == room:
            raise BenchmarkError("no memory")
        done.append(settings.phones)
        return known(settings)

    kept = tmp_path / "measured.jsonl"
    sizes = [replace(BASE, phones=phones) for phones in (10_000, 1000, 100_000)]
    with pytest.raises(BenchmarkError, match="no memory"):
        phase.benchmark(sizes, kept, measure)
    room = 5
    rows = phase.benchmark(sizes, kept, measure)
    assert done == [10_000, 1000, 100_000]
    assert rows == [known(settings) for settings in sizes]
    # Other series lie beside it, and are not mixed with it.
    others = [
        replace(BASE, phones=1000, engine=EngineChoice.RAY),
        replace(BASE, phones=1000, discovery=Discovery.SECURE_SUM),
    ]
    every = phase.series(phase.benchmark(others, kept, measure))
    assert {name: [each["phones"] for each in found] for name, found in every.items()} == {
        "local, real sums": [1000, 10_000, 100_000],
        "local, real sums, ray": [1000],
        "secure-sum, real sums": [1000],
    }
    assert len(kept.read_text().splitlines()) == 5
    assert len(phase.benchmark(sizes[:1], None, known)) == 1


def test_phases_of_another_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "measured.jsonl"
    with monkeypatch.context() as former:
        former.setattr(distribution, "version", lambda: "0.0.1")
        phase.benchmark([replace(BASE, phones=1000)], kept, known)
    before = kept.read_bytes()
    with pytest.raises(OtherVersionError, match=r"0\.0\.1"):
        phase.benchmark([replace(BASE, phones=10_000)], kept, known)
    assert kept.read_bytes() == before


def test_nothing_is_run_before_all_is_checked(tmp_path: Path) -> None:
    def measure(settings: Settings) -> Figures:
        raise AssertionError("work began")

    with pytest.raises(InvalidParametersError, match="phones=2"):
        phase.benchmark([replace(BASE, phones=1000), replace(BASE, phones=2)], None, measure)
    with pytest.raises(InvalidParametersError, match="at least one"):
        phase.benchmark([], None, measure)
    for words, message in (
        (("--phones", "1000,many"), "phones='1000,many': must be whole numbers"),
        (("--picture", str(tmp_path / "a.gif")), "ends in .png or .svg"),
        (("--picture", str(tmp_path / "none" / "a.png")), "there is no such folder"),
    ):
        failed = earshot("bench", "phase", *words)
        assert failed.returncode == 2
        assert message in failed.stderr


def test_the_picture_has_every_series_and_what_k_would_explain(tmp_path: Path) -> None:
    sizes = (1000, 10_000, 100_000)
    rows = [known(replace(BASE, phones=phones)) for phones in sizes]
    rows += [
        {**known(replace(BASE, phones=phones, summation=SummationChoice.IDEAL)), "neighbours": None}
        for phones in sizes
    ]
    draw(rows, tmp_path / "phases.svg")
    text = (tmp_path / "phases.svg").read_text()
    for name in ("local, real sums", "local, ideal sums", "by k alone", "100,000"):
        assert re.search(rf"<!-- {name} -->", text), name


# ------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("discovery", Discovery)
def test_phones_take_part_in_a_phase_of_any_size(
    discovery: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the usual δ they refuse one of a million: it could expose three of them."""
    asked: list[Settings] = []

    def benchmark(each: list[Settings], kept: Path | None) -> list[Figures]:
        asked.extend(each)
        return [known(replace(BASE, phones=1000))]

    monkeypatch.setattr(phase, "benchmark", benchmark)
    sizes = "1000,100000,1000000"
    done = earshot("bench", "phase", "--phones", sizes, "--discovery", discovery)
    assert done.returncode == 0, done.stderr
    for settings in asked:
        settings.check()
    assert [each.phones for each in asked] == [10**3, 10**5, 10**6]
    assert {each.delta for each in asked[:2]} == {Settings.delta}
    assert all(each.delta * each.phones < 0.11 for each in asked)


@pytest.mark.slow
def test_phases_of_real_phones_in_processes_of_their_own(tmp_path: Path) -> None:
    kept, picture = tmp_path / "measured.jsonl", tmp_path / "phases.png"
    words = ["phase", "--phones", "200,400", "--jobs", "1", "--json"]
    done = earshot("bench", *words, "--kept", kept, "--picture", picture)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [each["phones"] for each in told["phases"]] == [200, 400]
    assert [each["survivors"] for each in told["phases"]] == [190, 380]
    assert told["phases"] == [json.loads(line)["figures"] for line in kept.read_text().splitlines()]
    # A phase in this process is the same, and its messages are as long.
    steps = simulate(replace(BASE, phones=200)).steps
    up = sum(step.bytes_up / step.answered for step in steps if step.answered)
    first, second = told["phases"]
    assert first["phone_bytes_up"] == pytest.approx(up, rel=1e-3)
    for each in told["phases"]:
        assert 50 < each["peak_memory_mb"] < 2000
        assert 0 < each["phone_cpu_ms"] < 1000
        assert each["neighbours"] >= 20
    grown = told["series"]["local, real sums"]["growth"]
    slope = grown["phone_bytes_up"]["slope"]
    assert slope == pytest.approx(
        np.log2(second["phone_bytes_up"] / first["phone_bytes_up"]), abs=1e-9
    )
