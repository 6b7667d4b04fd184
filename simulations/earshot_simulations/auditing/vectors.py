"""Sums of bounded vectors, audited with the noise that phones or operators draw."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from earshot_client.phases.discovery import DISCOVERY
from earshot_client.phases.memory import Memory
from earshot_client.store.memory import MemoryStore
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry, nearest, unit_rows
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells, SumLabels, rows_of
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.privacy.mechanisms import GRID, Unit, VectorSum
from earshot_protocol.summations import SUMMATIONS
from earshot_protocol.voting.vectors import quantized
from earshot_simulations.auditing import power
from earshot_simulations.auditing.ballots import (
    all_noise,
    counted_on,
    difference_loss,
    vote_finding,
)
from earshot_simulations.auditing.crowds import audit_crowds
from earshot_simulations.auditing.findings import Check, Result
from earshot_simulations.auditing.neighbours import Vector, hierarchy_of
from earshot_simulations.engine.interface import HeardPoints

STEP = 2e-5
_DATA_SETS = 200
_MOST_RECORDINGS = 4
_REFUSED = "refused"


def audit_vectors(
    part: SecureSum, mechanism: VectorSum, parameters: DiscoveryParameters, seed: int
) -> Iterator[Result]:
    """Audit one sum of directions: its vectors, and its cost.

    Args:
        part: Part of the plan.
        mechanism: Mechanism of the sum.
        parameters: Parameters of the phase.
        seed: Seed of the data sets that are tried.
    """
    yield from _distances(part, mechanism, parameters, seed)
    if part.task is SumLabels:
        yield from worst_transcripts(part, mechanism, parameters)
    yield from audit_costs(part, mechanism, parameters)


def audit_costs(part: SecureSum, mechanism: VectorSum, parameters: Parameters) -> Iterator[Result]:
    """Audit the length of vectors, and the cost with the guaranteed and the total noise.

    Args:
        part: Part of the plan.
        mechanism: Mechanism of the sum.
        parameters: Parameters of the phase.
    """
    if mechanism.honest_survivors is not None:
        yield audit_crowds(part.name, parameters)
    yield _too_long(part, mechanism)
    case = f"{part.name}, noise {mechanism.noise_multiplier:.3g}, {mechanism.length} entries"
    least, most = counted_on(mechanism, parameters), all_noise(mechanism, parameters)
    alone, apart = 1, min(16, mechanism.length)
    for noise, unit, entries in (
        (least, Unit.RECORDING, alone),
        (least, Unit.PHONE, alone),
        (least, Unit.PHONE, apart),
        (least, Unit.REPLACED_PHONE, alone),
        (most, Unit.PHONE, alone),
    ):
        difference = spread(mechanism, unit, entries)
        losses = difference_loss(noise.law, difference, STEP)
        where = "one entry" if entries == alone else f"{entries} entries"
        words = f"{case}, {noise.words}, neighbours differ in {where}"
        yield vote_finding(mechanism, words, unit, losses)


def spread(mechanism: VectorSum, unit: Unit, entries: int) -> Vector:
    """Return a difference of the length of the sensitivity, spread equally over some entries."""
    each = math.floor(mechanism.sensitivity(unit) / math.sqrt(entries))
    return np.full(entries, each, dtype=np.int64)


def worst_transcripts(
    part: SecureSum, mechanism: VectorSum, parameters: DiscoveryParameters, fault: str = ""
) -> Iterator[Result]:
    """Measure the cost of the sum of labels for the worst known recordings, as phones add them up.

    Their distance is checked, too: it also shows faults within the accountant's slack.

    Args:
        part: Part of the plan.
        mechanism: Mechanism of the sum.
        parameters: Parameters of the phase.
        fault: Description of the fault of phones, if one is planted.
    """
    law, kinds = counted_on(mechanism, parameters).law, kinds_of(parameters)
    moved: dict[Unit, list[Vector]] = {Unit.RECORDING: [], Unit.PHONE: []}
    for points, names in worst_labelled(parameters):
        whole = contribution(part, parameters, points, names, kinds)
        less = contribution(part, parameters, points[:-1], names[:-1], kinds)
        moved[Unit.RECORDING].append((whole - less).astype(np.int64))
        moved[Unit.PHONE].append(whole.astype(np.int64))
    for unit, vectors in moved.items():
        farthest = max(vectors, key=lambda each: float(np.square(each).sum()))
        case = f"{fault or part.name}: the worst of {len(vectors)} phones as they add up"
        yield vote_finding(mechanism, case, unit, difference_loss(law, farthest, STEP))
        length = float(np.linalg.norm(farthest))
        yield distance_check(case, mechanism, unit, length, "as phones add them up", power.EXACTLY)


def worst_labelled(parameters: DiscoveryParameters) -> Iterator[tuple[Numbers, list[str]]]:
    """Yield recordings whose last one moves a correct or faulty sum of labels as far as possible.

    All lie along two axes or close to one, so few numbers differ.
    """
    hierarchy = hierarchy_of(parameters)
    label, other = parameters.labels[1], parameters.labels[0]
    choice = (*hierarchy.groups[label], label)[0]
    ahead = np.eye(1, parameters.dimensions)[0]
    aside = np.eye(1, parameters.dimensions, 1)[0]
    yield ahead[None], [choice]
    yield ahead[None], [label]
    yield np.array([ahead, -ahead]), [choice, choice]
    yield np.array([ahead, -ahead]), [label, label]
    yield np.array([ahead, -ahead]), [label, choice]
    yield np.array([ahead, -ahead]), [choice, label]
    yield np.array([ahead, -ahead]), [other, choice]
    # The first two nearly cancel: their sum points aside, until the last one reverses it.
    tilted = unit_rows(np.array([ahead + 0.2 * aside, 0.2 * aside - ahead]))
    yield np.array([*tilted, -aside]), [choice] * 3
    if parameters.kinds > 1:
        across = _across(parameters)
        yield np.array([ahead, across]), [choice] * 2
        # The last one makes another kind the most frequent.
        yield np.array([ahead, across, across]), [choice] * 3


def kinds_of(parameters: DiscoveryParameters) -> tuple[int, ...]:
    """Return the kind of each cell, by which rows are split; empty if they are not.

    One cell close to the first axis has another kind than all others.
    """
    if parameters.kinds == 1:
        return ()
    centroids = parameters.start.centroids()
    other = int(nearest(_across(parameters)[None], centroids, Geometry.SPHERICAL)[0])
    return tuple(int(cell == other) for cell in range(len(centroids)))


def _across(parameters: DiscoveryParameters) -> Numbers:
    """Return the direction in another cell that is closest to the first axis, in one plane."""
    angles = np.deg2rad(sorted(range(-180, 181), key=abs))
    arc = np.zeros((len(angles), parameters.dimensions))
    arc[:, 0], arc[:, 1] = np.cos(angles), np.sin(angles)
    owners = nearest(arc, parameters.start.centroids(), Geometry.SPHERICAL)
    found: Numbers = arc[int(np.argmax(owners != owners[0]))]
    return found


def _distances(
    part: SecureSum, mechanism: VectorSum, parameters: DiscoveryParameters, seed: int
) -> Iterator[Check]:
    """Check that neighbours' vectors, of random small data sets, lie within the sensitivity."""
    generator = np.random.default_rng(seed)
    longest = dict.fromkeys((Unit.RECORDING, Unit.PHONE, Unit.REPLACED_PHONE), 0.0)
    before = np.zeros(mechanism.length)
    kinds: tuple[int, ...] = ()
    if parameters.kinds > 1:
        kinds = tuple(generator.integers(0, parameters.kinds, parameters.start.count).tolist())
    for points, names in _data_sets(parameters, generator):
        vector = contribution(part, parameters, points, names, kinds)
        less = contribution(part, parameters, points[1:], names[1:], kinds)
        for unit, other in (
            (Unit.RECORDING, less),
            (Unit.PHONE, np.zeros(vector.shape)),
            (Unit.REPLACED_PHONE, before),
        ):
            longest[unit] = max(longest[unit], float(np.linalg.norm(vector - other)))
        before = vector
    for unit, length in longest.items():
        how = f"{_DATA_SETS} small data sets as phones add them up"
        seen = power.of_tries(_DATA_SETS)
        yield distance_check(part.name, mechanism, unit, length, how, seen)


