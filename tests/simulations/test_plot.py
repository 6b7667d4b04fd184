"""The picture of a run, and short texts of what holds arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from support.own_things import LOCAL, SMALL, Crowd
from support.simulated import KINDS

from earshot_simulations import FoundCentroids, PolicyChoice, Run, SummationChoice, simulate
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.reporting.figures import ShownFigure

LABELLING = LabellingSettings(
    phones=30, samples=6, policy=PolicyChoice.ANYTHING, summation=SummationChoice.IDEAL, jobs=1
)


def texts(figure: Figure) -> str:
    axes = figure.axes[0]
    every = [each.get_text() for each in axes.texts]
    return " ".join([axes.get_title(loc="left"), axes.get_xlabel(), *every]).replace("\n", " ")


@pytest.mark.parametrize(
    ("settings", "marked"),
    [
        (SMALL, ["what phones heard", "cell", "prototype of a label"]),
        (LOCAL, ["what phones heard", "kept centroid with its noisy votes"]),
    ],
    ids=["secure-sum", "local"],
)
def test_places_are_drawn_with_their_names_under_the_outcome(
    settings: Any, marked: list[str]
) -> None:
    run = simulate(replace(settings, phones=60, scenes=3))
    figure = run.plot()
    assert isinstance(figure, ShownFigure)
    told = texts(figure)
    assert told.startswith("60 of 60 phones found ")
    assert "\N{NO-BREAK SPACE}% of the time" in told
    named = {name for name in run.found.names if name is not None}
    assert named
    assert all(name in told for name in named)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [each.get_text() for each in legend.get_texts()] == marked
    shown = sum(len(np.atleast_2d(each.get_offsets())) for each in figure.axes[0].collections)
    assert shown >= len(run.found.points)
    assert figure._repr_html_().startswith('<img src="data:image/png;base64,')


def test_a_labelling_phase_is_drawn_by_label() -> None:
    run = simulate(LABELLING)
    figure = run.plot()
    assert "30 phones labelled" in texts(figure)
    ticks = [each.get_text() for each in figure.axes[0].get_yticklabels()]
    assert ticks == list(run.found.parameters.labels)


def test_a_statistics_phase_is_drawn_by_place() -> None:
    run = simulate(KINDS["statistics"])
    figure = run.plot()
    assert "24 of 24 phones were counted" in texts(figure)
    ticks = [each.get_text() for each in figure.axes[0].get_yticklabels()]
    assert ticks == ["scene 1", "scene 2", "scene 3"]


@pytest.mark.parametrize("stage", range(5))
def test_a_run_that_ended_early_says_so(stage: int, cut_short: Callable[[int], Run]) -> None:
    figure = cut_short(stage).plot()
    assert "The run ended early: too few phones stayed." in texts(figure)
    assert bool(figure.axes[0].collections) == (stage > 0)


def test_one_that_found_nothing_says_so(make_run: Callable[..., Run]) -> None:
    run = make_run(name_p_values=(1.0, 1.0, 1.0))
    assert "no environment was found and named" in texts(run.plot())


def test_it_draws_on_axes_that_are_given(make_run: Callable[..., Run]) -> None:
    figure = Figure()
    one, other = figure.subplots(1, 2)
    assert make_run().plot(other) is figure
    assert not one.collections
    assert other.collections


def test_pyplot_knows_nothing_of_it_and_no_style_stays(make_run: Callable[..., Run]) -> None:
    before = dict(matplotlib.rcParams)
    figure = make_run().plot()
    assert isinstance(figure, ShownFigure)
    figure._repr_html_()
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def test_nothing_that_holds_arrays_writes_pages() -> None:
    crowd = Crowd()
    recordings = crowd.heard(np.random.default_rng(0), 5000, 1.0)
    assert repr(recordings) == (
        "Recordings(points=float64 (5000, 4), labels=int64 (5000,), scenes=int64 (5000,))"
    )
    local = simulate(replace(LOCAL, phones=60, scenes=3))
    for thing in (
        recordings,
        FoundCentroids(recordings.points.astype(np.float32), recordings.labels.astype(np.int64)),
        local.found,
        simulate(SMALL, population=crowd).found,
        simulate(LABELLING).found,
        simulate(KINDS["statistics"]).found,
        replace(local.steps[0], dropped=tuple(range(5000))),
    ):
        assert type(thing).__name__ in repr(thing)
        assert len(repr(thing)) < 1000
        assert "\n" not in repr(thing)
