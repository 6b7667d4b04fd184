"""A folder of sound files, second by second: a reference phone hears it instead of its owner."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.hearing import Second
from earshot_client.labels import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.sound_files import SOUND_SUFFIXES
from earshot_protocol.spectrum import RATES

SUFFIXES = (".flac", ".ogg", ".wav")
"""Suffixes of the files that are read, in upper or lower case."""

LAYOUT = f"give FOLDER/NAME or FOLDER/CLASS/NAME, where NAME ends in {', '.join(SUFFIXES)}"


_MOST_NAMED = 5


class FolderError(InvalidInputError):
    """A folder that is missing, holds no sound, or lacks some of what the encoder hears."""


class UnreadableFileError(InvalidInputError):
    """A sound file that does not decode."""


@dataclass(frozen=True)
class _Place:
    path: Path
    start: int
    """Samples before the second."""
    rate: int


class RecordingsFolder:
    """The whole seconds of every sound file in a folder and in its sub-folders.

    A second is labelled with the sub-folder's name, or else the file's, where that is a choice of a
    poll; case, numbers at either end and the separators of words do not matter.

    Args:
        folder: Folder of sound files, or of one sub-folder per class with sound files in it.
        hierarchy: Hierarchy of the choices.
        least: Least samples per second of a file; see `encoder.rate_of`.

    Attributes:
        unread: Sound files of other kinds than those that are read.
        lost: Sub-folders whose files all are.
        short: Files that are shorter than a second, so that there is nothing to hear.

    Raises:
        FolderError: There is no such folder, no sound file in it or none of a second, or files have
            fewer samples per second; the message names the first of them.
        UnreadableFileError: A file does not decode.
    """

    unread: tuple[str, ...]
    lost: tuple[str, ...]
    short: tuple[str, ...]

    def __init__(self, folder: Path, hierarchy: LabelHierarchy, least: int = RATES[0]) -> None:
        choices = {_plain(choice): choice for choice in (*hierarchy.choices, *hierarchy.classes)}
        self._places: dict[Second, _Place] = {}
        below: list[str] = []
        short: list[str] = []
        files, unread = _files(folder)
        self.unread = tuple(str(path.relative_to(folder)) for path in unread)
        within = {path.parent for path in unread} - {path.parent for path in files} - {folder}
        self.lost = tuple(sorted(each.name for each in within))
        for path in files:
            told = path.parent.name if path.parent != folder else ""
            label = choices.get(_plain(told)) or choices.get(_plain(path.stem))
            info = _decoded(path, "info")
            if info.samplerate < least:
                below.append(f"{path.relative_to(folder)} ({info.samplerate:,})")
            if info.frames < info.samplerate:
                short.append(f"{path.relative_to(folder)} ({info.frames / info.samplerate:.2g} s)")
            for number in range(info.frames // info.samplerate):
                second = Second(f"{path.relative_to(folder)}#{number}", label)
                self._places[second] = _Place(path, number * info.samplerate, info.samplerate)
        if below:
            raise FolderError(
                f"{len(below)} of {len(files)} files in {folder} have fewer samples per second "
                f"than the {least:,} that the encoder hears: {first_of(below)}; record at "
                "that rate or above, or choose an encoder that hears less"
            )
        self.short = tuple(short)
        if not self._places:
            raise FolderError(
                f"no file in {folder} is as long as a second: {first_of(short)}; record for a "
                "second or longer"
            )

    def seconds(self) -> tuple[Second, ...]:
        """Return all seconds, file by file in the order of their names."""
        return tuple(self._places)

    def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
        """Return the sound of one second.

        Returns:
            float32 (rate, channels) in [-1, 1], and the samples per second.

        Raises:
            UnreadableFileError: The file does not decode.
        """
        place = self._places[second]
        samples, _ = _decoded(
            place.path, "read", place.rate, place.start, dtype="float32", always_2d=True
        )
        return samples, place.rate


def first_of(names: Sequence[str]) -> str:
    """Name the first of some files, and say whether there are more."""
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that are read, and those of other kinds."""
    if not folder.is_dir():
        raise FolderError(f"there is no folder {folder}; {LAYOUT}")
    files = [
        path
        for path in sorted((*folder.glob("*"), *folder.glob("*/*")))
        if path.suffix.lower() in SOUND_SUFFIXES
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
    read = [path for path in files if path.suffix.lower() in SUFFIXES]
    unread = [path for path in files if path.suffix.lower() not in SUFFIXES]
    if not read:
        named = first_of([str(path.relative_to(folder)) for path in unread])
        others = f" of a kind that is read (there is {named})" if unread else ""
        raise FolderError(f"{folder} holds no sound{others}; {LAYOUT}")
    return read, unread


def _decoded(path: Path, function: str, *values: object, **options: object) -> Any:
    import soundfile

    try:
        return getattr(soundfile, function)(path, *values, **options)
    except (soundfile.SoundFileError, OSError) as error:
        raise UnreadableFileError(
            f"{path} does not decode: {str(error).rstrip('.')}; leave it out, or record it "
            f"again as {' or '.join(SUFFIXES)}"
        ) from error


def _plain(name: str) -> str:
    """Return the words of a name: `03-Train_station-2` and `train station` are the same."""
    words = re.sub(r"[\W_]+", " ", name.casefold())
    return re.sub(r"^[\d ]+|[\d ]+$", "", words)
