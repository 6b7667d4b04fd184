"""Whole phones through whole phases: the noise of all their sums, and what their ledgers say.

Phones with their own randomness take part in real phases with real cryptography, one after the
other. Every other phone has heard nothing, so it adds nothing but noise to a sum: that must have
the law which is accounted for, and no two sums or phones may have it in common, or a server that
subtracts knows the rest. The other phones hold more recordings than the phase says, and what all
steps tell of these together may not be more than their ledgers have.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.phases.discovery import rows_of
from earshot_protocol.phases.labelling_budget import noises
from earshot_protocol.phases.learning import Budget
from earshot_protocol.phases.parameters import LARGEST_LABELS, Parameters
from earshot_protocol.phases.plan import FAILED, PUBLISHED, SecureSum
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation, SummationName
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.wire import Matrix
from earshot_server.discovery.interface import LEFT_OUT, FoundCentroids
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.auditing import power
from earshot_simulations.auditing.crowds import shares_of
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique, p_said
from earshot_simulations.auditing.laws import share_law
from earshot_simulations.auditing.neighbours import hierarchy_of, with_choices
from earshot_simulations.auditing.plans import PHASES
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.routes import phase_losses
from earshot_simulations.auditing.sampling import fit
from earshot_simulations.engine.interface import AGREES, HeardPoints

_REPEATED = 2
"""Number of phases that the same phones take part in."""
_PHONES, _DROPOUT = 12, 0.25
_QUIET, _HOLDING = range(0, _PHONES, 2), range(1, _PHONES, 2)
_ENTRIES = 400
"""Numbers of a sum, where a phase has a choice: the more, the better noise is told apart."""
_MORE = 3
"""Times the recordings that a phase says a phone holds."""
_SOME = 12
_CELLS = 2**14
"""Cells of a grid of losses, up to the ε that a ledger has."""
_UNLIKELY = 1e-9
_DEVIATIONS = 6.0
_ALARM = 2e-9
"""Probability of independent noise beyond `_DEVIATIONS`, on either side."""
_EXACT = Technique(
    EXACT, "exact: the losses of all steps convolved, beside the ledger's own events"
)

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AuditedPhones:
    """Phones as apps open them, and what planted faults change of them.

    Attributes:
        store: Type of store that keeps what a phone hears.
        random: Source of each phone's noise; None for its own.
        reuses: Whether a phone's noise is that of its first sum ever after.
    """

    store: type[MemoryStore] = MemoryStore
    random: Callable[[int], RandomBytes] | None = None
    reuses: bool = False


@dataclass
class PlayedPhases:
    """Phones in phases of one kind, as they were seen.

    Attributes:
        parameters: Parameters of the phases.
        held: Recordings of each phone that has some.
        phones: All phones by number.
        inputs: Inputs to each sum, by its identifier in the order of sums, and by phone.
        phases: Identifiers of the phases, in order.
    """

    parameters: Parameters
    held: int
    phones: dict[int, Phone] = field(default_factory=dict)
    inputs: dict[bytes, dict[int, Whole]] = field(default_factory=lambda: defaultdict(dict))
    phases: list[bytes] = field(default_factory=list)

    @property
    def noise(self) -> list[Whole]:
        """Inputs of phones that heard nothing, of each sum: int64 (phones, entries)."""
        return [np.stack([given[each] for each in _QUIET]) for given in self.inputs.values()]


PLAYED = tuple(name for name, each in PHASES.items() if each.summation is SummationName.BELL)
"""Phases that are played: those whose phones add noise."""


def audit_whole_phones(names: Iterable[str] = PLAYED) -> Iterator[Result]:
    """Audit phases of every kind.

    Args:
        names: Names of the phases.
    """
    for name in names:
        seen = play(small(PHASES[name]))
        yield noise_law(name, seen)
        yield sums_apart(name, seen)
        yield phones_apart(name, seen)
        yield from ledger(name, seen)


def small(parameters: Parameters) -> Parameters:
    """Return a phase like this of few phones, many entries a sum, and an ε that is measurable."""
    names = tuple(f"place {number}" for number in range(min(_ENTRIES, LARGEST_LABELS)))
    few = names[:20]
    labels = with_choices(few) if parameters.hierarchy else LabelHierarchy.flat(few)
    noise = noises(2.0, DELTA, samples=_ENTRIES)
    many: dict[str, dict[str, Any]] = {
        "learning": {
            "recordings": 4,
            "clustering_runs": min(2, getattr(parameters, "clustering_runs", 1)),
            "top_global_centroids": _ENTRIES,
            "budget": Budget(clustering=0.5, selection=0.1, centroid_vote=0.5, label_vote=0.5),
        },
        "discovery": {
            "labels": labels.classes,
            "rows": len(rows_of(labels)),
            "hierarchy": labels.digest if parameters.hierarchy else b"",
            "cells_noise": 1.5,
            "labels_noise": 1.5,
        },
        "labelling": {
            "samples": Matrix.of(np.random.default_rng(2).standard_normal((_ENTRIES, 16))),
            "votes_noise": noise.votes,
            "check_noise": noise.check,
            "threshold": 1.0,
        },
        "statistics": {"labels": names},
    }
    changes = many[parameters.kind]
    return msgspec.structs.replace(parameters, phones=_PHONES, dropout=_DROPOUT, **changes)


def play(parameters: Parameters, crowd: AuditedPhones | None = None) -> PlayedPhases:
    """Let new phones take part in some phases, to their end.

    Raises:
        WrongStateError: A phase failed.
    """
    crowd = crowd or AuditedPhones()
    nominal = getattr(parameters, "recordings", 0)
    seen = PlayedPhases(parameters, max(_SOME, _MORE * nominal))
    summation, hierarchy = _watched(seen, crowd.reuses), hierarchy_of(parameters)
    for number in range(_PHONES):
        seen.phones[number] = _phone(seen, number, crowd, summation)
    for _ in range(_REPEATED):
        coordinator = Coordinator.start(
            MemoryPhaseStore(),
            _Found(),
            parameters,
            0.0,
            choices=tuple(hierarchy.groups.values()) if parameters.hierarchy else (),
            summation=summation,
        )
        seen.phases.append(coordinator.phase)
        while coordinator.step not in (PUBLISHED, FAILED):
            for number, phone in seen.phones.items():
                answer = phone.answer(coordinator.task_for(number))
                if answer is not None:
                    coordinator.accept(number, answer)
            coordinator.advance(2 * parameters.step_seconds)
        if coordinator.step == FAILED:
            raise WrongStateError(f"a {parameters.kind} phase failed: {coordinator.state.failure}")
    return seen


def noise_law(name: str, seen: PlayedPhases) -> Check:
    """Check that quiet phones add their share of the declared noise, n' being the audit's own."""
    shares, plan = shares_of(seen.parameters), seen.parameters.plan()
    sums = [part.mechanism for part in plan.parts if isinstance(part, SecureSum)]
    drawn: dict[Any, list[Whole]] = defaultdict(list)
    for mechanism, noise in zip(_REPEATED * sums, seen.noise, strict=True):
        drawn[replace(mechanism, honest_survivors=shares)].append(noise.ravel())  # type: ignore[type-var]
    fits = [fit(share_law(each.noise_share), np.concatenate(drawn[each])) for each in drawn]
    worst, least = min(fits), min(sum(map(len, each)) for each in drawn.values())
    return Check(
        f"{name}: what quiet phones add",
        f"noise of one of n' = {shares} phones (p ≥ {_UNLIKELY:g})",
        p_said(worst[0]),
        worst[0] >= _UNLIKELY,
        f"χ² tests, {_REPEATED} phases of {_PHONES} real phones, {least} numbers or more",
        power.of_fit(worst[1], least, _UNLIKELY),
    )


def sums_apart(name: str, seen: PlayedPhases) -> Check:
    """Check that a phone's noise in one sum tells nothing of its noise in another."""
    pairs = [
        together(one[:, :entries], other[:, :entries])
        for one, other in itertools.combinations(seen.noise, 2)
        for entries in [min(one.shape[1], other.shape[1])]
    ]
    return apart(f"{name}: two sums' noise", pairs)


