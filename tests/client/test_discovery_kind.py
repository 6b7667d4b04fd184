"""A phone's part in a discovery phase: against a phone from the document, and what it refuses."""

from __future__ import annotations

from typing import Any

import mpmath
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import textbook_cells as textbook
from support.endings import discovered
from support.parameters import discovery_parameters
from support.phase_tasks import OTHER_PHASE, PHASE, opening, sent_input
from support.refusing_phone import CountedBytes, refuses

from earshot_client.labels import LabelHierarchy
from earshot_client.phases.discovery import DISCOVERY
from earshot_client.phases.memory import Memory
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError, RemoteError, UnexpectedMessageError
from earshot_protocol.geometry import unit_rows
from earshot_protocol.phases.discovery import (
    DiscoveryParameters,
    LabelCells,
    SumCells,
    cells,
)
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.messages import (
    AdvertiseKeys,
)
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Matrix, Task
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import AGREES, HeardPoints

CLASSES = ("bus", "park")
POINTS = np.array([[2.0, 0.1], [0.4, 0.5], [-1.0, 0.2], [0.1, 3.0], [0.0, 0.0]], np.float32)
CHOICES = ("bus", "park", None, "bus", "park")
MOVED = Matrix.of(unit_rows(np.array([[0.3, 0.8], [0.9, 0.1], [-0.7, -0.6]])))
PARAMETERS = discovery_parameters(labels=CLASSES, sums=2, labels_noise=6.0)
SILENT = discovery_parameters(labels=CLASSES, sums=2, cells_noise=1e-9, labels_noise=1e-9)
"""Of a phase with so little noise that a share of it is zero."""


def phone(points: np.ndarray = POINTS, choices: Any = CHOICES, encoder: str = "points") -> Phone:
    return Phone(
        MemoryStore(points, choices),
        HeardPoints(encoder, points.shape[1]),
        AGREES,
        hierarchy=LabelHierarchy.flat(CLASSES),
        random=CountedBytes(),
        summation=IDEAL,
    )


def advertise(parameters: DiscoveryParameters, part: str, index: int = 3) -> AdvertiseKeys:
    columns = len(parameters.labels) if part == "labels" else parameters.dimensions
    shape = (parameters.most_cells, columns)
    return opening(parameters, part, shape, part.encode().ljust(16), index)


def sum_cells(number: int, agreed: DiscoveryParameters = PARAMETERS, **changes: Any) -> SumCells:
    first = number == 1
    return msgspec.structs.replace(
        SumCells(
            phase=PHASE,
            repetition=number,
            parameters=agreed if first else None,
            centroids=None if first else MOVED,
            advertise=advertise(agreed, cells(number)),
        ),
        **changes,
    )


def label_cells(agreed: DiscoveryParameters = PARAMETERS, **changes: Any) -> LabelCells:
    return msgspec.structs.replace(
        LabelCells(phase=PHASE, centroids=MOVED, advertise=advertise(agreed, "labels")),
        **changes,
    )


def released(asked: Phone, phase: bytes = PHASE) -> list[str]:
    return sorted({release.step for release in asked.ledger.releases_in(phase)})


