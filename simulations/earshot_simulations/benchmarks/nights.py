"""Nights until some sums are done, for phones that visit at most once a night.

A step is open for some nights and then closed for good; phones that have not visited by then leave
the sum, and a phase with too few phones left fails. Steps are as short as all simulated phases
allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.secure_sum.interface import Asks, SummationName
from earshot_protocol.summations import SUMMATIONS

RUNS = 200
"""Simulated phases that must all succeed at a length of a step."""
MOST_NIGHTS = 50
"""Largest number of nights tried for a step."""
COMPARED = (SummationName.BELL, SummationName.TWO_OPERATORS)


def benchmark(
    presences: Iterable[float],
    phones: int = 1000,
    dropout: float = 0.2,
    sums: int = 3,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Simulate phases of each summation at each presence.

    Args:
        presences: Probabilities that a phone visits in a night, independent of other nights.
        phones: Phones of a phase, n.
        dropout: Largest fraction that may vanish during a sum, ρ.
        sums: Sums of a phase, one after the other; all phones begin each.
        seed: Seed of the visits.

    Returns:
        A row for each presence and summation: nights of a step, nights in all, and the smallest
        share of phones that stayed in any sum of the simulated phases.

    Raises:
        InvalidParametersError: A value is out of range, or no step of at most 50 nights is enough.
    """
    checks.whole("phones", phones, 3, 10**6)
    checks.share("dropout", dropout)
    checks.whole("sums", sums, 1, 100)
    return [
        _shortest(summation, checks.probability("present", present), phones, dropout, sums, seed)
        for present in presences
        for summation in COMPARED
    ]


def steps_of(summation: SummationName) -> int:
    """Return the number of visits of a phone in one sum."""
    return sum(each.asks is not Asks.HELPER for each in SUMMATIONS[summation].rounds)


def least_staying(
    steps: int, nights: int, present: float, phones: int, sums: int, seed: int
) -> int:
    """Return the smallest number of phones that stay to the end of any sum of `RUNS` phases.

    Args:
        steps: Steps of a sum.
        nights: Nights for which a step is open.
        present: Probability that a phone visits in a night.
        phones: Phones of a phase.
        sums: Sums of a phase.
        seed: Seed of the visits.
    """
    generator = np.random.default_rng([seed, steps, nights])
    least = phones
    for _ in range(RUNS * sums):
        staying = phones
        for _ in range(steps):
            visits = generator.random((staying, nights)) < present
            staying = int(visits.any(axis=1).sum())
        least = min(least, staying)
    return least


def _shortest(
    summation: SummationName, present: float, phones: int, dropout: float, sums: int, seed: int
) -> dict[str, Any]:
    steps, needed = steps_of(summation), phones - math.floor(round(dropout * phones, 6))
    for nights in range(1, MOST_NIGHTS + 1):
        staying = least_staying(steps, nights, present, phones, sums, seed)
        if staying >= needed:
            return {
                "summation": summation.value,
                "present": present,
                "steps": steps,
                "nights_per_step": nights,
                "nights": sums * steps * nights,
                "least_staying": staying / phones,
            }
    raise InvalidParametersError(
        f"present={present:g}, dropout={dropout:g}: steps of {MOST_NIGHTS} nights are not enough; "
        "give a larger dropout"
    )
