"""Costs by votes of Muschiol (2021), from the printed formulas."""

from __future__ import annotations

from typing import Any

import mpmath


def theorem(q: Any, changed: int, variance: Any, order: float) -> Any:
    """Return the bound of Theorems 11 and 14 under the conditions of section 2.3.4."""
    usual = order * changed / (2 * variance)
    mu2 = mpmath.sqrt(2 * variance * mpmath.log(1 / q) / changed)
    mu1 = mu2 + 1
    one, two = (changed * mu / (2 * variance) for mu in (mu1, mu2))
    if not (mu1 >= order and mu2 > 1 and q * mpmath.exp(two) < 1):
        return usual
    if q > mpmath.exp((mu2 - 1) * two) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
        return usual
    a = (1 - q) / (1 - (q * mpmath.exp(two)) ** ((mu2 - 1) / mu2))
    b = mpmath.exp(one) / q ** (1 / (mu1 - 1))
    found = mpmath.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
    return min(found, usual)
