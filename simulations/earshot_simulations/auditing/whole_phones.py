"""Whole phones through whole phases: the noise of all their sums, and their ledgers.

Phones with their own randomness take part in real phases with real cryptography, one after the
other. Where phones share the noise, some of them have heard nothing and add only noise; with two
operators, a real leader and a real helper add it. The added noise must have the law that is
accounted for, and must be independent between sums and parties, or a server could remove it by
subtraction. The other phones hold more recordings than the phase states; the measured ε of all
steps together may not exceed their ledgers.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.phases.discovery import rows_of
from earshot_protocol.phases.labelling_budget import noises
from earshot_protocol.phases.learning import Budget
from earshot_protocol.phases.parameters import LARGEST_LABELS, Parameters
from earshot_protocol.phases.plan import FAILED, PUBLISHED, PartTask, SecureSum
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, SumMechanism
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import HELPER, Asks, Summation, SummationName
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.participant import Participant
from earshot_protocol.wire import Matrix
from earshot_server.discovery.interface import LEFT_OUT, FoundCentroids
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.auditing import power
from earshot_simulations.auditing.asked_amiss import Tried, ask_again, ask_amiss, refusals_check
from earshot_simulations.auditing.asked_secrets import SecretsOfAnswer, audit_asked
from earshot_simulations.auditing.ballots import all_noise, counted_on, entry_noise
from earshot_simulations.auditing.correlations import apart, together
from earshot_simulations.auditing.crowds import shares_of
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique, p_said
from earshot_simulations.auditing.laws import Law, share_law_of
from earshot_simulations.auditing.neighbours import hierarchy_of, with_choices
from earshot_simulations.auditing.plans import PHASES
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.routes import phase_losses
from earshot_simulations.auditing.sampling import UNLIKELY, fit
from earshot_simulations.auditing.streams import Noted, drawn_again
from earshot_simulations.auditing.watched_operators import (
    PRODUCT,
    AuditedOperators,
    WatchedOperators,
)
from earshot_simulations.auditing.watching import replaced
from earshot_simulations.engine.interface import AGREES, HeardPoints

_REPEATED = 2
"""Number of phases in which the same phones take part."""
_PHONES, _DROPOUT = 12, 0.25
_QUIET, _HOLDING = range(0, _PHONES, 2), range(1, _PHONES, 2)
_ASKED = _HOLDING[0]
"""Phone that also receives hostile requests."""
_ENTRIES = 400
"""Entries of a sum, where a phase leaves a choice: more entries make the tests stronger."""
_MORE = 3
"""Recordings of a phone, as a multiple of those that its phase states."""
_SOME = 12
_CELLS = 2**14
"""Cells of a grid of losses, up to the ε of a ledger."""
_EXACT = Technique(
    EXACT, "exact: the losses of all steps convolved, against the ledger's own events"
)

_Given = TypeVar("_Given")


@dataclass(frozen=True)
class AuditedPhones:
    """Phones as apps open them; planted faults change them or their operators.

    Attributes:
        store: Type of each phone's store.
        random: Returns the source of a phone's noise, from its number.
        reuses: Whether a phone repeats the noise of its first sum in all later ones.
        operators: Operators of their sums, where these add the noise.
        system: Returns the source of a phone's secrets, from the operating system's.
        noisy: Changes the noise of a phone that heard nothing, before it enters a sum.
        policy: Returns the policy of phones, from the one that they should have.
    """

    store: type[MemoryStore] = MemoryStore
    random: Callable[[int], RandomBytes] = lambda number: os.urandom
    reuses: bool = False
    operators: AuditedOperators = PRODUCT
    system: Callable[[RandomBytes], RandomBytes] = lambda system: system
    noisy: Callable[[Whole], Whole] = lambda noise: noise
    policy: Callable[[Policy], Policy] = lambda policy: policy


class AddedBy(NamedTuple):
    """Noise that a party added to the sums of some phases.

    Attributes:
        who: Description of the party.
        stated: Description of the expected noise.
        law: Returns the expected law under a mechanism.
        sums: Noise of each sum, in the order of sums: int64 (…, entries).
    """

    who: str
    stated: str
    law: Callable[[SumMechanism], Law]
    sums: list[Whole]


@dataclass
class PlayedPhases:
    """The record of phones in phases of one kind.

    Attributes:
        parameters: Parameters of the phases.
        held: Recordings of each phone that has some.
        operators: Operators of their sums, where these add the noise.
        phones: All phones by number.
        inputs: Inputs of phones that share the noise, by identifier of the sum, in the order of
            sums, and by phone.
        phases: Identifiers of the phases, in order.
        store: Store of the phone that also receives hostile requests.
        sources: Source of each phone's noise.
        drawn: Random bytes of each phone's noise, by sum and phone as `inputs`.
        asked: Random bytes that phones requested from the operating system, answer by answer.
        tried: Hostile requests to one phone.
    """

    parameters: Parameters
    held: int
    operators: WatchedOperators
    phones: dict[int, Phone] = field(default_factory=dict)
    inputs: dict[bytes, dict[int, Whole]] = field(default_factory=lambda: defaultdict(dict))
    phases: list[bytes] = field(default_factory=list)
    store: MemoryStore = field(default_factory=MemoryStore)
    sources: dict[int, Noted] = field(default_factory=dict)
    drawn: dict[bytes, dict[int, list[bytes]]] = field(default_factory=lambda: defaultdict(dict))
    asked: list[SecretsOfAnswer] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)

    @property
    def operated(self) -> bool:
        """Whether two operators add the noise, instead of phones."""
        return self.parameters.summation is not SummationName.BELL

    @property
    def begun(self) -> list[PartTask]:
        """Tasks by which one phone began the steps of the last phase."""
        return [
            each.task
            for each in self.asked
            if isinstance(each.task, PartTask)
            and each.task.phase == self.phases[-1]
            and each.task.index == _ASKED
        ]

    @property
    def noise(self) -> list[Whole]:
        """Noise of each sum by the parties that add it: int64 (parties, entries).

        The parties are phones that heard nothing, or the helper and the leader.
        """
        if not self.operated:
            return [np.stack([given[each] for each in _QUIET]) for given in _all(self.inputs)]
        return [np.stack((each.helper, each.leader)) for each in self.operators.sums.values()]

    @property
    def noise_words(self) -> list[list[list[bytes]]]:
        """Random bytes of that noise, by sum and party."""
        if not self.operated:
            return [[given[each] for each in _QUIET] for given in _all(self.drawn)]
        return [list(each.drawn) for each in self.operators.sums.values()]

    def added(self) -> Iterator[AddedBy]:
        """Yield the noise that each party, or each group of parties, added."""
        parameters, noise = self.parameters, self.noise
        if not self.operated:
            shares = shares_of(parameters)

            def of_one(mechanism: SumMechanism) -> Law:
                counted: Any = replace(mechanism, honest_survivors=shares)  # type: ignore[type-var]
                return share_law_of(counted)

            yield AddedBy(
                "quiet phones add", f"noise of one of n' = {shares} phones", of_one, noise
            )
            return
        for number, who in enumerate(("the helper adds", "the leader adds")):
            yield AddedBy(
                who,
                "one operator's noise",
                lambda mechanism: counted_on(mechanism, parameters).law,
                [each[number] for each in noise],
            )
        yield AddedBy(
            "a result has beyond plain addition",
            "both operators' noise",
            lambda mechanism: all_noise(mechanism, parameters).law,
            [each.both for each in self.operators.sums.values()],
        )


def audit_whole_phones(names: Iterable[str] = tuple(PHASES)) -> Iterator[Result]:
    """Audit phases of every kind.

    Args:
        names: Names of the phases.
    """
    for name in names:
        seen = play(small(PHASES[name]))
        yield from audit_noise(name, seen)
        yield from audit_asked(name, seen.asked, seen.operators.sums)
        yield refusals_check(name, seen.tried, "a phone")
        yield from ledger(name, seen)


def audit_noise(name: str, seen: PlayedPhases) -> Iterator[Check]:
    """Check the laws of all noise, and its independence between sums and parties."""
    yield from noise_laws(name, seen)
    yield sums_apart(name, seen)
    yield parties_apart(name, seen)
    yield noise_as_drawn(name, seen)


def small(parameters: Parameters) -> Parameters:
    """Return a phase like this with few phones, many entries per sum, and a measurable ε."""
    names = tuple(f"place {number}" for number in range(min(_ENTRIES, LARGEST_LABELS)))
    few = names[:20]
    labels = with_choices(few) if parameters.hierarchy else LabelHierarchy.flat(few)
    noise = noises(2.0, DELTA, samples=_ENTRIES, summation=parameters.summation)
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
        # A confusion matrix has an entry for each pair of labels.
        "statistics": {"labels": few if getattr(parameters, "confusion", False) else names},
    }
    changes = many[parameters.kind]
    return msgspec.structs.replace(parameters, phones=_PHONES, dropout=_DROPOUT, **changes)


def play(parameters: Parameters, crowd: AuditedPhones | None = None) -> PlayedPhases:
    """Run some phases to their end, with new phones.

    Raises:
        WrongStateError: A phase failed.
    """
    crowd = crowd or AuditedPhones()
    nominal = getattr(parameters, "recordings", 0)
    operators = WatchedOperators(crowd.operators)
    seen = PlayedPhases(parameters, max(_SOME, _MORE * nominal), operators)
    summation = operators.summation if seen.operated else _watched(seen, crowd)
    for number in range(_PHONES):
        seen.phones[number] = _phone(seen, number, crowd, summation)
    secrets = Noted(os.urandom)
    with operators.watching():
        for _ in range(_REPEATED):
            _play_phase(seen, summation, secrets, crowd.system(secrets))
        seen.tried.extend(ask_again(seen.phones[_ASKED], parameters, seen.begun, seen.operators))
    return seen


def _play_phase(
    seen: PlayedPhases, summation: Summation, secrets: Noted, system: RandomBytes
) -> None:
    """Run one more phase with the phones and, if there is one, the helper.

    Args:
        seen: Record of all phases so far.
        summation: Summation of phones and leader.
        secrets: Recorded source of the operating system.
        system: Source of phones' secrets: that one, or a faulty one.
    """
    parameters = seen.parameters
    coordinator = Coordinator.start(
        MemoryPhaseStore(),
        _Found(),
        parameters,
        0.0,
        choices=tuple(hierarchy_of(parameters).groups.values()) if parameters.hierarchy else (),
        summation=summation,
    )
    seen.phases.append(coordinator.phase)
    while coordinator.step not in (PUBLISHED, FAILED):
        step = parameters.plan().step(coordinator.step)
        if step is not None and step.asks is Asks.HELPER:
            coordinator.accept(HELPER, seen.operators.answer(coordinator.task_for(HELPER)))
        for number, phone in seen.phones.items():
            task = coordinator.task_for(number)
            if number == _ASKED:
                seen.tried.extend(ask_amiss(phone, seen.store, task, seen.operators))
            seen.sources[number].taken()
            secrets.taken()
            with replaced(os, urandom=system):
                answer = phone.answer(task)
            if answer is not None:
                seen.asked.append(SecretsOfAnswer(task, answer, secrets.taken()))
                coordinator.accept(number, answer)
        coordinator.advance(2 * parameters.step_seconds)
    if coordinator.step == FAILED:
        raise WrongStateError(f"a {parameters.kind} phase failed: {coordinator.state.failure}")


def noise_laws(name: str, seen: PlayedPhases) -> Iterator[Check]:
    """Check that each party adds the declared noise, by the audit's own n'."""
    plan = seen.parameters.plan()
    sums = [part.mechanism for part in plan.parts if isinstance(part, SecureSum)]
    for added in seen.added():
        drawn: dict[SumMechanism, list[Whole]] = defaultdict(list)
        for mechanism, noise in zip(_REPEATED * sums, added.sums, strict=True):
            drawn[mechanism].append(noise.ravel())
        fits = [fit(added.law(each), np.concatenate(drawn[each])) for each in drawn]
        worst, least = min(fits), min(sum(map(len, each)) for each in drawn.values())
        yield Check(
            f"{name}: what {added.who}",
            f"{added.stated} (p ≥ {UNLIKELY:g})",
            p_said(worst[0]),
            worst[0] >= UNLIKELY,
            f"χ² tests, {_REPEATED} phases of {_PHONES} real phones, {least} numbers or more",
            power.of_fit(worst[1], least, UNLIKELY),
        )


def sums_apart(name: str, seen: PlayedPhases) -> Check:
    """Check that a party's noises in different sums are uncorrelated."""
    pairs = [
        together(one[:, :entries], other[:, :entries])
        for one, other in itertools.combinations(seen.noise, 2)
        for entries in [min(one.shape[1], other.shape[1])]
    ]
    return apart(f"{name}: two sums' noise", pairs)


