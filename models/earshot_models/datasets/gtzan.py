"""GTZAN: Tzanetakis and Cook, Musical Genre Classification of Audio Signals (2002)."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, name_parts, sound_files
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = "GENRE/GENRE.NUMBER.wav (or .au), in the folder, genres/ or genres_original/"


def load(folder: Path) -> Dataset:
    """List the tracks.

    Each is its own group: the data set does not record artists.

    Raises:
        DatasetError: A file has another name, or there is no file.
    """
    inside = [folder / name for name in ("genres_original", "genres") if (folder / name).is_dir()]
    clips = []
    for path in sound_files((inside or [folder])[0], "*/*", SOUND_SUFFIXES):
        genre = path.parent.name
        name_parts(path, re.compile(rf"{re.escape(genre)}\.\d+"), LAYOUT)
        clips.append(Clip(path, genre, path.stem))
    return Dataset.of_files("GTZAN", clips, folder, LAYOUT)
