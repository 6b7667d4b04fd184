"""GTZAN: Tzanetakis and Cook, Musical Genre Classification of Audio Signals (2002)."""

from __future__ import annotations

from pathlib import Path

from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    existing_folder,
    found,
    sound_files,
)

LAYOUT = "GENRE/GENRE.NUMBER.wav (or .au), in the folder, genres/ or genres_original/"


def load(folder: Path) -> Dataset:
    """Each file is a group of its own: the data set does not say which share an artist.

    Raises:
        DatasetError: if a file has another name, or there is none.
    """
    existing_folder(folder, LAYOUT)
    inside = [folder / name for name in ("genres_original", "genres") if (folder / name).is_dir()]
    clips = []
    for path in sound_files((inside or [folder])[0], "*/*"):
        genre, _, number = path.stem.partition(".")
        if genre != path.parent.name or not number.isdigit():
            raise DatasetError(f"{path} is not named GENRE.NUMBER; accepted is {LAYOUT}")
        clips.append(Clip(path, genre, path.stem))
    return found("GTZAN", clips, folder, LAYOUT)
