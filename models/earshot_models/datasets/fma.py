"""FMA: Defferrard, Benzi, Vandergheynst, Bresson, A Dataset For Music Analysis (2017)."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, existing, root_of, rows

LAYOUT = "fma_metadata/tracks.csv beside fma_small/, fma_medium/, fma_large/ or fma_full/"

NAME = re.compile(r"\d{6}")
"""Pattern of the name of a file, without its suffix."""

TABLE = "fma_metadata/tracks.csv"

_SIZES = ("fma_small", "fma_medium", "fma_large", "fma_full")
_COLUMNS = ("track genre_top", "artist id", "set split", "set subset")
_SPLITS = {"training": "train", "validation": "validation", "test": "test"}


def load(folder: Path) -> Dataset:
    """List all tracks whose files exist, also of one size alone if the table lies beside it.

    The group of a track is its artist, and its label the top genre.

    Raises:
        DatasetError: A file, a column or all sound is missing.
    """
    root = root_of(folder, "FMA", TABLE)
    tracks = rows(root / TABLE, ("", *_COLUMNS), headers=2)
    inside = next((root / name for name in _SIZES if _is_within(folder, root / name)), None)
    sound = inside or existing(root, *_SIZES)
    clips = [
        Clip(
            sound / f"{int(row['']) // 1000:03d}" / f"{int(row['']):06d}.mp3",
            row["track genre_top"] or None,
            row["artist id"],
            split=_SPLITS.get(row["set split"]),
            attributes={"subset": row["set subset"]},
        )
        for row in tracks
        if row[""].isdigit()
    ]
    clips = [clip for clip in clips if clip.path.parent.is_dir()]
    return Dataset.of_files("FMA", clips, folder, LAYOUT)


def _is_within(folder: Path, sound: Path) -> bool:
    return sound.absolute() in (folder.absolute(), *folder.absolute().parents)
