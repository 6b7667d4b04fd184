"""The cells and noise of a discovery phase, derived from its cost, and the defaults.

The defaults were chosen by simulated phases over sound that the start centroids had not met
(docs/decisions/0025).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from earshot_protocol import checks, start_centroids
from earshot_protocol.phases.discovery import MOST_SUMS
from earshot_protocol.privacy.calibration import noise_multipliers
from earshot_protocol.privacy.conversions import zcdp_rho
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.vectors import COUNTS

EPSILON, DELTA = 2.0, 1e-6
"""Cost of a whole phase, per phone."""
SUMS = 2
"""Number of sums of cells, T."""
LABEL_SHARE = 0.3
"""Share of the phase's cost, as ρ of zero-concentrated privacy, that names get."""
DIMENSIONS = 64
"""Dimensions in which sound is sorted, d."""

MOST_CELLS = 40
"""Cells for which sums have room: there may come to be this many where sound is unlike the
encoder's."""

_FEW, _MANY = 20, 40
_CROWDED = 600.0
"""Least n√ρ at which phones and budget bear many cells: 3,850 phones at ε = 1, 2,020 at ε = 2."""
_LARGEST_MEANT = 12.0
"""Largest ε for which the number of cells is looked up: beyond it there is hardly any noise."""


class CellCounts(NamedTuple):
    """Numbers of cells: those that a phase begins with, and the room of its sums, k."""

    start: int
    most: int


def cell_counts(
    phones: int, epsilon: float, delta: float, start: int | None = None, most: int | None = None
) -> CellCounts:
    """Return the numbers that are asked for, or the defaults where they are None.

    Raises:
        InvalidParametersError: A number of cells, ε or δ is out of range.
    """
    cells = usual_cells(phones, epsilon, delta) if start is None else start
    checks.whole("cells", cells, 1, start_centroids.MOST)
    room = max(cells, MOST_CELLS) if most is None else most
    return CellCounts(cells, checks.whole("most_cells", room, cells, start_centroids.MOST))


class NoiseMultipliers(NamedTuple):
    """Noise multipliers of a phase's sums."""

    cells: float
    labels: float


def usual_cells(phones: int, epsilon: float, delta: float) -> int:
    """Return the default number of start centroids: 20, or 40 where crowd and budget bear it.

    Sound that is unlike what the encoder was trained on calls for more; these appear in the course
    of the phase (`MOST_CELLS`).

    Raises:
        InvalidParametersError: The value of ε or δ is out of range.
    """
    checks.epsilon("epsilon", epsilon)
    rho = zcdp_rho(min(epsilon, _LARGEST_MEANT), delta)
    return _MANY if phones * math.sqrt(rho) >= _CROWDED else _FEW


def noises(
    epsilon: float,
    delta: float,
    *,
    sums: int,
    label_share: float,
    cells: int,
    dimensions: int,
    rows: int,
    levels: int = 1,
    unit: Unit = Unit.PHONE,
    summation: SummationName = SummationName.BELL,
) -> NoiseMultipliers:
    """Return the least noise with which a whole phase is (ε, δ)-private.

    Args:
        epsilon: Value of ε for the whole phase.
        delta: Value of δ for the whole phase.
        sums: Number of sums of cells, T.
        label_share: Share of the cost, as ρ, for the names; above 0 and below 1.
        cells: Cells for which the sums have room, k.
        dimensions: Dimensions in which sound is sorted, d.
        rows: Rows of the sum of labels, each split by kinds of sound or whole.
        levels: Rows that one recording adds to.
        unit: Unit in which neighbours differ.
        summation: Summation, which says whose the noise is.

    Raises:
        InvalidParametersError: A value is out of range, or secure sums use up δ.
    """
    checks.whole("sums", sums, 0, MOST_SUMS)
    each = (1 - checks.probability("label_share", label_share)) / max(1, sums)
    named = dimensions + COUNTS
    *moving, naming = noise_multipliers(
        epsilon,
        delta,
        [each] * sums + [label_share],
        [cells * dimensions] * sums + [rows * named],
        unit,
        [dimensions] * sums + [levels * named],
        summation.survivors,
    )
    return NoiseMultipliers(moving[0] if moving else naming, naming)
