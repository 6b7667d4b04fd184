"""Common parts of all data sets: clips, labels, and groups that splits keep together."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from earshot_models.audio import SUFFIXES
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.sound_reading import SOUND_SUFFIXES, check_listable, visible
from earshot_protocol.text import decoded

_MOST_NAMED = 5
_WITHIN = tuple("/".join("*" * depth) for depth in range(1, 5))
"""Patterns of the files of a data set; unlike "**", they go through links to folders."""
_SORTED = (
    "put the sound of each class into a folder of its own, as FOLDER/CLASS/NAME, and name FOLDER"
)


class DatasetError(InvalidInputError):
    """A folder does not hold the expected data set; the message names what is missing."""


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
        # Folder names may hold any bytes, and end up in pages and files.
        if self.label is not None:
            object.__setattr__(self, "label", visible(self.label))
        object.__setattr__(self, "group", visible(self.group))


@dataclass(frozen=True)
class Unheard:
    """A sound file that its data set leaves out.

    Attributes:
        name: Path of the file within the folder.
        label: Class that it would belong to, or None.
        reason: Reason in a few words, which complete "the file is".
    """

    name: str
    label: str | None
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible(self.name))
        if self.label is not None:
            object.__setattr__(self, "label", visible(self.label))


@dataclass(frozen=True)
class Dataset:
    """Clips in a fixed order.

    Attributes:
        name: Name of the data set.
        clips: Clips, at least one.
        missing: Number of listed clips whose files do not exist.
        unheard: Sound files that are left out, by name.
    """

    name: str
    clips: tuple[Clip, ...]
    missing: int = 0
    unheard: tuple[Unheard, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible(self.name))

    @classmethod
    def of_files(
        cls,
        name: str,
        clips: Iterable[Clip],
        folder: Path,
        layout: str,
        unheard: Iterable[Unheard] = (),
    ) -> Dataset:
        """Return a data set of the clips whose files exist in a folder and have a known suffix.

        Clips outside the folder, if it is a part of a data set, are left out.

        Args:
            name: Name of the data set.
            clips: All listed clips, whether or not their files exist.
            folder: Folder of the data set, or of a part of it.
            layout: Expected layout, for error messages.
            unheard: Files left out for other reasons than their kind.

        Raises:
            DatasetError: There are no such clips, or no such folder.
        """
        check_folder(folder, layout)
        inside = _absolute(folder)
        all_clips = list(clips)
        listed = [clip for clip in all_clips if inside in _absolute(clip.path).parents]
        present = tuple(
            clip for clip in listed if clip.path.suffix.lower() in SUFFIXES and clip.path.is_file()
        )
        of_stems = {_absolute(clip.path).with_suffix(""): clip.label for clip in listed}
        unread = [
            Unheard(
                path.relative_to(folder).as_posix(),
                of_stems.get(_absolute(path).with_suffix("")),
                f"of a kind that is not read ({path.suffix.lower()})",
            )
            for pattern in _WITHIN
            for path in sound_files(folder, pattern, SOUND_SUFFIXES - set(SUFFIXES))
        ]
        if not present:
            count = len(all_clips)
            missing = f"none of the {count} listed files of {name}" if count else "no sound"
            if unread:
                missing = f"no sound of a kind that is read ({unread[0].name} is not)"
            raise DatasetError(f"{folder} holds {missing}; expected {layout}")
        left_out = sorted((*unread, *unheard), key=lambda each: each.name)
        return cls(name, present, len(listed) - len(present), tuple(left_out))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Classes in alphabetical order."""
        return tuple(sorted({clip.label for clip in self.clips if clip.label is not None}))

    @cached_property
    def unheard_classes(self) -> tuple[str, ...]:
        """Classes of which every file is left out, in alphabetical order."""
        classes = {each.label for each in self.unheard if each.label is not None}
        return tuple(sorted(classes.difference(self.labels)))

    def unheard_sentence(self) -> str:
        """Return a sentence on the sound files and classes left out; empty if there are none."""
        if not self.unheard:
            return ""
        named = [f"{each.name} is {each.reason}" for each in self.unheard[:_MOST_NAMED]]
        more = len(self.unheard) - len(named)
        return (
            f"{self.name}: {len(self.unheard)} sound files are not heard"
            + (
                f", and with them all of {', '.join(self.unheard_classes)}"
                if self.unheard_classes
                else ""
            )
            + f": {'; '.join(named)}{f'; and {more} more' if more else ''}"
            + f" (read are {', '.join(SUFFIXES)})"
        )

    def with_single_classes(self) -> Dataset:
        """Give clips with the attribute `labels` ("A; B") their class, if none has several.

        Otherwise no clip gets one: a choice among the classes of a clip would be arbitrary.
        """
        classes = [clip.attributes["labels"] for clip in self.clips]
        if any("; " in each for each in classes):
            return self
        clips = (replace(clip, label=each) for clip, each in zip(self.clips, classes, strict=True))
        return replace(self, clips=tuple(clips))

    def check_classes(self) -> None:
        """Check that every clip has one class, of at least two.

        Raises:
            DatasetError: Clips have no class, or all have the same one.
        """
        bare = [clip for clip in self.clips if clip.label is None]
        if bare:
            several = any("labels" in clip.attributes for clip in bare)
            raise DatasetError(
                f"{self.name} has {len(bare)} clips without a class of their own, of "
                f"{len(self.clips)}"
                + (", since clips of it have several classes each" if several else "")
                + f": {_SORTED}"
            )
        if len(self.labels) < 2:
            raise DatasetError(
                f"all clips of {self.name} are of one class, {self.labels[0]}, and at least two "
                f"are needed: {_SORTED}"
            )

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
    """Raise a DatasetError that names the expected layout if there is no such folder."""
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


