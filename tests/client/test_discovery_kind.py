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
from support.examples import examples
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
    SumCells,
    SumLabels,
    cells,
    rows_of,
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
SPLIT = msgspec.structs.replace(SILENT, kinds=3)
THREE_KINDS: dict[str, Any] = {"centroids": MOVED, "kinds": (2, 0, 2)}


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
    shape = (parameters.most_cells, parameters.dimensions)
    if part == "labels":
        assert parameters.rows is not None
        shape = (parameters.rows * parameters.kinds, parameters.label_entries)
    return opening(parameters, part, shape, part.encode().ljust(16), index)


def sum_cells(number: int, agreed: DiscoveryParameters = PARAMETERS, **changes: Any) -> SumCells:
    first = number == 1
    return msgspec.structs.replace(
        SumCells(
            phase=PHASE,
            repetition=number,
            parameters=agreed if first else None,
            centroids=None if first else MOVED,
            opening=advertise(agreed, cells(number)),
        ),
        **changes,
    )


def sum_labels(agreed: DiscoveryParameters = PARAMETERS, **changes: Any) -> SumLabels:
    return msgspec.structs.replace(
        SumLabels(phase=PHASE, opening=advertise(agreed, "labels")), **changes
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
                memory, parameters, SumCells(phase=PHASE, repetition=1, opening=begins, **told)
            )
            assert np.array_equal(summed, textbook.cells_input(points.tolist(), rows, room))
            assert isinstance(summed, np.ndarray)
            assert sum(int(x) ** 2 for x in summed.flat) <= GRID**2
        named = DISCOVERY.contribute[SumLabels](
            memory, parameters, SumLabels(phase=PHASE, opening=begins)
        )
        expected = textbook.labels_input(points.tolist(), chosen.tolist(), names, dimensions)
        assert np.array_equal(named, expected)
        assert isinstance(named, np.ndarray)
        assert sum(int(x) ** 2 for x in named.flat) <= GRID**2


GROUPS = {"bus": ("night bus", "tram"), "park": ("garden", "park"), "home": ()}
"""A label that is a choice as well, and one without any."""
ROWS = ("bus", "park", "home", "night bus", "tram", "garden")
KNOWN: tuple[str | None, ...] = (*ROWS, "no choice of this phase", None)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(KNOWN), max_size=8), st.integers(1, 5))
def test_choices_have_rows_beside_those_of_their_labels(
    seed: int, choices: list[str | None], dimensions: int
) -> None:
    random = np.random.default_rng(seed)
    hierarchy = LabelHierarchy(GROUPS)
    assert rows_of(hierarchy) == ROWS
    points = (random.standard_normal((len(choices), dimensions)) * 3).astype(np.float32)
    flat = discovery_parameters(
        labels=tuple(GROUPS), start=CentroidSet.of(np.eye(dimensions)), hierarchy=hierarchy.digest
    )
    memory = Memory(
        MemoryStore(points, choices), HeardPoints("points", dimensions), hierarchy, random.bytes
    )
    label_of = {"night bus": 0, "tram": 0, "garden": 1} | {row: ROWS.index(row) for row in ROWS[:3]}
    labels = [-1 if choice is None else label_of.get(choice, -1) for choice in choices]
    own = [ROWS.index(choice) if choice in ROWS[3:] else -1 for choice in choices]
    with mpmath.workdps(60):
        for parameters, finer in ((flat, None), (msgspec.structs.replace(flat, rows=6), own)):
            named = DISCOVERY.contribute[SumLabels](
                memory,
                parameters,
                SumLabels(phase=PHASE, opening=advertise(parameters, "labels")),
            )
            expected = textbook.labels_input(
                points.tolist(), labels, 3, dimensions, finer, parameters.rows
            )
            assert np.array_equal(named, expected)
            assert isinstance(named, np.ndarray)
            assert sum(int(x) ** 2 for x in named.flat) <= GRID**2


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(KNOWN), max_size=8),
    st.integers(1, 4),
    st.integers(2, 16),
    st.integers(1, 6),
    st.booleans(),
)
def test_rows_are_split_by_the_kind_of_the_nearest_cell(
    seed: int, choices: list[str | None], dimensions: int, kinds: int, cells_: int, first: bool
) -> None:
    """Those of labels and those of choices, and the counts of labels alone, in the first task too.

    Points of no length and cells that coincide are among them.
    """
    random = np.random.default_rng(seed)
    hierarchy = LabelHierarchy(GROUPS)
    start = CentroidSet.of(random.standard_normal((cells_, dimensions)))
    told = Matrix.of(random.integers(-1, 2, (random.integers(1, cells_ + 1), dimensions)) + 0.25)
    centroids = start.centroids() if first else told.array()
    of_cells = tuple(random.integers(0, kinds, len(centroids)).tolist())
    points = (random.standard_normal((len(choices), dimensions)) * 3).astype(np.float32)
    points[random.random(len(choices)) < 0.1] = 0
    memory = Memory(
        MemoryStore(points, choices), HeardPoints("points", dimensions), hierarchy, random.bytes
    )
    label_of = {"night bus": 0, "tram": 0, "garden": 1} | {row: ROWS.index(row) for row in ROWS[:3]}
    labels = [-1 if choice is None else label_of.get(choice, -1) for choice in choices]
    own = [ROWS.index(choice) if choice in ROWS[3:] else -1 for choice in choices]
    split = textbook.Split(centroids.tolist(), of_cells, kinds)
    whole = discovery_parameters(
        labels=tuple(GROUPS), start=start, hierarchy=hierarchy.digest, sums=0 if first else 1
    )
    with mpmath.workdps(60):
        for rows, finer in ((3, None), (6, own)):
            parameters = msgspec.structs.replace(whole, rows=rows, kinds=kinds)
            task = SumLabels(
                phase=PHASE,
                parameters=parameters if first else None,
                centroids=None if first else told,
                kinds=of_cells,
                opening=advertise(parameters, "labels"),
            )
            named = DISCOVERY.contribute[SumLabels](memory, parameters, task)
            expected = textbook.labels_input(
                points.tolist(), labels, 3, dimensions, finer, rows, split
            )
            assert np.shape(named) == (rows * kinds, dimensions + 1)
            assert np.array_equal(named, expected)
            assert sum(int(x) ** 2 for x in np.asarray(named).flat) <= GRID**2


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
        third = sent_input(asked, sum_labels(SILENT))
        labels = [0, 1, -1, 0, 1]
        assert np.array_equal(third, textbook.labels_input(POINTS.tolist(), labels, 2, 2))
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
    assert not sent_input(unlabelled, sum_labels(SILENT)).any()


