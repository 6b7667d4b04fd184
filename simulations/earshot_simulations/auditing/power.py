"""Power of an audit: the smallest error detected with a probability of at least .99.

The power of a test follows from its draws, its cells and its level. An exact line detects
everything beyond its bracket.
"""

from __future__ import annotations

import functools
import math

from earshot_simulations.auditing.proportions import clopper_pearson

POWER = 0.99
EXACTLY = "exact: any"
_BISECTIONS = 40
_LARGEST = 50.0
"""An ε that trials cannot distinguish from a larger one."""


def of_tries(tries: int) -> str:
    """Return how rare an error among this many random inputs may be."""
    return f"an error on {_percent(1 - (1 - POWER) ** (1 / tries))} of such inputs"


def of_repeats(keys: int, most: int) -> str:
    """Return how often a byte must repeat to be detected, if more than `most` are rejected."""
    from scipy.stats import beta

    share = float(beta.ppf(POWER, most + 1, keys - most))
    return f"a byte that has one value in {_percent(share)} of the keys"


@functools.lru_cache(maxsize=256)
def of_fit(cells: int, draws: int, level: float) -> str:
    """Return the total variation, between cells, that Pearson's χ² test detects.

    With p and q on the cells, N Σ (p − q)²/q is the noncentrality, and Σ (p − q)²/q is at least
    the square of twice the total variation (Cauchy and Schwarz).

    Args:
        cells: Cells into which draws are counted.
        draws: Number N of draws.
        level: P-value below which a law is rejected.
    """
    from scipy.stats import chi2, ncx2

    limit = chi2.isf(level, cells - 1)
    low, high = 0.0, 2 * limit + 100
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if ncx2.sf(limit, cells - 1, middle) >= POWER else (middle, high)
    return f"a law {math.sqrt(high / draws) / 2:.2g} away (total variation)"


def of_kolmogorov(draws: int, level: float) -> str:
    """Return the distance that the Kolmogorov–Smirnov test detects, by Massart's bound."""
    away = sum(math.sqrt(math.log(2 / each) / (2 * draws)) for each in (level, 1 - POWER))
    return f"a law {away:.2g} away (largest difference of distribution functions)"


def of_correlation(numbers: int, deviations: float) -> str:
    """Return the correlation that is detected, if one beyond these deviations is rejected."""
    least = (deviations + _normal()) / math.sqrt(numbers)
    return f"a correlation of {least:.2g}" if least < 1 else "none"


def of_rate(rate: float, draws: int, deviations: float) -> str:
    """Return the bias of coins that is detected, if one beyond these deviations is rejected."""
    off = (deviations + _normal()) * math.sqrt((1 - rate) / rate / draws)
    return f"a rate {_percent(off)} off"


@functools.lru_cache(maxsize=64)
def of_trials(trials: int, confidence: float, delta: float, limit: float) -> str:
    """Return the ε that `sampling.sampled_epsilon` detects with half of its trials.

    This is the best case: a single event with P = e^ε/(1 + e^ε) on one data set and 1 − P on its
    neighbour. An ε that is spread over many events must be larger to be detected.

    Args:
        trials: Trials on each of two data sets.
        confidence: Confidence of the bound.
        delta: Value of δ.
        limit: Proven ε.
    """
    from scipy.stats import binom

    half, error, miss = trials // 2, (1 - confidence) / 2, (1 - POWER) / 2
    low, high = limit, _LARGEST
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        chance = 1 / (1 + math.exp(-middle))
        least, _ = clopper_pearson(int(binom.ppf(miss, half, chance)), half, error)
        _, most = clopper_pearson(int(binom.isf(miss, half, 1 - chance)), half, error)
        seen = least > delta and math.log((least - delta) / most) > limit
        low, high = (low, middle) if seen else (middle, high)
    return f"ε from {high:.3g}, where one event shows it" if high < _LARGEST else "none"


def _normal() -> float:
    from scipy.stats import norm

    return float(norm.ppf(POWER))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
