"""Inputs of the networks of Yang et al. (Interspeech 2021, section 4.1): 80 mel bands, 13 MFCC.

Classifiers see the bands, 100 frames per second by a transform of 1,024 points; the autoencoder
sees the cepstrum of the same. The paper does not state the range of levels or the mel scale: both
are those of `spectrogram`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earshot_models.generators.spectrogram import SpectrogramSettings
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

PAPER = SpectrogramSettings(rate=16000, frames=100, bands=80, window=1024)
"""A second at 16 kHz as 100 frames of 80 bands, for `spectrogram.log_mel`."""

COEFFICIENTS = 13


def mfcc(
    pictures: NDArray[np.floating],
    settings: SpectrogramSettings = PAPER,
    coefficients: int = COEFFICIENTS,
) -> NDArray[np.float32]:
    """Return the first numbers of each frame's cepstrum.

    The cepstrum is the orthonormal cosine transform of the decibels.

    Args:
        pictures: Pictures, (n, frames, bands) in [-1, 1], see `spectrogram.log_mel`.
        settings: Settings of the pictures.
        coefficients: Number of coefficients, at most that of the bands.

    Returns:
        float32 (n, frames, coefficients), in decibels.

    Raises:
        InvalidInputError: if pictures have another shape, or are not finite.
        InvalidParametersError: if the number of coefficients is not 1 to that of the bands.
    """
    from scipy.fft import dct

    checks.whole("coefficients", coefficients, 1, settings.bands)
    given = np.asarray(pictures)
    if given.ndim != 3 or given.shape[1:] != settings.shape or not np.isfinite(given).all():
        raise InvalidInputError(
            f"pictures of shape {given.shape}: must be n × {settings.frames} × {settings.bands}, "
            "finite numbers"
        )
    span = settings.ceiling - settings.floor
    decibels = settings.floor + (given.astype(np.float64) + 1) / 2 * span
    found = dct(decibels, type=2, norm="ortho", axis=-1)
    return np.asarray(found[..., :coefficients], dtype=np.float32)
