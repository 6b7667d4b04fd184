"""A phone's part in a discovery phase: what it heard, sorted into cells and added up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import GRID, cluster_sums, sphere_grid
from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.phases import discovery
from earshot_protocol.phases.discovery import (
    Discovered,
    DiscoveryParameters,
    SumCells,
    SumLabels,
    rows_of,
)
from earshot_protocol.rules import Rule
from earshot_protocol.voting.vectors import bounded, counted, quantized


def _cells(memory: Memory, parameters: DiscoveryParameters, task: SumCells) -> Input:
    """Return the heard unit vectors added up by cell, over the norm of the counts by cell."""
    # Invalid rows of the last sum are refused before the first sum costs anything.
    _checked_rows(memory, parameters)
    centroids = _centroids(parameters, task)
    points, _ = memory.points(parameters.dimensions)
    counts, sums = cluster_sums(
        sphere_grid(points), centroids.astype(np.float64), Geometry.SPHERICAL
    )
    filled = np.zeros((parameters.most_cells, parameters.dimensions))
    filled[: len(sums)] = bounded(sums / GRID, counts)
    return quantized(filled)


def _labels(memory: Memory, parameters: DiscoveryParameters, task: SumLabels) -> Input:
    """Return heard unit vectors added up and counted by label and kind, over the counts' norm."""
    rows = _checked_rows(memory, parameters)
    points, choices = memory.points(parameters.dimensions)
    steps = sphere_grid(points)
    recordings, labels = _members(memory, choices, parameters)
    added_to = labels * parameters.kinds + _kinds(parameters, task, steps)[recordings]
    sums = np.zeros((rows * parameters.kinds, parameters.dimensions))
    counts = np.bincount(added_to, minlength=len(sums))
    within = added_to < len(sums)
    np.add.at(sums, added_to[within], steps[recordings[within]])
    return quantized(bounded(counted(sums / GRID, counts[: len(sums)]), counts))


def _kinds(
    parameters: DiscoveryParameters, task: SumLabels, steps: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return the kind of sound of each recording, that of its cell; 0 if there is one kind."""
    if parameters.kinds == 1:
        return np.zeros(len(steps), dtype=np.int64)
    centroids, kinds = _centroids(parameters, task), np.array(task.kinds, dtype=np.int64)
    if len(kinds) != len(centroids) or kinds.max() >= parameters.kinds:
        raise RefusedError(
            f"{len(kinds)} kinds of {len(centroids)} cells, up to number {kinds.max(initial=0)}: "
            f"one for each cell is needed, below {parameters.kinds}"
        )
    return kinds[nearest(steps, centroids, Geometry.SPHERICAL)]


def _members(
    memory: Memory, choices: tuple[str | None, ...], parameters: DiscoveryParameters
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return recordings and the rows in which they count, int64 (counts,) each.

    Where choices have rows, every recording counts twice, under its label and under its choice. If
    it has none, it counts under its label alone: such counts follow the rows of the sum, and have
    no sum of vectors. So every recording adds the same to the norm, which the bound on sensitivity
    requires (docs/privacy.md).
    """
    names = rows_of(memory.agreed)
    number = {name: row for row, name in enumerate(names)}
    finer = parameters.rows != len(parameters.labels)
    counts: list[tuple[int, int]] = []
    for at, (choice, label) in enumerate(zip(choices, memory.classes_of(choices), strict=True)):
        if label is None:
            continue
        counts.append((at, number[label]))
        if finer and choice in number and choice != label:
            counts.append((at, number[choice]))
        elif finer:
            counts.append((at, len(names) + number[label]))
    recordings, rows = np.array(counts, dtype=np.int64).reshape(-1, 2).T
    return recordings, rows


def _checked_rows(memory: Memory, parameters: DiscoveryParameters) -> int:
    """Return the number of rows of the sum of labels; refuse one that does not fit the labels."""
    labels, all_rows = len(parameters.labels), len(rows_of(memory.agreed))
    if parameters.rows not in (labels, all_rows):
        raise RefusedError(
            f"a sum of labels of {parameters.rows} rows: {labels} are accepted, one for each "
            f"label, or {all_rows}, with those of their choices",
            Rule.PARAMETERS,
        )
    return parameters.rows


def _centroids(
    parameters: DiscoveryParameters, task: SumCells | SumLabels
) -> npt.NDArray[np.float32]:
    """Return the centroids of the cells: the start centroids, or those of the previous sum."""
    if task.parameters is not None:
        return parameters.start.centroids()
    if task.centroids is None:
        raise RefusedError("a sum over cells without centroids that is not the first of its phase")
    return shared.checked(task.centroids, parameters.dimensions, parameters.most_cells)


def _keep(memory: Memory, result: Discovered) -> None:
    """Keep the prototypes, by which the phone names scenes; refuse an inconsistent result."""
    if shared.compares(memory, result):
        _check_fit(result)
        memory.keep_result(result)


def _check_fit(result: Discovered) -> None:
    """Refuse a result whose parts contradict each other.

    Raises:
        UnexpectedMessageError: The parts contradict each other; the message says which.
    """
    cells = result.cells.array()
    for name, count, needed in (
        ("choices", len(result.choices), len(result.labels)),
        ("flags of cells", len(result.moved), len(cells)),
        ("lengths of cells", len(result.cell_lengths), len(cells)),
        ("prototypes of cells", len(result.cell_prototypes), len(cells)),
        ("lengths", len(result.lengths), len(result.labels)),
    ):
        if count != needed:
            raise UnexpectedMessageError(f"a result whose {name} do not fit the others")
    if any(each >= result.centroids.rows for each in result.cell_prototypes):
        raise UnexpectedMessageError("a result with cells of prototypes that it does not have")
    if cells.shape[1] != result.centroids.columns:
        raise UnexpectedMessageError(
            f"a result with cells of {cells.shape[1]} dimensions and prototypes of "
            f"{result.centroids.columns}"
        )


def _describe(result: Discovered) -> dict[str, Any]:
    """Return the environments in plain types: every label with a prototype that stands clear."""
    named = set(result.names)
    return {"environments": [label for label in result.label_names if label in named]}


DISCOVERY = PhoneKind(
    kind=discovery.DISCOVERY,
    contribute={SumCells: _cells, SumLabels: _labels},
    describe=_describe,
    check=shared.check_encoder,
    finish=_keep,
)
