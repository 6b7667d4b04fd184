"""Planted faults of the noise of two operators, of what is promised for it, and of proofs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.overriding import override
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.discovery_budget import noises
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.prio3.prio3 import Prio3Multihot
from earshot_protocol.privacy.mechanisms import GRID, BallotSum, Unit, VectorSum
from earshot_protocol.privacy.noise import Size
from earshot_protocol.privacy.sum_noise import SkellamShares, WholeGaussian, laplace
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_server.helper.book import MemoryBook, Record, Secret
from earshot_simulations.auditing.ballots import counted_on, difference_loss, vote_finding
from earshot_simulations.auditing.crowds import noise_check, shares_of
from earshot_simulations.auditing.findings import Check, Finding, Result
from earshot_simulations.auditing.operators import noise_checks, sums_of_operators
from earshot_simulations.auditing.plans import PHASES, differences_of
from earshot_simulations.auditing.proofs import DELTA
from earshot_simulations.auditing.proved_ballots import WeakProofs, audit_proved_ballots
from earshot_simulations.auditing.vectors import STEP, spread
from earshot_simulations.auditing.votes import worst
from earshot_simulations.auditing.watched_operators import AuditedOperators, Whole
from earshot_simulations.auditing.watching import replaced
from earshot_simulations.auditing.whole_phones import (
    AuditedPhones,
    audit_noise,
    ledger,
    play,
    small,
)

_HELPER, _LEADER, _APART, _EARLY = range(4)
"""Checks of operators in their order."""
_PLAYED = "secure-sum route, two operators"
"""Phase that whole phones play with faults of operators: it has three sums."""


def operator_faults(draws: int, seed: int) -> Iterator[Result]:
    """Plant every fault of operators.

    Args:
        draws: Entries of a sum.
        seed: Seed of phones' inputs.
    """
    yield from faults_of_sums(draws, seed)
    yield from broken_phases()
    yield both_in_a_phones_ledger()
    yield from weak_proofs()


def faults_of_sums(draws: int, seed: int) -> Iterator[Result]:
    """Plant faults that one sum, or two, give away; the arguments are those of all faults."""
    operated = next(each for each in sums_of_operators() if isinstance(each.mechanism, VectorSum))
    for fault, operators, which in broken_operators():
        checks = list(noise_checks(operated.words, operated.agreed(draws), seed, operators))
        yield replace(checks[which], case=f"{fault}: {checks[which].case}")
    yield from both_in_the_ledger()
    yield zeros_for_shares()


def broken_operators() -> Iterator[tuple[str, AuditedOperators, int]]:
    """Yield faults of operators, and the check that has to find each."""
    yield "a helper that adds nothing", AuditedOperators(helper=_silent), _HELPER
    yield "a leader that adds nothing", AuditedOperators(leader=_silent), _LEADER
    yield "a helper with the same noise in two sums", AuditedOperators(helper=_again), _APART
    yield "a leader with the same noise in two sums", AuditedOperators(leader=_again), _APART
    same = AuditedOperators(helper=_again, leader=_again)
    yield "two operators with the same noise", same, _APART
    less = AuditedOperators(lambda: _OtherNoise(_noise_of_one_sum))
    yield "the noise of a sum of another phase and length", less, _HELPER
    yield "the share of one of n' phones", AuditedOperators(lambda: _OtherNoise(_share)), _HELPER
    yield "noise drawn once a list is there", AuditedOperators(_LateNoise), _EARLY


def broken_phases() -> Iterator[Check]:
    """Break operators in ways that no sum by itself shows, and let whole phones play with them."""
    parameters = small(PHASES[_PLAYED])
    sums = sum(isinstance(part, SecureSum) for part in parameters.plan().parts)

    def silent_at_last(number: int) -> RandomBytes:
        """Return a source of noise for the first sums of a phase, and of none for the last."""
        return bytes if number % sums == sums - 1 else os.urandom

    def each_phase(number: int) -> RandomBytes:
        """Return a source that begins anew in every phase."""
        return keyed(bytes(KEY_BYTES), number % sums)

    def each_sum(number: int) -> RandomBytes:
        """Return a source that begins anew in every sum, and never in the same way."""
        return keyed(bytes(KEY_BYTES), number)

    for fault, operators, found in (
        ("a helper silent in one sum", AuditedOperators(helper=silent_at_last), "helper adds"),
        ("a leader silent in one sum", AuditedOperators(leader=silent_at_last), "leader adds"),
        ("a helper's noise of the phase before", AuditedOperators(helper=each_phase), "two sums"),
        ("a leader's noise of the phase before", AuditedOperators(leader=each_phase), "two sums"),
        (
            "one source for both operators",
            AuditedOperators(helper=each_sum, leader=each_sum),
            "two operators",
        ),
    ):
        checks = audit_noise(fault, play(parameters, AuditedPhones(operators=operators)))
        yield next(each for each in checks if found in each.case.removeprefix(fault))


def both_in_a_phones_ledger() -> Finding:
    """Let phones enter in their ledgers what both operators' noise together allows."""
    expenses = DiscoveryParameters.expenses

    def of_both(self: DiscoveryParameters, weight: int, *recordings: int | None) -> Any:
        changed = ("cells_noise", "labels_noise")
        noisier = {name: math.sqrt(2) * getattr(self, name) for name in changed}
        return expenses(msgspec.structs.replace(self, **noisier), weight, *recordings)

    with replaced(DiscoveryParameters, expenses=of_both):
        seen = play(small(PHASES[_PLAYED]))
    *_, of_phone = ledger("both operators' noise in a phone's ledger", seen)
    return of_phone


