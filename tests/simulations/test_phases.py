"""What a simulated phase of any kind keeps to: one seed one result, early ends, files and pages."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.command import Earshot
from support.documented import loaded, options
from support.simulated import KINDS, essence, interrupted_after
from support.undrawn import undrawn

from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_simulations.engine.course import DISCOVER
from earshot_simulations.phases.run import DIGEST, Run, headline, plain, render, result
from earshot_simulations.phases.settings import (
    PhaseSettings,
    PolicyChoice,
    Settings,
    SummationChoice,
)
from earshot_simulations.phases.simulation import open_population, simulate
from earshot_simulations.versions import digest

Phase = PhaseSettings[Any]

RUNS: dict[str, Run[Any]] = {}
"""Runs of `KINDS` as they are, each done once."""


def run_of(kind: str) -> Run[Any]:
    if kind not in RUNS:
        RUNS[kind] = simulate(KINDS[kind])
    return RUNS[kind]


def of(kind: str, **changes: Any) -> Phase:
    settings: Any = KINDS[kind]
    changed: Phase = dataclasses.replace(settings, **changes)
    return changed


def steps(settings: Phase) -> list[str]:
    with open_population(settings) as population:
        return [step.name for step in settings.parameters(population).plan().steps]


def asked(run: Run[Any]) -> list[str]:
    """The steps that ask phones."""
    return [step.step for step in run.steps if step.step != DISCOVER]


each_kind = pytest.mark.parametrize("kind", KINDS)

# ------------------------------------------------------------------------------- one seed, one run


@each_kind
def test_the_ideal_sum_gives_what_the_real_one_gives_bit_for_bit(kind: str) -> None:
    settings = of(kind, dropout=0.2)
    ideal = simulate(settings)
    real = simulate(dataclasses.replace(settings, summation=SummationChoice.REAL))  # type: ignore[type-var]
    assert real.interrupted is None
    assert essence(real) == essence(ideal)
    assert asked(real) == steps(settings)
    gone = sum(len(step.dropped) for step in real.steps)
    assert gone == 4
    assert real.survivors == 24 - gone


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "statistics")) for kind in KINDS],
)
def test_processes_do_not_change_the_result(kind: str) -> None:
    assert essence(simulate(of(kind, jobs=2))) == essence(run_of(kind))


@each_kind
def test_the_same_seed_gives_the_same_run_and_another_another(kind: str) -> None:
    run = run_of(kind)
    assert essence(simulate(KINDS[kind])) == essence(run)
    assert essence(simulate(of(kind, seed=77))) != essence(run)


@each_kind
def test_progress_counts_up_to_the_phones_that_are_asked(kind: str) -> None:
    seen: dict[str, list[tuple[int, int]]] = {}

    def note(what: str, done: int, total: int) -> None:
        seen.setdefault(what, []).append((done, total))

    simulate(KINDS[kind], note)
    assert list(seen) == steps(KINDS[kind])
    for counts in seen.values():
        assert counts[0] == (0, 24)
        assert counts[-1] == (24, 24)
        assert counts == sorted(counts)


@each_kind
def test_costs_are_those_of_the_releases(kind: str) -> None:
    run = run_of(kind)
    assert {release.step for release in run.privacy} == set(run.costs)
    for unit in LEDGER_UNITS:
        sums = sum(costs[unit].epsilon for costs in run.costs.values())
        assert 0 < run.together[unit].epsilon <= sums * (1 + 1e-9)


# -------------------------------------------------------------------------------------- early ends

PLACES = [
    pytest.param(kind, place, marks=[] if place in (0, 3, 5) else [pytest.mark.slow])
    for kind, count in (("secure-sum", 12), ("local", 9), ("labelling", 8), ("statistics", 4))
    for place in range(count)
]


@pytest.mark.parametrize(("kind", "place"), PLACES)
def test_an_interrupt_at_any_step_leaves_what_was_finished(kind: str, place: int) -> None:
    settings = KINDS[kind]
    names = steps(settings)
    stop = names[place]

    run = simulate(settings, interrupted_after(stop))
    assert run.interrupted == f"interrupted in the step '{stop}'"
    assert run.stopped
    assert asked(run) == names[:place]
    # What leaves the phones in a step is spent once it has begun.
    with open_population(settings) as population:
        plan = settings.parameters(population).plan()
    left = {name for step in plan.steps[: place + 1] for name in step.releases}
    assert run.privacy == tuple(each for each in plan.releases() if each.step in left)
    assert set(run.costs) == left
    unlike = essence(run_of(kind))
    assert essence(run) != unlike
    with undrawn():
        page = html.unescape(render(run))
    assert f"The run ended early: interrupted in the step '{stop}'." in page
    figures = result(run)
    assert f"interrupted in the step '{stop}'" in (
        figures.get("interrupted"),
        figures.get("failure"),
    )


@pytest.mark.parametrize("kind", ["secure-sum", "local"])
def test_an_interrupt_while_phones_hear_is_a_run_without_steps(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiteRtEncoder, "embed", lambda self, samples: samples[:, :128])

    def interrupt(what: str, done: int, total: int) -> None:
        assert what == "hear"
        raise KeyboardInterrupt

    own = {"cells": 10} if kind == "secure-sum" else {}
    run = simulate(of(kind, data="soundscapes", **own), interrupt)
    assert run.interrupted == "interrupted in the step 'hear'"
    assert (run.steps, run.privacy, run.found.global_centroids) == ((), (), None)
    assert result(run)["survivors"] == 24
    page = render(run)
    assert f"a simulated {run.found.phase}" in page
    assert "The run ended before" in page


@pytest.mark.slow
@each_kind
def test_an_interrupt_in_two_processes_ends_as_well(kind: str) -> None:
    settings = of(kind, jobs=2)
    stop = steps(settings)[2]

    run = simulate(settings, interrupted_after(stop))
    assert run.interrupted is not None
    assert stop in run.interrupted
    # And the processes are there for the next run.
    assert simulate(settings).interrupted is None


# ---------------------------------------------------------------------------------------- settings

WRONG: list[tuple[dict[str, object], str]] = [
    ({"phones": 2}, "phones=2"),
    ({"recordings": 0}, "recordings=0"),
    ({"scenes": 0}, "scenes=0"),
    ({"jobs": 0}, "jobs=0"),
    ({"labelled": 2.0}, "labelled=2.0"),
    ({"labelled": -0.1}, "labelled=-0.1"),
    ({"labelled": float("nan")}, "labelled=nan"),
    ({"seed": -1}, "seed=-1"),
    ({"dropout": 1.0}, "dropout=1.0"),
    ({"dropout": 0.6, "corrupted": 0.5}, "dropout=0.6 and corrupted=0.5|honest_survivors=-2"),
    ({"phones": 500, "dropout": 0.4, "corrupted": 0.4}, "no safe graph"),
    ({"policy": PolicyChoice.DEFAULT}, "no phone would take part"),
]


@each_kind
@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_settings_that_cannot_be_simulated_are_named_before_any_work(
    kind: str, changes: dict[str, object], message: str
) -> None:
    seen: list[str] = []
    with pytest.raises(InvalidParametersError, match=message):
        simulate(of(kind, **changes), lambda what, done, total: seen.append(what))
    assert seen == []


@each_kind
def test_the_defaults_can_be_simulated(kind: str) -> None:
    settings: Any = KINDS[kind]
    same = {"discovery": settings.discovery} if isinstance(settings, Settings) else {}
    for data in ("blobs", "soundscapes"):
        type(settings)(data=data, **same).check()


@pytest.mark.parametrize("words", [(), ("labelling",), ("statistics",)])
def test_every_option_has_a_help_text_that_is_a_sentence(words: tuple[str, ...]) -> None:
    command = loaded("simulate")
    for word in words:
        command = command[word]
    found = {name: argument.parameter.help or "" for name, argument in options(command).items()}
    assert {"--phones", "--dropout", "--seed", "--json"} <= found.keys()
    sentence = re.compile(r"[^a-z].*\.", re.DOTALL)
    assert [name for name, said in found.items() if not sentence.fullmatch(said.strip())] == []


# ------------------------------------------------------------------------------- files and pages


@each_kind
def test_a_result_survives_json_and_has_its_settings(kind: str) -> None:
    run = run_of(kind)
    figures = result(run)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert figures["configuration"] == plain(KINDS[kind].configuration())
    assert (figures["phones"], figures["survivors"], figures["version"]) == (24, 24, run.version)
    together = figures["privacy"]["together"]
    assert together["phone"]["epsilon"] == run.together[LEDGER_UNITS[-1]].epsilon
    assert set(figures["seconds"]["steps"]) == set(figures["bytes_up_per_phone"])


@pytest.mark.parametrize("kind", ["secure-sum", "local"])
def test_a_result_that_can_be_repeated_is_sealed(kind: str) -> None:
    figures = result(run_of(kind))
    assert figures.pop(DIGEST) == digest(figures)


@each_kind
def test_a_page_stands_alone_and_tells_the_outcome_costs_and_steps(kind: str) -> None:
    run = run_of(kind)
    page = html.unescape(render(run)).replace("\N{NO-BREAK SPACE}", " ")
    assert headline(run) in page
    assert f"a simulated {run.found.phase}" in page
    for name, value in run.found.figures().items():
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page
    for heading in (
        "Privacy spent",
        "Who vanished when, and who was refused",
        "Time and traffic",
        "How to repeat it",
    ):
        assert f"<h2>{heading}</h2>" in page
    assert all(step.step in page for step in run.steps)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)


@each_kind
@pytest.mark.usefixtures("no_pictures")
def test_the_command_of_a_page_repeats_the_run(kind: str, tmp_path: Path, earshot: Earshot) -> None:
    run = run_of(kind)
    run.write(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (command,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    words = shlex.split(html.unescape(command).replace("\\\n", " "))
    assert words[:2] == ["earshot", "simulate"]
    status, out, err = earshot(*words[1:], "--json")
    assert status == 0, err
    again, kept = json.loads(out), json.loads((tmp_path / "result.json").read_text())
    for name in kept.keys() - {"seconds", "peak_memory_mb", DIGEST}:
        assert again[name] == kept[name], name
