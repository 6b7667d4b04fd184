"""A folder of synthesized sound that is laid out as taggers' studies expect it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import soundfile

from earshot_protocol.spectrum import NARROW

RATE = NARROW.rate
PITCHES = (300, 500, 700, 900)
LABELS = ("hiss", "0", "whistle", "1")
"""Environments and digits by turns; the pitch of each is in the same order as written below."""


def tone(pitch: float, seconds: float) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * RATE)) / RATE)


def write_tagging_folder(root: Path, recordings: int = 3, spoken: float = 1.0) -> Path:
    """Two environments with recordings in each fold, two digits of seconds, and a background."""
    for number, name in enumerate(("hiss", "whistle")):
        (root / "esc10" / name).mkdir(parents=True)
        for fold, recording, take in itertools.product((1, 2, 3, 4), range(recordings), "AB"):
            path = root / "esc10" / name / f"{fold}-{100 * number + 10 * fold + recording}-{take}"
            soundfile.write(f"{path}.wav", tone(PITCHES[number], 2), RATE)
    (root / "fsdd").mkdir()
    for digit, take in itertools.product((0, 1), range(24)):
        path = root / "fsdd" / f"{digit}_ada_{take}.wav"
        soundfile.write(path, tone(PITCHES[2 + digit], spoken), RATE)
    (root / "free_sounds" / "doors").mkdir(parents=True)
    for number in range(8):
        soundfile.write(root / "free_sounds" / "doors" / f"{number}.wav", tone(1500, 1), RATE)
    return root
