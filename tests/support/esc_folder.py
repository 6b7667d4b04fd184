"""A folder that is laid out as ESC-10 is, of synthesized scenes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile

from earshot_client.encoder import default_encoder, rate_of
from earshot_models.soundscapes import synthesize


def write_esc_folder(root: Path, scenes: Sequence[str], clips: int, seconds: int) -> Path:
    """Clips of every scene, each a recording of its own, by turns of fold 1 and 2.

    They have all that the default encoder hears.
    """
    rate = rate_of(default_encoder())
    generator = np.random.default_rng(1)
    for number, scene in enumerate(scenes):
        (root / scene).mkdir()
        for clip in range(clips):
            path = root / scene / f"{1 + clip % 2}-{100 * number + clip}-A.wav"
            sound = synthesize(scene, seconds, generator, rate).ravel()
            soundfile.write(path, sound, rate)
    return root
