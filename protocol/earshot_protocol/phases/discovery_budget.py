"""From what a discovery phase may cost to its cells and its noise, and what is usual.

What is usual was chosen by simulated phases over sound that the start centroids had not met
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

EPSILON, DELTA = 2.0, 1e-6
"""Of a whole phase, per phone."""
SUMS = 2
"""Of cells, T."""
LABEL_SHARE = 0.3
"""Of what the phase costs, as ρ of zero-concentrated privacy, that names get."""
DIMENSIONS = 32
"""In which sound is sorted, d."""

MOST_CELLS = 40
"""For which sums have room: there may come to be as many where sound is unlike the encoder's."""

_FEW, _MANY = 20, 40
_CROWDED = 600.0
"""From this n√ρ on, phones and budget bear many cells: 3,850 phones at ε = 1, 2,020 at ε = 2."""
_LARGEST_MEANT = 12.0
"""Beyond this ε the cells' number is not looked up: there is hardly any noise."""


class CellCounts(NamedTuple):
    """With how many cells a phase begins, and for how many its sums have room, k."""

    start: int
    most: int


def cell_counts(
    phones: int, epsilon: float, delta: float, start: int | None = None, most: int | None = None
) -> CellCounts:
    """The numbers that are asked for, or what is usual where they are None.

    Raises:
        InvalidParametersError: an ε or δ that is none, or a number of cells out of range.
    """
    cells = usual_cells(phones, epsilon, delta) if start is None else start
    checks.whole("cells", cells, 1, start_centroids.MOST)
    room = max(cells, MOST_CELLS) if most is None else most
    return CellCounts(cells, checks.whole("most_cells", room, cells, start_centroids.MOST))


class Noises(NamedTuple):
    """Noise multipliers of a phase's sums."""

    cells: float
    labels: float


def usual_cells(phones: int, epsilon: float, delta: float) -> int:
    """With how many start centroids a phase begins: 20, or 40 where crowd and budget bear it.

    Sound that is unlike what the encoder was trained on asks for more; these then come to be in the
    course of the phase (`MOST_CELLS`).

    Raises:
        InvalidParametersError: an ε or δ that is none.
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
    labels: int,
    unit: Unit = Unit.PHONE,
) -> Noises:
    """The least noise with which a whole phase is (ε, δ)-private.

    Args:
        epsilon: ε.
        delta: δ.
        sums: T, of cells.
        label_share: of the cost, as ρ, for the names; above 0 and below 1.
        cells: k, for which the sums have room.
        dimensions: d.
        labels: L.
        unit: what neighbours differ in.

    Raises:
        InvalidParametersError: a value out of range, or a δ that secure sums use up.
    """
    checks.whole("sums", sums, 0, MOST_SUMS)
    each = (1 - checks.probability("label_share", label_share)) / max(1, sums)
    *moving, naming = noise_multipliers(
        epsilon,
        delta,
        [each] * sums + [label_share],
        [cells * dimensions] * sums + [cells * labels],
        unit,
    )
    return Noises(moving[0] if moving else naming, naming)