def distance_check(
    case: str, mechanism: VectorSum, unit: Unit, length: float, how: str, seen: str
) -> Check:
    """Check that neighbours lie within the declared sensitivity."""
    declared = mechanism.sensitivity(unit)
    return Check(
        f"{case}: distance of neighbours, {unit}",
        f"at most {declared:.2f} steps ({GRID} are a length of 1)",
        f"{length:.2f}",
        length <= declared,
        how,
        seen,
    )


def contribution(
    part: SecureSum,
    parameters: DiscoveryParameters,
    points: Numbers,
    names: list[str],
    kinds: tuple[int, ...] = (),
) -> Numbers:
    """Return the contribution of a phone with these recordings to a sum, before noise.

    Args:
        part: Part of the plan.
        parameters: Parameters of the phase.
        points: Embeddings of the recordings, (recordings, dimensions).
        names: Label or choice of each.
        kinds: Kind of sound of each cell, if rows of labels are split by kinds.
    """
    heard = HeardPoints(parameters.encoder, parameters.dimensions)
    store = MemoryStore(points.astype(np.float32), names)
    memory = Memory(store, heard, hierarchy_of(parameters), bytes)
    agreed = parameters.sum_parameters(part, (1,))
    opening = SUMMATIONS[part.summation].open(bytes(16), agreed)
    given: dict[str, Any] = {"phase": bytes(16), "opening": opening, "parameters": parameters}
    task: SumCells | SumLabels = SumLabels(kinds=kinds, **given)
    if part.task is SumCells:
        task = SumCells(repetition=1, **given)
    vector = DISCOVERY.contribute[part.task](memory, parameters, task)
    return np.asarray(vector, dtype=np.float64).ravel()


def _data_sets(
    parameters: DiscoveryParameters, generator: np.random.Generator
) -> Iterator[tuple[Numbers, list[str]]]:
    """Yield random recordings, of random labels and choices or all of one.

    In a third of the sets they are start centroids, in another one equal or opposite.
    """
    hierarchy = hierarchy_of(parameters)
    offered = np.array(rows_of(hierarchy))
    starts = parameters.start.centroids().astype(np.float64)
    for number in range(_DATA_SETS):
        count = 1 + number % _MOST_RECORDINGS
        points = unit_rows(generator.standard_normal((count, parameters.dimensions)))
        if number % 3 == 0:
            points = starts[generator.integers(0, len(starts), count)]
        if number % 3 == 1:
            points[:] = points[0] * generator.choice([-1.0, 1.0], (count, 1))
        names = generator.choice(offered, count)
        if number % 2:
            names[:] = names[0]
        yield points, names.tolist()


def _too_long(part: SecureSum, mechanism: VectorSum) -> Check:
    """Check that phones' code puts no vector beyond the declared bound into a sum."""
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