# -------------------------------------------------------------------------------- what it puts in


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32),
    st.integers(0, 12),
    st.integers(1, 6),
    st.integers(0, 3),
    st.integers(1, 7),
    st.integers(1, 4),
)
def test_inputs_are_those_of_a_phone_from_the_document(
    seed: int, number: int, count: int, more: int, dimensions: int, names: int
) -> None:
    random = np.random.default_rng(seed)
    labels = tuple(f"label {i}" for i in range(names))
    start = CentroidSet.of(random.standard_normal((count, dimensions)))
    room = count + more
    moved = Matrix.of(random.standard_normal((random.integers(1, room + 1), dimensions)))
    points = (random.standard_normal((number, dimensions)) * 3).astype(np.float32)
    chosen = random.integers(-1, names, number)
    parameters = discovery_parameters(labels=labels, start=start, most_cells=room, sums=1)
    store = MemoryStore(points, [None if i < 0 else labels[i] for i in chosen])
    memory = Memory(
        store, HeardPoints("points", dimensions), LabelHierarchy.flat(labels), random.bytes
    )
    begins = advertise(parameters, "labels")
    with mpmath.workdps(60):
        for centroids, told in (
            (start.centroids(), {"parameters": parameters}),
            (moved.array(), {"centroids": moved}),
        ):
            rows = centroids.tolist()
            summed = DISCOVERY.contribute[SumCells](
                memory, parameters, SumCells(phase=PHASE, repetition=1, advertise=begins, **told)
            )
            assert np.array_equal(summed, textbook.cells_input(points.tolist(), rows, room))
            counted = DISCOVERY.contribute[LabelCells](
                memory, parameters, LabelCells(phase=PHASE, advertise=begins, **told)
            )
            expected = textbook.labels_input(points.tolist(), chosen.tolist(), rows, names, room)
            assert np.array_equal(counted, expected)
            for made in (summed, counted):
                assert isinstance(made, np.ndarray)
                assert sum(int(x) ** 2 for x in made.flat) <= GRID**2


def test_the_input_reaches_the_sum_and_each_part_is_in_the_ledger_when_it_leaves() -> None:
    asked = phone()
    start = PARAMETERS.start.centroids().tolist()
    with mpmath.workdps(60):
        first = sent_input(asked, sum_cells(1, SILENT))
        assert np.array_equal(first, textbook.cells_input(POINTS.tolist(), start))
        assert released(asked) == ["cells 1"]
        second = sent_input(asked, sum_cells(2, SILENT))
        rows = MOVED.array().tolist()
        assert np.array_equal(second, textbook.cells_input(POINTS.tolist(), rows))
        assert released(asked) == ["cells 1", "cells 2"]
        third = sent_input(asked, label_cells(SILENT))
        labels = [0, 1, -1, 0, 1]
        assert np.array_equal(third, textbook.labels_input(POINTS.tolist(), labels, rows, 2))
    assert released(asked) == ["cells 1", "cells 2", "labels"]
    assert not np.array_equal(first, second)


def test_noise_is_added_to_every_entry() -> None:
    quiet, noisy = (sent_input(phone(), sum_cells(1, each)) for each in (SILENT, PARAMETERS))
    assert (quiet != noisy).all()
    deviation = PARAMETERS.cells_noise * GRID / np.sqrt(PARAMETERS.noise_survivors)
    assert 0.2 * deviation < np.std(noisy - quiet) < 3 * deviation


def test_a_phone_that_heard_nothing_sends_noise_alone() -> None:
    nothing = np.empty((0, 2), np.float32)
    assert not sent_input(phone(nothing, ()), sum_cells(1, SILENT)).any()
    assert sent_input(phone(nothing, ()), sum_cells(1)).all()
    unlabelled = phone(POINTS, (None,) * len(POINTS))
    sent_input(unlabelled, sum_cells(1, SILENT))
    assert not sent_input(unlabelled, label_cells(SILENT)).any()


def test_a_phone_that_missed_a_sum_takes_part_in_the_next() -> None:
    asked = phone()
    asked.answer(sum_cells(1))
    sent_input(asked, label_cells())
    assert released(asked) == ["labels"]


def test_without_a_sum_of_cells_labels_come_first() -> None:
    parameters = discovery_parameters(labels=CLASSES, sums=0)
    asked = phone()
    sent_input(asked, label_cells(parameters, parameters=parameters, centroids=None))
    assert released(asked) == ["labels"]


# ---------------------------------------------------------------------------------- what it refuses


