"""What a phone adds to a sum of contacts, whatever it counted: worst cases, rounding included."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.parameters import statistics_parameters

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.phases.statistics_budget import affordable
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import GRID, Unit, VectorSum
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.vectors import (
    bounded,
    joined,
    moved_by_count,
    moved_with_confusion,
    projected,
    quantized,
    unit_steps,
)


def mechanism(entries: int, radius: int) -> VectorSum:
    labels = tuple(f"l{number}" for number in range(entries // 2))
    part = statistics_parameters(labels=labels, contacts=radius).plan().parts[0]
    assert isinstance(part, SecureSum)
    assert isinstance(part.mechanism, VectorSum)
    assert part.mechanism.length == entries
    return part.mechanism


def sent(counts: np.ndarray, radius: int) -> np.ndarray:
    return quantized(projected(counts, radius))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return math.sqrt(sum(int(x) ** 2 for x in (one - other).flat))


@st.composite
def phones(draw: st.DrawFn) -> tuple[list[int], int]:
    """Counts of few or many contacts, of a phone that just reaches the radius, and the radius."""
    entries = 2 * draw(st.integers(1, 12)) + 1
    radius = draw(st.integers(1, 12) | st.sampled_from([50, 10_000]))
    count = st.integers(0, 3) | st.sampled_from([radius - 1, radius, radius + 1, 10 * radius])
    return draw(st.lists(count, min_size=entries, max_size=entries)), radius


@settings(max_examples=examples(150), deadline=None)
@given(phones(), st.randoms(use_true_random=False))
def test_neighbours_lie_within_the_stated_distance_in_every_unit(
    phone: tuple[list[int], int], random: object
) -> None:
    counts, radius = np.array(phone[0]), phone[1]
    steps, declared = sent(counts, radius), mechanism(len(counts), radius)
    assert distance(steps, np.zeros_like(steps)) <= declared.sensitivity(Unit.PHONE) == GRID
    assert 0 <= steps.min() <= steps.max() <= declared.largest_entry
    assert steps.sum() <= declared.largest_sum
    assert distance(steps, sent(counts[::-1], radius)) <= declared.sensitivity(Unit.REPLACED_PHONE)
    for entry in range(len(counts)):
        one = np.zeros_like(counts)
        one[entry] = 1
        moved = distance(steps, sent(counts + one, radius))
        assert moved <= declared.sensitivity(Unit.RECORDING)


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 8])
def test_of_all_small_phones_none_is_moved_farther(radius: int) -> None:
    """Every table of up to twice the radius in three entries, one recording more in each."""
    declared = mechanism(3, radius).sensitivity(Unit.RECORDING)
    farthest = 0.0
    for counts in itertools.product(range(2 * radius + 1), repeat=3):
        steps = sent(np.array(counts), radius)
        for entry in range(3):
            more = np.array(counts)
            more[entry] += 1
            farthest = max(farthest, distance(steps, sent(more, radius)))
    assert farthest <= declared
    assert farthest >= unit_steps(3) / radius - 1, "the bound is reached but for rounding"


def test_rounding_alone_may_take_what_the_distance_leaves_for_it() -> None:
    """With many entries in use, all of them are rounded twice."""
    random = np.random.default_rng(3)
    length, radius, most = 513, 200, 0.0
    for _ in range(300):
        counts = random.integers(0, 60, length)
        more = counts.copy()
        more[random.integers(length)] += 1
        most = max(most, distance(sent(counts, radius), sent(more, radius)))
    exact = (GRID - math.sqrt(length) / 2) / radius
    assert most < moved_by_count(length, radius) == exact + math.sqrt(length)


@given(phones())
def test_the_projection_is_the_nearest_point_of_the_ball(phone: tuple[list[int], int]) -> None:
    counts, radius = phone
    with localcontext() as context:
        context.prec = 60
        norm = sum(Decimal(count) ** 2 for count in counts).sqrt()
        shrink = min(Decimal(1), Decimal(radius) / norm) if norm else Decimal(1)
        exact = [count * shrink / radius for count in counts]
    found = projected(np.array(counts), radius)
    assert found == pytest.approx([float(each) for each in exact], rel=1e-14, abs=0)
    assert np.linalg.norm(found) <= 1 + 1e-15


def test_projection_needs_a_radius() -> None:
    for radius in (0, -1):
        with pytest.raises(InvalidParametersError, match="radius"):
            moved_by_count(3, radius)


@pytest.mark.parametrize("radius", [1, 2, 8, 10_000])
def test_a_recording_costs_no_more_than_its_phone(radius: int) -> None:
    for entries in (3, 7, 513):
        recording = mechanism(entries, radius).sensitivity(Unit.RECORDING)
        assert recording <= GRID
        assert (recording == GRID) == (radius == 1)


@pytest.mark.parametrize("summation", [SummationName.BELL, SummationName.TWO_OPERATORS])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-6), (2.0, 1e-8)])
def test_the_noise_of_a_budget_is_the_least_that_keeps_to_it_per_phone(
    summation: SummationName, epsilon: float, delta: float
) -> None:
    asked = statistics_parameters(delta=delta, summation=summation)
    found = affordable(asked, epsilon)
    assert isinstance(found, StatisticsParameters)
    (part,) = found.plan().mechanisms.values()
    spent = composed_epsilon([part.event(Unit.PHONE)], delta)
    assert epsilon * (1 - 1e-5) < spent <= epsilon
    # Nothing but the noise follows from the budget.
    assert found == statistics_parameters(delta=delta, summation=summation, noise=found.noise)


def test_the_total_has_exactly_the_law_of_the_noise_around_the_inputs() -> None:
    """Inputs cancel: what is left of many sums is Skellam noise of the multiplier, drawn here."""
    parameters = statistics_parameters(phones=20, noise=0.5, dropout=0.0, corrupted=0.0)
    (declared,) = parameters.plan().mechanisms.values()
    assert isinstance(declared, VectorSum)
    random = np.random.default_rng(9)
    counts = sent(np.array([3, 0, 2, 1, 9]), parameters.contacts)
    totals = 20 * counts + sum(
        declared.noise_share((4000, parameters.entries), random.bytes) for _ in range(20)
    )
    law = declared.noise(20)
    left = (totals - 20 * counts) / law.deviation
    assert law.deviation == pytest.approx(0.5 * GRID)
    assert left.std() == pytest.approx(1, rel=0.02)
    assert np.abs(left.mean(axis=0)).max() < 5 / math.sqrt(4000)


@st.composite
def labelled_phones(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Counts of the window, a confusion matrix, unnamed recordings by label, and the radius."""
    labels = draw(st.integers(1, 5))
    few = st.integers(0, 3) | st.sampled_from([20, 1000])
    radius = draw(st.integers(1, 12) | st.sampled_from([50, 10_000]))

    def drawn(*shape: int) -> np.ndarray:
        size = math.prod(shape)
        return np.array(draw(st.lists(few, min_size=size, max_size=size))).reshape(shape)

    return drawn(2 * labels + 1), drawn(labels, labels), drawn(labels), radius


