"""A phone's part in a discovery phase: what it heard, sorted into cells and added up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import GRID, cluster_sums, sphere_grid
from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.errors import RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery
from earshot_protocol.phases.discovery import DiscoveryParameters, LabelCells, SumCells
from earshot_protocol.voting.vectors import bounded, quantized


def _cells(memory: Memory, parameters: DiscoveryParameters, task: SumCells) -> Input:
    """Return the heard unit vectors added up by cell, over the norm of the counts by cell."""
    centroids = _centroids(parameters, task)
    points, _ = memory.points(parameters.dimensions)
    counts, sums = cluster_sums(
        sphere_grid(points), centroids.astype(np.float64), Geometry.SPHERICAL
    )
    return quantized(_filled(bounded(sums / GRID, counts), parameters))


def _labels(memory: Memory, parameters: DiscoveryParameters, task: LabelCells) -> Input:
    """Return the number of labels of each kind in each cell, over the norm of this table."""
    centroids = _centroids(parameters, task)
    table = shared.label_table(memory, parameters.labels, centroids, Geometry.SPHERICAL)
    return quantized(_filled(bounded(table.astype(np.float64), table), parameters))


def _filled(
    rows: npt.NDArray[np.float64], parameters: DiscoveryParameters
) -> npt.NDArray[np.float64]:
    """Append empty rows up to the number that the sum has room for."""
    filled = np.zeros((parameters.most_cells, rows.shape[1]))
    filled[: len(rows)] = rows
    return filled


def _centroids(
    parameters: DiscoveryParameters, task: SumCells | LabelCells
) -> npt.NDArray[np.float32]:
    """Return the centroids of the cells: the start centroids, or those that the sum before gave."""
    if task.parameters is not None:
        return parameters.start.centroids()
    if task.centroids is None:
        raise RefusedError("a sum over cells without centroids that is not the first of its phase")
    return shared.checked(task.centroids, parameters.dimensions, parameters.most_cells)


DISCOVERY = PhoneKind(
    kind=discovery.DISCOVERY,
    contribute={SumCells: _cells, LabelCells: _labels},
    describe=shared.describe,
    check=shared.check_encoder,
    finish=shared.keep,
)
