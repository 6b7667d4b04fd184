"""Prototypes of labels from the noisy sum of each label's recordings (docs/privacy.md)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import unit_rows
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.voting.vectors import COUNTED, UNCOUNTED
from earshot_server.discovery.cells import clear_lengths, least_clear_component, turned

Floats = npt.NDArray[np.float64]

SPREAD = 0.28
"""Difference between the mean and the 5 % quantile of cosines of sounds to their prototype.

It hardly depends on the sounds and the encoder: .24 to .33 for three collections and two encoders,
where mean cosines were .58 to .83 (docs/decisions/0055).
"""
LARGEST_MEAN = 0.83
"""Largest mean cosine that narrows a radius: the largest of three collections and two encoders.

The number of sounds is the phones' word. Without this limit, one phone whose counting entries are
all negative would cancel the counts of four others or more, and a few such phones would narrow the
radius until hardly any sound had a name (docs/decisions/0082).
"""
LEAST_COSINE = 0.2
"""Smallest cosine at which a prototype without noise names a sound, whatever the mean cosine."""


class Prototypes(NamedTuple):
    """Prototypes of all rows of a sum, whether or not they are clear of the noise.

    Attributes:
        directions: Directions of the rows, float64 (rows, dimensions).
        lengths: Length of each row without its noise, in steps, float64 (rows,).
        counts: Noisy sum of the entries by which unit vectors are counted, in steps, float64
            (rows,).
        p_values: P-value of each row, corrected for two tests of every row, float64 (rows,).
    """

    directions: Floats
    lengths: Floats
    counts: Floats
    p_values: Floats


def prototypes(
    total: npt.NDArray[np.int64], deviation: float, cells: npt.NDArray[np.floating]
) -> Prototypes:
    """Return the direction of each row, and its p-value against noise alone.

    Two tests are made: a χ² test of the row's length, and a test of its largest component along a
    cell. Cells come from earlier sums, so this sum's noise does not depend on them and its
    component is nearly normal. A row's p-value is the smaller of both, times two and the number of
    rows, at most 1.

    Args:
        total: Noisy sum of what phones heard, and of how often, (rows, dimensions + 1).
        deviation: Standard deviation of the noise on an entry, in the same unit.
        cells: Positions of the cells, unit rows (cells, dimensions).
    """
    from scipy.stats import chi2, norm

    vectors, counts = total[:, :-1], total[:, -1].astype(np.float64)
    sums = vectors.astype(np.float64)
    squares, dimensions = np.square(sums).sum(axis=1), sums.shape[1]
    along = (sums @ cells.T.astype(np.float64)).max(axis=1)
    by_length = chi2.sf(squares / deviation**2, dimensions)
    by_cell = len(cells) * norm.sf(along / deviation)
    chances = 2 * len(sums) * np.minimum(by_length, by_cell)
    lengths = clear_lengths(vectors, deviation)
    return Prototypes(unit_rows(sums), lengths, counts, np.minimum(chances, 1.0))


def radius(found: Prototypes, deviation: float, kept: npt.NDArray[np.int64]) -> float:
    """Return the largest distance, 1 − cosine, at which a prototype names a sound.

    About 5 % of labelled sounds are intended to lie beyond it, and fewer where sounds are more
    alike than `LARGEST_MEAN`. The mean cosine of sounds to the direction of their sum is the sum's
    length over their number; 5 % of the cosines are more than `SPREAD` below it. The number is
    noisy, so the standard deviation of its noise is added; if it is not clear of the noise, the
    cosine is `LEAST_COSINE`. Noise also turns a prototype: its cosine to its direction without
    noise is l/√(l² + dσ²) for a row of length l without noise, and cosines to sounds shrink by the
    same factor. Both are means over the clear prototypes.

    Args:
        found: Directions, lengths and p-values of all rows.
        deviation: Standard deviation of the noise on an entry.
        kept: Indices of the rows that are prototypes.
    """
    clear = kept[found.p_values[kept] <= LEVEL]
    if not len(clear):
        return 1.0 - LEAST_COSINE
    lengths, counted = found.lengths[clear], float(found.counts[clear].sum())
    noise, least = math.sqrt(len(clear)) * deviation, LEAST_COSINE
    if counted > least_clear_component(noise, 1):
        mean = float(lengths.sum()) / UNCOUNTED * COUNTED / (counted + noise)
        least = max(least, min(LARGEST_MEAN, mean) - SPREAD)
    return 1.0 - least * float(turned(lengths, deviation, found.directions.shape[1]).mean())


def kept_rows(found: Prototypes, kinds: int) -> npt.NDArray[np.int64]:
    """Return the rows that are prototypes: of each label the clear ones, or else its longest.

    Args:
        found: Directions, lengths and p-values of all rows.
        kinds: Number of consecutive rows of each label.
    """
    labels = np.arange(len(found.lengths)) // kinds
    clear = found.p_values <= LEVEL
    longest = found.lengths.reshape(-1, kinds).argmax(axis=1) + kinds * np.arange(labels[-1] + 1)
    without = ~clear.reshape(-1, kinds).any(axis=1)
    return np.sort(np.concatenate([np.flatnonzero(clear), longest[without]]))


def least_clear_prototype(deviation: float, shape: tuple[int, int], cells: int) -> float:
    """Return the least length at which a row that points to a cell is clear of the noise.

    Args:
        deviation: Standard deviation of the noise on an entry.
        shape: Rows and dimensions.
        cells: Number of cells.
    """
    from scipy.stats import chi2

    rows, dimensions = shape
    by_length = math.sqrt(float(chi2.isf(LEVEL / (2 * rows), dimensions)))
    return min(deviation * by_length, least_clear_component(deviation, 2 * rows * cells))
