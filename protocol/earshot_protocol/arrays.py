"""Array types that all packages share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
"""Array of float64."""
Whole = npt.NDArray[np.int64]
"""Array of int64."""