def phones_apart(name: str, seen: PlayedPhases) -> Check:
    """Check that a phone's noise tells nothing of another's in the same sum."""
    pairs = [
        together(noise[[one]], noise[[other]])
        for noise in seen.noise
        for one, other in itertools.combinations(range(len(_QUIET)), 2)
    ]
    return apart(f"{name}: two phones' noise", pairs)


def ledger(name: str, seen: PlayedPhases) -> Iterator[Finding]:
    """Set what a phase tells of all that a phone holds beside what the ledger has of the phase."""
    kept = seen.phones[_HOLDING[0]].ledger
    for unit in LEDGER_UNITS:
        expenses = kept.expenses_of(unit, phase=seen.phases[-1])
        events = tuple(each.event for each in expenses)
        step = composed_epsilon(events, DELTA) / _CELLS
        yield composed_finding(
            f"{name}: the ledger of a phone that holds {seen.held}",
            unit,
            sum(each.release.epsilon for each in expenses),
            events,
            phase_losses(seen.parameters, unit, step, seen.held).epsilon(DELTA),
            _EXACT,
        )


def together(one: Whole, other: Whole) -> tuple[float, int]:
    """Return Spearman's correlation over all rows, in deviations; and the count of its numbers."""
    from scipy.stats import rankdata

    scores = [rankdata(each, axis=1) - (each.shape[1] + 1) / 2 for each in (one, other)]
    lengths = math.prod(float(np.linalg.norm(each)) for each in scores)
    if not lengths:
        return math.inf, one.size  # constant noise hides nothing
    return abs(float((scores[0] * scores[1]).sum())) / lengths * math.sqrt(one.size), one.size


