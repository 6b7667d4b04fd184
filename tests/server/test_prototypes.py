"""Which rows of a sum of labels become prototypes: those that noise alone seldom makes."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats
from support.parameters import discovery_parameters

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.geometry import unit_rows
from earshot_protocol.phases.discovery import LABELS, SumLabels, cells
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.parameters import choose
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Matrix
from earshot_server.discovery.prototypes import (
    Prototypes,
    kept_rows,
    least_clear_prototype,
    prototypes,
)
from earshot_server.phases.discovery import DiscoveryPhase

DEVIATION = 400.0


def directions(count: int, dimensions: int, seed: int = 1) -> npt.NDArray[np.float64]:
    return unit_rows(np.random.default_rng(seed).standard_normal((count, dimensions)))


def noise(random: np.random.Generator, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """What phones' shares add up to: the difference of two Poisson numbers."""
    first, second = random.poisson(DEVIATION**2 / 2, (2, *shape))
    return np.asarray(first - second, dtype=np.int64)


def whole(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(DEVIATION * rows).astype(np.int64)


def with_counts(vectors: npt.NDArray[np.int64], count: int = 0) -> npt.NDArray[np.int64]:
    """Rows with the entry that counts recordings, which no test of a row looks at."""
    return np.column_stack([vectors, np.full(len(vectors), count)])


# ------------------------------------------------------------------------------------ the p-values


@pytest.mark.parametrize(
    ("rows", "dimensions", "cells"), [(15, 32, 20), (90, 16, 40), (4, 64, 6), (6, 2, 1)]
)
def test_noise_alone_makes_a_prototype_in_one_of_twenty_phases_at_most(
    rows: int, dimensions: int, cells: int
) -> None:
    random, places = np.random.default_rng(2), directions(cells, dimensions)
    clear, short = 0, 0
    for _ in range(2000):
        found = prototypes(noise(random, (rows, dimensions + 1)), DEVIATION, places)
        clear += bool((found.p_values <= LEVEL).any())
        short += bool((found.p_values <= LEVEL / 2).any())
    # 2,000 · 0.05, and half of it, and four deviations more.
    assert clear < 139
    assert short < 78
    # What both tests together are made for is not given away, either.
    assert clear > 45


def test_a_row_far_from_all_cells_is_tested_by_its_length_alone() -> None:
    """Its p-value follows from the χ² law, here as an integral of its density."""
    dimensions, rows = 5, 3
    cells = np.eye(1, dimensions)
    for length in (2.0, 3.5, 4.5, 6.0):
        total = np.zeros((rows, dimensions), dtype=np.int64)
        total[1, 3] = round(length * DEVIATION)
        beyond, _ = integrate.quad(
            lambda x: x ** (dimensions - 1) * math.exp(-(x**2) / 2), length, math.inf
        )
        beyond /= 2 ** (dimensions / 2 - 1) * math.gamma(dimensions / 2)
        found = prototypes(with_counts(total, 10**9), DEVIATION, cells)
        assert found.p_values[1] == pytest.approx(min(1.0, 2 * rows * beyond), rel=1e-6)
        assert found.p_values[0] == found.p_values[2] == 1.0
        assert found.directions[1].tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("there", [0.0, 4.0, 7.0])
def test_the_length_of_a_row_has_the_exact_law_of_what_is_there_and_noise(there: float) -> None:
    """Of 4,000 rows with the same true length, against the non-central χ² law."""
    dimensions, rows = 12, 4000
    planted = np.zeros((rows, dimensions))
    planted[:, 2] = there
    total = whole(planted) + noise(np.random.default_rng(4), (rows, dimensions))
    found = prototypes(with_counts(total, 7), DEVIATION, -np.eye(dimensions)[2:3])
    assert (found.counts == 7).all()
    squares = np.square(total / DEVIATION).sum(axis=1)
    law = stats.ncx2(dimensions, there**2) if there else stats.chi2(dimensions)
    assert stats.kstest(squares, law.cdf).pvalue > 0.01
    # No row points to the only cell, so as many are clear as the law says are long enough.
    long = float(law.sf(special.chdtri(dimensions, LEVEL / (2 * rows))))
    if there:
        assert abs(np.mean(found.p_values <= LEVEL) - long) < 4 * math.sqrt(long / rows)
    np.testing.assert_allclose(
        found.lengths, DEVIATION * np.sqrt(np.maximum(squares - dimensions, 0)), rtol=1e-12
    )


def test_a_row_along_a_cell_is_clear_where_its_length_alone_is_not() -> None:
    rows, dimensions, count = 15, 64, 20
    cells = directions(count, dimensions)
    aside = np.linalg.svd(cells)[2][count]
    total = np.zeros((rows, dimensions), dtype=np.int64)
    total[3], total[4], total[5] = whole(np.array([6 * cells[7], 6 * aside, -6 * cells[7]]))
    found = prototypes(with_counts(total), DEVIATION, cells)
    assert stats.chi2.sf(6.0**2, dimensions) > 0.9, "noise alone is longer"
    assert np.flatnonzero(found.p_values <= LEVEL).tolist() == [3]
    expected = 2 * rows * count * special.ndtr(-6.0)
    assert found.p_values[3] == pytest.approx(expected, rel=1e-2)
    assert found.directions[3] @ cells[7] == pytest.approx(1, abs=1e-4)
    # Cells as they come on the wire do no harm.
    narrow = prototypes(with_counts(total), DEVIATION, cells.astype(np.float32))
    np.testing.assert_allclose(narrow.p_values, found.p_values, rtol=1e-4)


# ------------------------------------------------------------- the least length that stands clear


@pytest.mark.parametrize(
    ("shape", "cells", "along"),
    [((15, 64), 20, True), ((90, 16), 40, True), ((2, 1), 1, True), ((2, 1), 50, False)],
)
def test_a_row_is_clear_from_the_least_length_on(
    shape: tuple[int, int], cells: int, along: bool
) -> None:
    """Along a cell; and in one dimension, where many cells tell less than the length does."""
    deviation, (rows, dimensions) = 1e6, shape
    places = directions(cells, dimensions)
    least = least_clear_prototype(deviation, shape, cells)
    quantile = special.ndtri(1 - LEVEL / (2 * rows * cells))
    by_length = math.sqrt(special.chdtri(dimensions, LEVEL / (2 * rows)))
    assert least == pytest.approx(deviation * min(quantile, by_length), rel=1e-9)
    assert bool(quantile < by_length) is along
    for factor, clear in ((1.0001, True), (0.9999, False)):
        total = np.zeros(shape, dtype=np.int64)
        total[1] = np.rint(factor * least * places[0])
        assert bool(prototypes(with_counts(total), deviation, places).p_values[1] <= LEVEL) is clear


# --------------------------------------------------------------------------- which rows are kept


def found_with(lengths: list[float], p_values: list[float]) -> Prototypes:
    some = np.array(lengths)
    return Prototypes(np.eye(len(lengths)), some, some, np.array(p_values))


@given(
    kinds=st.integers(1, 5),
    labels=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
    clear=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_kept_rows_are_those_of_a_loop_over_labels(
    kinds: int, labels: int, seed: int, clear: float
) -> None:
    random = np.random.default_rng(seed)
    rows = kinds * labels
    # Few different lengths, so that some are equal: the first of them is the longest.
    lengths = random.integers(0, 4, rows).astype(float).tolist()
    p_values = [
        float(random.uniform(0, 0.05) if random.random() < clear else random.uniform(0.051, 1))
        for _ in range(rows)
    ]
    expected: list[int] = []
    for label in range(labels):
        own = range(label * kinds, (label + 1) * kinds)
        standing = [row for row in own if p_values[row] <= 0.05]
        expected += standing or [max(own, key=lambda row: lengths[row])]
    kept = kept_rows(found_with(lengths, p_values), kinds)
    assert kept.tolist() == expected
    assert set((kept // kinds).tolist()) == set(range(labels)), "every label has one"


def test_a_row_at_the_level_is_clear_and_hides_a_longer_one_that_is_not() -> None:
    found = found_with([1.0, 9.0, 2.0, 5.0, 7.0, 6.0], [0.05, 0.051, 1.0, 0.9, 0.06, 0.2])
    assert kept_rows(found, 3).tolist() == [0, 4]
    assert kept_rows(found, 2).tolist() == [0, 3, 4]
    assert kept_rows(found, 1).tolist() == list(range(6))


# ----------------------------------------------------------------------- in a phase, by its kinds

GROUPS = {"bus": ("tram",), "park": ()}
HIERARCHY = LabelHierarchy(GROUPS)
START = CentroidSet.of(np.array([[1.0, 0.0], [0.96, 0.28], [0.0, 1.0], [-0.28, 0.96]]))
SPLIT = discovery_parameters(
    labels=tuple(GROUPS),
    start=START,
    sums=1,
    rows=3,
    kinds=2,
    labels_noise=5.0,
    hierarchy=HIERARCHY.digest,
)


def phase(**changes: Any) -> DiscoveryPhase:
    fields: dict[str, Any] = {
        "phase": bytes(16),
        "parameters": SPLIT,
        "choices": (("tram",), ()),
        "step": "labels: unmask",
        "deadline": 0.0,
    }
    return DiscoveryPhase(**fields | changes)


def test_a_phase_publishes_several_prototypes_of_a_label_and_one_of_each_other() -> None:
    state = phase(
        centroids=Matrix.of(START.centroids()),
        moved=(True,) * 4,
        cell_lengths=(9.0,) * 4,
        inputs={cells(1): SPLIT.noise_survivors, LABELS: SPLIT.noise_survivors},
    )
    assert state.shape(LABELS) == DiscoveryPhase.expected(SPLIT, LABELS).shape == (6, 3)
    one = 40 * 4096
    total = np.array(
        # Of bus both kinds, of park the second, of tram neither: its second row is longer.
        [[one, 0], [0, 2 * one], [5, 0], [-one, 0], [0, 1000], [-10 * 4096, 0]]
    )
    state.take_total(LABELS, with_counts(total))
    result = state.published()
    assert result.centroids.array().tolist() == [[1, 0], [0, 1], [-1, 0], [-1, 0]]
    assert result.labels == (0, 0, 1, 0)
    assert result.choices == ("", "", "", "tram")
    assert result.names == ("bus", "bus", "park", None)
    # In phones: one of them adds 1 at most, and 2^12 steps are 1.
    noise = SPLIT.labels_noise**2 * 2
    assert result.lengths == pytest.approx([math.sqrt(x**2 - noise) for x in (40, 80, 40, 10)])


def test_no_length_is_more_than_the_phones_of_its_sum() -> None:
    """Noise may add more than it does on average, and phones could not have."""
    lengths = (30.2, 3.0, 14.0, 0.0)
    state = phase(
        prototypes=Matrix.of(START.centroids()),
        prototype_rows=(0, 0, 1, 1),
        lengths=lengths,
        name_p_values=(0.01,) * 4,
        cell_lengths=lengths,
        inputs={LABELS: 14, cells(1): 12},
    )
    result = state.published()
    assert result.lengths == (14.0, 3.0, 14.0, 0.0)
    assert result.cell_lengths == (12.0, 3.0, 12.0, 0.0)


def test_a_phase_tells_phones_the_kinds_of_its_cells() -> None:
    """Cells that are close are of one kind, numbered from 0; those that moved go along."""
    moved = Matrix.of(np.array([[0.0, 1.0], [1.0, 0.0], [0.28, 0.96], [0.96, 0.28], [0.0, -1.0]]))
    advertise = AdvertiseKeys(
        sum_id=bytes(16), index=0, parameters=choose(100, (6, 3), 9, 0.1, 0.05)
    )
    three = msgspec.structs.replace(SPLIT, kinds=3)
    lengths = (8.0, 8.0, 8.0, 8.0, 8.0)
    told = phase(parameters=three, centroids=moved, cell_lengths=lengths).sum_task(
        LABELS, advertise
    )
    assert isinstance(told, SumLabels)
    assert told.centroids == moved
    first, second, third, fourth, last = told.kinds
    assert first == third != second == fourth
    assert {first, second, last} == {0, 1, 2}
    # A cell in which nothing was heard is no kind of its own, however far it is from others.
    apart = Matrix.of(np.array([[1.0, 0.0], [0.8, 0.6], [-1.0, 0.0]]))
    for heard, kinds in ((0.0, {(0, 1, 1), (1, 0, 0)}), (100.0, {(0, 0, 1), (1, 1, 0)})):
        state = phase(centroids=apart, cell_lengths=(100.0, 100.0, heard))
        assert state.kinds() in kinds
    # Before any sum, of the start centroids, which the parameters have.
    begun = phase(parameters=msgspec.structs.replace(SPLIT, sums=0)).sum_task(LABELS, advertise)
    assert isinstance(begun, SumLabels)
    assert (begun.centroids, begun.parameters is None) == (None, False)
    assert begun.kinds in {(0, 0, 1, 1), (1, 1, 0, 0)}
    # More kinds than cells: each is one.
    many = phase(parameters=msgspec.structs.replace(SPLIT, kinds=16), centroids=moved)
    assert sorted(many.kinds()) == list(range(5))
    whole = phase(parameters=msgspec.structs.replace(SPLIT, kinds=1), centroids=moved)
    plain = whole.sum_task(LABELS, advertise)
    assert isinstance(plain, SumLabels)
    assert (plain.centroids, plain.kinds) == (None, ())


def test_noise_in_a_cell_does_not_take_its_name() -> None:
    """A cell is turned away from its sound by its noise, and its cosines are lowered by as much."""
    angles = np.deg2rad([0.0, 60.0, 60.0, 60.0])
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    noise = SPLIT.cells_noise * math.sqrt(2)
    # At cosines of .9 and .7 to its sound, and in a cell of which no sum has a length.
    lengths = (500.0, *(noise * turned / math.sqrt(1 - turned**2) for turned in (0.9, 0.7)), 0.0)
    state = phase(
        centroids=Matrix.of(places),
        moved=(True,) * 4,
        cell_lengths=lengths,
        inputs={"cells 1": SPLIT.noise_survivors, LABELS: SPLIT.noise_survivors},
        prototypes=Matrix.of(np.array([[1.0, 0.0]])),
        prototype_rows=(0,),
        lengths=(90.0,),
        name_p_values=(0.0,),
        radius=0.4,
    )
    found = state.published()
    # Their cosines to the prototype are ½, so ½/.9 and ½/.7 are those of their sound.
    assert found.cell_prototypes == (0, -1, 0, -1)
    assert found.cell_labels == (0, -1, 0, -1)
    # Start centroids have no noise: of the four, the two at 90° and 106° are beyond.
    assert found.refused == 0.5
    without = msgspec.structs.replace(SPLIT, sums=0)
    bare = phase(
        parameters=without,
        inputs={LABELS: SPLIT.noise_survivors},
        prototypes=state.prototypes,
        prototype_rows=(0,),
        lengths=(90.0,),
        name_p_values=(0.0,),
        radius=0.4,
    )
    assert bare.published().cell_prototypes == (0, 0, -1, -1)