def parties_apart(name: str, seen: PlayedPhases) -> Check:
    """Check that the noises of two parties in one sum are uncorrelated."""
    pairs = [
        together(noise[[one]], noise[[other]])
        for noise in seen.noise
        for one, other in itertools.combinations(range(len(noise)), 2)
    ]
    parties = "operators" if seen.operated else "phones"
    return apart(f"{name}: two {parties}' noise", pairs)


def noise_as_drawn(name: str, seen: PlayedPhases) -> Check:
    """Check the noise against that of the ledger's sampler for the same bytes, entry by entry.

    The sampler is that of the plan's mechanisms, which phones enter in their ledgers.
    """
    plan = seen.parameters.plan()
    sums = _REPEATED * [part.mechanism for part in plan.parts if isinstance(part, SecureSum)]
    noise, wrong, entries = seen.noise, 0, 0
    for mechanism, added, words in zip(sums, noise, seen.noise_words, strict=True):
        draw = mechanism.noise_share
        if seen.operated:
            draw = entry_noise(mechanism).drawn
        for one, bytes_of_one in zip(added, words, strict=True):
            again = drawn_again(functools.partial(draw, len(one)), bytes_of_one)
            wrong += len(one) if again is None else int((one != again).sum())
            entries += len(one)
    who = "operators" if seen.operated else "quiet phones"
    return Check(
        f"{name}: what {who} add of what they draw",
        "all of the noise that ledgers have, to every entry",
        f"{wrong} of {entries} entries have another" if wrong else "all",
        not wrong,
        f"{len(noise)} sums, and what their sampler draws of the same random bytes",
        power.EXACTLY,
    )