def holder(folder: Path, name: str) -> Path | None:
    """Return the folder, or the nearest of the two above it, that holds a file or folder."""
    above = (folder, *_absolute(folder).parents[:2])
    return next((each for each in above if (each / name).exists()), None)


def root_of(folder: Path, name: str, table: str) -> Path:
    """Return the root of the data set that a folder is, or is a part of.

    Raises:
        DatasetError: Neither it nor one of the two above it holds the table of classes.
    """
    check_folder(folder, f"the folder of {name}")
    root = holder(folder, table)
    if root is None:
        raise DatasetError(
            f"{folder} lacks {table}, which has the classes of {name}: name the folder that holds "
            "it beside the sound"
        )
    return root


def sound_files(
    folder: Path, pattern: str = "*", suffixes: Collection[str] = SUFFIXES
) -> Iterator[Path]:
    """Yield the audio files of a folder by name, except hidden ones.

    Args:
        folder: Folder to search.
        pattern: Pattern of the paths within it.
        suffixes: Suffixes in lower case, by default of the kinds that are read.
    """
    for path in sorted(folder.glob(pattern)):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix.lower() in suffixes and not hidden and path.is_file():
            yield path


def _absolute(path: Path) -> Path:
    """Return an absolute path without resolving links."""
    return Path(os.path.abspath(path))


_PART = (
    "audio|clips?|data|dataset|dev|development|eval|evaluation|files?|flac|fold|mp3|ogg|part"
    "|recordings?|samples?|sounds?|split|test|testing|train|training|val|valid|validation|wavs?"
)
_NO_CLASS = re.compile(rf"(\w+\.)?(({_PART})[-_ ]?)+\d*", re.IGNORECASE)


def refuse_parts(clips: Iterable[Clip], folder: Path, layout: str) -> None:
    """Refuse folders named as parts of a data set, such as train, instead of as classes.

    Raises:
        DatasetError: All folders of clips have such names.
    """
    names = sorted({clip.path.parent.name for clip in clips})
    if names and all(map(_NO_CLASS.fullmatch, names)):
        raise DatasetError(
            f"{folder} has its sound in {', '.join(names[:_MOST_NAMED])}, which are names of parts "
            f"of a data set and not of classes; expected {layout}; or {_SORTED}"
        )


def name_parts(path: Path, pattern: re.Pattern[str], layout: str) -> tuple[str, ...]:
    """Return the groups of a pattern that a file's name matches.

    Raises:
        DatasetError: The name does not match.
    """
    match = pattern.fullmatch(path.stem)
    if match is None:
        raise DatasetError(f"{path} is not named as expected: {layout}")
    return match.groups()


def text(path: Path) -> str:
    """Read a text of a data set: UTF-8, with or without a byte order mark.

    Raises:
        DatasetError: It cannot be read, or is in another encoding.
    """
    try:
        return decoded(path.read_bytes(), path)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    except InvalidInputError as error:
        raise DatasetError(str(error)) from None


def rows(
    path: Path, columns: Iterable[str], delimiter: str = ",", headers: int = 1
) -> list[dict[str, str]]:
    """Read a table by the names of its columns; several header rows are joined into one name each.

    Raises:
        DatasetError: The table cannot be read, or lacks a column.
    """
    file = io.StringIO(text(path), newline="")
    try:
        lines = islice(csv.reader(file, delimiter=delimiter, skipinitialspace=True), headers)
        header = [" ".join(names).strip() for names in zip(*lines, strict=False)]
        table = list(csv.DictReader(file, header, delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    for column in columns:
        if column not in header:
            raise DatasetError(f"{path} lacks the column {column}; it has {', '.join(header)}")
        for number, row in enumerate(table, start=1):
            if row[column] is None:
                raise DatasetError(f"{path}: row {number} has no {column}")
    return table
