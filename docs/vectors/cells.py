"""Test vectors of what phones put into sums of vectors, and of the noise that they add to it."""

from __future__ import annotations

import json
from typing import Any

import examples
import msgspec
import numpy as np

from earshot_client.phases.discovery import DISCOVERY as PHONE
from earshot_client.phases.memory import Memory
from earshot_client.store.memory import MemoryStore
from earshot_protocol.phases.discovery import (
    LABELS,
    DiscoveryParameters,
    SumCells,
    SumLabels,
    cells,
)
from earshot_protocol.phases.parameters import Choices, Parameters, hierarchy_of
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy import noise
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, VectorSum
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.voting.vectors import quantized, unit_steps
from earshot_protocol.wire import Matrix
from earshot_simulations.engine.interface import HeardPoints

Vector = dict[str, Any]
Points = list[tuple[float, float]]

_HEARD: Points = [
    *((0.9, 0.1), (2.0, 0.5), (0.25, 0.75), (-0.5, 0.125), (0.625, 0.5), (0.7, 0.2)),
    *((-3.0, -4.0), (0.0, 0.0)),
]
"""Points of any length; the last one has no direction, and lies in the first cell."""
_NAMES = ("siren", "street", "nature", "Straßenbahn", None, "nature", "siren", "a former label")
"""Choices of a poll, labels that are chosen themselves, none, and one that the phase does not know;
two of one choice, and two of one label that has no choices."""
_LABELS_ALONE = msgspec.structs.replace(examples.PUBLIC_CELLS, rows=len(examples.LABELS))
"""Parameters of a phase whose labels have choices, which have no rows of their own."""
_SPLIT_LABELS = msgspec.structs.replace(examples.SPLIT, rows=len(examples.LABELS))
_MOVED = [[0.96, 0.28], [0.0, 1.0], [-0.6, -0.8], [0.6, 0.8]]
_GROWN = [*_MOVED, [0.28, 0.96]]
_KINDS, _GROWN_KINDS = (2, 0, 1, 0), (1, 2, 2, 0, 0)
"""Kind of each cell, of the start centroids and of those that moved; some share one."""
_LONG = [[0.8, 0.6], [0.0, 0.125]]


def cell_vectors() -> Vector:
    """Return what phones put into sums, how it is rounded, and which noise they add."""
    return {
        "inputs": [
            _input(points, moved)
            for points in (_HEARD, _HEARD[4:5], [])
            for moved in (None, _MOVED, _GROWN)
        ],
        "label_inputs": [
            _label_input(points, names, parameters, choices)
            for points, names in (
                (_HEARD, _NAMES),
                (_HEARD[4:5], ("street",)),
                (_HEARD[:2], ("siren", "siren")),
                (_HEARD, (None,) * len(_HEARD)),
                ([], ()),
            )
            for parameters, choices in (
                (examples.DISCOVERY, ()),
                (_LABELS_ALONE, examples.CHOICES),
                (examples.PUBLIC_CELLS, examples.CHOICES),
            )
        ]
        + [
            _label_input(points, names, parameters, choices, moved)
            for points, names in ((_HEARD, _NAMES), (_HEARD[:2], ("siren", "siren")))
            for parameters, choices in (
                (_SPLIT_LABELS, examples.CHOICES),
                (examples.SPLIT, examples.CHOICES),
            )
            for moved in (None, _GROWN)
        ],
        "rounded": [_rounded(vector) for vector in ([[0.8, 0.6]], [[-0.5, 0.5], [0.5, -0.5]])],
        "too_long": _LONG,
        "noise": [
            _noise(variance, shares)
            for variance, shares in ((0.5, 3), (1000.0, 40), (7.0e8, 425), (1.5e9, 10_000))
        ],
        "sums": [
            described(parameters, part.name, _shape(parameters, part.name))
            for parameters in (examples.DISCOVERY, examples.PUBLIC_CELLS, examples.SPLIT)
            for part in parameters.plan().parts
        ],
    }


def _input(points: Points, moved: list[list[float]] | None) -> Vector:
    """Return the input to the first sum of cells or, if cells have moved, to a later one."""
    parameters, first = examples.DISCOVERY, moved is None
    task = SumCells(
        phase=bytes(16),
        repetition=1 if first else 2,
        parameters=parameters if first else None,
        centroids=None if first else Matrix.of(np.array(moved)),
        opening=_opening(parameters, cells(1)),
    )
    memory = _memory(points, (None,) * len(points), parameters, ())
    return {
        "start": json.loads(msgspec.json.encode(parameters.start)) if first else None,
        "centroids": moved,
        "most_cells": parameters.most_cells,
        "points": points,
        "sum_cells": np.asarray(PHONE.contribute[SumCells](memory, parameters, task)).tolist(),
    }


