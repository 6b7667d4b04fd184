"""Sources of random bytes whose every bit a test knows, and whether samples fit a law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

ALPHA_LIMIT = 1e-4  # of a goodness-of-fit test; seeds are fixed, so a pass stays a pass


def source(seed: int) -> Callable[[int], bytes]:
    return np.random.default_rng(seed).bytes


def words(*values: int) -> Callable[[int], bytes]:
    """A source that hands out these 64-bit words in turn, then fails."""
    stream = b"".join(value.to_bytes(8, "little") for value in values)
    position = 0

    def take(count: int) -> bytes:
        nonlocal position
        position += count
        assert position <= len(stream), "more random bytes drawn than expected"
        return stream[position - count : position]

    return take


def fit_p_value(samples: np.ndarray, pmf: np.ndarray, support: np.ndarray) -> float:
    """χ² test against a pmf on a symmetric support, tails pooled until 10 are expected."""
    expected = pmf * len(samples)
    inner = support[expected >= 10]
    low, high = inner.min(), inner.max()
    pooled = np.clip(samples, low, high)
    observed = np.bincount(pooled - low, minlength=high - low + 1)
    inside = (support >= low) & (support <= high)
    cells = expected[inside]
    cells[0] += expected[support < low].sum()
    cells[-1] += expected[support > high].sum()
    return float(stats.chisquare(observed, cells * len(samples) / cells.sum()).pvalue)


def frequent(found: Any, probability: float) -> bool:
    """Whether that share of the draws is likely for this probability."""
    hits, draws = int(np.sum(found)), int(np.size(found))
    return bool(stats.binomtest(hits, draws, probability).pvalue > ALPHA_LIMIT)
