"""ESC-50 and ESC-10: Piczak, ESC: Dataset for Environmental Sound Classification (2015)."""

from __future__ import annotations

import re
from pathlib import Path

from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    existing_folder,
    found,
    rows,
    sound_files,
)

LAYOUT = (
    "meta/esc50.csv with audio/FOLD-ID-TAKE-TARGET.wav (ESC-50), or CLASS/FOLD-ID-TAKE.ogg (ESC-10)"
)

_NAME = re.compile(r"(\d+)-(\d+)-([A-Z])")
_COLUMNS = ("filename", "fold", "category", "esc10", "src_file", "take")


def load(folder: Path, esc10: bool = False) -> Dataset:
    """Read either layout.

    The group of a clip is the recording that it was cut from; `fold` is the official one, which
    never tears a recording apart.

    Args:
        folder: the data set's.
        esc10: of ESC-50, only the ten classes of ESC-10.

    Raises:
        DatasetError: if a file, a column or all sound is missing.
    """
    existing_folder(folder, LAYOUT)
    if (folder / "meta" / "esc50.csv").exists():
        return found("ESC-50", _listed(folder, esc10), folder, LAYOUT)
    return found("ESC-10", _named(folder), folder, LAYOUT)


def is_named(path: Path) -> bool:
    """Whether a file is named as ESC-10 names its clips."""
    return _NAME.fullmatch(path.stem) is not None


def _listed(folder: Path, esc10: bool) -> list[Clip]:
    clips = []
    for row in rows(folder / "meta" / "esc50.csv", _COLUMNS):
        if esc10 and row["esc10"] != "True":
            continue
        if not row["fold"].isdigit():
            raise DatasetError(f"meta/esc50.csv: fold of {row['filename']} must be a number")
        clips.append(
            Clip(
                folder / "audio" / row["filename"],
                row["category"],
                row["src_file"],
                row["src_file"],
                fold=int(row["fold"]),
                attributes={"take": row["take"]},
            )
        )
    return clips


def _named(folder: Path) -> list[Clip]:
    clips = []
    for path in sound_files(folder, "*/*"):
        name = _NAME.fullmatch(path.stem)
        if name is None:
            raise DatasetError(f"{path} is not named FOLD-ID-TAKE; accepted is {LAYOUT}")
        fold, recording, take = name.groups()
        clips.append(
            Clip(
                path,
                path.parent.name,
                recording,
                recording,
                fold=int(fold),
                attributes={"take": take},
            )
        )
    return clips
