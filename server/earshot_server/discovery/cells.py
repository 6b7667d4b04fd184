"""What a sum of cells says of where they are, and which of them are one environment."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import unit_rows

Cells = npt.NDArray[np.float32]


def moved_cells(
    total: npt.NDArray[np.int64], deviation: float, start: Cells
) -> tuple[Cells, npt.NDArray[np.bool_]]:
    """Cells in the direction of their sums, where these stand clear of the noise.

    Args:
        total: (cells, dimensions), the noisy sum of what phones heard in each.
        deviation: of the noise on an entry.
        start: (cells, dimensions), unit rows: where the others stay.

    Returns:
        Unit rows float32 (cells, dimensions), and which of them have moved, bool (cells,).
    """
    sums = total.astype(np.float64)
    clear = np.linalg.norm(sums, axis=1) > 2 * deviation * np.sqrt(total.shape[1])
    return np.where(clear[:, None], unit_rows(sums), start).astype(np.float32), clear


def environments(cells: Cells, labels: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Which environment each cell belongs to, numbered from 0 in the order of the cells."""
    keys = [label if label >= 0 else -1 - cell for cell, label in enumerate(labels)]
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return np.array([order[key] for key in keys], dtype=np.int64)