def _label_input(
    points: Points,
    names: tuple[str | None, ...],
    parameters: DiscoveryParameters,
    choices: Choices,
    moved: list[list[float]] | None = None,
) -> Vector:
    """Return the input to the sum of labels, whose rows are labels, or labels and choices.

    Where rows are split by kinds, these are of the start centroids' cells or of those that moved.
    """
    split = parameters.kinds > 1
    kinds = (_GROWN_KINDS if moved else _KINDS) if split else ()
    task = SumLabels(
        phase=bytes(16),
        parameters=None if moved else parameters,
        centroids=Matrix.of(np.array(moved)) if moved else None,
        kinds=kinds,
        opening=_opening(parameters, LABELS),
    )
    memory = _memory(points, names, parameters, choices)
    started = json.loads(msgspec.json.encode(parameters.start)) if split and not moved else None
    return {
        "labels": parameters.labels,
        "choices": choices,
        "rows": parameters.rows,
        "kinds": parameters.kinds,
        "start": started,
        "centroids": moved,
        "kinds_of_cells": kinds,
        "points": points,
        "names": names,
        "sum_labels": np.asarray(PHONE.contribute[SumLabels](memory, parameters, task)).tolist(),
    }


def _memory(
    points: Points,
    names: tuple[str | None, ...],
    parameters: DiscoveryParameters,
    choices: Choices,
) -> Memory:
    return Memory(
        MemoryStore(np.array(points, dtype=np.float32).reshape(-1, 2), names),
        HeardPoints(parameters.encoder, parameters.dimensions),
        hierarchy_of(parameters.labels, choices),
        _no_noise,
    )


def _opening(parameters: DiscoveryParameters, part: str) -> AdvertiseKeys:
    return AdvertiseKeys(sum_id=bytes(16), index=0, parameters=_sum_parameters(parameters, part))


def _no_noise(size: int) -> bytes:
    raise AssertionError("inputs are taken before noise is drawn")


def _rounded(vector: list[list[float]]) -> Vector:
    array = np.array(vector)
    return {
        "vector": vector,
        "unit_steps": unit_steps(array.size),
        "steps": quantized(array).tolist(),
    }


def _noise(variance: float, shares: int) -> Vector:
    rate = noise.skellam_rate(variance, shares)
    table = noise._poisson_table(rate)
    size = len(table.above.high)
    mode = int(rate) - table.least
    places = sorted({0, 1, mode, mode + 1, size - 2, size - 1})
    return {
        "variance": variance,
        "shares": shares,
        "rate": rate,
        "least": table.least,
        "largest": table.least + size - 1,
        "thresholds": {table.least + i: f"{table.above.value(i):032x}" for i in places},
        "bounds": {
            bits: noise.skellam_share_bound(variance, shares, 2.0**-bits) for bits in (20, 60, 100)
        },
    }


def described(parameters: Parameters, part: str, shape: tuple[int, ...]) -> Vector:
    """Return what phones derive of a sum of vectors."""
    summed = _part(parameters, part)
    mechanism = summed.mechanism
    if not isinstance(mechanism, VectorSum):
        raise TypeError(part)
    return {
        "parameters": json.loads(msgspec.json.encode(parameters)),
        "part": part,
        "honest_survivors": mechanism.honest_survivors,
        "variance": mechanism.variance,
        "distances": {
            unit: {"l1": event.l1, "l2": event.l2}
            for unit in LEDGER_UNITS
            for event in (mechanism.event(unit),)
        },
        "sum": msgspec.to_builtins(parameters.sum_parameters(summed, shape)),
    }


def _part(parameters: Parameters, part: str) -> SecureSum:
    found = parameters.plan().part(part)
    if not isinstance(found, SecureSum):
        raise TypeError(part)
    return found


def _sum_parameters(parameters: DiscoveryParameters, part: str) -> Any:
    return parameters.sum_parameters(_part(parameters, part), _shape(parameters, part))


def _shape(parameters: DiscoveryParameters, part: str) -> tuple[int, int]:
    if part == LABELS:
        return parameters.rows * parameters.kinds, parameters.label_entries
    return parameters.most_cells, parameters.dimensions
