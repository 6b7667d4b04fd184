"""Compare trees of arrays bit by bit."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def same_bits(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
