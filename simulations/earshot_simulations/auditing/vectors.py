"""Sums of bounded vectors, audited with the noise shares that phones really draw."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from earshot_client.phases.discovery import DISCOVERY
from earshot_client.phases.memory import Memory
from earshot_client.store.memory import MemoryStore
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import unit_rows
from earshot_protocol.phases.discovery import DiscoveryParameters, LabelCells, SumCells
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import GRID, Unit, VectorSum
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.voting.vectors import quantized
from earshot_simulations.auditing import power
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.crowds import audit_crowds, shares_of
from earshot_simulations.auditing.findings import Check, Result
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.neighbours import Vector
from earshot_simulations.engine.interface import HeardPoints

STEP = 2e-5
_DATA_SETS = 200
_MOST_RECORDINGS = 4
_REFUSED = "refused"


def audit_vectors(
    part: SecureSum, mechanism: VectorSum, parameters: DiscoveryParameters, seed: int
) -> Iterator[Result]:
    """Audit one sum: its longest vectors, and what it tells with n' shares of noise and with all.

    Args:
        part: Part of the plan.
        mechanism: Mechanism of the sum.
        parameters: Parameters of the phase.
        seed: Seed of the data sets that are tried.
    """
    yield audit_crowds(part.name, parameters)
    yield _too_long(part, mechanism)
    yield from _distances(part, mechanism, parameters, seed)
    case = f"{part.name}, noise {mechanism.noise_multiplier:.3g}, {mechanism.length} entries"
    survivors = shares_of(parameters)
    alone, apart = 1, min(16, mechanism.length)
    for shares, unit, entries in (
        (survivors, Unit.RECORDING, alone),
        (survivors, Unit.PHONE, alone),
        (survivors, Unit.PHONE, apart),
        (survivors, Unit.REPLACED_PHONE, alone),
        (parameters.phones, Unit.PHONE, alone),
    ):
        difference = spread(mechanism, unit, entries)
        losses = difference_loss(noise_law(mechanism, shares), difference, STEP)
        where = "one entry" if entries == alone else f"{entries} entries"
        words = f"{case}, {shares} shares, neighbours differ in {where}"
        yield vote_finding(mechanism, words, unit, losses)


def spread(mechanism: VectorSum, unit: Unit, entries: int) -> Vector:
    """Return a difference as long as neighbours' may be, in equal parts over some entries."""
    each = math.floor(mechanism.sensitivity(unit) / math.sqrt(entries))
    return np.full(entries, each, dtype=np.int64)


def _distances(
    part: SecureSum, mechanism: VectorSum, parameters: DiscoveryParameters, seed: int
) -> Iterator[Check]:
    """Check that no phone's vector, and no recording's part, is longer than noise is made for."""
    generator = np.random.default_rng(seed)
    longest = dict.fromkeys((Unit.RECORDING, Unit.PHONE, Unit.REPLACED_PHONE), 0.0)
    before = np.zeros(mechanism.length)
    for points, labels in _data_sets(parameters, generator):
        vector = contribution(part, parameters, points, labels)
        less = contribution(part, parameters, points[1:], labels[1:])
        for unit, other in (
            (Unit.RECORDING, less),
            (Unit.PHONE, np.zeros(vector.shape)),
            (Unit.REPLACED_PHONE, before),
        ):
            longest[unit] = max(longest[unit], float(np.linalg.norm(vector - other)))
        before = vector
    for unit, length in longest.items():
        declared = mechanism.sensitivity(unit)
        yield Check(
            f"{part.name}: distance of neighbours, {unit}",
            f"at most {declared:.2f} steps ({GRID} are a length of 1)",
            f"{length:.2f}",
            length <= declared,
            f"{_DATA_SETS} small data sets as phones add them up",
            power.of_tries(_DATA_SETS),
        )


def contribution(
    part: SecureSum, parameters: DiscoveryParameters, points: Numbers, labels: list[str]
) -> Numbers:
    """Return what a phone that holds these recordings puts into a sum, before noise."""
    hierarchy = LabelHierarchy.flat(parameters.labels)
    heard = HeardPoints(parameters.encoder, parameters.dimensions)
    memory = Memory(MemoryStore(points.astype(np.float32), labels), heard, hierarchy, bytes)
    opening = AdvertiseKeys(
        sum_id=bytes(16), index=0, parameters=parameters.sum_parameters(part, (1,))
    )
    given: dict[str, Any] = {"phase": bytes(16), "advertise": opening, "parameters": parameters}
    task = SumCells(repetition=1, **given) if part.task is SumCells else LabelCells(**given)
    vector = DISCOVERY.contribute[part.task](memory, parameters, task)
    return np.asarray(vector, dtype=np.float64).ravel()


def _data_sets(
    parameters: DiscoveryParameters, generator: np.random.Generator
) -> Iterator[tuple[Numbers, list[str]]]:
    """Yield recordings at random, and some alike, all in one cell or each in its own."""
    starts = parameters.start.centroids().astype(np.float64)
    for number in range(_DATA_SETS):
        count = 1 + number % _MOST_RECORDINGS
        points = unit_rows(generator.standard_normal((count, parameters.dimensions)))
        if number % 3 == 0:
            points = starts[generator.integers(0, len(starts), count)]
        if number % 3 == 1:
            points[:] = points[0]
        labels = generator.choice(np.array(parameters.labels), count).tolist()
        yield points, labels


def _too_long(part: SecureSum, mechanism: VectorSum) -> Check:
    """Check that phones' code puts no vector into a sum that is longer than noise is made for."""
    vector = np.zeros(mechanism.length)
    vector[:2] = 1.0
    try:
        found = f"{float(np.linalg.norm(quantized(vector))):.1f} steps"
    except InvalidInputError:
        found = _REFUSED
    return Check(
        f"{part.name}: a vector of norm √2",
        _REFUSED,
        found,
        found == _REFUSED,
        "given to phones' code",
        power.EXACTLY,
    )