def test_rows_of_kinds_reach_the_sum() -> None:
    asked = phone()
    sent_input(asked, sum_cells(1, SPLIT))
    sent_input(asked, sum_cells(2, SPLIT))
    summed = sent_input(asked, sum_labels(SPLIT, **THREE_KINDS))
    split = textbook.Split(MOVED.array().tolist(), (2, 0, 2), 3)
    with mpmath.workdps(60):
        labels = [0, 1, -1, 0, 1]
        expected = textbook.labels_input(POINTS.tolist(), labels, 2, 2, split=split)
    assert np.array_equal(summed, expected)
    # Rows of the first label, then of the second; the last is near to the first cell at 69°.
    assert [bool(np.any(row)) for row in summed] == [True, False, True, False, False, True]
    assert released(asked) == ["cells 1", "cells 2", "labels"]


def test_a_phone_that_missed_a_sum_takes_part_in_the_next() -> None:
    asked = phone()
    asked.answer(sum_cells(1))
    sent_input(asked, sum_labels())
    assert released(asked) == ["labels"]


def test_without_a_sum_of_cells_labels_come_first() -> None:
    parameters = discovery_parameters(labels=CLASSES, sums=0)
    asked = phone()
    sent_input(asked, sum_labels(parameters, parameters=parameters))
    assert released(asked) == ["labels"]


# ---------------------------------------------------------------------------------- what it refuses


