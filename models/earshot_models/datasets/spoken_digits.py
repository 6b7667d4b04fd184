"""Free Spoken Digit Dataset: Jackson and others, github.com/Jakobovski."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, name_parts, sound_files
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = "DIGIT_SPEAKER_TAKE.wav, in the folder or in recordings/"

NAME = re.compile(r"([0-9])_([A-Za-z]+)_(\d+)")
"""Pattern of the name of a file, without its suffix."""

_TEST_TAKES = 5


def load(folder: Path) -> Dataset:
    """List the clips; takes 0 to 4 are the official test set.

    The group of a clip is its speaker.

    Raises:
        DatasetError: A file has another name, or there is no file.
    """
    clips = []
    for path in sound_files(sound_folder(folder), "*", SOUND_SUFFIXES):
        digit, speaker, take = name_parts(path, NAME, LAYOUT)
        split = "test" if int(take) < _TEST_TAKES else "train"
        clips.append(Clip(path, digit, speaker, split=split, attributes={"take": take}))
    return Dataset.of_files("Free Spoken Digits", clips, folder, LAYOUT)


def sound_folder(folder: Path) -> Path:
    """Return the sub-folder `recordings` if it exists, otherwise the folder itself."""
    inside = folder / "recordings"
    return inside if inside.is_dir() else folder
