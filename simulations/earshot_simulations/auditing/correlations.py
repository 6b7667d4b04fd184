"""Tests for correlations between noises, entry by entry."""

from __future__ import annotations

import math

import numpy as np

from earshot_protocol.arrays import Whole
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check

_DEVIATIONS = 6.0
_ALARM = 2e-9
"""Probability of independent noise beyond `_DEVIATIONS`, on either side."""


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
