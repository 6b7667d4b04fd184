"""Sums of ballots and of histograms, audited with the noise shares that phones really draw."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.mechanisms import BallotSum, SumMechanism, Unit
from earshot_simulations.auditing import power
from earshot_simulations.auditing.crowds import audit_crowds, shares_of
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique
from earshot_simulations.auditing.laws import Law, share_law
from earshot_simulations.auditing.losses import Losses, composed, shifted
from earshot_simulations.auditing.neighbours import Differences, Vector
from earshot_simulations.auditing.proofs import DELTA, finding

STEP = 1e-5
_DOUBT = 1e-13
CONVOLVED = Technique(EXACT, "exact: shares as their sampler draws them, convolved")


@functools.lru_cache(maxsize=32)
def noise_law(mechanism: SumMechanism, shares: int) -> Law:
    """Return the law of the noise that phones add to one entry, read from their sampler."""
    law = share_law(mechanism.noise_share).times(shares)
    # Beyond that, a law that was convolved by Fourier transforms holds their rounding errors alone.
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
    """Audit one vote or histogram, with exactly n' shares of noise and with those of all phones.

    Args:
        step: Name of the private step.
        mechanism: Mechanism of the vote.
        differences: Differences of neighbours, as phones' own code makes them.
        parameters: Parameters of the phase.
    """
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
    for shares in dict.fromkeys((shares_of(parameters), parameters.phones)):
        law = noise_law(mechanism, shares)
        for unit, difference in differences.items():
            yield vote_finding(
                mechanism, f"{case}, {shares} shares", unit, difference_loss(law, difference)
            )


def vote_finding(mechanism: SumMechanism, case: str, unit: Unit, losses: Losses) -> Finding:
    """Set what a sum is said and proven to cost beside what it costs."""
    return finding(case, unit, mechanism, losses.epsilon(DELTA), CONVOLVED)
