"""Runs and sweeps in a notebook: short in words, safe as a table, and data frames."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from earshot_protocol.distribution import MissingExtraError
from earshot_simulations import (
    Discovery,
    PolicyChoice,
    Run,
    Settings,
    SimulatedStep,
    SummationChoice,
    result,
    simulate,
    sweep,
)
from earshot_simulations.sweeps.table import SweepTable

TINY = Settings(
    phones=24,
    recordings=10,
    scenes=3,
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=4,
)


class Cells(HTMLParser):
    """The texts of a table's cells, and the names of all elements."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(TINY)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> SweepTable:
    return sweep(TINY, {"epsilon": [4.0, 20.0]}, tmp_path_factory.mktemp("sweep"), seeds=2)


def test_a_run_is_a_few_lines_with_what_is_asked_first(run: Run) -> None:
    lines = repr(run).splitlines()
    assert len(lines) <= 9
    assert max(map(len, lines)) <= 88
    text = " ".join(repr(run).split())
    found = run.found
    for part in (
        "discovery phase over blobs",
        "seed 4",
        "24 of 24",
        f"heard: {found.ari_train:.2g}",
        f"held out: {found.ari_test:.2g}",
        "right name, held out: ",
        "ε per recording, at δ = 10⁻⁶: ",
        "ε per phone (zero-out), at δ = 10⁻⁶: ",
        "wall-clock time: ",
    ):
        assert part in text


def test_a_run_that_ended_early_says_so(make_run: Callable[..., Run]) -> None:
    assert "ended early: the lights went out" in repr(make_run(interrupted="the lights went out"))


def test_a_notebook_s_table_escapes_what_others_wrote(make_run: Callable[..., Run]) -> None:
    evil = "<script>alert(1)</script>"
    markup = make_run(population=evil)._repr_html_()
    cells = Cells(markup)
    assert cells.tags == {"table", "caption", "tbody", "tr", "th", "td"}
    assert any(evil in text for text in cells.texts)
    assert "92 of 100" in [" ".join(text.split()) for text in cells.texts]


def test_a_run_is_one_row_of_what_result_json_has(run: Run) -> None:
    frame = run.to_frame()
    figures = result(run)
    assert frame.shape[0] == 1
    row = frame.iloc[0]
    for name in ("phones", "survivors", "ari_test", "label_accuracy", "clear_label_accuracy"):
        assert row[name] == figures[name]
    assert row["configuration.seed"] == 4
    assert row["configuration.heterogeneity.concentration"] == 0.5
    spent = figures["privacy"]["together"]["phone"]["epsilon"]
    assert row["privacy.together.phone.epsilon"] == spent
    json.dumps(row.to_dict(), default=float)  # no lists, no tables
    assert not [value for value in row if isinstance(value, list | dict)]
    assert not [name for name in frame if name.startswith(("provenance", "digest"))]


def test_a_sweep_is_its_rows(table: SweepTable) -> None:
    frame = table.to_frame()
    rows = table.rows()
    assert list(frame) == list(rows[0])
    assert frame["seed"].tolist() == [0, 1, 0, 1]
    assert frame["epsilon"].tolist() == [4.0, 4.0, 20.0, 20.0]
    means = frame.groupby("epsilon")["ari_test"].mean()
    expected = [np.mean([row["ari_test"] for row in rows[i : i + 2]]) for i in (0, 2)]
    np.testing.assert_allclose(means, expected)


def test_a_sweep_shows_its_points_and_their_means(table: SweepTable) -> None:
    lines = repr(table).splitlines()
    assert lines[0] == "<SweepTable: 2 points, 2 seeds each"
    assert [line.strip().partition(";")[0] for line in lines[1:]] == [
        "epsilon: 4.0",
        "epsilon: 20.0",
    ]
    cells = Cells(table._repr_html_())
    for estimate in table.estimates("ari_test"):
        assert str(estimate) in cells.texts
        assert str(estimate) in repr(table)


@pytest.mark.parametrize("kind", ["run", "table"])
def test_without_pandas_the_extra_is_named(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = request.getfixturevalue(kind)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'earshot-sensing\[tables\]'"):
        held.to_frame()


# --------------------------------------------------------------------------- told step by step


@pytest.mark.parametrize("discovery", list(Discovery))
def test_a_callback_is_told_of_every_step_when_it_is_over(discovery: Discovery) -> None:
    told: list[SimulatedStep] = []
    started: list[tuple[str, int]] = []

    def progress(what: str, done: int, total: int, line: str | None = None) -> None:
        started.append((what, len(told)))

    settings = Settings(**{**vars(TINY), "discovery": discovery, "dropout": 0.2})
    run = simulate(settings, progress, after_step=told.append)
    assert tuple(told) == run.steps
    assert len({step.step for step in told}) == len(told) > 4
    assert sum(len(step.dropped) for step in told) == run.phones - run.survivors > 0
    # Each is told before the next begins, not all of them at the end.
    before = {what: count for what, count in reversed(started) if what != "hear"}
    assert before == {step.step: number for number, step in enumerate(told) if step.asked}


class Enough(Exception):  # noqa: N818 - an exception of the caller's own
    """Raised by a callback."""


def test_an_exception_of_a_callback_ends_the_run_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SimulatedStep] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def stop(step: SimulatedStep) -> None:
        told.append(step)
        if len(told) == 2:
            assert list(tmp_path.iterdir())
            raise Enough

    with pytest.raises(Enough):
        simulate(TINY, after_step=stop)
    assert len(told) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_callback_may_interrupt_and_keep_what_is_finished() -> None:
    def stop(step: SimulatedStep) -> None:
        if step.step == "cells 1: unmask":
            raise KeyboardInterrupt

    run = simulate(TINY, after_step=stop)
    assert run.stopped
    assert run.interrupted == "interrupted in the step 'cells 1: unmask'"
    assert run.steps[-1].step == "cells 1: unmask"
