"""Free Spoken Digit Dataset: Jackson and others, github.com/Jakobovski."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    existing_folder,
    found,
    sound_files,
)

LAYOUT = "DIGIT_SPEAKER_TAKE.wav, in the folder or in recordings/"

_NAME = re.compile(r"([0-9])_([A-Za-z]+)_(\d+)")
_TEST_TAKES = 5


def load(folder: Path) -> Dataset:
    """The group of a clip is its speaker; takes 0 to 4 are the official test set.

    Raises:
        DatasetError: if a file has another name, or there is none.
    """
    existing_folder(folder, LAYOUT)
    inside = folder / "recordings"
    clips = []
    for path in sound_files(inside if inside.is_dir() else folder):
        name = _NAME.fullmatch(path.stem)
        if name is None:
            raise DatasetError(f"{path} is not named DIGIT_SPEAKER_TAKE; accepted is {LAYOUT}")
        digit, speaker, take = name.groups()
        split = "test" if int(take) < _TEST_TAKES else "train"
        clips.append(Clip(path, digit, speaker, split=split, attributes={"take": take}))
    return found("Free Spoken Digits", clips, folder, LAYOUT)


def is_named(path: Path) -> bool:
    """Whether a file is named as this data set names its clips."""
    return _NAME.fullmatch(path.stem) is not None
