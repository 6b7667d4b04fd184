"""Types of arrays, by the names that all packages use for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
"""Real numbers."""
Whole = npt.NDArray[np.int64]
"""Whole numbers."""