def ledger(name: str, seen: PlayedPhases) -> Iterator[Finding]:
    """Compare the measured ε of a whole phase with its entries in the ledger."""
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


def _phone(seen: PlayedPhases, number: int, crowd: AuditedPhones, summation: Summation) -> Phone:
    """Return a phone that has heard nothing, or more than the phase states."""
    parameters = seen.parameters
    dimensions = 2 if parameters.reads is None else parameters.reads.dimensions
    generator = np.random.default_rng(number)
    held = seen.held if number in _HOLDING else 0
    keys = seen.operators.keys
    points = unit_rows(generator.standard_normal((held, dimensions)))
    hierarchy = hierarchy_of(parameters)
    seen.sources[number] = Noted(crowd.random(number))
    names = generator.choice(rows_of(hierarchy), held).tolist()
    store = crowd.store(points.astype(np.float32), names)
    if number == _ASKED:
        seen.store = store
    return Phone(
        store,
        HeardPoints("points", dimensions),
        crowd.policy(replace(AGREES, leaders=(keys.identity,), helpers=(keys.helper,))),
        hierarchy=hierarchy,
        summation=summation,
        random=seen.sources[number],
    )


def _watched(seen: PlayedPhases, crowd: AuditedPhones) -> Summation:
    """Return a summation that records the inputs of all phones."""
    first: dict[int, Whole] = {}

    class Noting(Participant):
        """A participant whose input is recorded."""

        def __init__(self, task: AdvertiseKeys, values: npt.ArrayLike, told: bytes = b"") -> None:
            given = np.asarray(values)
            if task.index in _QUIET:
                bound = task.parameters.bound
                if crowd.reuses:
                    given = np.resize(first.setdefault(task.index, given), given.shape)
                given = crowd.noisy(given.copy()).clip(-bound, bound)
            seen.inputs[task.sum_id][task.index] = given.ravel()
            seen.drawn[task.sum_id][task.index] = seen.sources[task.index].taken()
            super().__init__(task, given, told)

    return replace(BELL, participant=Noting)


def _all(sums: Mapping[bytes, dict[int, _Given]]) -> list[dict[int, _Given]]:
    """Return the entries of sums in which all phones took part, by phone."""
    return [given for given in sums.values() if len(given) == _PHONES]


class _Found:
    """A discovery that always returns the same number of centroids."""

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> FoundCentroids:
        """Return the centroids; no point belongs to any."""
        found = np.random.default_rng(3).uniform(-1, 1, (_ENTRIES, points.shape[1]))
        if geometry is Geometry.SPHERICAL:
            found = unit_rows(found)
        return FoundCentroids(found.astype(np.float32), np.full(len(points), LEFT_OUT))
