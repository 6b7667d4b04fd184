"""Prototypes of labels, from the noisy sum of what phones heard under each (docs/privacy.md)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import unit_rows
from earshot_protocol.privacy.significance import LEVEL
from earshot_server.discovery.cells import clear_lengths, least_clear_component

Floats = npt.NDArray[np.float64]

LEAST_COSINE = 0.2
"""Least cosine between a sound and a prototype without noise for the prototype to name it.

It refuses at most one in thirty of single seconds that have a name. How much sound without a name
it refuses is the encoder's doing: with the default one, 19 of 20 spoken digits, which that has
heard; with an encoder that never met any of the sound, hardly anything (docs/decisions/0054).
"""


class Prototypes(NamedTuple):
    """Prototypes of all rows of a sum, whether or not they stand clear of the noise.

    Attributes:
        directions: Directions of the rows, float64 (rows, dimensions).
        lengths: Length of each row without its noise, in steps, float64 (rows,).
        p_values: P-value of each row, float64 (rows,): twice as many tests as rows are corrected
            for.
    """

    directions: Floats
    lengths: Floats
    p_values: Floats


def prototypes(
    total: npt.NDArray[np.int64], deviation: float, cells: npt.NDArray[np.floating]
) -> Prototypes:
    """Return the direction of each row, and how likely noise alone makes it.

    Noise alone seldom makes a row that is long, and seldom one that points to where sound is. The
    first is a χ² test of its length. The second is a test of its largest component along a cell:
    cells come from the sums before, so the noise of this one does not depend on them, and a
    component is nearly normal. A row's p-value is the smaller of both, times two and the number of
    rows.

    Args:
        total: Noisy sum of what phones heard, (rows, dimensions).
        deviation: Standard deviation of the noise on an entry, in the same unit.
        cells: Places of the cells, unit rows (cells, dimensions).
    """
    from scipy.stats import chi2, norm

    sums = total.astype(np.float64)
    squares, dimensions = np.square(sums).sum(axis=1), sums.shape[1]
    along = (sums @ cells.T.astype(np.float64)).max(axis=1)
    by_length = chi2.sf(squares / deviation**2, dimensions)
    by_cell = len(cells) * norm.sf(along / deviation)
    chances = 2 * len(sums) * np.minimum(by_length, by_cell)
    return Prototypes(unit_rows(sums), clear_lengths(total, deviation), np.minimum(chances, 1.0))


def radius(found: Prototypes, deviation: float, kept: npt.NDArray[np.int64]) -> float:
    """Return the largest distance, 1 − cosine, at which a prototype names a sound.

    Noise turns a prototype away from what it stands for: its cosine to that is l/√(l² + dσ²) for a
    row of length l without noise, and cosines to what it names fall by as much. The factor is the
    mean over the prototypes that stand clear.

    Args:
        found: Directions, lengths and p-values of all rows.
        deviation: Standard deviation of the noise on an entry.
        kept: Rows that are prototypes.
    """
    clear = kept[found.p_values[kept] <= LEVEL]
    lengths = found.lengths[clear]
    noisy = np.sqrt(np.square(lengths) + found.directions.shape[1] * deviation**2)
    return 1.0 - LEAST_COSINE * (float((lengths / noisy).mean()) if len(clear) else 1.0)


def kept_rows(found: Prototypes, kinds: int) -> npt.NDArray[np.int64]:
    """Return the rows that are prototypes: of each label the clear ones, or else its longest.

    Args:
        found: Directions, lengths and p-values of all rows.
        kinds: Rows of each label, one after the other.
    """
    labels = np.arange(len(found.lengths)) // kinds
    clear = found.p_values <= LEVEL
    longest = found.lengths.reshape(-1, kinds).argmax(axis=1) + kinds * np.arange(labels[-1] + 1)
    without = ~clear.reshape(-1, kinds).any(axis=1)
    return np.sort(np.concatenate([np.flatnonzero(clear), longest[without]]))


def least_clear_prototype(deviation: float, shape: tuple[int, int], cells: int) -> float:
    """Return the length from which a row that points to a cell stands clear of the noise.

    Args:
        deviation: Standard deviation of the noise on an entry.
        shape: Rows and dimensions.
        cells: Number of cells.
    """
    from scipy.stats import chi2

    rows, dimensions = shape
    by_length = math.sqrt(float(chi2.isf(LEVEL / (2 * rows), dimensions)))
    return min(deviation * by_length, least_clear_component(deviation, 2 * rows * cells))
