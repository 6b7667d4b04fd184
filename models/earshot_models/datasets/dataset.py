"""Common parts of all data sets: clips, their labels, and the groups that stay together."""

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
from earshot_protocol.sound_reading import check_listable, visible


class DatasetError(InvalidInputError):
    """A folder that does not hold the wanted data set; the message says what is missing."""


@dataclass(frozen=True)
class Clip:
    """One file of sound.

    Attributes:
        path: Path of the file.
        label: Class of the clip, or None.
        group: Source recording, location, artist or speaker of the clip; clips of one group stay on
            one side of a split.
        recording: Recording that this clip and others were cut from; None if the clip is a
            recording of its own.
        fold: Fold of the data set's own cross-validation, or None.
        split: "train", "validation" or "test", if the data set assigns one.
        attributes: Other facts about the clip, such as the device.
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
        """Names of the file and of its folder."""
        return visible(f"{self.path.parent.name}/{self.path.name}")

    def __post_init__(self) -> None:
        # Names of folders, which may be any bytes; those of clips go into pages and files.
        if self.label is not None:
            object.__setattr__(self, "label", visible(self.label))
        object.__setattr__(self, "group", visible(self.group))


@dataclass(frozen=True)
class Dataset:
    """Clips in a fixed order.

    Attributes:
        name: Name of the data set.
        clips: Clips, at least one.
        missing: Number of listed clips whose files do not exist.
    """

    name: str
    clips: tuple[Clip, ...]
    missing: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible(self.name))

    @classmethod
    def of_files(cls, name: str, clips: Iterable[Clip], folder: Path, layout: str) -> Dataset:
        """Return a data set of the clips whose files exist.

        Raises:
            DatasetError: There are no such clips, or no such folder; the message says what is
                expected.
        """
        check_folder(folder, layout)
        listed = list(clips)
        present = tuple(clip for clip in listed if clip.path.is_file())
        if not present:
            missing = f"none of the {len(listed)} listed files of {name}" if listed else "no sound"
            raise DatasetError(f"{folder} holds {missing}; expected {layout}")
        return cls(name, present, len(listed) - len(present))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Classes in alphabetical order."""
        return tuple(sorted({clip.label for clip in self.clips if clip.label is not None}))

    def where(self, wanted: Callable[[Clip], bool]) -> Dataset:
        """Return the data set with only the clips that match.

        Raises:
            DatasetError: No clip is left.
        """
        clips = tuple(filter(wanted, self.clips))
        if not clips:
            raise DatasetError(f"no clip of {self.name} matches")
        return replace(self, clips=clips)


def check_folder(folder: Path, layout: str) -> None:
    """Raise a DatasetError that says what is expected if there is no such folder."""
    if folder.is_file():
        raise DatasetError(f"{folder} is a file; expected {layout}")
    if not folder.is_dir():
        raise DatasetError(f"there is no folder {folder}; expected {layout}")
    check_listable(folder)


def existing(folder: Path, *names: str) -> Path:
    """Return the first of several names that exists in a folder.

    Raises:
        DatasetError: No file or folder has any of these names.
    """
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise DatasetError(f"{folder} lacks {' or '.join(names)}")


def sound_files(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """Yield the audio files of a folder by name, without hidden files."""
    for path in sorted(folder.glob(pattern)):
        hidden = path.name.startswith(".") or path.parent.name.startswith(".")
        if path.suffix.lower() in SUFFIXES and not hidden and path.is_file():
            yield path


def name_parts(path: Path, pattern: re.Pattern[str], layout: str) -> tuple[str, ...]:
    """Return the groups of a pattern that a file's name matches.

    Raises:
        DatasetError: The name does not match.
    """
    match = pattern.fullmatch(path.stem)
    if match is None:
        raise DatasetError(f"{path} is not named as expected: {layout}")
    return match.groups()


def rows(
    path: Path, columns: Iterable[str], delimiter: str = ",", headers: int = 1
) -> list[dict[str, str]]:
    """Read a table by the names of its columns; several header rows are joined into one name each.

    Raises:
        DatasetError: The table cannot be read, or lacks a column.
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
