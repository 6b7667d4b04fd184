"""Positions of cells from their noisy sums (docs/privacy.md, docs/decisions/0025)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import unit_rows
from earshot_protocol.privacy.significance import LEVEL

Cells = npt.NDArray[np.float64]

INERTIA = 0.5
"""Weight of a cell's last position, relative to the length of the noise in its sum."""
LIGHT = 0.1
"""Fraction of the mean component below which a cell counts as empty, even without noise."""
_SPREAD = 0.5
"""Effective fraction of cells below which the sound counts as unlike the start centroids."""
_APART = 0.1
"""Tangent of the angle at which another cell is placed beside the heaviest one."""
_SEED = 2009
"""Seed for the directions in which cells are placed apart: public, so that it is reproducible."""


def moved_cells(
    total: npt.NDArray[np.int64],
    deviation: float,
    centroids: npt.NDArray[np.floating],
    most: int = 0,
) -> tuple[Cells, npt.NDArray[np.bool_]]:
    """Move cells in the directions of their sums, and empty ones to where they are needed.

    A cell whose sum is clear of the noise takes its direction; the noisier the sum, the nearer the
    cell stays to its last position. A sum is clear by its component along that position: sound in
    a cell is near it, and the noise's component is nearly normal in any number of dimensions. The
    other cells are placed, one by one, beside the heaviest cell, as long as half of its weight
    would still be clear, so that the next sum divides its sound between the two (as in Linde, Buzo
    and Gray, 1980); any that remain stay in place. If few cells have nearly all sound, it is unlike
    the start centroids, and further cells are added in the same way. Only public and noisy values
    are used, so moving costs no privacy.

    Args:
        total: Noisy sum of what phones heard in each cell, (cells, dimensions).
        deviation: Standard deviation of the noise on an entry, in the same unit.
        centroids: Present positions of the cells, unit rows (cells, dimensions).
        most: Largest number of cells afterwards; by default their present number.

    Returns:
        Positions of the cells, unit rows float64 (cells or more, dimensions), and whether each
        sum was clear, bool (cells or more,).
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
    """Return the effective number of cells: the inverse Simpson index; 0 if all weights are 0.

    Unlike the number of clear cells, it hardly depends on the amount of noise.
    """
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def clear_lengths(total: npt.NDArray[np.integer[Any]], deviation: float) -> Cells:
    """Return the length of each row less the noise's mean contribution, float64 (rows,).

    Args:
        total: Noisy sum, (rows, dimensions).
        deviation: Standard deviation of the noise on an entry, in the same unit.
    """
    squares = np.square(total.astype(np.float64)).sum(axis=1)
    lengths: Cells = np.sqrt(np.maximum(squares - total.shape[1] * deviation**2, 0.0))
    return lengths


def turned(lengths: Cells, deviation: float, dimensions: int) -> Cells:
    """Return the cosine between each row with and without noise, float64 (rows,).

    It is l/√(l² + dσ²) for a row of length l without noise.

    Args:
        lengths: Lengths without noise, as `clear_lengths` returns them.
        deviation: Standard deviation of the noise on an entry, in the same unit.
        dimensions: Entries of a row, d.
    """
    cosines: Cells = lengths / np.sqrt(np.square(lengths) + dimensions * deviation**2)
    return cosines


def least_clear_component(deviation: float, looked_at: int) -> float:
    """Return the bound that any component of noise alone exceeds with probability ≤ `LEVEL`.

    Args:
        deviation: Standard deviation of the noise on an entry, and so on a component.
        looked_at: Number of components that are tested.
    """
    from scipy.stats import norm

    return deviation * float(norm.isf(LEVEL / looked_at))


def least_clear_length(deviation: float, shape: tuple[int, ...]) -> float:
    """Return the length that noise alone exceeds, in any row, with probability ≤ `LEVEL`.

    The noise on many entries is nearly normal, so its squared length follows a χ² law.

    Args:
        deviation: Standard deviation of the noise on an entry.
        shape: Rows and dimensions.
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
