"""Sums of ballots, audited with the noise that phones or operators draw."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.mechanisms import BallotSum, SumMechanism, Unit
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeLaplace
from earshot_simulations.auditing import power
from earshot_simulations.auditing.crowds import audit_crowds, shares_of
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique
from earshot_simulations.auditing.laws import Law, share_law_of
from earshot_simulations.auditing.losses import Losses, composed, shifted
from earshot_simulations.auditing.neighbours import Differences, Vector
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.samplers import discrete_gaussian_law, discrete_laplace_law

STEP = 1e-5
_DOUBT = 1e-13
_CONVOLVED = Technique(EXACT, "exact: shares as their sampler draws them, convolved")
_WHOLE = Technique(EXACT, "exact: the law of the noise, against which operators' draws are tested")


class SeenNoise(NamedTuple):
    """Law of the noise on a visible entry, and a description of its source."""

    words: str
    law: Law


def counted_on(mechanism: SumMechanism, parameters: Parameters) -> SeenNoise:
    """Return the guaranteed noise: that of n' phones, or of one operator."""
    if mechanism.honest_survivors is None:
        return SeenNoise("one operator's noise", operator_law(entry_noise(mechanism)))
    shares = shares_of(parameters)
    return SeenNoise(f"{shares} shares", noise_law(mechanism, shares))


def all_noise(mechanism: SumMechanism, parameters: Parameters) -> SeenNoise:
    """Return the total noise as an outsider sees it: of all phones, or of both operators."""
    if mechanism.honest_survivors is None:
        return SeenNoise("both operators' noise", _both_law(entry_noise(mechanism)))
    return SeenNoise(f"{parameters.phones} shares", noise_law(mechanism, parameters.phones))


def technique_of(mechanism: SumMechanism) -> Technique:
    """Return how an exact loss under the noise of a sum is measured."""
    return _WHOLE if mechanism.honest_survivors is None else _CONVOLVED


def entry_noise(mechanism: SumMechanism) -> NoiseOfOperators:
    """Return the noise of one operator on an entry."""
    noise = mechanism.entry_noise
    assert isinstance(noise, NoiseOfOperators)  # noqa: S101
    return noise


@functools.lru_cache(maxsize=16)
def operator_law(noise: NoiseOfOperators) -> Law:
    """Return the law of one operator's noise on an entry, by its definition."""
    if isinstance(noise, WholeLaplace):
        law = discrete_laplace_law(noise.scale)
    else:
        law = discrete_gaussian_law(math.sqrt(noise.variance))
    return replace(law, doubt=_DOUBT)


@functools.lru_cache(maxsize=16)
def _both_law(noise: NoiseOfOperators) -> Law:
    law = operator_law(noise)
    return law.plus(law)


@functools.lru_cache(maxsize=32)
def noise_law(mechanism: SumMechanism, shares: int) -> Law:
    """Return the law of the noise that phones add to one entry, read from their sampler."""
    law = share_law_of(mechanism).times(shares)
    # Tails below the doubt are rounding errors of Fourier transforms alone.
    return law if law.doubt < _DOUBT else law.trimmed(law.doubt)


def difference_loss(law: Law, difference: Vector, step: float = STEP) -> Losses:
    """Return the loss of a vector with this noise on every entry, against a neighbour's."""
    sizes, counts = np.unique(np.abs(difference[difference != 0]), return_counts=True)
    return composed(
        shifted(law, int(size), step).times(int(count))
        for size, count in zip(sizes, counts, strict=True)
    )


def audit_ballots(
    step: str, mechanism: BallotSum, differences: Differences, parameters: Parameters
) -> Iterator[Result]:
    """Audit one vote, with the guaranteed and with the total noise.

    Args:
        step: Name of the private step.
        mechanism: Mechanism of the vote.
        differences: Differences of neighbours, computed by phones' own code.
        parameters: Parameters of the phase.
    """
    if mechanism.honest_survivors is not None:
        yield audit_crowds(step, parameters)
    case = f"{step}, ε = {mechanism.epsilon:g}, v = {mechanism.votes}"
    for unit, difference in differences.items():
        found, declared = int(np.abs(difference).sum()), mechanism.sensitivity(unit)
        yield Check(
            f"{step}: distance of neighbours, {unit}",
            f"at most {declared}",
            f"{found}",
            found <= declared,
            "ballots of small data sets and their neighbours",
            power.EXACTLY,
        )
    seen = (counted_on(mechanism, parameters), all_noise(mechanism, parameters))
    for words, law in dict(seen).items():
        for unit, difference in differences.items():
            losses = difference_loss(law, difference)
            yield vote_finding(mechanism, f"{case}, {words}", unit, losses)


def vote_finding(mechanism: SumMechanism, case: str, unit: Unit, losses: Losses) -> Finding:
    """Compare claimed, proven and measured ε of a sum."""
    return finding(case, unit, mechanism, losses.epsilon(DELTA), technique_of(mechanism))