LATER: list[tuple[Task, type[RemoteError], str]] = [
    (sum_cells(2, centroids=None), RefusedError, "without centroids"),
    (
        sum_cells(2, centroids=Matrix.of(np.zeros((0, 2)))),
        RefusedError,
        r"shape \(0, 2\); this phase has 2 dimensions and at least one centroid, and at most 3",
    ),
    (sum_cells(2, centroids=Matrix.of(np.ones((4, 2)))), RefusedError, r"shape \(4, 2\)"),
    (sum_cells(2, centroids=Matrix.of(np.eye(3))), RefusedError, r"shape \(3, 3\)"),
    (sum_cells(2, repetition=3), UnexpectedMessageError, "SumCells in a phase that has no such"),
    (sum_cells(2, phase=OTHER_PHASE), UnexpectedMessageError, "a phase that this phone is not in"),
    (sum_cells(2, opening=advertise(PARAMETERS, "cells 2", index=4)), RefusedError, "number"),
    # The bound of another sum, and less noise than agreed.
    (
        sum_cells(2, opening=advertise(PARAMETERS, "labels")),
        RefusedError,
        "parameters of the cells 2's secure sum",
    ),
    (
        sum_cells(2, opening=advertise(SILENT, "cells 2")),
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
    sent_input(asked, sum_labels())
    assert released(asked) == ["cells 1", "cells 2", "labels"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kinds": ()}, "0 kinds of 3 cells, up to number 0: one for each cell is needed, below 3"),
        ({"kinds": (0, 1)}, "2 kinds of 3 cells"),
        ({"kinds": (0, 1, 2, 0)}, "4 kinds of 3 cells"),
        ({"kinds": (0, 3, 1)}, "3 kinds of 3 cells, up to number 3: .*, below 3"),
        ({"centroids": None}, "without centroids"),
        ({"centroids": Matrix.of(np.ones((4, 2))), "kinds": (0,) * 4}, r"shape \(4, 2\)"),
        ({"centroids": Matrix.of(np.eye(3))}, r"shape \(3, 3\)"),
        ({"centroids": Matrix.of(np.zeros((0, 2))), "kinds": ()}, r"shape \(0, 2\)"),
        # The sum of whole rows has another shape, so nobody could add to both.
        ({"opening": advertise(SILENT, "labels")}, "parameters of the labels's secure sum"),
    ],
)
def test_kinds_that_do_not_fit_are_refused_before_anything_is_paid(
    changes: dict[str, Any], words: str
) -> None:
    asked = phone()
    sent_input(asked, sum_cells(1, SPLIT))
    refuses(asked, sum_labels(SPLIT, **THREE_KINDS | changes), RefusedError, words)
    assert released(asked) == ["cells 1"]
    sent_input(asked, sum_labels(SPLIT, **THREE_KINDS))
    assert released(asked) == ["cells 1", "labels"]


def test_a_phone_that_heard_nothing_refuses_wrong_kinds_too() -> None:
    """What it refuses tells nothing of what it heard."""
    nothing = phone(np.empty((0, 2), np.float32), ())
    sent_input(nothing, sum_cells(1, SPLIT))
    wrong = sum_labels(SPLIT, **THREE_KINDS | {"kinds": (0, 1)})
    refuses(nothing, wrong, RefusedError, "2 kinds of 3 cells")
    assert not sent_input(nothing, sum_labels(SPLIT, **THREE_KINDS)).any()


@pytest.mark.parametrize("number", [1, 2])
def test_each_sum_is_added_to_once(number: int) -> None:
    asked = phone()
    sent_input(asked, sum_cells(1))
    if number == 2:
        sent_input(asked, sum_cells(2))
    again = sum_cells(number, opening=renamed(advertise(PARAMETERS, cells(number))))
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
        {"kinds": 2},
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
        sum_cells(2, parameters=changed, centroids=None, opening=begins),
        msgspec.structs.replace(
            sum_cells(1, changed), opening=renamed(advertise(changed, "cells 1"))
        ),
        sum_labels(parameters=changed, opening=renamed(advertise(changed, "labels"))),
    ):
        assert refuses(asked, task, RefusedError).rule in {Rule.REPEATED, Rule.CHANGED}
    sent_input(asked, sum_cells(2))
    assert released(asked) == ["cells 1", "cells 2"]


def test_a_first_task_that_is_not_the_first_part_begins_nothing_that_is_not_paid_for() -> None:
    """A later part with the phase's parameters joins it; every part is still added to once."""
    asked = phone()
    task = sum_labels(parameters=PARAMETERS)
    sent_input(asked, task)
    assert released(asked) == ["labels"]
    again = sum_labels(opening=renamed(advertise(PARAMETERS, "labels")))
    assert refuses(asked, again, RefusedError).rule is Rule.REPEATED


# ------------------------------------------------------------------------------------------- rows


CHOICES_OF = (("night bus",), ("garden",))
FINER = discovery_parameters(
    labels=CLASSES,
    sums=1,
    rows=4,
    hierarchy=LabelHierarchy(dict(zip(CLASSES, CHOICES_OF, strict=True))).digest,
)


@pytest.mark.parametrize("rows", [3, 5])
def test_rows_that_stand_for_nothing_are_refused_before_anything_is_paid(rows: int) -> None:
    asked = phone()
    wrong = msgspec.structs.replace(FINER, rows=rows)
    for task in (
        sum_cells(1, wrong, choices=CHOICES_OF),
        sum_labels(wrong, parameters=wrong, choices=CHOICES_OF),
    ):
        words = f"of {rows} rows: 2 are accepted, one for each label, or 4, with"
        assert refuses(asked, task, RefusedError, words).rule is Rule.PARAMETERS
    assert not released(asked)
    sent_input(asked, sum_cells(1, FINER, choices=CHOICES_OF))
    assert released(asked) == ["cells 1"]