LATER: list[tuple[Task, type[RemoteError], str]] = [
    (sum_cells(2, centroids=None), RefusedError, "without centroids"),
    (label_cells(centroids=None), RefusedError, "without"),
    (
        sum_cells(2, centroids=Matrix.of(np.zeros((0, 2)))),
        RefusedError,
        r"shape \(0, 2\); this phase has 2 dimensions and at least one centroid, and at most 3",
    ),
    (label_cells(centroids=Matrix.of(np.ones((4, 2)))), RefusedError, r"shape \(4, 2\)"),
    (sum_cells(2, centroids=Matrix.of(np.eye(3))), RefusedError, r"shape \(3, 3\)"),
    (sum_cells(2, repetition=3), UnexpectedMessageError, "SumCells in a phase that has no such"),
    (sum_cells(2, phase=OTHER_PHASE), UnexpectedMessageError, "a phase that this phone is not in"),
    (sum_cells(2, advertise=advertise(PARAMETERS, "cells 2", index=4)), RefusedError, "number"),
    # The bound of another sum, and less noise than agreed.
    (
        sum_cells(2, advertise=advertise(PARAMETERS, "labels")),
        RefusedError,
        "parameters of the cells 2's secure sum",
    ),
    (
        sum_cells(2, advertise=advertise(SILENT, "cells 2")),
        RefusedError,
        "parameters of the cells 2's secure sum",
    ),
]


@pytest.mark.parametrize(("task", "error", "words"), LATER)
def test_a_later_task_that_does_not_fit_is_refused(
    task: Task, error: type[RemoteError], words: str
) -> None:
    asked = phone()
    sent_input(asked, sum_cells(1))
    refuses(asked, task, error, words)
    # And the phone goes on with what fits.
    sent_input(asked, sum_cells(2))
    sent_input(asked, label_cells())
    assert released(asked) == ["cells 1", "cells 2", "labels"]


@pytest.mark.parametrize("number", [1, 2])
def test_each_sum_is_added_to_once(number: int) -> None:
    asked = phone()
    sent_input(asked, sum_cells(1))
    if number == 2:
        sent_input(asked, sum_cells(2))
    again = sum_cells(number, advertise=renamed(advertise(PARAMETERS, cells(number))))
    for task in (again, msgspec.structs.replace(again, centroids=MOVED, parameters=None)):
        assert refuses(asked, task, RefusedError).rule is Rule.REPEATED


def renamed(begins: AdvertiseKeys) -> AdvertiseKeys:
    return msgspec.structs.replace(begins, sum_id=b"another sum's id")


@pytest.mark.parametrize(
    "changes",
    [
        {"cells_noise": 4.0},
        {"labels_noise": 2.0},
        {"noise_crowd": 50},
        {"sums": 3},
        {"delta": 1e-7},
        {"start": CentroidSet.of(np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]))},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_parameters_that_change_in_the_middle_of_a_phase_are_refused(
    changes: dict[str, Any],
) -> None:
    asked = phone()
    sent_input(asked, sum_cells(1))
    changed = msgspec.structs.replace(PARAMETERS, **changes)
    begins = renamed(advertise(changed, "cells 2"))
    for task in (
        sum_cells(2, parameters=changed, centroids=None, advertise=begins),
        msgspec.structs.replace(
            sum_cells(1, changed), advertise=renamed(advertise(changed, "cells 1"))
        ),
        label_cells(
            parameters=changed, centroids=None, advertise=renamed(advertise(changed, "labels"))
        ),
    ):
        assert refuses(asked, task, RefusedError).rule in {Rule.REPEATED, Rule.CHANGED}
    sent_input(asked, sum_cells(2))
    assert released(asked) == ["cells 1", "cells 2"]


def test_a_first_task_that_is_not_the_first_part_begins_nothing_that_is_not_paid_for() -> None:
    """A later part with the phase's parameters joins it; every part is still added to once."""
    asked = phone()
    task = label_cells(parameters=PARAMETERS, centroids=None)
    sent_input(asked, task)
    assert released(asked) == ["labels"]
    again = label_cells(advertise=renamed(advertise(PARAMETERS, "labels")))
    assert refuses(asked, again, RefusedError).rule is Rule.REPEATED


def test_a_result_is_kept_and_named_by() -> None:
    asked = phone()
    asked.answer(discovered())
    assert asked.result == discovered()
    assert asked.result.names == ("bus", "park", None)
    asked.answer(discovered(encoder="another"))
    assert asked.result == discovered(), "of another encoder it names nothing here"
