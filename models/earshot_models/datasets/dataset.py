"""What all data sets have in common: clips, their labels, and what must not be torn apart."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from earshot_models.audio import SUFFIXES
from earshot_protocol.errors import InvalidInputError


class DatasetError(InvalidInputError):
    """A folder that does not hold the data set that was asked for; says what is missing."""


@dataclass(frozen=True)
class Clip:
    """One file of sound.

    Attributes:
        path: of the file.
        label: its class, or None.
        group: clips of one group stem from one source recording, location, artist or speaker, so
            they stay on one side of a split.
        recording: what the clip was cut from, where others were cut from it too; None if it is a
            recording of its own.
        fold: of the data set's own cross-validation, where it has one.
        split: "train", "validation" or "test", where the data set says so.
        attributes: whatever else is known, such as the device.
    """

    path: Path
    label: str | None
    group: str
    recording: str | None = None
    fold: int | None = None
    split: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        """The file and the folder that it lies in."""
        return f"{self.path.parent.name}/{self.path.name}"


@dataclass(frozen=True)
class Dataset:
    """Clips in a fixed order.

    Attributes:
        name: of the data set.
        clips: at least one.
        missing: clips that are listed, but whose files are not there.
    """

    name: str
    clips: tuple[Clip, ...]
    missing: int = 0

    @classmethod
    def of_files(cls, name: str, clips: Iterable[Clip], folder: Path, layout: str) -> Dataset:
        """A data set of the clips whose files are there.

        Raises:
            DatasetError: if there is none, or no such folder; says what would be accepted.
        """
        check_folder(folder, layout)
        listed = list(clips)
        present = tuple(clip for clip in listed if clip.path.is_file())
        if not present:
            raise DatasetError(
                f"{folder} holds none of the sound of {name} ({len(listed)} files are listed); "
                f"accepted is {layout}"
            )
        return cls(name, present, len(listed) - len(present))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes, in alphabetical order."""
        return tuple(sorted({clip.label for clip in self.clips if clip.label is not None}))

    def where(self, wanted: Callable[[Clip], bool]) -> Dataset:
        """The same with only some of its clips.

        Raises:
            DatasetError: if none is left.
        """
        clips = tuple(filter(wanted, self.clips))
        if not clips:
            raise DatasetError(f"no clip of {self.name} matches")
        return replace(self, clips=clips)


def check_folder(folder: Path, layout: str) -> None:
    """Raise a DatasetError that says what would be accepted, if there is no such folder."""
    if not folder.is_dir():
        raise DatasetError(f"there is no folder {folder}; accepted is {layout}")


def existing(folder: Path, *names: str) -> Path:
    """The first of several names that exists in a folder.

    Raises:
        DatasetError: if none of them exists.
    """
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise DatasetError(f"{folder} lacks {' or '.join(names)}")


def sound_files(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """Audio files of a folder by name; hidden files are left out."""
    for path in sorted(folder.glob(pattern)):
        hidden = path.name.startswith(".") or path.parent.name.startswith(".")
        if path.suffix.lower() in SUFFIXES and not hidden and path.is_file():
            yield path


def name_parts(path: Path, pattern: re.Pattern[str], layout: str) -> tuple[str, ...]:
    """The groups of a pattern that the name of a file follows.

    Raises:
        DatasetError: if the file has another name.
    """
    match = pattern.fullmatch(path.stem)
    if match is None:
        raise DatasetError(f"{path} has another name than is accepted: {layout}")
    return match.groups()


def rows(
    path: Path, columns: Iterable[str], delimiter: str = ",", headers: int = 1
) -> list[dict[str, str]]:
    """Read a table by the names of its columns; several rows of header make one name each.

    Raises:
        DatasetError: if it cannot be read, or lacks a column.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = islice(csv.reader(file, delimiter=delimiter, skipinitialspace=True), headers)
            header = [" ".join(names).strip() for names in zip(*lines, strict=False)]
            reader = csv.DictReader(file, header, delimiter=delimiter, skipinitialspace=True)
            table = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    for column in columns:
        if column not in header:
            raise DatasetError(f"{path} lacks the column {column}; it has {', '.join(header)}")
    return table
