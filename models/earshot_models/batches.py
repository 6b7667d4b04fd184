"""What a function makes of many examples, without all of them on the device at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

_SIZE = 256


def in_batches(function: Callable[[Any], Any], rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Apply a layer or model to batches, and put the results together.

    Args:
        function: (batch, …) → a tensor (batch, …), each row from its own.
        rows: (examples, …), at least one.

    Returns:
        float32 (examples, …).
    """
    parts = (function(rows[at : at + _SIZE]) for at in range(0, len(rows), _SIZE))
    return np.concatenate([keras.ops.convert_to_numpy(part) for part in parts])
