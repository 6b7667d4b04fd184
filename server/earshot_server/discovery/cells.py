"""Positions of cells, from their noisy sums (docs/privacy.md, docs/decisions/0025)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import unit_rows
from earshot_protocol.privacy.significance import LEVEL

Cells = npt.NDArray[np.float64]

INERTIA = 0.5
"""Weight of a cell's last place, relative to the length of the noise in its sum."""
LIGHT = 0.1
"""Part of the mean component below which a cell counts as empty, even where there is no noise."""
_SPREAD = 0.5
"""Part of the cells below which, if only they hear sound, it is unlike their start centroids."""
_APART = 0.1
"""Distance, as a tangent, at which another cell is placed beside the heaviest one to share it."""
_SEED = 2009
"""Seed for the directions in which cells are placed apart: public, so anybody can repeat it."""


def moved_cells(
    total: npt.NDArray[np.int64],
    deviation: float,
    centroids: npt.NDArray[np.floating],
    most: int = 0,
) -> tuple[Cells, npt.NDArray[np.bool_]]:
    """Move cells to where their sums point, and unheard ones to where they are needed.

    A cell whose sum stands clear of the noise takes its direction; the noisier the sum, the nearer
    the cell stays to its last place. A sum stands clear by its component along that place: what a
    cell hears is near it, and noise has a component there that is nearly normal, in however many
    dimensions. The others are of no use where they are. One by one they are placed beside the
    heaviest cell, as long as half of its weight would still stand clear, so that the next sum tells
    apart what the two share (as in Linde, Buzo and Gray, 1980); any that remain stay in place.
    Where few cells hear nearly everything, the sound is unlike that of the start centroids, and
    further cells are placed in the same way. Only public and noised values are used, so
    moving costs no privacy.

    Args:
        total: Noisy sum of what phones heard in each cell, (cells, dimensions).
        deviation: Standard deviation of the noise on an entry, in the same unit.
        centroids: Places of the cells so far, unit rows (cells, dimensions).
        most: Most cells that there may be afterwards; by default, no more than there are.

    Returns:
        Places of the cells, unit rows float64 (more cells, dimensions), and which sums stood clear,
        bool (more cells,).
    """
    sums, last = total.astype(np.float64), centroids.astype(np.float64)
    along = (sums * last).sum(axis=1)
    least = max(least_clear_component(deviation, len(sums)), LIGHT * float(along.mean()))
    clear = along > least
    noise = deviation * math.sqrt(sums.shape[1])
    heard = clear_lengths(total, deviation)
    unlike = effective(heard) < _SPREAD * len(sums)
    count = max(len(sums), most) if unlike else len(sums)
    cells, weights = np.zeros((count, sums.shape[1])), np.zeros(count)
    cells[: len(sums)] = np.where(clear[:, None], unit_rows(sums + INERTIA * noise * last), last)
    weights[: len(sums)] = np.where(clear, along, 0.0)
    generator = np.random.default_rng(_SEED)
    for place in (*np.flatnonzero(~clear), *range(len(sums), count)):
        heaviest = int(np.argmax(weights))
        if weights[heaviest] / 2 <= least:
            count = max(len(sums), place)
            break
        weights[heaviest] /= 2
        weights[place] = weights[heaviest]
        cells[place] = _beside(cells[heaviest], generator)
    return cells[:count], np.pad(clear, (0, count - len(sums)))


def effective(weights: npt.NDArray[np.float64]) -> float:
    """Return over how many cells weights are spread: Simpson's index, inverted; 0 for no weight.

    Unlike the number of cells that stand clear, it hardly depends on the amount of noise.
    """
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def clear_lengths(total: npt.NDArray[np.integer[Any]], deviation: float) -> Cells:
    """Return the length of each row without what noise adds to it, float64 (rows,).

    Args:
        total: Noisy sum, (rows, dimensions).
        deviation: Standard deviation of the noise on an entry, in the same unit.
    """
    squares = np.square(total.astype(np.float64)).sum(axis=1)
    lengths: Cells = np.sqrt(np.maximum(squares - total.shape[1] * deviation**2, 0.0))
    return lengths


def turned(lengths: Cells, deviation: float, dimensions: int) -> Cells:
    """Return the cosine of each row to what it would be without noise, float64 (rows,).

    It is l/√(l² + dσ²) for a row of length l without noise.

    Args:
        lengths: Lengths without noise, as `clear_lengths` returns them.
        deviation: Standard deviation of the noise on an entry, in the same unit.
        dimensions: Entries of a row, d.
    """
    cosines: Cells = lengths / np.sqrt(np.square(lengths) + dimensions * deviation**2)
    return cosines


def least_clear_component(deviation: float, looked_at: int) -> float:
    """Return the component that noise alone exceeds in any place with a chance of `LEVEL` at most.

    Args:
        deviation: Standard deviation of the noise on an entry, and so on a component.
        looked_at: Number of components.
    """
    from scipy.stats import norm

    return deviation * float(norm.isf(LEVEL / looked_at))


def least_clear_length(deviation: float, shape: tuple[int, ...]) -> float:
    """Return the length that noise alone exceeds, in any row, with a chance of at most `LEVEL`.

    The noise on many entries is nearly normal, so its squared length follows a χ² law.
    """
    from scipy.stats import chi2

    count, dimensions = shape
    return deviation * math.sqrt(float(chi2.isf(LEVEL / count, dimensions)))


def _beside(cell: npt.NDArray[np.float64], generator: np.random.Generator) -> Cells:
    """Return a unit vector close to another one, in a random direction of its tangent plane."""
    tangent = generator.standard_normal(len(cell))
    tangent -= (tangent @ cell) * cell
    placed: Cells = unit_rows((cell + _APART * tangent / (np.linalg.norm(tangent) or 1.0))[None])[0]
    return placed
