"""Speech Commands v2: Warden, A Dataset for Limited-Vocabulary Speech Recognition (2018)."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, existing, name_parts, sound_files, text
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = "validation_list.txt and testing_list.txt beside WORD/SPEAKER_nohash_NUMBER.wav"

NAME = re.compile(r"([0-9a-f]+)_nohash_(\d+)")
"""Pattern of the name of a file, without its suffix; the first group is its speaker."""


def load(folder: Path) -> Dataset:
    """List the clips; the official lists assign the validation and test clips.

    The group of a clip is its speaker. Long background noises (`_background_noise_`) are left out.

    Raises:
        DatasetError: A list or all sound is missing, or a file has another name.
    """
    lists = {
        name: split
        for split, file in (("validation", "validation_list.txt"), ("test", "testing_list.txt"))
        for name in text(existing(folder, file)).split()
    }
    clips = []
    for path in sound_files(folder, "*/*", SOUND_SUFFIXES):
        word = path.parent.name
        if word.startswith("_"):
            continue
        speaker, take = name_parts(path, NAME, LAYOUT)
        split = lists.get(f"{word}/{path.name}", "train")
        clips.append(Clip(path, word, speaker, split=split, attributes={"take": take}))
    return Dataset.of_files("Speech Commands", clips, folder, LAYOUT)
