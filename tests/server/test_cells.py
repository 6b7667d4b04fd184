"""Where a sum of cells moves them: only what stands clear of the noise, and never for nothing."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from earshot_protocol.geometry import unit_rows
from earshot_protocol.privacy.significance import LEVEL
from earshot_server.discovery.cells import INERTIA, effective, moved_cells

COUNT, DIMENSIONS = 20, 32


def start(count: int = COUNT, dimensions: int = DIMENSIONS) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(1).standard_normal((count, dimensions))
    return unit_rows(rows).astype(np.float32)


def heard(lengths: npt.ArrayLike, directions: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Sums of these lengths in these directions."""
    return np.rint(np.asarray(lengths)[:, None] * directions.astype(np.float64)).astype(np.int64)


def drawn(random: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Noise as phones make it, with a deviation of 1,000: differences of Poisson numbers."""
    noise: npt.NDArray[np.int64] = random.poisson(5e5, shape) - random.poisson(5e5, shape)
    return noise


@pytest.mark.parametrize(("count", "dimensions"), [(COUNT, DIMENSIONS), (40, 64)])
def test_noise_alone_moves_a_cell_in_one_of_twenty_sums_at_most(
    count: int, dimensions: int
) -> None:
    random, moved, places = np.random.default_rng(2), 0, start(count, dimensions)
    for _ in range(2000):
        cells, clear = moved_cells(drawn(random, (count, dimensions)), 1000.0, places)
        np.testing.assert_allclose(cells[~clear], places[~clear], atol=1e-6)
        moved += bool(clear.any())
    # 2,000 · 0.05 ± four deviations: the test could fail on either side.
    assert 61 < moved < 139
    assert LEVEL == 0.05


@pytest.mark.parametrize("dimensions", [8, 32, 64])
@pytest.mark.parametrize("component", [1.5, 2.8, 4.0])
def test_a_cell_stands_clear_as_often_as_a_normal_component_does(
    component: float, dimensions: int
) -> None:
    random, places = np.random.default_rng([9, dimensions]), start(COUNT, dimensions)
    true, found = heard(np.full(COUNT, 1000 * component), places), 0
    for _ in range(500):
        total = true + drawn(random, (COUNT, dimensions))
        found += int(np.sum(moved_cells(total, 1000.0, places)[1]))
    normal = NormalDist()
    chance = 1 - normal.cdf(normal.inv_cdf(1 - LEVEL / COUNT) - component)
    trials = 500 * COUNT
    assert abs(found / trials - chance) < 4 * math.sqrt(chance * (1 - chance) / trials)


def test_a_cell_stands_clear_by_what_points_to_its_place_however_short_its_sum() -> None:
    places = start(40, 64)
    lengths = np.where(np.arange(40) % 2, 4000.0, 2000.0)
    total = heard(lengths, places)
    # Noise alone is as long as this in one of 20 sums of a single cell, and four is short of it.
    assert lengths.max() < 1000 * math.sqrt(float(chi2.isf(LEVEL, 64)))
    cells, clear = moved_cells(total, 1000.0, places)
    assert np.flatnonzero(clear).tolist() == list(range(1, 40, 2))
    np.testing.assert_allclose(cells, places, atol=1e-3)
    total[0] *= -100
    assert not moved_cells(total, 1000.0, places)[1][0], "phones hear nothing opposite to a cell"
    total[0] = 8000 * start(1, 64)[0] - 8000 * (start(1, 64)[0] @ places[0]) * places[0]
    assert not moved_cells(total, 1000.0, places)[1][0], "nor at right angles to it"


def test_a_clear_cell_takes_the_direction_of_its_sum_but_for_the_noise_in_it() -> None:
    random = np.random.default_rng(3)
    directions = unit_rows(start() + 0.1 * random.standard_normal((COUNT, DIMENSIONS)))
    total = heard(np.full(COUNT, 1e6), directions)
    for deviation in (0.0, 1e3, 1e4):
        cells, clear = moved_cells(total, deviation, start())
        assert clear.all()
        weight = INERTIA * deviation * math.sqrt(DIMENSIONS)
        expected = unit_rows(1e6 * directions + weight * start())
        np.testing.assert_allclose(cells, expected, atol=1e-5)


def test_what_nobody_heard_is_placed_beside_the_heaviest_cells() -> None:
    lengths = np.zeros(COUNT)
    lengths[3], lengths[11] = 8e6, 3e6
    cells, clear = moved_cells(heard(lengths, start()), 1e4, start())
    assert np.flatnonzero(clear).tolist() == [3, 11]
    # 8, 3 → 4, 4, 3 → 2, 2, 4, 3 …: halves go where most is, until all others are placed.
    beside = {
        heavy: int(np.sum(cells @ start()[heavy].astype(np.float64) > 0.9)) for heavy in (3, 11)
    }
    assert sum(beside.values()) == COUNT
    assert beside[3] > beside[11] >= 4
    np.testing.assert_allclose(np.linalg.norm(cells, axis=1), 1)
    for first in range(COUNT):
        others = np.delete(cells, first, axis=0)
        assert (others @ cells[first] < 1 - 1e-6).all(), "two cells in one place tell nothing apart"


def test_a_cell_is_shared_only_while_half_of_it_stands_clear() -> None:
    lengths = np.zeros(COUNT)
    lengths[5] = 5e4  # clear, but a half would not be
    cells, clear = moved_cells(heard(lengths, start()), 1e4, start())
    assert np.flatnonzero(clear).tolist() == [5]
    np.testing.assert_allclose(np.delete(cells, 5, 0), np.delete(start(), 5, 0), atol=1e-6)


def test_where_few_cells_hear_nearly_everything_further_ones_are_placed_beside_them() -> None:
    lengths = np.full(COUNT, 5e4)
    lengths[[3, 11]] = 8e6, 6e6
    total = heard(lengths, start())
    assert moved_cells(total, 1e3, start())[0].shape == (COUNT, DIMENSIONS)
    cells, clear = moved_cells(total, 1e3, start(), 40)
    assert cells.shape == (40, DIMENSIONS)
    # Light ones are as good as silent, and are placed too.
    assert np.flatnonzero(clear).tolist() == [3, 11]
    beside = cells @ start()[[3, 11]].astype(np.float64).T > 0.9
    assert beside.sum() == 40
    assert beside[:, 0].sum() > beside[:, 1].sum() > 14
    np.testing.assert_allclose(np.linalg.norm(cells, axis=1), 1)


@pytest.mark.parametrize("deviation", [0.0, 1e4, 1e5])
@pytest.mark.parametrize(("busy", "grown"), [(COUNT, False), (12, False), (8, True), (2, True)])
def test_whether_cells_grow_is_a_matter_of_sound_and_not_of_noise(
    deviation: float, busy: int, grown: bool
) -> None:
    noise = deviation * np.random.default_rng(5).standard_normal((COUNT, DIMENSIONS))
    lengths = np.where(np.arange(COUNT) < busy, 1e8, 0.0)
    total = heard(lengths, start()) + np.rint(noise).astype(np.int64)
    cells, clear = moved_cells(total, deviation, start(), 40)
    assert (len(cells) > COUNT) == grown
    assert len(cells) == len(clear)


def test_there_are_no_more_cells_than_can_stand_clear() -> None:
    lengths = np.zeros(COUNT)
    lengths[5] = 100e4
    cells, _ = moved_cells(heard(lengths, start()), 1e4, start(), 1000)
    # Halved five times it is 3.1 times the noise, and 1.6 times it would not be clear.
    assert len(cells) == 32


@pytest.mark.parametrize("count", [1, 7, 100])
def test_weights_that_are_alike_are_as_many_as_they_are(count: int) -> None:
    assert effective(np.full(count, 0.3)) == pytest.approx(count)
    assert effective(np.append(np.full(count, 0.3), np.zeros(5))) == pytest.approx(count)
    assert effective(np.zeros(count)) == 0


def test_without_noise_and_without_anything_heard_all_stays() -> None:
    cells, clear = moved_cells(np.zeros((COUNT, DIMENSIONS), dtype=np.int64), 0.0, start())
    assert not clear.any()
    np.testing.assert_allclose(cells, start(), atol=1e-6)


@given(
    st.integers(1, 12),
    st.integers(1, 9),
    st.floats(0, 1e5),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 10, 10**4, 2**40]),
    st.integers(0, 20),
)
def test_whatever_comes_out_of_a_sum_cells_are_unit_rows(
    count: int, dimensions: int, deviation: float, seed: int, far: int, most: int
) -> None:
    total = np.random.default_rng(seed).integers(-far, far, (count, dimensions), endpoint=True)
    cells, clear = moved_cells(total, deviation, start(count, dimensions), most)
    assert count <= len(cells) <= max(count, most)
    assert cells.shape[1] == dimensions
    assert clear.shape == (len(cells),)
    np.testing.assert_allclose(np.linalg.norm(cells, axis=1), 1)


def test_it_is_the_same_at_every_call() -> None:
    total = np.random.default_rng(4).integers(-(10**6), 10**6, (COUNT, DIMENSIONS))
    total[::2] = 0
    first, second = (moved_cells(total, 1e4, start())[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("half", [0.45, 0.55])
def test_two_places_in_one_cell_are_told_apart_by_the_next_sum(half: float) -> None:
    random = np.random.default_rng(6)
    places = unit_rows(start(1, 8) + half * random.standard_normal((2, 8)))
    points = unit_rows(np.repeat(places, 500, axis=0) + 0.1 * random.standard_normal((1000, 8)))
    cells = np.vstack([unit_rows(places.mean(axis=0, keepdims=True)), -start(1, 8)])
    for _ in range(4):
        owner = np.argmax(points @ cells.T, axis=1)
        sums = np.stack([points[owner == cell].sum(axis=0) for cell in range(2)])
        cells, _ = moved_cells(np.rint(1000 * sums).astype(np.int64), 10.0, cells)
    owner = np.argmax(points @ cells.T, axis=1)
    assert set(owner[:500]) | set(owner[500:]) == {0, 1}
    assert np.mean(owner[:500] == owner[0]) > 0.97
    assert np.mean(owner[500:] != owner[0]) > 0.97
