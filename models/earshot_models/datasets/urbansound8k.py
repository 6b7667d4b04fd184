"""UrbanSound8K: Salamon, Jacoby, Bello, A Dataset and Taxonomy for Urban Sound Research (2014)."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import Clip, Dataset, DatasetError, root_of, rows

LAYOUT = "metadata/UrbanSound8K.csv with audio/foldFOLD/SOURCE-CLASS-OCCURRENCE-SLICE.wav"

NAME = re.compile(r"(\d+)-\d+-\d+-\d+")
"""Pattern of the name of a file, without its suffix; the group is its source."""

TABLE = "metadata/UrbanSound8K.csv"

_COLUMNS = ("slice_file_name", "fsID", "fold", "class")


def load(folder: Path) -> Dataset:
    """List the slices, also of audio/ or of one fold alone if the table lies above it.

    The group of a slice is the recording that it was cut from; `fold` is the official one, which
    never splits a recording.

    Raises:
        DatasetError: A file, a column or all sound is missing.
    """
    root = root_of(folder, "UrbanSound8K", TABLE)
    clips = []
    for row in rows(root / TABLE, _COLUMNS):
        if not row["fold"].isdigit():
            raise DatasetError(f"{TABLE}: fold of {row['slice_file_name']} must be a number")
        path = root / "audio" / f"fold{row['fold']}" / row["slice_file_name"]
        source = row["fsID"]
        clips.append(Clip(path, row["class"], source, source, fold=int(row["fold"])))
    return Dataset.of_files("UrbanSound8K", clips, folder, LAYOUT)
