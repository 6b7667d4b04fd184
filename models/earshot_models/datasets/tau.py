"""TAU Urban Acoustic Scenes: Mesaros, Heittola, Virtanen (2018 to 2022), Mobile and not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    check_folder,
    holder,
    rows,
    sound_files,
)
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = (
    "meta.csv with audio/SCENE-CITY-LOCATION-SEGMENT-DEVICE.wav (2018 to 2020) or "
    "audio/SCENE-CITY-LOCATION-SEGMENT-PART-DEVICE.wav (2022)"
)

TABLE = "meta.csv"

NAME = re.compile(
    "(airport|bus|metro|metro_station|park|public_square|shopping_mall|street_pedestrian"
    r"|street_traffic|tram)-([a-z]+-\d+)-\d+(?:-\d+)?-[a-z]\d*"
)
"""Pattern of the name of a file, without its suffix: its scene and its location."""

_COLUMNS = ("filename", "scene_label", "identifier", "source_label")
_SPLITS = {"fold1_train.csv": "train", "fold1_evaluate.csv": "test"}


def load(folder: Path) -> Dataset:
    """List the clips, with the attributes city, location, segment and device.

    The group of a clip is its location in its city. Clips of the official training and evaluation
    sets have that `split`. Without meta.csv, labels are read from file names.

    Raises:
        DatasetError: A file, a column or all sound is missing, or a name has another form.
    """
    check_folder(folder, LAYOUT)
    root = holder(folder, TABLE)
    clips = _named(folder) if root is None or not is_table(root / TABLE) else _listed(root)
    return Dataset.of_files("TAU Urban Acoustic Scenes", clips, folder, LAYOUT)


def is_table(path: Path) -> bool:
    """Return whether a file has the header of the data set's table."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            return "scene_label" in file.readline().split("\t")
    except (OSError, UnicodeDecodeError):
        return False


def _listed(folder: Path) -> Iterator[Clip]:
    splits = _splits(folder / "evaluation_setup")
    for row in rows(folder / TABLE, _COLUMNS, "\t"):
        clip = _clip(folder / row["filename"])
        yield replace(
            clip,
            label=row["scene_label"],
            group=row["identifier"],
            split=splits.get(row["filename"]),
            attributes={**clip.attributes, "device": row["source_label"]},
        )


def _named(folder: Path) -> Iterator[Clip]:
    inside = folder / "audio"
    for path in sound_files(inside if inside.is_dir() else folder, "*", SOUND_SUFFIXES):
        yield _clip(path)


def _clip(path: Path) -> Clip:
    parts = path.stem.split("-")
    if len(parts) not in (5, 6):
        raise DatasetError(f"{path} is not named as expected: {LAYOUT}")
    scene, city, location, segment = parts[:4]
    attributes = {"city": city, "location": location, "segment": segment, "device": parts[-1]}
    return Clip(path, scene, f"{city}-{location}", attributes=attributes)


def _splits(folder: Path) -> dict[str, str]:
    """Return the split of each file name in the official set-up, if it was unpacked too."""
    return {
        row["filename"]: split
        for name, split in _SPLITS.items()
        if (folder / name).exists()
        for row in rows(folder / name, ("filename",), "\t")
    }
