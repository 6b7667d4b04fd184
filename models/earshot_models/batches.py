"""Application of a function to many examples, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

_SIZE = 256


def in_batches(function: Callable[[Any], Any], rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Apply a layer or model batch by batch, and concatenate the results.

    Args:
        function: Function from (batch, …) to a tensor (batch, …) that treats each row
            independently.
        rows: Examples, (examples, …), at least one.

    Returns:
        float32 (examples, …).
    """
    parts = (function(rows[at : at + _SIZE]) for at in range(0, len(rows), _SIZE))
    return np.concatenate([keras.ops.convert_to_numpy(part) for part in parts])
