"""Noise of a crowd, by the audit's own count of the guaranteed phones.

That count, n' = ⌈(1 − ρ − γ) n⌉, is computed here from n, ρ and γ alone, in exact decimals: an
audit that took it from the product could not find an error in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.events import DiscreteLaplaceSum
from earshot_protocol.privacy.mechanisms import SumMechanism, Unit
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.laws import share_law_of

_SHORT = 1e-6
"""Share of the declared variance that may be lost to rounding."""
_CROWDS = ((400, 0.25, 0.05, 400), (500, 0.05, 0.05, 500), (1001, 0.1, 0.07, 800))
"""Crowds beside those of the audited phases: n, ρ, γ and the noise crowd."""


def least_shares(phones: int, dropout: float, corrupted: float) -> int:
    """Compute ⌈(1 − ρ − γ) n⌉ exactly."""
    stay = 1 - Fraction(str(float(dropout))) - Fraction(str(float(corrupted)))
    return math.ceil(stay * phones)


def shares_of(parameters: Parameters) -> int:
    """Count the phones whose noise is guaranteed: at most a phase's `noise_crowd`."""
    honest = least_shares(parameters.phones, parameters.dropout, parameters.corrupted)
    return min(honest, parameters.noise_crowd)


def audit_crowds(step: str, parameters: Parameters) -> Check:
    """Check the noise of one sum, in the phase's own crowd and in some others.

    Args:
        step: Name of the private step.
        parameters: Parameters of the phase.
    """
    crowds = [parameters]
    for phones, dropout, corrupted, most in _CROWDS:
        changes = {"phones": phones, "dropout": dropout, "corrupted": corrupted}
        crowds.append(msgspec.structs.replace(parameters, noise_crowd=most, **changes))
    sums: dict[int, Any] = {shares_of(each): each.plan().mechanisms[step] for each in crowds}
    return noise_check(step, sums)


def noise_check(case: str, sums: Mapping[int, SumMechanism]) -> Check:
    """Check that sums have the variance that is accounted for, if n' phones add their noise.

    Args:
        case: Description of the sum.
        sums: Mechanisms of the sum by n', as the audit counts it.
    """
    found = min(
        shares * share_law_of(each).variance / _declared(each) for shares, each in sums.items()
    )
    most = max(sums)
    return Check(
        f"{case}: the noise of n' = {', '.join(map(str, sums))} phones",
        "all the variance that is accounted for",
        f"{found:.6f} of it",
        found >= 1 - _SHORT,
        "n' by the audit's own formula, shares as their sampler draws them",
        f"exact: {_SHORT:g} less; one phone too many makes it {1 / (most + 1):.2g} less",
    )


def _declared(mechanism: SumMechanism) -> float:
    """Return the variance of the noise, by the event in a phone's ledger."""
    event: Any = mechanism.event(Unit.PHONE)
    if isinstance(event, DiscreteLaplaceSum):
        ratio = math.exp(-1 / event.scale)
        return 2 * ratio / (1 - ratio) ** 2
    return float(event.variance)
