"""Sums of votes on samples, audited with real noise and real weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from earshot_client.phases.labelling import LABELLING
from earshot_client.phases.memory import Memory
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.phases.labelling import (
    VOTES,
    CheckLabels,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.messages import MaskInput, ShareKeys
from earshot_protocol.summations import SUMMATIONS
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing import power
from earshot_simulations.auditing.ballots import (
    all_noise,
    counted_on,
    difference_loss,
    technique_of,
)
from earshot_simulations.auditing.crowds import audit_crowds
from earshot_simulations.auditing.findings import Check, Finding, Result
from earshot_simulations.auditing.neighbours import Vector
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import HeardPoints

STEP = 2e-5
_CROWDS = 50
_LEDGERS_EPSILON = 2.0


@dataclass(frozen=True)
class Fixed:
    """A voter with fixed answers."""

    classes: tuple[str, ...]
    given: Sequence[str | None]

    def answers(self, samples: object) -> Sequence[str | None]:
        """Return the given answers."""
        return self.given


def audit_votes(
    part: SecureSum, mechanism: VoteSum, parameters: LabellingParameters, seed: int
) -> Iterator[Result]:
    """Audit one sum: distances of ballots, and the cost to a phone of every weight.

    Args:
        part: Part of the plan.
        mechanism: Mechanism of the sum, for a phone of the largest weight.
        parameters: Parameters of the phase.
        seed: Seed of the tried ballots.
    """
    if mechanism.honest_survivors is not None:
        yield audit_crowds(part.name, parameters)
        yield _silence(part, parameters)
    yield from _distances(part, mechanism, parameters, seed)
    for weight in parameters.weights[:-1]:
        yield from _costs(part, mechanism, parameters, weight)


def worst(mechanism: VoteSum, unit: Unit, weight: int | None = None) -> Vector:
    """Return the largest distance of neighbours' ballots: every vote differs."""
    each = mechanism.ballot.l1(unit) / mechanism.ballot.largest_entry
    entries = round(mechanism.queries * each)
    return np.full(entries, mechanism.largest_entry if weight is None else weight, dtype=np.int64)


def _costs(
    part: SecureSum, mechanism: VoteSum, parameters: LabellingParameters, weight: int
) -> Iterator[Finding]:
    """Compare a phone's ledger entry at this weight with the measured ε.

    The costs in a ledger's units come from the expenses; that of a replaced phone comes from the
    mechanism, which covers the largest weight alone.
    """
    paid = {
        each.release.unit: (each.release.epsilon, each.event)
        for each in parameters.expenses(weight)
        if each.release.step == part.name
    }
    if weight == parameters.largest_weight:
        unit = Unit.REPLACED_PHONE
        paid[unit] = (mechanism.cost(unit).epsilon, mechanism.event(unit))
    runs = [(counted_on(mechanism, parameters), unit) for unit in paid]
    if weight == parameters.largest_weight:
        runs.append((all_noise(mechanism, parameters), Unit.PHONE))
    for noise, unit in runs:
        claimed, event = paid[unit]
        difference = worst(mechanism, unit, weight)
        measured = difference_loss(noise.law, difference, STEP).epsilon(DELTA)
        case = (
            f"{part.name}, noise {mechanism.deviation:.3g}, {mechanism.queries} samples, "
            f"weight {weight}, {noise.words}"
        )
        yield composed_finding(case, unit, claimed, (event,), measured, technique_of(mechanism))


def _distances(
    part: SecureSum, mechanism: VoteSum, parameters: LabellingParameters, seed: int
) -> Iterator[Check]:
    """Check that ballots, as phones cast them, lie within the declared sensitivity."""
    generator = np.random.default_rng(seed)
    names = [*parameters.labels, None]
    cast = [
        _contribution(part, parameters, [names[i] for i in generator.integers(len(names), size=n)])
        for n in [parameters.samples.rows] * _CROWDS
    ]
    # Two disjoint ballots, which are rare among random ones.
    cast += [
        _contribution(part, parameters, [label] * parameters.samples.rows)
        for label in parameters.labels[:2]
    ]
    heavy = [parameters.largest_weight * each.ravel() for each in cast]
    apart = [one - other for one in heavy for other in heavy]
    for unit, differences in (
        (Unit.PHONE, heavy),
        (Unit.RECORDING, apart),
        (Unit.REPLACED_PHONE, apart),
    ):
        most_l1, most_l2 = mechanism.distances(unit)
        l1 = max(int(np.abs(each).sum()) for each in differences)
        l2 = max(float(np.linalg.norm(each)) for each in differences)
        yield Check(
            f"{part.name}: distance of neighbours, {unit}",
            f"at most {most_l1:g}, and {most_l2:.4f} in L2",
            f"{l1}, and {l2:.4f}",
            l1 <= most_l1 and l2 <= most_l2 * (1 + 1e-12),
            f"{len(cast)} ballots as phones cast them, each against each",
            power.of_tries(len(cast)),
        )


