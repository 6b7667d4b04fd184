"""What a phone adds to a sum of vectors, whoever it is and whatever it heard: worst cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import GRID, Unit, VectorSum
from earshot_protocol.voting.vectors import bounded, moved_by_direction, quantized, unit_steps

Sums = tuple[np.ndarray, np.ndarray]


def summed(points: np.ndarray, cells: np.ndarray, count: int) -> Sums:
    """Row by row: sums of points by cell, and how many there are."""
    sums, counts = np.zeros((count, points.shape[1])), np.zeros(count, dtype=np.int64)
    for point, cell in zip(points, cells, strict=True):
        sums[cell] += point
        counts[cell] += 1
    return sums, counts


def sensitivity(unit: Unit, length: int, row: int | None = None) -> float:
    recording = moved_by_direction(length, length if row is None else row)
    return VectorSum(1.0, length, 1e-6, 1, recording).sensitivity(unit)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """In steps; exact but for the root."""
    return math.sqrt(sum(int(x) ** 2 for x in (one - other).flat))


@st.composite
def phones(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Recordings of length one at most, among them none, zeros and all that doubles can do."""
    count, dimensions = draw(st.integers(1, 6)), draw(st.integers(1, 9))
    number = draw(st.integers(0, 10))
    entries = st.floats(-1, 1) | st.sampled_from([0.0, -0.0, 5e-324, 1.0, -1.0, 2**-26, 0.5])
    rows = draw(
        st.lists(
            st.lists(entries, min_size=dimensions, max_size=dimensions),
            min_size=number,
            max_size=number,
        )
    )
    points = np.array(rows, dtype=np.float64).reshape(number, dimensions)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    if draw(st.booleans()):
        points = np.where(lengths > 0, points / np.where(lengths > 0, lengths, 1), 0)
    else:
        points = points / np.maximum(lengths, 1)
    cells = draw(st.lists(st.integers(0, count - 1), min_size=number, max_size=number))
    return points, np.array(cells, dtype=np.int64), count


@settings(max_examples=examples(120), deadline=None)
@given(phones(), phones())
def test_no_phone_adds_more_than_the_grid(
    phone: tuple[np.ndarray, np.ndarray, int], other: tuple[np.ndarray, np.ndarray, int]
) -> None:
    points, cells, count = phone
    steps = quantized(bounded(*summed(points, cells, count)))
    assert steps.dtype == np.int64
    assert sum(int(x) ** 2 for x in steps.flat) <= GRID**2
    assert np.abs(steps).max() <= VectorSum(1.0, steps.size, 1e-6, 1).largest_entry
    assert abs(int(steps.sum())) <= VectorSum(1.0, steps.size, 1e-6, 1).largest_sum
    assert distance(steps, np.zeros_like(steps)) <= sensitivity(Unit.PHONE, steps.size)
    # Another phone in its place, in as many dimensions.
    theirs = np.resize(other[0], (len(other[0]), points.shape[1])) / math.sqrt(points.shape[1])
    replaced = quantized(bounded(*summed(theirs, other[1] % count, count)))
    assert distance(steps, replaced) <= sensitivity(Unit.REPLACED_PHONE, steps.size)


@settings(max_examples=examples(120), deadline=None)
@given(phones())
def test_one_recording_moves_the_steps_by_no_more_than_is_claimed(
    phone: tuple[np.ndarray, np.ndarray, int],
) -> None:
    points, cells, count = phone
    whole = bounded(*summed(points, cells, count))
    for left_out in range(len(points)):
        rest = np.delete(points, left_out, axis=0), np.delete(cells, left_out)
        without = bounded(*summed(*rest, count))
        assert np.linalg.norm(whole - without) <= 1 + 1e-12
        moved = distance(quantized(whole), quantized(without))
        assert moved <= sensitivity(Unit.RECORDING, whole.size, row=points.shape[1])


ALONE = -1
"""Choice of a recording that has a label alone."""


class Recording(NamedTuple):
    """A recording, its label, its choice among those of this label, and its kind of sound."""

    point: np.ndarray
    label: int
    choice: int
    kind: int = 0


Held = list[Recording]


