"""Training clips of generators: pictures from −1 to 1, validated before hours of training."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_studies.pate_aae.generators.settings import checked_shape

Clips = NDArray[np.float32]


def checked_clips(clips: NDArray[np.floating], least: int = 2) -> Clips:
    """Check training clips and return them as float32.

    Args:
        clips: Clips, (clips, frames, bands) in [−1, 1].
        least: Least number of clips.

    Raises:
        InvalidInputError: The clips have another shape, are too few, or are not finite numbers from
            −1 to 1.
    """
    given = np.asarray(clips)
    if given.ndim != 3 or given.dtype.kind != "f":
        raise InvalidInputError(
            f"clips: {given.dtype} of shape {given.shape}; must be floating-point numbers, "
            "(clips, frames, bands)"
        )
    checked_shape((given.shape[1], given.shape[2]))
    if len(given) < least:
        raise InvalidInputError(f"{len(given)} clips: at least {least} are needed")
    wrong = np.flatnonzero(~np.isfinite(given).all(axis=(1, 2)))
    if len(wrong):
        raise InvalidInputError(
            f"{len(wrong)} of {len(given)} clips hold numbers that are not finite; the first is "
            f"clip {wrong[0]}"
        )
    outside = np.flatnonzero((np.abs(given) > 1).any(axis=(1, 2)))
    if len(outside):
        raise InvalidInputError(
            f"{len(outside)} of {len(given)} clips reach beyond −1 and 1; the first is clip "
            f"{outside[0]}: scale them, as `spectrogram` does"
        )
    return np.ascontiguousarray(given, dtype=np.float32)


def digest(clips: Clips) -> str:
    """Return a SHA-256 of these clips in this order, in hexadecimal."""
    whole = hashlib.sha256(repr(clips.shape).encode())
    whole.update(clips.astype("<f4").tobytes())
    return whole.hexdigest()