def _silence(part: SecureSum, parameters: LabellingParameters) -> Check:
    """Check that the message of a phone without budget does not depend on its votes."""
    sent = {
        _sent(part, parameters, [label] * parameters.samples.rows)
        for label in parameters.labels[:2]
    }
    return Check(
        f"{part.name}: what a phone sends that has spent its budget",
        "the same for all votes, and nothing is spent",
        "the same, and nothing" if len(sent) == 1 else "different inputs",
        len(sent) == 1,
        "two phones with the same noise, and all votes apart",
        power.EXACTLY,
    )


def _contribution(
    part: SecureSum, parameters: LabellingParameters, answers: Sequence[str | None]
) -> Vector:
    memory = Memory(
        MemoryStore(),
        HeardPoints(parameters.encoder, parameters.dimensions),
        LabelHierarchy.flat(parameters.labels),
        np.random.default_rng(0).bytes,
        Fixed(parameters.labels, answers),
    )
    cast = LABELLING.contribute[part.task](memory, parameters, _task(part, parameters))
    return np.asarray(cast, dtype=np.int64)


def _sent(part: SecureSum, parameters: LabellingParameters, answers: Sequence[str | None]) -> bytes:
    """Return the input that a phone without budget sends; its answers and costs if it pays."""
    phase = part.name.encode().ljust(16)
    phone = Phone(
        MemoryStore(),
        HeardPoints(parameters.encoder, parameters.dimensions),
        Policy(largest_yearly_phone_epsilon=_LEDGERS_EPSILON, least_phones=1),
        hierarchy=LabelHierarchy.flat(parameters.labels),
        random=np.random.default_rng(1).bytes,
        summation=IDEAL,
        voter=Fixed(parameters.labels, answers),
    )
    for earlier in (b"spends it all   ", phase):
        before = len(phone.ledger.releases)
        for each in parameters.plan().parts:
            if isinstance(each, SecureSum):
                input_of = _through(phone, _task(each, parameters, earlier))
                if earlier == phase and each.name == part.name:
                    sent = input_of
    spent = phone.ledger.releases[before:]
    free = all(release.epsilon == release.delta == 0 for release in spent)
    return sent if free and spent else bytes(repr((answers, spent)), "utf-8")


def _task(
    part: SecureSum, parameters: LabellingParameters, phase: bytes = bytes(16)
) -> SumPartTask:
    samples = parameters.samples.rows
    shape = (samples, len(parameters.labels) if part.name == VOTES else 1)
    agreed = parameters.sum_parameters(part, shape)
    sum_id = phase[:12] + part.name.encode()[:4]
    advertise = SUMMATIONS[part.summation].open(sum_id, agreed)
    if part.task is LabelSamples:
        return LabelSamples(phase=phase, parameters=parameters, opening=advertise)
    return CheckLabels(phase=phase, proposed=(0,) * samples, opening=advertise)


def _through(phone: Phone, task: SumPartTask) -> bytes:
    """Play the rounds of a sum with some neighbours, and return the input that the phone sends."""
    opening: Any = task.opening
    sum_id, degree = opening.sum_id, opening.parameters.degree
    others = tuple(range(1, degree + 1))
    phone.answer(task)
    keys = bytes(32 * degree)
    phone.answer(ShareKeys(sum_id=sum_id, neighbours=others, public_keys=keys))
    answer = phone.answer(
        MaskInput(sum_id=sum_id, senders=others, ciphertexts=(bytes(93),) * degree)
    )
    return bytes(getattr(answer, "vector", b""))