def summed_twice(
    held: Held, labels: int, choices: int, dimensions: int, kinds: int = 1, once: bool = False
) -> Sums:
    """By label and by choice, each by kind: sums, and counts, among them those of labels alone.

    With `once`, a recording without a choice counts once, as it must not.
    """
    rows = labels + labels * choices
    sums = np.zeros((rows, kinds, dimensions))
    counts = np.zeros((rows + labels, kinds), dtype=np.int64)
    for point, label, choice, kind in held:
        sums[label, kind] += point
        counts[label, kind] += 1
        if choice != ALONE:
            sums[labels + label * choices + choice, kind] += point
            counts[labels + label * choices + choice, kind] += 1
        elif not once:
            counts[rows + label, kind] += 1
    return sums.reshape(-1, dimensions), counts.ravel()


@st.composite
def labelled_phones(draw: st.DrawFn) -> tuple[Held, int, int, int, int]:
    """Recordings of few directions, so that many are alike or opposite, some of any length.

    Kinds are any at all, whatever they sound like: a server may put cells together as it likes.
    """
    labels, choices, dimensions, kinds = (draw(st.integers(1, most)) for most in (4, 2, 6, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    first = random.standard_normal(dimensions)
    first /= np.linalg.norm(first)
    held: Held = []
    for _ in range(draw(st.integers(1, 7))):
        other = random.standard_normal(dimensions)
        point = draw(
            st.sampled_from([first, -first, other / np.linalg.norm(other), 0.3 * first, 0 * first])
        )
        label, choice, kind = (
            draw(st.integers(least, most))
            for least, most in ((0, labels - 1), (ALONE, choices - 1), (0, kinds - 1))
        )
        held.append(Recording(point, label, choice, kind))
    return held, labels, choices, dimensions, kinds


@settings(max_examples=examples(200), deadline=None)
@given(labelled_phones())
def test_one_recording_moves_a_sum_by_label_and_choice_by_no_more(
    phone: tuple[Held, int, int, int, int],
) -> None:
    held, *shape = phone
    dimensions = shape[2]
    whole = bounded(*summed_twice(held, *shape))
    steps = quantized(whole)
    assert np.linalg.norm(whole) <= 1 + 1e-12
    assert sum(int(x) ** 2 for x in steps.flat) <= GRID**2
    claimed = sensitivity(Unit.RECORDING, whole.size, row=2 * dimensions)
    for left_out in range(len(held)):
        without = bounded(*summed_twice(held[:left_out] + held[left_out + 1 :], *shape))
        assert np.linalg.norm(whole - without) <= 1 + 1e-12
        assert distance(steps, quantized(without)) <= claimed


# ----------------------------------------------------------------------- the proof, and its limits


def farthest(counts: tuple[int, ...], cell: int) -> float:
    """The most that one recording in a cell moves S/‖c‖, of all phones with these counts."""
    a = math.sqrt(sum(c * c for c in counts))
    fewer = [c - (place == cell) for place, c in enumerate(counts)]
    b = math.sqrt(sum(c * c for c in fewer))
    if b == 0:
        return 1.0
    # Only the recording's own row adds up with it: opposite to the c − 1 others in its cell, all
    # in line. The rows of other cells shrink at a right angle to it.
    own = 1 / a + fewer[cell] * (1 / b - 1 / a)
    others = math.sqrt(b * b - fewer[cell] ** 2) * (1 / b - 1 / a)
    return math.hypot(own, others)


def test_of_all_phones_with_few_recordings_none_moves_farther_than_one() -> None:
    """Every table of counts with up to 6 in each of up to 4 cells: the proof's cases, by hand."""
    reached: dict[tuple[int, ...], float] = {}
    for counts in itertools.product(range(7), repeat=4):
        for cell in range(4):
            if counts[cell]:
                worst = farthest(counts, cell)
                key = (counts[cell], *sorted(c for i, c in enumerate(counts) if i != cell))
                reached[key] = max(worst, reached.get(key, 0.0))
    assert max(reached.values()) == pytest.approx(1.0, abs=1e-12)
    tight = {key for key, worst in reached.items() if worst > 1 - 1e-9}
    assert tight == {(1, 0, 0, 0), (2, 0, 0, 0)}
    # Where the general bound 2/a is of no use: ones in cells of their own.
    assert reached[1, 0, 0, 1] == pytest.approx(math.sqrt(0.5 + (1 - math.sqrt(0.5)) ** 2))
    assert round(reached[1, 0, 0, 1], 2) == 0.77
    assert reached[1, 0, 1, 1] < 0.77
    # With a second row in use, nothing comes near 1, so there is room for two roundings.
    several = [worst for (_, *others), worst in reached.items() if any(others)]
    assert max(several) <= 2 / math.sqrt(5)


Tables = Iterator[tuple[list[int], list[list[int]]]]


def tables_of(recordings: int, labels: int, choices: int) -> Tables:
    """Counts of so many recordings: by label, and by choice of each; the last is of none."""
    each = choices + 1
    for chosen in itertools.combinations_with_replacement(range(labels * each), recordings):
        finer = [[chosen.count(label * each + i) for i in range(each)] for label in range(labels)]
        yield [sum(row) for row in finer], finer


def farthest_twice(
    counts: list[int], finer: list[list[int]], label: int, choice: int
) -> tuple[Fraction, Fraction, int]:
    """The most that one recording moves S/‖c‖, squared, exactly: x + y√r as (x, y, r).

    As in `farthest`: in its label's row and in its choice's, the others are all opposite to it; the
    other rows are as long as can be. With a² and b² the squared norms of the counts, s = a/b and k
    others, a row of its own moves by (1 + k(s − 1))/a, and a row of c others by c(s − 1)/a.
    """
    squares = sum(c * c for c in counts) + sum(c * c for row in finer for c in row)
    rest = squares - 2 * counts[label] - 2 * finer[label][choice] + 2
    if rest == 0:
        return Fraction(2 if choice < len(finer[label]) - 1 else 1, 2), Fraction(0), 1
    own = [counts[label] - 1]
    rows = sum(c * c for c in counts) + sum(c * c for row in finer for c in row[:-1])
    rows -= counts[label] ** 2
    if choice < len(finer[label]) - 1:
        own.append(finer[label][choice] - 1)
        rows -= finer[label][choice] ** 2
    # s² = a²/b² is a fraction, and s = √(a²b²)/b².
    ratio = Fraction(squares, rest)
    plain = sum((1 - k) ** 2 + k * k * ratio for k in own) + rows * (ratio + 1)
    along = Fraction(sum(2 * k * (1 - k) for k in own) - 2 * rows)
    return plain / squares, along / (rest * squares), squares * rest


def at_most(number: tuple[Fraction, Fraction, int], limit: Fraction) -> bool:
    """Whether x + y√r ≤ limit, exactly."""
    plain, along, root = number
    left = limit - plain
    if along <= 0:
        return left >= 0 or along**2 * root >= left**2
    return left >= 0 and along**2 * root <= left**2


def test_of_all_phones_with_labels_and_choices_none_moves_farther_than_one() -> None:
    """Every table of up to 5 recordings, 4 labels, 2 choices each; exactly, not by luck."""
    worst: dict[tuple[int, str], float] = {}
    for recordings in range(1, 6):
        for counts, finer in tables_of(recordings, 4, 2):
            squares = sum(c * c for c in counts) + sum(c * c for row in finer for c in row)
            pairs = sum(1 for row in finer for c in row if c)
            for label, choice in itertools.product(range(4), range(3)):
                if not finer[label][choice]:
                    continue
                moved = farthest_twice(counts, finer, label, choice)
                assert at_most(moved, Fraction(1))
                if recordings > 1 and pairs > 1:
                    # Where more than one pair of rows is in use: room for two roundings of all.
                    assert at_most(moved, Fraction(4, 5))
                if squares >= 10:
                    assert at_most(moved, Fraction(8, squares))
                plain, along, root = moved
                like = "-".join(map(str, sorted((c for c in counts if c), reverse=True)))
                key = squares, like
                size = float(plain) + float(along) * math.sqrt(root)
                worst[key] = max(worst.get(key, 0.0), size)
    # What docs/privacy.md lists: a², the recordings of each label, and the square of what moves.
    listed = {key: round(size, 3) for key, size in worst.items() if key[0] < 10}
    assert listed == {
        (2, "1"): 1.0,
        (4, "1-1"): 0.586,
        (6, "2"): 0.756,
        (8, "2"): 1.0,
        (6, "1-1-1"): 0.367,
        (8, "2-1"): 0.439,
        (8, "1-1-1-1"): 0.268,
    }


def test_the_worst_tables_are_reached() -> None:
    """The formula of the exact test is what vectors do: opposite recordings, one left out."""
    v = np.array([0.6, 0.8])
    for held, expected in (
        ([Recording(v, 0, 0), Recording(-v, 0, 0)], 1.0),
        ([Recording(v, 0, 0), Recording(-v, 0, 1)], 0.756),
        ([Recording(v, 0, 0), Recording(-v, 1, 0)], 0.586),
        # Of another kind, it is like one of another label.
        ([Recording(v, 0, 0, 1), Recording(-v, 0, 0, 1)], 1.0),
        ([Recording(v, 0, 0, 1), Recording(-v, 0, 1, 1)], 0.756),
        ([Recording(v, 0, 0, 1), Recording(-v, 0, 0, 0)], 0.586),
    ):
        whole, without = (bounded(*summed_twice(each, 2, 2, 2, 2)) for each in (held, held[1:]))
        assert round(float(np.square(whole - without).sum()), 3) == expected


def test_a_label_alone_counts_twice_or_one_recording_moves_too_much() -> None:
    """Why a recording without a choice counts twice: else a second one moves the vector by √1.2."""
    v = np.array([0.6, 0.8])
    first, second = Recording(v, 0, ALONE), Recording(-v, 0, 0)

    def moved(once: bool) -> float:
        both, one = (
            bounded(*summed_twice(held, 1, 1, 2, once=once)) for held in ([first, second], [first])
        )
        return float(np.linalg.norm(both - one))

    assert moved(once=True) == pytest.approx(math.sqrt(1.2))
    assert moved(once=True) > sensitivity(Unit.RECORDING, 8 * 2 * 2, row=2 * 2) / GRID
    assert moved(once=False) < math.sqrt(0.8)


def test_a_search_finds_no_worse_recording_among_labels_and_choices() -> None:
    random = np.random.default_rng(11)
    best = 0.0
    for _ in range(6000):
        labels, choices, dimensions, number = (int(x) for x in random.integers(1, [4, 3, 4, 5]))
        first = random.standard_normal(dimensions)
        held: Held = []
        for _ in range(number):
            point = random.choice([-1, 1]) * first + 0.1 * random.standard_normal(dimensions)
            label, choice = random.integers(0, labels), random.integers(ALONE, choices)
            held.append(Recording(point / np.linalg.norm(point), int(label), int(choice)))
        shape = labels, choices, dimensions
        whole, without = (bounded(*summed_twice(each, *shape)) for each in (held, held[1:]))
        best = max(best, float(np.linalg.norm(whole - without)))
    assert 0.99 < best <= 1 + 1e-12


def test_the_bound_is_reached_by_two_opposite_recordings_of_one_cell() -> None:
    one = np.array([[0.6, 0.8]])
    both = np.concatenate([one, -one])
    alone = bounded(*summed(one, np.array([0]), 1))
    together = bounded(*summed(both, np.array([0, 0]), 1))
    assert np.linalg.norm(alone - together) == 1.0
    assert distance(quantized(alone), quantized(together)) >= unit_steps(2) - 1


def test_random_search_comes_close_to_one_and_not_beyond() -> None:
    random = np.random.default_rng(7)
    best = 0.0
    for _ in range(4000):
        count, dimensions, number = random.integers(1, [4, 4, 5])
        points = random.standard_normal((number, dimensions))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        cells = random.integers(0, count, number)
        whole = bounded(*summed(points, cells, count))
        without = bounded(*summed(points[1:], cells[1:], count))
        best = max(best, float(np.linalg.norm(whole - without)))
    assert 0.99 < best <= 1 + 1e-12


def test_the_room_for_rounding_is_needed_in_the_recording_unit() -> None:
    """Two recordings all but opposite: alone and together are rounded away from each other."""
    size = 64
    unit = unit_steps(size)
    signs = np.random.default_rng(4).choice([-1.0, 1.0], size)
    one = signs * np.append(np.full(size - 1, 511.6), math.sqrt(unit**2 - (size - 1) * 511.6**2))
    one /= unit
    # Of what is left of both, 30 entries are rounded outwards and 34 to nothing.
    left = -signs * np.where(np.arange(size) < 30, 0.52, -0.45) / unit
    other = 2 * left - one
    other /= np.linalg.norm(other)
    alone = quantized(one[None])
    together = quantized(bounded(*summed(np.array([one, other]), np.array([0, 0]), 1)))
    assert GRID + 2 < distance(alone, together) <= sensitivity(Unit.RECORDING, size)
    # Empty rows are not rounded, and the more there are, the shorter a length of 1 is.
    for rows in (2, 3, 4, 40):
        table = np.zeros((rows, size))
        table[0] = one
        both = np.zeros((rows, size))
        both[0] = bounded(*summed(np.array([one, other]), np.array([0, 0]), 1))[0]
        moved = distance(quantized(table), quantized(both))
        declared = sensitivity(Unit.RECORDING, table.size, row=size)
        assert moved <= declared
        assert (declared == GRID) == (rows >= 4)


@pytest.mark.parametrize("row", [1, 10, 32, 128])
def test_a_recording_costs_no_more_than_its_phone_from_four_rows_on(row: int) -> None:
    for rows in (4, 5, 20, 40, 1024):
        assert sensitivity(Unit.RECORDING, rows * row, row) == GRID
    assert sensitivity(Unit.RECORDING, 3 * row, row) > GRID
    assert sensitivity(Unit.RECORDING, row, row) == GRID + math.sqrt(row) / 2


def test_where_rounding_outweighs_a_second_row_a_recording_costs_more() -> None:
    """A second row shortens what moves to 2/√5, to which two roundings of all entries add."""
    for length in (2**18, 600_000):
        assert sensitivity(Unit.RECORDING, length, 128) == GRID
    for length in (700_000, 2**20, GRID**2):
        longest = GRID - math.sqrt(length) / 2
        declared = math.sqrt(0.8) * longest + math.sqrt(length)
        assert sensitivity(Unit.RECORDING, length, 128) == pytest.approx(declared)
        assert declared > GRID


def test_a_vector_normalized_by_its_own_length_would_move_by_two() -> None:
    """Why counts and not the sums themselves: S/‖S‖ of what all but cancels turns around."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.001], [-0.002, 0.0]])

    def by_length(points: np.ndarray) -> np.ndarray:
        total = points.sum(axis=0)
        return np.asarray(total / np.linalg.norm(total))

    assert np.linalg.norm(by_length(rows) - by_length(rows[:2])) > 1
    ours = [bounded(*summed(each, np.zeros(len(each), int), 1)) for each in (rows, rows[:2])]
    assert np.linalg.norm(ours[0] - ours[1]) < 0.2


# ------------------------------------------------------------------------------------ odd vectors


def test_phones_that_heard_nothing_add_nothing() -> None:
    nothing = bounded(*summed(np.empty((0, 5)), np.empty(0, int), 3))
    assert nothing.shape == (3, 5)
    assert not quantized(nothing).any()
    silence = bounded(*summed(np.zeros((4, 5)), np.zeros(4, int), 3))
    assert not quantized(silence).any()


@pytest.mark.parametrize(
    "bad",
    [
        *([math.nan, 0.0], [0.0, math.inf], [-math.inf, math.inf], [1e300, 0.0], [-1.7e308, 1.0]),
        *([1.001, 0.0], [0.71, 0.71], [2.0, 0.0], [-1.0005, 0.0]),
    ],
)
def test_what_is_too_long_or_no_number_is_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="finite and at most 1 long"):
        quantized(np.array([bad]))


@pytest.mark.parametrize("length", [1, 2, 7, 64, 1000, 2**14, 2**18])
def test_the_longest_vector_is_never_refused(length: int) -> None:
    """However its entries round: equal ones, one alone, and random ones of length one."""
    random = np.random.default_rng(length)
    for vector in (
        np.full(length, 1 / math.sqrt(length)),
        np.eye(1, length, length // 2)[0],
        *(random.standard_normal((3, length)) ** 3),
    ):
        whole = vector / np.linalg.norm(vector)
        steps = quantized(whole)
        assert sum(int(x) ** 2 for x in steps) <= GRID**2
        # Hardly anything is lost: half a step in each entry.
        assert np.abs(steps - whole * unit_steps(length)).max() <= 0.5
    assert unit_steps(length) + math.sqrt(length) / 2 < GRID
