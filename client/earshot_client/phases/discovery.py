"""A phone's part in a discovery phase: what it heard, sorted into cells and added up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import GRID, cluster_sums, sphere_grid
from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.errors import RefusedError
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.phases import discovery
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells, SumLabels, rows_of
from earshot_protocol.voting.vectors import bounded, quantized


def _cells(memory: Memory, parameters: DiscoveryParameters, task: SumCells) -> Input:
    """Return the heard unit vectors added up by cell, over the norm of the counts by cell."""
    centroids = _centroids(parameters, task)
    points, _ = memory.points(parameters.dimensions)
    counts, sums = cluster_sums(
        sphere_grid(points), centroids.astype(np.float64), Geometry.SPHERICAL
    )
    filled = np.zeros((parameters.most_cells, parameters.dimensions))
    filled[: len(sums)] = bounded(sums / GRID, counts)
    return quantized(filled)


def _labels(memory: Memory, parameters: DiscoveryParameters, task: SumLabels) -> Input:
    """Return the heard unit vectors added up by label and kind, over the norm of their counts."""
    if parameters.rows is None:
        raise RefusedError("a sum of labels in a phase that counts labels in every cell")
    points, choices = memory.points(parameters.dimensions)
    steps = sphere_grid(points)
    kinds = np.zeros(len(points), dtype=np.int64)
    if parameters.kinds > 1:
        centroids = _centroids(parameters, task)
        if len(task.kinds) != len(centroids) or max(task.kinds) >= parameters.kinds:
            raise RefusedError(
                f"{len(task.kinds)} kinds of {len(centroids)} cells, up to number "
                f"{max(task.kinds, default=0)}: each cell has one of {parameters.kinds}"
            )
        owners = nearest(steps, centroids, Geometry.SPHERICAL)
        kinds = np.array(task.kinds, dtype=np.int64)[owners]
    member = _members(memory, choices, parameters)
    each = (kinds == np.arange(parameters.kinds)[:, None]).astype(np.float64)
    member = (member[:, None, :] * each).reshape(-1, len(points))
    sums = member[: parameters.rows * parameters.kinds] @ steps
    return quantized(bounded(sums / GRID, member.sum(axis=1).astype(np.int64)))


def _members(
    memory: Memory, choices: tuple[str | None, ...], parameters: DiscoveryParameters
) -> npt.NDArray[np.float64]:
    """Return which recordings count in which row, zeros and ones (rows or more, recordings).

    Where choices have rows, every recording counts twice, under its label and under its choice. If
    it has none, it counts under its label alone: such counts follow the rows of the sum, and have
    no sum of vectors. So a recording always adds as much to the norm, without which the bound on
    what it moves would not hold (docs/privacy.md).
    """
    agreed, labels = memory.agreed, parameters.labels
    number = {name: row for row, name in enumerate(rows_of(agreed))}
    finer = parameters.rows != len(labels)
    member = np.zeros(((len(number) + len(labels)) if finer else len(labels), len(choices)))
    for at, (choice, label) in enumerate(zip(choices, memory.classes_of(choices), strict=True)):
        if label is None:
            continue
        member[number[label], at] = 1.0
        if finer:
            own = choice if choice in number and choice != label else None
            member[len(number) + number[label] if own is None else number[own], at] = 1.0
    return member


def _centroids(
    parameters: DiscoveryParameters, task: SumCells | SumLabels
) -> npt.NDArray[np.float32]:
    """Return the centroids of the cells: the start centroids, or those that the sum before gave."""
    if task.parameters is not None:
        return parameters.start.centroids()
    if task.centroids is None:
        raise RefusedError("a sum over cells without centroids that is not the first of its phase")
    return shared.checked(task.centroids, parameters.dimensions, parameters.most_cells)


DISCOVERY = PhoneKind(
    kind=discovery.DISCOVERY,
    contribute={SumCells: _cells, SumLabels: _labels},
    describe=shared.describe,
    check=shared.check_encoder,
    finish=shared.keep,
)
