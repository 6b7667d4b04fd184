"""Sound as WAV: mono, 16 bits, which every browser accepts."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.spectrum import RATES

_LARGEST = 2**15 - 1


def write(path: Path, samples: NDArray[np.float32], rate: int) -> None:
    """Write a WAV file, whole or not at all.

    Args:
        path: Path of the file.
        samples: Samples, (samples,) with full scale at ±1; louder ones are clipped.
        rate: Samples per second.

    Raises:
        InvalidInputError: The shape differs, or samples are not finite.
        InvalidParametersError: The rate is out of range.
    """
    checks.whole("rate", rate, *RATES)
    given = np.asarray(samples, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all():
        raise InvalidInputError(f"samples of shape {given.shape}: must be finite, in one row")
    whole = np.rint(np.clip(given, -1, 1) * _LARGEST).astype("<i2")
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(whole.tobytes())
    replace_file(path, content.getvalue())
