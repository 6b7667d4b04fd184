"""Removal of non-repeating sound, in music mostly the voice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.spectrum import SAMPLE_RATE

_FRAME = 0.064
"""Seconds in a frame."""

_HOPS = 4
"""Hops per frame."""

_ALIKE = 20
_SHARPNESS = 2.0


def remove_voice(sound: NDArray[np.float32], rate: int = SAMPLE_RATE) -> NDArray[np.float32]:
    """Keep the part of each frame that its most similar frames share.

    REPET-SIM: Rafii and Pardo, Music/Voice Separation Using the Similarity Matrix (ISMIR 2012): the
    repeating background is the median over similar frames, the mask a Wiener filter. It replaces
    the trained separator of the thesis (section 9.2.3) and removes more: any isolated event, a bark
    as well as a word.

    Args:
        sound: Samples, float32 (samples,).
        rate: Samples per second.

    Returns:
        float32 of the same length; the sound itself if it is shorter than 2 s.
    """
    from scipy.signal import ShortTimeFFT
    from scipy.signal.windows import hann

    if len(sound) < 2 * rate:
        return sound
    frame = round(_FRAME * rate)
    hop = frame // _HOPS
    transform = ShortTimeFFT(hann(frame, sym=False), hop, rate)
    spectrum = transform.stft(sound)
    magnitude = np.abs(spectrum)
    lengths = np.maximum(np.linalg.norm(magnitude, axis=0), 1e-9)
    likeness = (magnitude / lengths).T @ (magnitude / lengths)
    frames = np.arange(likeness.shape[0])
    # Neighbouring frames within a second are similar in any sound.
    likeness[np.abs(frames[:, np.newaxis] - frames) < rate // hop] = -np.inf
    alike = np.argsort(likeness, axis=1)[:, -_ALIKE:]
    background = np.minimum(np.median(magnitude[:, alike], axis=2), magnitude)
    repeating, rest = background**_SHARPNESS, (magnitude - background) ** _SHARPNESS
    mask = repeating / np.maximum(repeating + rest, np.finfo(float).tiny)
    return np.asarray(transform.istft(spectrum * mask, k1=len(sound)), dtype=np.float32)
