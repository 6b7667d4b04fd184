"""Seconds of real sound for mixtures, split by their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio
from earshot_models.datasets import esc, folder, spoken_digits
from earshot_models.datasets.dataset import Clip, Dataset
from earshot_models.datasets.waveforms import waveforms
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import NARROW

BACKGROUND = -1
"""Label of background sound, which has no name."""


class Side(IntEnum):
    """Uses of a recording with all of its seconds; no recording is on two sides."""

    TEACHERS = 0
    VALIDATION = 1
    QUERIES = 2
    TEST = 3


@dataclass(frozen=True)
class MixtureSeconds:
    """Seconds for mixtures, by their label and side.

    Attributes:
        label: Index into `labels`, or `BACKGROUND`, int64 (seconds,).
        side: Value of `Side`, int64 (seconds,).
        recording: Number of the recording of each second, int64 (seconds,).
        labels: Names of the labels, alternating between environments and digits.
    """

    label: NDArray[np.int64]
    side: NDArray[np.int64]
    recording: NDArray[np.int64]
    labels: tuple[str, ...]

    def of(self, side: Side, label: int) -> NDArray[np.int64]:
        """Return the indices of a side's seconds with a label, int64 (some,)."""
        return np.flatnonzero((self.side == side) & (self.label == label))

    def at(self, side: Side) -> list[NDArray[np.int64]]:
        """Return `of` for every label: the seconds that may be mixed for this side.

        Raises:
            InvalidInputError: A label has none.
        """
        found = [self.of(side, label) for label in range(len(self.labels))]
        bare = [name for name, rows in zip(self.labels, found, strict=True) if not len(rows)]
        if bare:
            raise InvalidInputError(
                f"no sound of {', '.join(bare)} is left for {side.name.lower()}: environments need "
                "recordings in folds 1 to 4, digits need takes 0 to 20 or more"
            )
        return found


@dataclass(frozen=True)
class Sources(MixtureSeconds):
    """Seconds with their sound.

    Attributes:
        sound: Sound, float32 (seconds, rate), none silent.
    """

    sound: NDArray[np.float32]

    @property
    def rate(self) -> int:
        """Samples per second."""
        return int(self.sound.shape[1])


def open_sources(
    data: Path,
    rate: int = NARROW.rate,
    cache: Path | None = None,
) -> Sources:
    """Read the environments, digits and backgrounds of a folder.

    Environments: folds 1 and 2 are for teachers, except every eighth recording of a class, which is
    for validation; fold 3 is for queries, all others for tests. Digits: takes 0 to 4, the official
    test set, are for tests, 5 to 14 for queries, 15 to 19 for validation, all others for teachers.
    Backgrounds are distributed file by file.

    Args:
        data: Folder that holds `esc10`, `fsdd` and, for backgrounds, optionally `free_sounds`.
        rate: Samples per second.
        cache: Folder for decoded sound.

    Raises:
        DatasetError: One of the folders is missing, or is not laid out as `datasets` expects.
        UnreadableFileError: A file does not decode.
    """
    environments, digits = esc.load(data / "esc10"), spoken_digits.load(data / "fsdd")
    kinds = [environments, digits]
    if (data / "free_sounds").is_dir():
        kinds.append(folder.load(data / "free_sounds"))
    labels = _by_turns(environments.labels, digits.labels)
    sides = [_side_of_environments(environments), [_side_of_digit(each) for each in digits.clips]]
    sides += [[Side(number % len(Side)) for number in range(len(kind.clips))] for kind in kinds[2:]]
    parts: list[tuple[NDArray[np.float32], int, int, int]] = []
    names: dict[tuple[int, str], int] = {}
    for place, (dataset, own) in enumerate(zip(kinds, sides, strict=True)):
        sounds = waveforms(dataset, cache, rate=rate).all()
        for clip, whose, sound in zip(dataset.clips, own, sounds, strict=True):
            name = BACKGROUND if place == 2 else labels.index(str(clip.label))
            number = names.setdefault((place, clip.recording or str(clip.path)), len(names))
            parts.append((audio.seconds(sound, rate=rate), name, whose, number))
    counts = [len(sound) for sound, *_ in parts]
    label, side, recording = (np.repeat([part[i] for part in parts], counts) for i in (1, 2, 3))
    sound = np.concatenate([part[0] for part in parts])
    return Sources(label, side, recording, labels, sound)


def _by_turns(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Alternate between both, then append the rest of the longer one."""
    both = [name for pair in zip(first, second, strict=False) for name in pair]
    shorter = min(len(first), len(second))
    return (*both, *first[shorter:], *second[shorter:])


_VALIDATED = 8


def _side_of_environments(dataset: Dataset) -> list[Side]:
    """Return sides by fold; some recordings of each class in the teachers' folds are held back."""
    held_back: set[tuple[str | None, str]] = set()
    for label in dataset.labels:
        groups = {each.group for each in dataset.clips if each.label == label and _early(each)}
        held_back |= {(label, group) for group in sorted(groups)[::_VALIDATED]}

    def side(clip: Clip) -> Side:
        if not _early(clip):
            return Side.QUERIES if clip.fold == 3 else Side.TEST
        return Side.VALIDATION if (clip.label, clip.group) in held_back else Side.TEACHERS

    return [side(clip) for clip in dataset.clips]


def _early(clip: Clip) -> bool:
    return clip.fold is not None and clip.fold <= 2


def _side_of_digit(clip: Clip) -> Side:
    take = int(clip.attributes["take"])
    if take < 5:
        return Side.TEST
    return Side.QUERIES if take < 15 else Side.VALIDATION if take < 20 else Side.TEACHERS