def weak_proofs() -> Iterator[Check]:
    """Let phones prove their ballots with nothing that hides them, or with the same randomness."""

    def again(system: RandomBytes) -> RandomBytes:
        """Return a source whose bytes for shares and proofs are the same in all reports."""
        kept = system(Prio3Multihot.rand_bytes)
        return lambda size: kept if size == len(kept) else system(size)

    bare = list(audit_proved_ballots(WeakProofs(blinding=np.zeros_like)))
    same = list(audit_proved_ballots(WeakProofs(source=again)))
    for fault, checks in (
        ("proofs that hide nothing", [*bare[:2], bare[-1]]),
        ("the same randomness in all reports", same[2:4]),
    ):
        for check in checks:
            yield replace(check, case=f"{fault}: {check.case}")


def _silent(number: int) -> RandomBytes:
    """Return a source of zeros, of which every draw is 0."""
    return bytes


def _again(number: int) -> RandomBytes:
    """Return a source that begins anew in every sum."""
    return keyed(bytes(KEY_BYTES), "noise")


def _noise_of_one_sum(parameters: TwoOperatorParameters) -> Whole:
    """Draw as for a phase that has one sum of cells, of twice the length, and not two."""
    noise = noises(2.0, DELTA, sums=1, label_share=0.5, cells=40, dimensions=16, rows=3)
    return WholeGaussian.of((noise.cells * GRID) ** 2).drawn(parameters.length)


def _share(parameters: TwoOperatorParameters) -> Whole:
    """Draw what one of n' phones would add."""
    noise = parameters.noise
    assert isinstance(noise, WholeGaussian)  # noqa: S101
    shared = SkellamShares(noise.variance, shares_of(PHASES["secure-sum route"]))
    return shared.share(parameters.length)


class _OtherNoise(MemoryBook):
    """A book in which the noise of an offer becomes another one."""

    def __init__(self, drawn: Callable[[TwoOperatorParameters], Whole]) -> None:
        super().__init__()
        self._drawn = drawn

    @override
    def offer(self, sum_id: bytes, record: Record, secret: Secret) -> None:
        noise = self._drawn(record.terms.parameters).astype("<i8").tobytes()
        super().offer(sum_id, record, secret._replace(noise=noise))


class _LateNoise(MemoryBook):
    """A book that draws noise anew whenever a list has come, until the first number is even."""

    @override
    def secret(self, sum_id: bytes) -> Secret | None:
        kept, record, noise = super().secret(sum_id), self.record(sum_id), np.ones(1, dtype="<i8")
        if kept is None or record is None:
            return None
        terms = record.terms.parameters
        while noise[0] % 2:
            noise = terms.noise.drawn(terms.length).astype("<i8")
        return kept._replace(noise=noise.tobytes())


def both_in_the_ledger() -> Iterator[Finding]:
    """Make promises by both operators' noise, of which each knows its own."""
    for step, mechanism, parameters, proved in sums_of_operators():
        if proved:
            continue  # a proof changes nothing of the noise
        law = counted_on(mechanism, parameters).law
        match mechanism:
            case VectorSum():
                sold: Any = replace(
                    mechanism, noise_multiplier=math.sqrt(2) * mechanism.noise_multiplier
                )
                difference = spread(mechanism, Unit.PHONE, 1)
            case VoteSum():
                sold = replace(mechanism, deviation=math.sqrt(2) * mechanism.deviation)
                difference = worst(mechanism, Unit.PHONE)
            case BallotSum():
                sold = replace(mechanism, epsilon=mechanism.epsilon / math.sqrt(2))
                difference = differences_of(step, parameters)[Unit.PHONE]
        case = f"{step}: both operators' noise in the ledger"
        yield vote_finding(sold, case, Unit.PHONE, difference_loss(law, difference, STEP))


@dataclass(frozen=True)
class _Zeros(BallotSum):
    """A vote in which phones add zeros, as by two operators, though no operator adds noise."""

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> Any:
        """Draw nothing."""
        return laplace(self.scale, None).share(size, random)


def zeros_for_shares() -> Check:
    """Let phones add zeros in a sum whose noise is theirs."""
    case = "phones that add zeros where nobody else adds noise"
    return noise_check(case, {900: _Zeros(0.5, 3, 900)})
