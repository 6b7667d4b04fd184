"""How the interim encoder was fitted: `python -m earshot_simulations.interim_encoder`.

It hears public, synthetic sound only: every scene of `earshot_models.soundscapes`, and coloured
noise and tones, so that sounds of no scene keep apart too. No label is used. Everything follows
from `SEED`.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import earshot_client
from earshot_client.encoder import DIMENSIONS, LogMelEncoder, statistics
from earshot_client.features import SAMPLE_RATE, WINDOW
from earshot_models import principal_components
from earshot_models.soundscapes import SCENES, synthesize

SEED = 20_240_801
"""Seeds the sound that the encoder is fitted on; measure it on other seeds."""

CLIPS = 300
"""Seconds of each scene, of noise and of tones."""

WHITENING = 0.3
"""Between keeping the variances and full whitening, which lets faint components blur the scenes."""


def fit_interim_encoder(seed: int = SEED) -> LogMelEncoder:
    """Fit the interim encoder; takes a few seconds.

    Args:
        seed: of the synthetic sound.

    Returns:
        The encoder, its weights not yet rounded to the file's float16.
    """
    generator = np.random.default_rng(seed)
    heard = [statistics(synthesize(scene, CLIPS, generator)) for scene in SCENES]
    heard += [statistics(_coloured_noise(generator)), statistics(_tones(generator))]
    components = principal_components.fit(np.concatenate(heard), DIMENSIONS, WHITENING)
    return LogMelEncoder(components.mean, components.weights)


def main() -> None:
    """Write the packaged file and print the digest that `earshot_client.encoder` must hold."""
    data = fit_interim_encoder().to_bytes()
    path = Path(earshot_client.__file__).parent / "data" / "interim_encoder.npz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    sys.stdout.write(f"{path}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}\n")


def _coloured_noise(generator: np.random.Generator) -> NDArray[np.float32]:
    """Noise with slopes from -12 to 6 decibels per octave, float32 (CLIPS, 8000)."""
    octaves = np.log2(np.maximum(np.arange(WINDOW // 2 + 1), 30) / 1000)
    slope = generator.uniform(-12, 6, (CLIPS, 1))
    white = np.fft.rfft(generator.standard_normal((CLIPS, WINDOW)))
    return np.fft.irfft(white * 10 ** (slope * octaves / 20), WINDOW).astype(np.float32)


def _tones(generator: np.random.Generator) -> NDArray[np.float32]:
    """Tones of 80 Hz to 3.5 kHz in white noise 20 to 40 decibels below, float32 (CLIPS, 8000)."""
    hertz = np.exp(generator.uniform(np.log(80), np.log(3500), (CLIPS, 1)))
    noise = 10 ** (generator.uniform(-40, -20, (CLIPS, 1)) / 20)
    tone = np.sin(2 * np.pi * hertz * np.arange(WINDOW) / SAMPLE_RATE)
    return (tone + noise * generator.standard_normal((CLIPS, WINDOW))).astype(np.float32)


if __name__ == "__main__":
    main()
