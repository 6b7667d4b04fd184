"""What a phone adds to a sum with a confusion matrix: how places name its labelled recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

import msgspec
import numpy as np
import pytest
from support.parameters import statistics_parameters
from support.phase_tasks import first_task
from support.points import AGREES, HeardPoints
from support.refusing_phone import CountedBytes, refuses

from earshot_client.labels import LabelHierarchy
from earshot_client.phases.memory import Memory
from earshot_client.phases.statistics import STATISTICS
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.privacy.events import ZeroConcentrated
from earshot_protocol.privacy.mechanisms import GRID, Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.wire import Matrix
from earshot_simulations.engine.ideal import IDEAL

BUS, PARK, UNNAMED, FAR = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)
"""At the places of two labels, at a place without a name, and beyond the radius of all."""
PLACES = AgreedPlaces(
    encoder="points",
    geometry=Geometry.SPHERICAL,
    centroids=Matrix.of(np.array([BUS, PARK, UNNAMED])),
    labels=(0, 1, -1),
    radius=0.5,
)
WEEK = {"since": date(2026, 1, 1), "until": date(2026, 1, 8)}
IN, BEFORE = date(2026, 1, 2), date(2025, 12, 31)
CONTACTS = 5
Held = tuple[tuple[float, float], str | None, date | None]


def asked(**changes: Any) -> StatisticsParameters:
    """Parameters of a week with a confusion matrix, at more noise than default phones need."""
    usual = {"contacts": CONTACTS, "noise": 8.0, "places": PLACES, "confusion": True, **WEEK}
    return statistics_parameters(**(usual | changes))


def remembered(held: Sequence[Held]) -> Memory:
    points = np.array([point for point, _, _ in held], dtype=np.float32).reshape(-1, 2)
    store = MemoryStore(points, [choice for _, choice, _ in held], [day for _, _, day in held])
    choices = LabelHierarchy({"bus": ("tram",), "park": ()})
    return Memory(store, HeardPoints("points", 2), choices, bytes)


def sent(memory: Memory, parameters: StatisticsParameters) -> tuple[list[float], list[list[float]]]:
    """What the phone adds, before noise: its counts over their length, and its matrix."""
    task = first_task(parameters)
    assert isinstance(task, CountContacts)
    steps = np.asarray(STATISTICS.contribute[CountContacts](memory, parameters, task))
    vector = steps * math.sqrt(2) / (GRID - math.sqrt(steps.size) / 2)
    counts, matrix = np.split(vector, [5])
    return counts.tolist(), matrix.reshape(2, 2).tolist()


def near(expected: Any) -> Any:
    return pytest.approx(np.array(expected), abs=1e-3)


def test_labelled_recordings_of_any_day_are_in_the_matrix_and_those_of_the_window_in_counts() -> (
    None
):
    memory = remembered(
        [
            (BUS, "bus", IN),
            (PARK, "tram", BEFORE),  # a choice of bus
            (PARK, "park", None),
            (BUS, None, IN),  # named, and in no row
        ]
    )
    counts, matrix = sent(memory, asked())
    assert counts == near([1 / 5, 0, 1 / 5, 0, 0])
    # Two recordings of bus and one of park: a length of √5.
    assert np.array(matrix) == near(np.array([[1, 1], [0, 1]]) / math.sqrt(5))


def test_recordings_that_no_place_names_make_the_matrix_shorter() -> None:
    memory = remembered([(BUS, "bus", IN), (UNNAMED, "bus", IN), (FAR, "park", IN)])
    _, matrix = sent(memory, asked())
    assert np.array(matrix) == near(np.array([[1, 0], [0, 0]]) / math.sqrt(5))


def test_a_label_that_the_phase_does_not_know_is_in_no_row_nor_in_the_length() -> None:
    memory = remembered([(PARK, "home", BEFORE), (BUS, "bus", IN), (PARK, "home", IN)])
    counts, matrix = sent(memory, asked())
    assert counts == near([1 / 5, 0, 0, 0, 1 / 5])
    assert np.array(matrix) == near([[1, 0], [0, 0]])


def test_the_matrix_marks_nothing_and_counts_what_histograms_have_counted() -> None:
    memory = remembered([(BUS, "bus", IN), (PARK, "bus", BEFORE)])
    first = sent(memory, asked())
    STATISTICS.released(memory)
    assert [each.counted for each in memory.store.descriptions()] == [True, False]
    counts, matrix = sent(memory, asked())
    assert counts == near([0] * 5)
    assert matrix == first[1] == near([[1 / 2, 1 / 2], [0, 0]])


@pytest.mark.parametrize("held", [[], [(BUS, None, IN)], [(PARK, "home", BEFORE)]])
def test_without_labelled_recordings_the_matrix_is_zeros(held: list[Held]) -> None:
    assert sent(remembered(held), asked())[1] == [[0, 0], [0, 0]]


def test_counts_are_those_of_a_week_without_a_matrix_over_a_root_of_two() -> None:
    held: list[Held] = [(BUS, "bus", IN)] * 9 + [(PARK, None, IN)] * 12
    together, _ = sent(remembered(held), asked())
    parameters = asked(confusion=False)
    task = first_task(parameters)
    assert isinstance(task, CountContacts)
    alone = np.asarray(STATISTICS.contribute[CountContacts](remembered(held), parameters, task))
    assert together == near(alone / (GRID - math.sqrt(5) / 2))
    assert together == near([9 / 15, 0, 0, 12 / 15, 0])


def phone(policy: Policy = AGREES) -> Phone:
    points = np.array([BUS, PARK], dtype=np.float32)
    store = MemoryStore(points, ["bus", "bus"], [IN, BEFORE])
    heard = HeardPoints("points", 2)
    return Phone(store, heard, policy, random=CountedBytes(), summation=IDEAL)


def test_a_matrix_without_places_is_refused_by_name() -> None:
    task = first_task(asked(places=None))
    refused = refuses(phone(), task, RefusedError, "confusion=True: needs places")
    assert refused.rule is Rule.PARAMETERS


def cost_of(parameters: StatisticsParameters) -> float:
    """Value of ρ of one phone in this phase, if its sum is by two operators."""
    by_both = msgspec.structs.replace(parameters, summation=SummationName.TWO_OPERATORS)
    (mechanism,) = by_both.plan().mechanisms.values()
    event = mechanism.event(Unit.PHONE)
    assert isinstance(event, ZeroConcentrated)
    return event.rho


def test_a_default_phone_takes_part_at_twice_the_cost_of_an_ordinary_week() -> None:
    """A week's noise divided by √2 keeps its counts as noisy, and still is within the limits."""
    week, matrix = asked(confusion=False, noise=8.0), asked(noise=8.0 / math.sqrt(2))
    once, twice = (cost_of(each) for each in (week, matrix))
    assert twice == pytest.approx(2 * once)
    assert phone(Policy()).answer(first_task(matrix)) is not None
    refused = refuses(phone(Policy()), first_task(asked(noise=2.0)), RefusedError)
    assert refused.rule is Rule.LARGEST_PHONE_EPSILON
