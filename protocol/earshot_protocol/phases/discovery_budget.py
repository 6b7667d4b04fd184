"""The cells and noise of a discovery phase, derived from its cost, and the defaults.

The defaults were chosen by simulated phases over sound that the start centroids had not met
(docs/decisions/0025).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from earshot_protocol import checks, start_centroids
from earshot_protocol.phases.discovery import MOST_KINDS, MOST_SUMS, DiscoveryParameters
from earshot_protocol.privacy.calibration import noise_multipliers
from earshot_protocol.privacy.conversions import zcdp_rho
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vectors import moved_by_direction

EPSILON, DELTA = 2.0, 1e-6
"""Cost of a whole phase, per phone."""
SUMS = 2
"""Number of sums of cells, T."""
LABEL_SHARE = 0.3
"""Share of the phase's cost, as ρ of zero-concentrated privacy, for names."""
DIMENSIONS = 64
"""Dimensions in which sound is sorted, d."""

MOST_CELLS = 40
"""Cells for which sums have room; added where sound is unlike what the encoder was trained on."""

_FEW, _MANY = 20, 40
_CROWDED = 600.0
"""Least n√ρ for many cells: 3,850 phones at ε = 1, 2,020 at ε = 2."""
_LARGEST_MEANT = 12.0
"""Largest ε on which the number of cells depends: beyond it there is hardly any noise."""


class CellCounts(NamedTuple):
    """Numbers of cells: at the start of a phase, and the most that its sums have room for, k."""

    start: int
    most: int


def cell_counts(
    phones: int, epsilon: float, delta: float, start: int | None = None, most: int | None = None
) -> CellCounts:
    """Return the given numbers of cells, or the defaults where they are None.

    Raises:
        InvalidParametersError: A number of cells, ε or δ is out of range.
    """
    cells = usual_cells(phones, epsilon, delta) if start is None else start
    checks.whole("cells", cells, 1, start_centroids.MOST)
    room = max(cells, MOST_CELLS) if most is None else most
    return CellCounts(cells, checks.whole("most_cells", room, cells, start_centroids.MOST))


def usual_cells(phones: int, epsilon: float, delta: float) -> int:
    """Return the default number of start centroids: 20, or 40 if crowd and budget allow it.

    Sound that is unlike what the encoder was trained on needs more; the phase adds them, up to
    `MOST_CELLS`.

    Raises:
        InvalidParametersError: The value of ε or δ is out of range.
    """
    checks.epsilon("epsilon", epsilon)
    rho = zcdp_rho(min(epsilon, _LARGEST_MEANT), delta)
    return _MANY if phones * math.sqrt(rho) >= _CROWDED else _FEW


def levels(parameters: DiscoveryParameters) -> int:
    """Return how many rows of the sum of labels a recording adds to."""
    return 1 + (parameters.rows > len(parameters.labels))


def affordable(
    parameters: DiscoveryParameters,
    epsilon: float,
    label_share: float = LABEL_SHARE,
    unit: Unit = Unit.PHONE,
) -> DiscoveryParameters:
    """Return the same phase with the least noise with which all of it is (ε, δ)-private.

    Args:
        parameters: Parameters of the phase; its noise does not count.
        epsilon: Value of ε for the whole phase.
        label_share: Share of the cost, as ρ, for the names; above 0 and below 1.
        unit: Unit in which neighbours differ.

    Raises:
        InvalidParametersError: A value is out of range, or secure sums use up δ.
    """
    sums = checks.whole("sums", parameters.sums, 0, MOST_SUMS)
    kinds = checks.whole("kinds", parameters.kinds, 1, MOST_KINDS)
    each = (1 - checks.probability("label_share", label_share)) / max(1, sums)
    dimensions, named = parameters.dimensions, parameters.label_entries
    cells, rows = parameters.most_cells * dimensions, parameters.rows * kinds * named
    *moving, naming = noise_multipliers(
        epsilon,
        parameters.delta,
        [each] * sums + [label_share],
        [cells] * sums + [rows],
        unit,
        [moved_by_direction(cells, dimensions)] * sums
        + [moved_by_direction(rows, levels(parameters) * named)],
        parameters.summation.survivors,
    )
    moved = moving[0] if moving else naming
    return msgspec.structs.replace(parameters, cells_noise=moved, labels_noise=naming)
