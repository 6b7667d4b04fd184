"""ESC-50 and ESC-10: Piczak, ESC: Dataset for Environmental Sound Classification (2015)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    name_parts,
    refuse_parts,
    root_of,
    rows,
    sound_files,
)
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = (
    "meta/esc50.csv with audio/FOLD-ID-TAKE-TARGET.wav (ESC-50), or CLASS/FOLD-ID-TAKE.ogg (ESC-10)"
)

NAME = re.compile(r"(\d+)-(\d+)-([A-Z])(?:-\d+)?")
"""Pattern of the name of a file of either, without its suffix."""

TABLE = "meta/esc50.csv"

_COLUMNS = ("filename", "fold", "category", "esc10", "src_file", "take")


def load(folder: Path, esc10: bool = False) -> Dataset:
    """Read either layout, or the folder audio/ of ESC-50, whose table lies beside it.

    The group of a clip is the recording that it was cut from; `fold` is the official one, which
    never splits a recording.

    Args:
        folder: Folder of the data set.
        esc10: Keep only the ten classes of ESC-10 if the folder holds ESC-50.

    Raises:
        DatasetError: A file, a column or all sound is missing.
    """
    if (folder / TABLE).exists():
        return Dataset.of_files("ESC-50", _listed(folder, esc10), folder, LAYOUT)
    clips = list(_named(folder))
    if clips or not any(sound_files(folder)):
        refuse_parts(clips, folder, LAYOUT)
        return Dataset.of_files("ESC-10", clips, folder, LAYOUT)
    root = root_of(folder, "ESC-50", TABLE)
    return Dataset.of_files("ESC-50", _listed(root, esc10), folder, LAYOUT)


def _listed(folder: Path, esc10: bool) -> Iterator[Clip]:
    for row in rows(folder / TABLE, _COLUMNS):
        if esc10 and row["esc10"] != "True":
            continue
        if not row["fold"].isdigit():
            raise DatasetError(f"{TABLE}: fold of {row['filename']} must be a number")
        path = folder / "audio" / row["filename"]
        yield _clip(path, row["category"], row["fold"], row["src_file"], row["take"])


def _named(folder: Path) -> Iterator[Clip]:
    for path in sound_files(folder, "*/*", SOUND_SUFFIXES):
        yield _clip(path, path.parent.name, *name_parts(path, NAME, LAYOUT))


def _clip(path: Path, label: str, fold: str, recording: str, take: str) -> Clip:
    return Clip(path, label, recording, recording, fold=int(fold), attributes={"take": take})
