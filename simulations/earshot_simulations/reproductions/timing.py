"""What every operation of a phase takes: seconds of phones and server, bytes to the server."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from earshot_client import selection
from earshot_client.private_runs import clustering_by
from earshot_protocol.geometry import Geometry, counts
from earshot_protocol.phases import discovery, learning
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_server.phases.forecast import release_bytes, sum_bytes
from earshot_simulations.engine.course import DISCOVER
from earshot_simulations.phases.routes import Settings
from earshot_simulations.phases.simulation import open_population, simulate
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure

CLUSTERING, SELECTION, DISCOVERY = "local clustering", "local top centroids", "global clustering"
CENTROIDS, LABELS = "centroid vote", "label vote"
CELLS, CELL_LABELS = "sum of cells", "sum of labels"
PHONE, SERVER, UP = "phone seconds", "server seconds", "bytes up"
"""Of an operation, all phones together."""
FOUND = "global centroids"

_TIMED_PHONES = 20
_PARTS = {
    learning.LOCAL_CENTROIDS: SELECTION,
    DISCOVER: DISCOVERY,
    learning.CENTROID_VOTE: CENTROIDS,
    learning.LABEL_VOTE: LABELS,
    discovery.LABELS: CELL_LABELS,
}


class Took(NamedTuple):
    """What one operation took, all phones together."""

    phone_seconds: float
    server_seconds: float
    bytes_up: float


def timed(settings: Settings) -> Figures:
    """Time a whole phase with its real cryptography.

    Seconds are of CPU, added up over all phones, so that they are those of one phone after the
    other on one core. Clustering and selection of a phone are timed apart, on some of the phones.

    Raises:
        KeyboardInterrupt: the phase was interrupted.
    """
    _load()
    run = simulate(settings)
    if run.interrupted is not None:
        raise KeyboardInterrupt(run.interrupted)
    figures: dict[str, float | int | str | None] = {}

    def add(operation: str, took: Took) -> None:
        for name, value in zip((PHONE, SERVER, UP), took, strict=True):
            key = f"{operation}: {name}"
            figures[key] = float(figures.get(key) or 0.0) + value

    for step in run.steps:
        operation = _PARTS.get(step.step.partition(":")[0], CELLS)
        phones = 0.0 if operation == SELECTION else step.phone_cpu_seconds
        add(operation, Took(phones, step.server_cpu_seconds, step.bytes_up))
    if learning.LOCAL_CENTROIDS in {step.step for step in run.steps}:
        for operation, seconds in _on_phones(settings).items():
            add(operation, Took(seconds * settings.phones, 0.0, 0))
        figures[FOUND] = (
            0 if run.found.global_centroids is None else len(run.found.global_centroids)
        )
    return figures


@functools.cache
def _load() -> None:
    """Discover once, so that no phase's clock counts what a process loads and compiles."""
    points = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    with suppress(NothingFoundError):
        Optics().discover(points, Geometry.EUCLIDEAN)


def operations(figures: Figures) -> dict[str, Took]:
    """By operation, in the order of a phase."""
    order = (CLUSTERING, SELECTION, DISCOVERY, CENTROIDS, LABELS, CELLS, CELL_LABELS)
    return {
        name: Took(*(float(figures[f"{name}: {part}"] or 0) for part in (PHONE, SERVER, UP)))
        for name in order
        if f"{name}: {PHONE}" in figures
    }


def computed_bytes(settings: Settings, phones: int, found: int) -> dict[str, float]:
    """Bytes to the server by operation, for a crowd that need not be simulated.

    Args:
        settings: of a phase.
        phones: n.
        found: global centroids that are voted on, of the local route.
    """
    with closing(open_population(replace(settings, phones=3))) as population:
        parameters = replace(settings, phones=phones).parameters(population)
    bytes_up: dict[str, float] = {}
    if isinstance(parameters, PhaseParameters):
        bytes_up[SELECTION] = phones * release_bytes(parameters)
    for part in parameters.plan().parts:
        if isinstance(part, SecureSum):
            operation = _PARTS.get(part.name, CELLS)
            of_one = sum_bytes(parameters.sum_parameters(part, _shape(parameters, part, found)))
            bytes_up[operation] = bytes_up.get(operation, 0.0) + phones * of_one
    return bytes_up


def _shape(parameters: Parameters, part: SecureSum, found: int) -> tuple[int, ...]:
    """Of a phone's input."""
    labels = len(parameters.labels)
    if isinstance(parameters, PhaseParameters):
        kept = min(parameters.top_global_centroids, found)
        return (found,) if part.name == learning.CENTROID_VOTE else (kept, labels)
    known: Any = parameters
    return known.most_cells, labels if part.name == discovery.LABELS else known.dimensions


def _on_phones(settings: Settings) -> Mapping[str, float]:
    """CPU seconds of one phone's clustering and of its selection, means over some phones."""
    seconds = {CLUSTERING: 0.0, SELECTION: 0.0}
    with open_population(settings) as population:
        parameters: Any = settings.parameters(population)
        mechanisms: dict[str, Any] = dict(parameters.plan().mechanisms)
        clustering = clustering_by(mechanisms[learning.CLUSTER], parameters.local_centroids)
        clustering.cluster(np.empty((0, population.dimensions)))  # start centroids are kept
        some = min(_TIMED_PHONES, settings.phones)
        for phone in range(some):
            points = population.recordings(phone).points
            began = time.process_time()
            centroids = clustering.cluster(points)
            clustered = time.process_time()
            numbers = counts(points, centroids, parameters.geometry)
            selection.top_centroids(numbers, mechanisms[learning.SELECT])
            seconds[CLUSTERING] += (clustered - began) / some
            seconds[SELECTION] += (time.process_time() - clustered) / some
    return seconds


TIMED = Measure("timed", timed)