@pytest.mark.parametrize("kinds", [0, 17])
def test_kinds_out_of_range_are_refused(kinds: int) -> None:
    asked = phone()
    wrong = sum_cells(1, parameters=msgspec.structs.replace(PARAMETERS, kinds=kinds))
    refusal = refuses(asked, wrong, RefusedError)
    assert refusal.rule is Rule.PARAMETERS


def test_more_entries_than_a_sum_has_are_refused_by_name() -> None:
    """Each number is within its limits, and 1,025 rows of 16 kinds and 1,024 entries are not."""
    labels = tuple(map(str, range(256)))
    wide = CentroidSet.of(np.eye(2, 1023))
    agreed = discovery_parameters(labels=labels, start=wide, sums=1)
    largest = msgspec.structs.replace(agreed, rows=1024, kinds=16)
    assert largest.plan().part("labels") is not None
    beyond = msgspec.structs.replace(largest, rows=1025)
    begins = sum_cells(1, agreed, parameters=beyond)
    asked = phone(np.ones((1, 1023), np.float32), (None,))
    refusal = refuses(asked, begins, RefusedError, "length=.*: must be a whole number")
    assert refusal.rule is Rule.PARAMETERS


def test_fewer_rows_than_labels_are_refused() -> None:
    asked = phone()
    few = msgspec.structs.replace(PARAMETERS, rows=1)
    assert refuses(asked, sum_cells(1, few), RefusedError).rule is Rule.PARAMETERS


# ---------------------------------------------------------------------------------- what it is told


def test_a_result_is_kept_and_named_by() -> None:
    asked = phone()
    asked.answer(discovered())
    assert asked.result == discovered()
    assert asked.result.names == ("bus", "park", "bus")
    asked.answer(discovered(encoder="another"))
    assert asked.result == discovered(), "of another encoder it names nothing here"


def heard_at(asked: Phone, *degrees: float) -> list[str | None]:
    """Name sounds whose embeddings point in these directions."""
    second = np.random.default_rng(1).uniform(-0.5, 0.5, 8_000)
    scenes = []
    for each in np.deg2rad(degrees):
        second[:2] = 0.5 * np.cos(each), 0.5 * np.sin(each)
        scenes.append(asked.scene(second, 8_000))
    return scenes


class Directions(HeardPoints):
    """An encoder that takes the first two samples of a second for its embedding."""

    def embed(self, sound: np.ndarray) -> np.ndarray:
        return np.asarray(sound[:, :2], dtype=np.float32)


def test_a_scene_is_named_by_the_nearest_prototype_within_the_radius() -> None:
    """Prototypes at 0°, 90° and 180° (a choice of the first one's label)."""
    asked = Phone(MemoryStore(), Directions("points", 2), AGREES)
    asked.answer(discovered())
    every = (0, 40, 50, 130, 140, 180, 220, 230, 300, 320)
    names = ["bus", "bus", "park", "park", "bus", "bus", "bus", "bus", "bus", "bus"]
    assert heard_at(asked, *every) == names, "without a radius, anything has a name"
    # 1 − cos 30° = 0.134.
    asked.answer(discovered(radius=0.134))
    assert heard_at(asked, 0, 29, 31, 61, 119, 121, 151, 209, 211, 329, 331) == [
        *("bus", "bus", None, "park", "park", None, "bus", "bus", None, None, "bus"),
    ]
    # A prototype that may be noise names nothing, and lends what is near it to no other label.
    asked.answer(discovered(name_p_values=(0.001, 0.9, 0.02)))
    assert heard_at(asked, 0, 40, 50, 90, 140) == ["bus", "bus", None, None, "bus"]
    asked.answer(discovered(name_p_values=(1.0,) * 3))
    assert heard_at(asked, 0, 90) == [None, None]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"choices": ("",)}, "choices"),
        ({"moved": (True,)}, "flags of cells"),
        ({"cell_lengths": (1.0,)}, "lengths of cells"),
        ({"lengths": (0.5,)}, "whose lengths"),
        ({"cell_prototypes": (0,)}, "prototypes of cells"),
        ({"cell_prototypes": (0, 3, -1)}, "cells of prototypes that it does not have"),
        ({"cells": Matrix.of(np.eye(3))}, "cells of 3 dimensions and prototypes of 2"),
        ({"labels": (0, 1, 2)}, "labels do not fit"),
        ({"name_p_values": (0.001,)}, "p-values do not fit"),
    ],
)
def test_a_result_that_contradicts_itself_is_not_kept(changes: dict[str, Any], words: str) -> None:
    asked = phone()
    sent_input(asked, sum_cells(1))
    refuses(asked, discovered(**changes), UnexpectedMessageError, words)
    assert asked.result is None
    # Of another encoder it is nothing to this phone.
    assert asked.answer(discovered(encoder="another", **changes)) is None
    assert asked.result is None
