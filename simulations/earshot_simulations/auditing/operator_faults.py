"""Planted faults of the noise of two operators, and of what is promised for it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.overriding import override
from earshot_protocol.phases.discovery_budget import noises
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
from earshot_simulations.auditing.operators import (
    AuditedOperators,
    Whole,
    noise_checks,
    sums_of_operators,
)
from earshot_simulations.auditing.plans import PHASES, differences_of
from earshot_simulations.auditing.proofs import DELTA
from earshot_simulations.auditing.vectors import STEP, spread
from earshot_simulations.auditing.votes import worst

_HELPER, _LEADER, _APART, _EARLY = range(4)
"""Checks of operators in their order."""


def operator_faults(draws: int, seed: int) -> Iterator[Result]:
    """Plant every fault of operators.

    Args:
        draws: Entries of a sum.
        seed: Seed of phones' inputs.
    """
    step, mechanism, parameters = next(
        each for each in sums_of_operators() if isinstance(each[1], VectorSum)
    )
    for fault, operators, which in broken_operators():
        checks = noise_checks(step, mechanism, parameters, draws, seed, operators)
        check = list(checks)[which]
        yield replace(check, case=f"{fault}: {check.case}")
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
    less = AuditedOperators(lambda terms: _OtherNoise(_noise_of_one_sum().drawn(terms.length)))
    yield "the noise of a sum of another phase and length", less, _HELPER
    share = AuditedOperators(lambda terms: _OtherNoise(_share(terms)))
    yield "the share of one of n' phones", share, _HELPER
    yield "noise drawn once a list is there", AuditedOperators(_LateNoise), _EARLY


def _silent(number: int) -> RandomBytes:
    """Return a source of zeros, of which every draw is 0."""
    return bytes


def _again(number: int) -> RandomBytes:
    """Return a source that begins anew in every sum."""
    return keyed(bytes(KEY_BYTES), "noise")


def _noise_of_one_sum() -> WholeGaussian:
    """Return the noise of a phase that has one sum of cells, of twice the length, and not two."""
    noise = noises(2.0, DELTA, sums=1, label_share=0.5, cells=40, dimensions=16, rows=3)
    return WholeGaussian.of((noise.cells * GRID) ** 2)


def _share(parameters: TwoOperatorParameters) -> Whole:
    """Return what one of n' phones would add."""
    noise = parameters.noise
    assert isinstance(noise, WholeGaussian)  # noqa: S101
    shared = SkellamShares(noise.variance, shares_of(PHASES["secure-sum route"]))
    return shared.share(parameters.length)


class _OtherNoise(MemoryBook):
    """A book in which the noise of an offer becomes another one."""

    def __init__(self, noise: Whole) -> None:
        super().__init__()
        self._noise = noise.astype("<i8").tobytes()

    @override
    def offer(self, sum_id: bytes, record: Record, secret: Secret) -> None:
        super().offer(sum_id, record, secret._replace(noise=self._noise))


class _LateNoise(MemoryBook):
    """A book that draws noise anew whenever a list has come, until the first number is even."""

    def __init__(self, parameters: TwoOperatorParameters) -> None:
        super().__init__()
        self._parameters = parameters

    @override
    def secret(self, sum_id: bytes) -> Secret | None:
        kept, noise = super().secret(sum_id), np.ones(1, dtype=np.int64)
        while noise[0] % 2:
            noise = self._parameters.noise.drawn(self._parameters.length)
        return kept._replace(noise=noise.astype("<i8").tobytes()) if kept else None


def both_in_the_ledger() -> Iterator[Finding]:
    """Promise what both operators' noise would allow: one of them knows its own."""
    for step, mechanism, parameters in sums_of_operators():
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
