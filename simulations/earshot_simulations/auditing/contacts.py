"""Sums of projected counts: how far neighbours lie apart, and that a contact counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from earshot_client.phases.memory import Memory
from earshot_client.phases.statistics import STATISTICS
from earshot_client.store.memory import MemoryStore
from earshot_protocol.arrays import Whole
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.privacy.mechanisms import Unit, VectorSum
from earshot_protocol.summations import SUMMATIONS
from earshot_protocol.wire import Matrix
from earshot_simulations.auditing import power
from earshot_simulations.auditing.ballots import counted_on, difference_loss, vote_finding
from earshot_simulations.auditing.findings import Check, Result
from earshot_simulations.auditing.neighbours import Vector, hierarchy_of
from earshot_simulations.auditing.vectors import STEP, audit_costs, distance_check
from earshot_simulations.engine.interface import HeardPoints

_DATA_SETS = 60
_ENCODER = "points"
_STRANGE = "a label of another phase"


def audit_contacts(
    part: SecureSum, mechanism: VectorSum, parameters: StatisticsParameters, seed: int
) -> Iterator[Result]:
    """Audit one histogram: the distance of neighbours, its marks and its cost.

    Args:
        part: Part of the plan.
        mechanism: Mechanism of the sum.
        parameters: Parameters of the phase.
        seed: Seed of the data sets that are tried.
    """
    yield from audit_distances(part.name, part, mechanism, parameters, seed)
    yield audit_marks(part.name, part, parameters)
    yield from audit_costs(part, mechanism, parameters)


def audit_distances(
    case: str, part: SecureSum, mechanism: VectorSum, parameters: StatisticsParameters, seed: int
) -> Iterator[Result]:
    """Measure how far neighbours lie apart, and the cost of the farthest, as phones count.

    Args:
        case: Name of the case.
        part: Part of the plan.
        mechanism: Mechanism of the sum.
        parameters: Parameters of the phase.
        seed: Seed of the data sets that are tried.
    """
    generator = np.random.default_rng(seed)
    nothing = np.zeros(parameters.entries, dtype=np.int64)
    moved: dict[Unit, list[Vector]] = {unit: [nothing] for unit in Unit}
    for entries in _data_sets(parameters, generator):
        vector = _contribution(part, parameters, entries)
        # One recording of each entry is left out, wherever it is.
        for at in np.unique(entries, return_index=True)[1]:
            less = _contribution(part, parameters, np.delete(entries, at))
            moved[Unit.RECORDING].append(vector - less)
        moved[Unit.REPLACED_PHONE].extend(vector - other for other in moved[Unit.PHONE])
        moved[Unit.PHONE].append(vector)
    law = counted_on(mechanism, parameters).law
    for unit, differences in moved.items():
        farthest = max(differences, key=lambda each: int(np.square(each).sum()))
        length = float(np.linalg.norm(farthest))
        how = f"{len(differences)} pairs, counted as phones count"
        seen = power.of_tries(len(differences))
        yield distance_check(case, mechanism, unit, length, how, seen)
        yield vote_finding(
            mechanism, f"{case}: the farthest of {how}", unit, difference_loss(law, farthest, STEP)
        )


def audit_marks(
    case: str,
    part: SecureSum,
    parameters: StatisticsParameters,
    store: Callable[..., MemoryStore] = MemoryStore,
) -> Check:
    """Check that a second histogram of the same window counts no contact again.

    Args:
        case: Name of the case.
        part: Part of the plan.
        parameters: Parameters of the phase.
        store: Store of the phone.
    """
    entries = np.tile(np.arange(parameters.count_entries), 2 * parameters.contacts)
    memory = _memory(parameters, entries, store)
    _counted(memory, part, parameters)
    STATISTICS.released(memory)
    again = int(_counted(memory, part, parameters)[: parameters.count_entries].sum())
    return Check(
        f"{case}: contacts in a second histogram",
        "0 steps",
        f"{again} steps",
        again == 0,
        f"{len(entries)} contacts in two histograms of one window",
        power.EXACTLY,
    )


def places(labels: int) -> AgreedPlaces:
    """Return a place of each label, along the first axes."""
    return AgreedPlaces(
        encoder=_ENCODER,
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(np.eye(labels, labels + 1, dtype=np.float32)),
        labels=tuple(range(labels)),
        radius=0.5,
    )


def _data_sets(parameters: StatisticsParameters, generator: np.random.Generator) -> Iterator[Whole]:
    """Yield the sort of each of a phone's contacts, oldest first: few, many, of one or all.

    A sort is an entry of the counts. Where phones add a confusion matrix, labelled contacts have
    further ones: with 2L + 1 more the contact lies at the next place, and after the last at none.
    """
    labels, length = len(parameters.labels), parameters.count_entries
    every, most = np.arange(length), parameters.contacts
    if parameters.confusion:
        elsewhere = np.arange(1, labels + 1)[:, None] * length + np.arange(labels)
        every = np.append(every, elsewhere)
    yield np.empty(0, dtype=np.int64)
    for at, sort in enumerate(every):
        yield np.full(1, sort)
        yield np.repeat(sort, most)
        # The newest contact is of another sort.
        yield np.append(np.repeat(sort, most), every[(at + 1) % len(every)])
    for number in range(_DATA_SETS):
        largest = (2, most, 3 * most)[number % 3]
        counts = generator.integers(0, largest + 1, len(every))
        yield generator.permutation(np.repeat(every, counts))


def _contribution(part: SecureSum, parameters: StatisticsParameters, entries: Whole) -> Vector:
    """Return what a phone with contacts of these entries adds to the sum, before noise."""
    return _counted(_memory(parameters, entries), part, parameters)


def _memory(
    parameters: StatisticsParameters,
    entries: Whole,
    store: Callable[..., MemoryStore] = MemoryStore,
) -> Memory:
    """Return the memory of a phone with contacts of these entries, oldest first.

    An unlabelled contact lies at one of the places, or far from all. Of unknown ones, every other
    has a label that the phase does not know, and lies at a place.

    Args:
        parameters: Parameters of the phase.
        entries: Sort of each contact, as `_data_sets` yields them.
        store: Store of the phone.
    """
    labels, axes = parameters.labels, np.eye(len(parameters.labels) + 1, dtype=np.float32)
    points, names = [axes[:0]], list[str | None]()
    for number, sort in enumerate(entries.tolist()):
        further, entry = divmod(sort, parameters.count_entries)
        labelled, known = entry < len(labels), entry < 2 * len(labels)
        strange = not known and number % 2 == 0
        place = entry % len(labels) if known or strange else -1
        points.append(axes[[(place + further) % len(axes)]])
        names.append(labels[entry] if labelled else _STRANGE if strange else None)
    heard = HeardPoints(_ENCODER, axes.shape[1])
    held = store(np.concatenate(points), names)
    return Memory(held, heard, hierarchy_of(parameters), bytes)


def _counted(memory: Memory, part: SecureSum, parameters: StatisticsParameters) -> Vector:
    """Return what a phone adds to a sum whose places lie along the first axes."""
    agreed = msgspec.structs.replace(parameters, places=places(len(parameters.labels)))
    opening = SUMMATIONS[part.summation].open(bytes(16), agreed.sum_parameters(part, (1,)))
    task = CountContacts(phase=bytes(16), parameters=agreed, opening=opening)
    return np.asarray(STATISTICS.contribute[CountContacts](memory, agreed, task))
