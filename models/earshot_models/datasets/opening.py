"""Data sets by name, or by the files that a folder holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from earshot_models.datasets import (
    audioset,
    esc,
    fma,
    folder,
    fsd50k,
    gtzan,
    speech_commands,
    spoken_digits,
    tau,
    urbansound8k,
)
from earshot_models.datasets.dataset import Dataset, check_folder, sound_files
from earshot_protocol.errors import InvalidParametersError

KINDS: dict[str, Callable[[Path], Dataset]] = {
    "esc": esc.load,
    "tau": tau.load,
    "urbansound8k": urbansound8k.load,
    "fsd50k": fsd50k.load,
    "gtzan": gtzan.load,
    "fma": fma.load,
    "speech-commands": speech_commands.load,
    "spoken-digits": spoken_digits.load,
    "audioset": audioset.load,
    "folder": folder.load,
}
"""Loaders by their names on the command line."""

_SIGNS = (
    ("esc", esc.TABLE),
    ("urbansound8k", urbansound8k.TABLE),
    ("fsd50k", fsd50k.TABLES),
    *(("fsd50k", sound) for sound in fsd50k.SOUND),
    ("fma", "fma_metadata"),
    ("speech-commands", "validation_list.txt"),
    ("audioset", "class_labels_indices.csv"),
    ("gtzan", "genres_original"),
    ("gtzan", "genres"),
)
_NAMES = (
    ("tau", tau.NAME, "*"),
    ("tau", tau.NAME, "audio/*"),
    ("esc", esc.NAME, "*"),
    ("esc", esc.NAME, "*/*"),
    ("urbansound8k", urbansound8k.NAME, "*"),
    ("urbansound8k", urbansound8k.NAME, "fold*/*"),
    ("urbansound8k", urbansound8k.NAME, "audio/fold*/*"),
    ("fma", fma.NAME, "[0-9][0-9][0-9]/*"),
    ("fma", fma.NAME, "fma_*/[0-9][0-9][0-9]/*"),
)
"""Kinds by a pattern that all file names in a place must match."""


def open_dataset(path: str | os.PathLike[str], kind: str | None = None) -> Dataset:
    """List the clips of a data set.

    Args:
        path: Folder of the data set.
        kind: Kind of data set, one of `KINDS`; None to guess it from the files in the folder.

    Raises:
        InvalidParametersError: There is no such kind.
        DatasetError: The folder does not have the layout of its kind.
    """
    path = Path(path)
    if kind is None:
        kind = guess(path)
    if kind not in KINDS:
        raise InvalidParametersError(f"kind must be one of {', '.join(KINDS)}; not {kind!r}")
    return KINDS[kind](path)


def guess(path: Path) -> str:
    """Return the kind of data set in a folder; "folder" if it is not a published one.

    Raises:
        DatasetError: There is no such folder.
    """
    check_folder(path, f"a data set as published, or {folder.LAYOUT}")
    for kind, sign in _SIGNS:
        if (path / sign).exists():
            return kind
    if tau.is_table(path / tau.TABLE):
        return "tau"
    if path.absolute().name in fsd50k.SOUND:
        return "fsd50k"
    digits = sound_files(spoken_digits.sound_folder(path))
    if any(spoken_digits.NAME.fullmatch(file.stem) for file in digits):
        return "spoken-digits"
    for kind, name, pattern in _NAMES:
        files = list(sound_files(path, pattern))
        if files and all(name.fullmatch(file.stem) for file in files):
            return kind
    return "folder"
