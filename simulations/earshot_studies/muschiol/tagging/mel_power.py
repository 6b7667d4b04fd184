"""Mel power spectra, the input of taggers.

They are kept as powers, not as logarithms: the power of simultaneous sounds is, on average, the sum
of their powers, so mixtures can be made of spectra that were computed once per source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import RATES

FLOOR = 1e-6
"""Amount added to a power before its logarithm, about 50 dB below that of noise at a level of
0.1."""

_AT_ONCE = 256
"""Clips per call, so that the frames of a large set are never all in memory."""


@dataclass(frozen=True)
class MelSettings:
    """Settings by which sound becomes mel power.

    Attributes:
        rate: Samples per second.
        window: Samples of a Fourier transform.
        hop: Samples from one frame to the next.
        bands: Mel bands, from 0 Hz to half the rate.
        seconds: Length of a clip, in seconds.
    """

    rate: int
    window: int
    hop: int
    bands: int
    seconds: float

    def __post_init__(self) -> None:
        checks.whole("rate", self.rate, *RATES)
        checks.whole("window", self.window, 16)
        checks.whole("hop", self.hop, 1, self.window)
        checks.whole("bands", self.bands, 4)
        checks.positive("seconds", self.seconds, 3600)
        if self.samples < self.window:
            raise InvalidParametersError(
                f"seconds={self.seconds}: must be at least one window, {self.window / self.rate:g}"
            )

    @property
    def samples(self) -> int:
        """Samples of a clip."""
        return round(self.rate * self.seconds)

    @property
    def frames(self) -> int:
        """Frames of a clip; the first is centred on its first sample."""
        return 1 + self.samples // self.hop

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and bands of a clip's mel power."""
        return self.frames, self.bands


def mel_power(sound: NDArray[np.floating], settings: MelSettings) -> NDArray[np.float32]:
    """Compute mel power spectra of clips, by librosa (Slaney's mel scale, filters of unit area).

    Args:
        sound: Clips, (clips, samples) in [-1, 1], all of the settings' length.
        settings: Settings of the spectra.

    Returns:
        float32 (clips, frames, bands), not negative.

    Raises:
        InvalidInputError: Clips have another length, or samples are not finite.
    """
    import librosa

    clips = np.asarray(sound, dtype=np.float32)
    if clips.ndim != 2 or clips.shape[1] != settings.samples:
        raise InvalidInputError(
            f"sound of shape {clips.shape}: must be (clips, {settings.samples}), "
            f"{settings.seconds:g} s at {settings.rate} Hz"
        )
    if not np.isfinite(clips).all():
        raise InvalidInputError("sound: holds samples that are NaN or infinite")
    found = np.empty((len(clips), *settings.shape), dtype=np.float32)
    for start in range(0, len(clips), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        power = librosa.feature.melspectrogram(
            y=clips[part],
            sr=settings.rate,
            n_fft=settings.window,
            hop_length=settings.hop,
            n_mels=settings.bands,
        )
        found[part] = power.transpose(0, 2, 1)
    return found


def log_mel(power: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the logarithm that networks take, of the same shape."""
    logarithm: NDArray[np.float32] = np.log(np.asarray(power, dtype=np.float32) + FLOOR)
    return logarithm