def apart(case: str, pairs: list[tuple[float, int]]) -> Check:
    """Check that no pair of noises correlates more than independent noise does."""
    found = max(deviations for deviations, _ in pairs)
    return Check(
        case,
        f"no correlation beyond {_DEVIATIONS:g} deviations",
        f"{found:.1f} deviations",
        found <= _DEVIATIONS,
        f"Spearman's correlation of {len(pairs)} pairs, entry by entry; independent noise fails "
        f"with a probability of {_ALARM * len(pairs):.0e}",
        power.of_correlation(min(numbers for _, numbers in pairs), _DEVIATIONS),
    )


def _phone(seen: PlayedPhases, number: int, crowd: AuditedPhones, summation: Summation) -> Phone:
    """Return a phone that has heard nothing, or more than the phase says."""
    parameters = seen.parameters
    dimensions = 2 if parameters.reads is None else parameters.reads.dimensions
    generator = np.random.default_rng(number)
    held = seen.held if number in _HOLDING else 0
    points = unit_rows(generator.standard_normal((held, dimensions)))
    hierarchy = hierarchy_of(parameters)
    given: dict[str, Any] = {} if crowd.random is None else {"random": crowd.random(number)}
    return Phone(
        crowd.store(points.astype(np.float32), generator.choice(rows_of(hierarchy), held).tolist()),
        HeardPoints("points", dimensions),
        AGREES,
        hierarchy=hierarchy,
        summation=summation,
        **given,
    )


def _watched(seen: PlayedPhases, reuses: bool) -> Summation:
    """Return the summation of all phones, which notes what they put in."""
    first: dict[int, Whole] = {}

    class Noting(Participant):
        """A participant whose input is noted."""

        def __init__(self, task: AdvertiseKeys, values: npt.ArrayLike, told: bytes = b"") -> None:
            given = np.asarray(values)
            if reuses and task.index in _QUIET:
                bound = task.parameters.bound
                before = first.setdefault(task.index, given)
                given = np.resize(before, given.shape).clip(-bound, bound)
            seen.inputs[task.sum_id][task.index] = given.ravel()
            super().__init__(task, given, told)

    return replace(BELL, participant=Noting)


class _Found:
    """A discovery that finds the same number of centroids whatever phones publish."""

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> FoundCentroids:
        """Return the centroids, and leave all points out."""
        found = np.random.default_rng(3).uniform(-1, 1, (_ENTRIES, points.shape[1]))
        if geometry is Geometry.SPHERICAL:
            found = unit_rows(found)
        return FoundCentroids(found.astype(np.float32), np.full(len(points), LEFT_OUT))