def sent_with(
    counts: np.ndarray, table: np.ndarray, unnamed: np.ndarray, radius: int
) -> np.ndarray:
    confusion = bounded(table, table.sum(axis=1) + unnamed)
    return quantized(joined(projected(counts, radius), confusion))


@settings(max_examples=examples(150), deadline=None)
@given(labelled_phones())
def test_neighbours_with_confusion_lie_within_the_stated_distance(
    phone: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> None:
    """A recording more may be in the window or before it, labelled or not, named or not."""
    counts, table, unnamed, radius = phone
    labels = tuple(f"l{number}" for number in range(len(table)))
    asked = statistics_parameters(labels=labels, contacts=radius, confusion=True)
    (declared,) = asked.plan().mechanisms.values()
    assert isinstance(declared, VectorSum)
    steps = sent_with(*phone)
    assert declared.length == steps.size == asked.entries
    assert distance(steps, np.zeros_like(steps)) <= declared.sensitivity(Unit.PHONE) == GRID
    assert 0 <= steps.min() <= steps.max() <= declared.largest_entry
    assert steps.sum() <= declared.largest_sum
    for in_window, label, name in itertools.product(
        (0, 1), range(len(table)), [None, *range(len(table))]
    ):
        more, moved, unnamed_more = counts.copy(), table.copy(), unnamed.copy()
        more[label] += in_window
        if name is None:
            unnamed_more[label] += 1
        else:
            moved[label, name] += 1
        farther = distance(steps, sent_with(more, moved, unnamed_more, radius))
        assert farther <= declared.sensitivity(Unit.RECORDING)


def test_one_labelled_recording_alone_is_moved_as_far_as_stated() -> None:
    nothing = np.zeros(3, dtype=np.int64), np.zeros((1, 1), dtype=np.int64), np.zeros(1)
    alone = np.array([1, 0, 0]), np.array([[1]]), np.zeros(1)
    for radius in (1, 2, 8):
        moved = distance(sent_with(*alone, radius), sent_with(*nothing, radius))
        stated = moved_with_confusion(4, radius)
        assert stated - 4 <= moved <= stated
    with pytest.raises(InvalidParametersError, match="radius"):
        moved_with_confusion(4, 0)


@pytest.mark.parametrize("labels", [1, 2])
def test_no_small_table_is_moved_farther_than_its_length(labels: int) -> None:
    """Every matrix of up to two recordings an entry: the proof's bound of 1 is never exceeded."""
    for cells in itertools.product(range(3), repeat=labels**2):
        table = np.array(cells).reshape(labels, labels)
        own = bounded(table, table.sum(axis=1))
        assert np.linalg.norm(own) <= 1 + 1e-15
        for label, name in itertools.product(range(labels), repeat=2):
            more = table.copy()
            more[label, name] += 1
            other = bounded(more, more.sum(axis=1))
            assert np.linalg.norm(other - own) <= 1 + 1e-15
