"""Sound in an unpublished folder: one sub-folder of audio files per class."""

from __future__ import annotations

from pathlib import Path

from earshot_models.datasets import esc, speech_commands, tau, urbansound8k
from earshot_models.datasets.dataset import (
    Clip,
    Dataset,
    DatasetError,
    Unheard,
    refuse_parts,
    sound_files,
)
from earshot_protocol.sound_reading import SOUND_SUFFIXES

LAYOUT = "FOLDER/CLASS/NAME with NAME ending in .au, .flac, .mp3, .ogg or .wav"

_MISPLACED = (("*", "in no class"), ("*/*/*", "in folders within classes"))
_SOURCES = (
    (tau.NAME, 2),
    (urbansound8k.NAME, 1),
    (speech_commands.NAME, 1),
)
"""Names of published files, and the group of the pattern that clips of one source share."""


def load(folder: Path) -> Dataset:
    """List the clips of a folder, by class and then by name; hidden files are left out.

    Files named as ESC names its clips share a group per fold, and those named as in other published
    data sets one per source or location; any other file has its own.

    Raises:
        DatasetError: There is no such folder, it holds no sound where it is expected, or its
            folders are named as parts of a data set.
    """
    clips = [
        Clip(path, path.parent.name, _group(path))
        for path in sound_files(folder, "*/*", SOUND_SUFFIXES)
    ]
    misplaced = [
        (path, where) for pattern, where in _MISPLACED for path in sound_files(folder, pattern)
    ]
    if misplaced and not clips:
        path, where = misplaced[0]
        raise DatasetError(
            f"{folder} has its sound {where} ({path.relative_to(folder)}): put each class in a "
            f"folder of its own, as {folder}/CLASS/{path.name}"
        )
    refuse_parts(clips, folder, LAYOUT)
    unheard = [_unheard(path.relative_to(folder), where) for path, where in misplaced]
    return Dataset.of_files(folder.resolve().name, clips, folder, LAYOUT, unheard)


def _unheard(path: Path, where: str) -> Unheard:
    return Unheard(path.as_posix(), path.parts[0] if len(path.parts) > 1 else None, where)


def _group(path: Path) -> str:
    if name := esc.NAME.fullmatch(path.stem):
        return f"fold {name[1]}"
    for pattern, group in _SOURCES:
        if name := pattern.fullmatch(path.stem):
            return name[group]
    return f"{path.parent.name}/{path.name}"
