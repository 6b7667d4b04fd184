"""FMA: Defferrard, Benzi, Vandergheynst, Bresson, A Dataset For Music Analysis (2017)."""

from __future__ import annotations

import csv
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, DatasetError, existing, found

LAYOUT = "fma_metadata/tracks.csv beside fma_small/, fma_medium/, fma_large/ or fma_full/"

_SIZES = ("fma_small", "fma_medium", "fma_large", "fma_full")
_COLUMNS = {
    "genre": ("track", "genre_top"),
    "artist": ("artist", "id"),
    "split": ("set", "split"),
    "subset": ("set", "subset"),
}
_SPLITS = {"training": "train", "validation": "validation", "test": "test"}


def load(folder: Path) -> Dataset:
    """The group of a track is its artist, its label the top genre; all tracks that are there.

    Raises:
        DatasetError: if a file, a column or all sound is missing.
    """
    existing(folder, "fma_metadata")
    tracks = existing(folder / "fma_metadata", "tracks.csv")
    sound = existing(folder, *_SIZES)
    clips = [
        Clip(
            sound / f"{track // 1000:03d}" / f"{track:06d}.mp3",
            row["genre"] or None,
            row["artist"],
            split=_SPLITS.get(row["split"]),
            attributes={"subset": row["subset"]},
        )
        for track, row in _tracks(tracks)
    ]
    clips = [clip for clip in clips if clip.path.parent.is_dir()]
    return found("FMA", clips, folder, LAYOUT)


def _tracks(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The table has two rows of names, one for the subject and one for the property."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    names = list(zip(*table[:2], strict=False)) if len(table) > 2 else []
    for column in _COLUMNS.values():
        if column not in names:
            raise DatasetError(f"{path} lacks the column {' '.join(column)} in its two first rows")
    places = {key: names.index(column) for key, column in _COLUMNS.items()}
    return [
        (int(row[0]), {key: row[place] for key, place in places.items()})
        for row in table[2:]
        if len(row) == len(names) and row[0].isdigit()
    ]
