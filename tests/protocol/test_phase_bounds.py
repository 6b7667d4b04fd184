"""What no phase of any kind can run under, and what no release of one looks like, is named."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
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
from support.refusals import refused

from earshot_protocol.errors import (
    InvalidParametersError,
    MalformedMessageError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.phases.discovery import MOST_SUMS
from earshot_protocol.phases.discovery_budget import MOST_CELLS, cell_counts, noises, usual_cells
from earshot_protocol.phases.learning import Cluster, LocalCentroids
from earshot_protocol.phases.learning_budget import affordable
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.phases.plan import ReleaseAnswer
from earshot_protocol.phases.statistics import LARGEST_CONTACTS, LARGEST_WINDOW
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.wire import Matrix

DAY = date(2026, 2, 3)
NOISE = (0.0, -1.0, math.inf, math.nan)
DELTA = (0.0, 1.0, math.nan)

NOBODY_LEFT = {"dropout": 0.5, "corrupted": 0.5}
KINDS = [discovery_parameters, labelling_parameters, learning_parameters, statistics_parameters]


def check(make: Callable[..., Parameters], changes: dict[str, Any]) -> None:
    make(**changes).check()


def check_feasible(make: Callable[..., Parameters], changes: dict[str, Any]) -> None:
    make(**changes).check_feasible()


@pytest.mark.parametrize("make", KINDS)
def test_a_usual_phase_is_feasible(make: Callable[..., Parameters]) -> None:
    check(make, {})
    check_feasible(make, {})


test_a_value_out_of_bounds_is_named = refused(
    InvalidParametersError,
    *[
        (name, check, make, {name: value})
        for make, name, values in (
            (discovery_parameters, "sums", (-1, 4)),
            (discovery_parameters, "cells_noise", NOISE),
            (discovery_parameters, "labels_noise", NOISE),
            (discovery_parameters, "delta", DELTA),
            (discovery_parameters, "most_cells", (2, 10**6)),
            (labelling_parameters, "votes_noise", NOISE),
            (labelling_parameters, "check_noise", NOISE),
            (labelling_parameters, "delta", DELTA),
            (labelling_parameters, "largest_weight", (0, 17)),
            (labelling_parameters, "threshold", (0.0, -1.0, 101.0, math.nan)),
            (learning_parameters, "clustering_runs", (0, 17)),
            (statistics_parameters, "contacts", (0, LARGEST_CONTACTS + 1)),
            (statistics_parameters, "epsilon", NOISE),
        )
        for value in values
    ],
    ("number of labels", check, labelling_parameters, {"labels": ("bus",)}),
    ("number of labels", check, labelling_parameters, {"labels": tuple(map(str, range(257)))}),
    ("dimensions=1025", check, labelling_parameters, {"samples": Matrix.of(np.ones((1, 1025)))}),
    *[
        (said, check, labelling_parameters, {"samples": Matrix(rows, columns, bytes(size))})
        for rows, columns, size, said in (
            (0, 2, 0, "number of samples"),
            (4097, 2, 65_552, "number of samples"),
            (1, 0, 0, "dimensions"),
        )
    ],
    *[
        ("window", check, statistics_parameters, {"since": since, "until": until})
        for since, until in (
            (DAY, None),
            (None, DAY),
            (datetime(2026, 2, 3), DAY + timedelta(1)),  # a time of the day: to Python, a date
            (DAY, DAY),
            (DAY, DAY - timedelta(1)),
            (DAY, DAY + LARGEST_WINDOW + timedelta(1)),
        )
    ],
    *[
        (
            "together they must stay below 1",
            check_feasible,
            make,
            {"dropout": 0.5, "corrupted": 0.5},
        )
        for make in KINDS
    ],
    # Noise that cannot be shared ends a phase before any work.
    (
        r"too large for phones.*cannot be shared",
        check_feasible,
        statistics_parameters,
        {"epsilon": 1e-6},
    ),
    ("step_seconds", check_feasible, statistics_parameters, {"step_seconds": -1.0}),
)


def test_the_longest_window_is_accepted() -> None:
    check(statistics_parameters, {"since": DAY, "until": DAY + LARGEST_WINDOW})


ASKED: dict[str, Any] = {"label_share": 0.5, "cells": 20, "dimensions": 8, "labels": 2}

test_a_budget_that_buys_nothing_is_refused = refused(
    InvalidParametersError,
    *[
        ("sums", functools.partial(noises, 2.0, 1e-6, sums=sums, **ASKED))
        for sums in (-1, MOST_SUMS + 1, 1.5)
    ],
    *[(None, usual_cells, 10_000, epsilon, 1e-6) for epsilon in (0.0, math.nan, math.inf, 1e-12)],
    (None, usual_cells, 10_000, 2.0, 1.0),
    *[
        ("cells", functools.partial(cell_counts, 10_000, 2.0, 1e-6, start=cells))
        for cells in (0, -1, 10**6)
    ],
    *[
        ("give each once", parse_budget, text, ("a", "b"))
        for text in ("a", "a=", "c=1", "a=1,a=1", "=1")
    ],
    *[
        ("budget a", parse_budget, f"a={value}", ("a", "b"))
        for value in ("0", "-1", "inf", "nan", "x")
    ],
)


def test_a_budget_names_each_step_once() -> None:
    assert parse_budget("a=1, b=0.5", ("a", "b")) == {"a": 1.0, "b": 0.5}


def test_cells_are_as_many_as_a_phase_takes() -> None:
    assert cell_counts(10_000, 2.0, 1e-6, start=1) == (1, MOST_CELLS)
    assert cell_counts(10_000, 2.0, 1e-6, start=1, most=1) == (1, 1)


def test_parameters_of_no_kind_have_no_plan() -> None:
    with pytest.raises(WrongStateError, match="not a kind of phase"):
        Parameters(phones=100, labels=("bus",), dropout=0.1, corrupted=0.05).plan()


def test_usual_cells_are_twenty_or_forty_by_crowd_and_budget() -> None:
    # n√ρ is 600 at about 3,850 phones at ε = 1, and at 2,020 at ε = 2.
    for epsilon, phones in ((1.0, 3850), (2.0, 2020)):
        assert usual_cells(round(0.98 * phones), epsilon, 1e-6) == 20
        assert usual_cells(round(1.02 * phones), epsilon, 1e-6) == 40
    assert usual_cells(600, 1e6, 1e-6) == usual_cells(600, 12.0, 1e-6)


def test_a_single_sum_of_cells_gets_its_noise() -> None:
    asked: dict[str, Any] = {"cells": 20, "dimensions": 16, "labels": 4, "label_share": 0.5}
    one = noises(2.0, 1e-6, sums=1, **asked)
    assert one.cells == pytest.approx(one.labels, rel=1e-9)
    none = noises(2.0, 1e-6, sums=0, **asked)
    assert none.cells == none.labels < one.labels


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


TASK = Cluster(phase=bytes(16), index=3, parameters=learning_parameters())
RELEASE = LocalCentroids(phase=bytes(16), sender=3, centroids=Matrix.of(np.zeros((2, 2))))


def check_release(changes: dict[str, Any]) -> None:
    TASK.check_answer(3, msgspec.structs.replace(RELEASE, **changes))


def test_a_release_that_fits_its_task_is_accepted() -> None:
    check_release({})


test_a_release_of_another_task_is_refused = refused(
    UnexpectedMessageError,
    ("another phase", check_release, {"phase": bytes(15) + b"x"}),
    ("in the name of 4", check_release, {"sender": 4}),
    ("another phase", TASK.check_answer, 3, TASK.parameters),
    (
        "where LocalCentroids is expected",
        TASK.check_answer,
        3,
        ReleaseAnswer(phase=bytes(16), sender=3),
    ),
)
test_a_release_of_another_shape_is_refused = refused(
    MalformedMessageError,
    ("3 × 2", check_release, {"centroids": Matrix.of(np.zeros((3, 2)))}),
    ("2 × 3", check_release, {"centroids": Matrix.of(np.zeros((2, 3)))}),
    *[
        ("matrix|bytes|finite", check_release, {"centroids": Matrix(2, 2, data)})
        for data in (bytes(15), np.full(4, np.nan, "<f4").tobytes())
    ],
)
