"""What no phase of any kind can run under, and what no release of one looks like, is named."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)

from earshot_protocol.errors import (
    InvalidParametersError,
    MalformedMessageError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.phases import discovery_budget
from earshot_protocol.phases.discovery import MOST_ROWS, MOST_SUMS
from earshot_protocol.phases.discovery_budget import MOST_CELLS, cell_counts, usual_cells
from earshot_protocol.phases.learning import Cluster, LocalCentroids
from earshot_protocol.phases.learning_budget import affordable
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.phases.plan import ReleaseAnswer
from earshot_protocol.phases.statistics import LARGEST_CONTACTS, LARGEST_WINDOW
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Matrix

DAY = date(2026, 2, 3)
NOISE = (0.0, -1.0, math.inf, math.nan)
DELTA = (0.0, 1.0, math.nan)
WIDE = Matrix(1, 1025, np.ones(1025, "<f4").tobytes())
MANY_LABELS = tuple(map(str, range(257)))

WRONG: list[tuple[Callable[..., Parameters], str, tuple[Any, ...], str]] = [
    (discovery_parameters, "sums", (-1, 4), "sums"),
    (discovery_parameters, "cells_noise", NOISE, "cells_noise"),
    (discovery_parameters, "labels_noise", NOISE, "labels_noise"),
    (discovery_parameters, "delta", DELTA, "delta"),
    (discovery_parameters, "most_cells", (2, 10**6), "most_cells"),
    (discovery_parameters, "rows", (None, 0, 1, MOST_ROWS + 1), "rows"),
    (discovery_parameters, "kinds", (0, -1, 17, 1.5), "kinds=.* from 1 to 16"),
    (labelling_parameters, "labels", (("bus",), MANY_LABELS), "number of labels"),
    (labelling_parameters, "samples", (WIDE,), "dimensions=1025"),
    (labelling_parameters, "votes_noise", NOISE, "votes_noise"),
    (labelling_parameters, "check_noise", NOISE, "check_noise"),
    (labelling_parameters, "delta", DELTA, "delta"),
    (labelling_parameters, "largest_weight", (0, 17), "largest_weight"),
    (labelling_parameters, "threshold", (0.0, -1.0, 101.0, math.nan), "threshold"),
    (learning_parameters, "clustering_runs", (0, 17), "clustering_runs"),
    (statistics_parameters, "contacts", (0, LARGEST_CONTACTS + 1), "contacts"),
    (statistics_parameters, "noise", NOISE, "noise"),
    (statistics_parameters, "delta", DELTA, "delta"),
]


@pytest.mark.parametrize(("make", "name", "values", "said"), WRONG)
def test_a_value_out_of_bounds_is_named(
    make: Callable[..., Parameters], name: str, values: tuple[Any, ...], said: str
) -> None:
    make().check()
    for value in values:
        with pytest.raises(InvalidParametersError, match=said):
            make(**{name: value}).check()


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [(0, 2, "number of samples"), (4097, 2, "number of samples"), (1, 0, "dimensions")],
)
def test_samples_are_as_many_and_as_long_as_a_phase_takes(
    rows: int, columns: int, said: str
) -> None:
    samples = Matrix(rows, columns, bytes(8 * rows * columns))
    with pytest.raises(InvalidParametersError, match=said):
        labelling_parameters(samples=samples).check()


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (DAY, None),
        (None, DAY),
        (datetime(2026, 2, 3), DAY + timedelta(1)),  # a time of the day, which is a date to Python
        (DAY, DAY),
        (DAY, DAY - timedelta(1)),
        (DAY, DAY + LARGEST_WINDOW + timedelta(1)),
    ],
)
def test_what_is_no_window_is_refused(since: date | None, until: date | None) -> None:
    statistics_parameters(since=DAY, until=DAY + LARGEST_WINDOW).check()
    with pytest.raises(InvalidParametersError, match="window"):
        statistics_parameters(since=since, until=until).check()


@pytest.mark.parametrize(
    "make",
    [discovery_parameters, labelling_parameters, learning_parameters, statistics_parameters],
)
def test_without_an_honest_survivor_there_is_no_phase(make: Callable[..., Parameters]) -> None:
    make().check_feasible()
    with pytest.raises(InvalidParametersError, match="together they must stay below 1"):
        make(dropout=0.5, corrupted=0.5).check_feasible()


def test_noise_that_cannot_be_shared_ends_a_phase_before_any_work() -> None:
    with pytest.raises(InvalidParametersError, match="too large for phones to draw"):
        statistics_parameters(noise=1e9).check_feasible()


def test_where_no_graph_is_safe_there_is_no_phase() -> None:
    make = partial(statistics_parameters, phones=1000)
    make(dropout=0.3, corrupted=0.1).check_feasible()
    with pytest.raises(InvalidParametersError, match="1000 participants no safe graph"):
        make(dropout=0.3, corrupted=0.45).check_feasible()


def test_parameters_that_are_wrong_are_not_feasible_either() -> None:
    with pytest.raises(InvalidParametersError, match="step_seconds"):
        statistics_parameters(step_seconds=-1.0).check_feasible()


@pytest.mark.parametrize("sums", [-1, MOST_SUMS + 1, 1.5])
def test_noise_is_for_as_many_sums_as_a_phase_has(sums: int) -> None:
    with pytest.raises(InvalidParametersError, match="sums"):
        discovery_budget.affordable(discovery_parameters(sums=sums), 2.0)


def test_parameters_of_no_kind_have_no_plan() -> None:
    with pytest.raises(WrongStateError, match="not a kind of phase"):
        Parameters(phones=100, labels=("bus",), dropout=0.1, corrupted=0.05).plan()


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-6), (math.nan, 1e-6), (math.inf, 1e-6), (1e-12, 1e-6), (2.0, 1.0)],
)
def test_usual_cells_of_no_budget_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParametersError):
        usual_cells(10_000, epsilon, delta)


def test_usual_cells_are_twenty_or_forty_by_crowd_and_budget() -> None:
    # n√ρ is 600 at about 3,850 phones at ε = 1, and at 2,020 at ε = 2.
    for epsilon, phones in ((1.0, 3850), (2.0, 2020)):
        assert usual_cells(round(0.98 * phones), epsilon, 1e-6) == 20
        assert usual_cells(round(1.02 * phones), epsilon, 1e-6) == 40
    assert usual_cells(600, 1e6, 1e-6) == usual_cells(600, 12.0, 1e-6)


def test_a_single_sum_of_cells_gets_its_noise() -> None:
    start = CentroidSet.of(np.ones((20, 16)))
    one, none = (
        discovery_budget.affordable(
            discovery_parameters(start=start, labels=tuple("abcd"), sums=sums), 2.0, 0.5
        )
        for sums in (1, 0)
    )
    assert one.cells_noise == pytest.approx(one.labels_noise, rel=1e-9)
    assert none.cells_noise == none.labels_noise < one.labels_noise


@pytest.mark.parametrize("cells", [0, -1, 10**6])
def test_cells_are_as_many_as_a_phase_takes(cells: int) -> None:
    with pytest.raises(InvalidParametersError, match="cells"):
        cell_counts(10_000, 2.0, 1e-6, start=cells)
    assert cell_counts(10_000, 2.0, 1e-6, start=1) == (1, MOST_CELLS)
    assert cell_counts(10_000, 2.0, 1e-6, start=1, most=1) == (1, 1)


def test_the_fewest_centroids_are_one_of_each() -> None:
    learning_parameters(
        recordings=1,
        dimensions=1,
        local_centroids=1,
        top_local_centroids=1,
        top_global_centroids=1,
        centroid_votes=1,
        label_votes=1,
    ).check()


@pytest.mark.parametrize("unit", [Unit.RECORDING, Unit.PHONE])
def test_a_budget_is_scaled_and_split_as_before(unit: Unit) -> None:
    asked = learning_parameters(delta=1e-6)
    found = affordable(asked, 1.5, unit)
    spent = [each.event(unit) for each in found.plan().mechanisms.values()]
    assert 1.5 * (1 - 1e-6) < composed_epsilon(spent, 1e-6) <= 1.5
    ratios = np.divide(*(msgspec.structs.astuple(each.budget) for each in (found, asked)))
    assert ratios == pytest.approx(ratios[0], rel=1e-12)
    assert msgspec.structs.replace(found, budget=asked.budget) == asked


@pytest.mark.parametrize("text", ["a", "a=", "c=1", "a=1,a=1", "=1"])
def test_a_budget_names_each_step_once(text: str) -> None:
    assert parse_budget("a=1, b=0.5", ("a", "b")) == {"a": 1.0, "b": 0.5}
    with pytest.raises(InvalidParametersError, match="give each once"):
        parse_budget(text, ("a", "b"))


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan", "x"])
def test_a_budget_is_a_positive_number(value: str) -> None:
    with pytest.raises(InvalidParametersError, match="budget a"):
        parse_budget(f"a={value}", ("a", "b"))


def test_a_release_that_does_not_fit_its_task_is_refused() -> None:
    parameters = learning_parameters()
    task = Cluster(phase=bytes(16), index=3, parameters=parameters)
    right = LocalCentroids(phase=bytes(16), sender=3, centroids=Matrix.of(np.zeros((2, 2))))
    task.check_answer(3, right)
    for wrong, error, said in (
        ({"phase": bytes(15) + b"x"}, UnexpectedMessageError, "another phase"),
        ({"sender": 4}, UnexpectedMessageError, "in the name of 4"),
        ({"centroids": Matrix.of(np.zeros((3, 2)))}, MalformedMessageError, "3 × 2"),
        ({"centroids": Matrix.of(np.zeros((2, 3)))}, MalformedMessageError, "2 × 3"),
        ({"centroids": Matrix(2, 2, bytes(15))}, MalformedMessageError, "matrix|bytes|finite"),
        (
            {"centroids": Matrix(2, 2, np.full(4, np.nan, "<f4").tobytes())},
            MalformedMessageError,
            "matrix|bytes|finite",
        ),
    ):
        with pytest.raises(error, match=said):
            task.check_answer(3, msgspec.structs.replace(right, **wrong))
    with pytest.raises(UnexpectedMessageError, match="another phase"):
        task.check_answer(3, parameters)  # type: ignore[arg-type]
    with pytest.raises(UnexpectedMessageError, match="where LocalCentroids is expected"):
        task.check_answer(3, ReleaseAnswer(phase=bytes(16), sender=3))
