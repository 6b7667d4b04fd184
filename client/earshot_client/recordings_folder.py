"""A folder of sound files, second by second, which a reference phone hears."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_client.hearing import Second
from earshot_client.labels import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.sound_reading import (
    SOUND_SUFFIXES,
    SUFFIXES,
    UnreadableFileError,
    check_listable,
    opened,
    visible,
)
from earshot_protocol.spectrum import RATES

LAYOUT = f"give FOLDER/NAME or FOLDER/CLASS/NAME, where NAME ends in {', '.join(SUFFIXES)}"


_MOST_NAMED = 5


class FolderError(InvalidInputError):
    """A folder that is missing, has no sound, or has sound at too low a rate for the encoder."""


@dataclass(frozen=True)
class _Place:
    path: Path
    number: int
    """Number of whole seconds before it in the file."""


class RecordingsFolder:
    """The whole seconds of every sound file in a folder and in its sub-folders.

    A second is labelled with the sub-folder's name, or else the file's, if that is a choice of a
    poll; case, numbers at either end and the separators of words do not matter.

    Args:
        folder: Folder of sound files, or of one sub-folder per class with sound files in it.
        hierarchy: Hierarchy of the choices.
        least: Least samples per second of a file; see `encoder.rate_of`.

    Attributes:
        unread: Sound files of other kinds than those that are read.
        lost: Sub-folders that have only such files.
        short: Files that are shorter than a second, and are left out.
        unreadable: Error of each file that cannot be read and is left out.

    Raises:
        FolderError: There is no such folder, no sound file in it or none of a second that can be
            read, or files have fewer samples per second; the message names the first of them.
    """

    unread: tuple[str, ...]
    lost: tuple[str, ...]
    short: tuple[str, ...]
    unreadable: tuple[str, ...]

    def __init__(self, folder: Path, hierarchy: LabelHierarchy, least: int = RATES[0]) -> None:
        choices = {_plain(choice): choice for choice in (*hierarchy.choices, *hierarchy.classes)}
        self._places: dict[Second, _Place] = {}
        below: list[str] = []
        short: list[str] = []
        files, unread = _files(folder)
        self.unread = tuple(visible(path.relative_to(folder)) for path in unread)
        within = {path.parent for path in unread} - {path.parent for path in files} - {folder}
        self.lost = tuple(sorted(visible(each.name) for each in within))
        unreadable: list[str] = []
        for path in files:
            told = path.parent.name if path.parent != folder else ""
            label = choices.get(_plain(told)) or choices.get(_plain(path.stem))
            name = visible(path.relative_to(folder))
            try:
                # Reads all of it, to learn its length and that it decodes.
                with opened(path) as file:
                    rate, frames = file.rate, sum(map(len, file.seconds()))
            except UnreadableFileError as error:
                unreadable.append(str(error))
                continue
            if rate < least:
                below.append(f"{name} ({rate:,})")
            if frames < rate:
                short.append(f"{name} ({frames / rate:.2g} s)")
            for number in range(frames // rate):
                self._places[Second(f"{name}#{number}", label)] = _Place(path, number)
        if below:
            raise FolderError(
                f"{len(below)} of {len(files)} files in {folder} have fewer samples per second "
                f"than the {least:,} that the encoder hears: {first_of(below)}; record at "
                "that rate or above, or choose an encoder that hears less"
            )
        self.short, self.unreadable = tuple(short), tuple(unreadable)
        if not self._places and unreadable:
            raise FolderError(
                f"no file in {folder} of a second or longer can be read: {first_of(unreadable)}; "
                f"record again as {' or '.join(SUFFIXES)}"
            )
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
            UnreadableFileError: The file can no longer be read.
        """
        place = self._places[second]
        with opened(place.path) as file:
            return file.second(place.number), file.rate


def first_of(names: Sequence[str]) -> str:
    """List the first names, with an ellipsis if there are more."""
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")


def _files(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that are read, and those of other kinds."""
    if not folder.is_dir():
        raise FolderError(f"there is no folder {folder}; {LAYOUT}")
    check_listable(folder)
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
        named = first_of([visible(path.relative_to(folder)) for path in unread])
        others = f" of a kind that is read (there is {named})" if unread else ""
        raise FolderError(f"{folder} holds no sound{others}; {LAYOUT}")
    return read, unread


def _plain(name: str) -> str:
    """Return the words of a name: `03-Train_station-2` and `train station` are the same."""
    words = re.sub(r"[\W_]+", " ", name.casefold())
    return re.sub(r"^[\d ]+|[\d ]+$", "", words)
