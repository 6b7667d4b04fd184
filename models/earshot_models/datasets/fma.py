"""FMA: Defferrard, Benzi, Vandergheynst, Bresson, A Dataset For Music Analysis (2017)."""

from __future__ import annotations

from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, existing, rows

LAYOUT = "fma_metadata/tracks.csv beside fma_small/, fma_medium/, fma_large/ or fma_full/"

_SIZES = ("fma_small", "fma_medium", "fma_large", "fma_full")
_COLUMNS = ("track genre_top", "artist id", "set split", "set subset")
_SPLITS = {"training": "train", "validation": "validation", "test": "test"}


def load(folder: Path) -> Dataset:
    """List all tracks whose files exist.

    The group of a track is its artist, and its label the top genre.

    Raises:
        DatasetError: A file, a column or all sound is missing.
    """
    tracks = rows(existing(folder, "fma_metadata/tracks.csv"), _COLUMNS, headers=2)
    sound = existing(folder, *_SIZES)
    clips = [
        Clip(
            sound / f"{int(row['']) // 1000:03d}" / f"{int(row['']):06d}.mp3",
            row["track genre_top"] or None,
            row["artist id"],
            split=_SPLITS.get(row["set split"]),
            attributes={"subset": row["set subset"]},
        )
        for row in tracks
        if row[""].isdigit() and None not in row.values()
    ]
    clips = [clip for clip in clips if clip.path.parent.is_dir()]
    return Dataset.of_files("FMA", clips, folder, LAYOUT)
