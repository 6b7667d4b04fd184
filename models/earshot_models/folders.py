"""Sound in a folder of one's own: one sub-folder per class, with audio files in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError

SUFFIXES = (".flac", ".ogg", ".wav")
"""Audio files that are read, whatever the case of the suffix."""

LAYOUT = f"accepted is FOLDER/CLASS/NAME with NAME ending in {', '.join(SUFFIXES)}"

# ESC-10 and ESC-50: FOLD-ID-TAKE.ogg, or FOLD-ID-TAKE-TARGET.wav.
_FOLD_NAME = re.compile(r"(\d+)-\d+-[A-Z](-\d+)?")


class FolderError(InvalidInputError):
    """A folder that is missing, or that holds no sound in the accepted layout."""


class UnreadableFileError(InvalidInputError):
    """An audio file that does not decode."""


@dataclass(frozen=True)
class Clip:
    """One audio file.

    Attributes:
        path: of the file.
        label: its class, the name of the folder it lies in.
        group: files of one group may stem from one recording, so they stay on one side of a
            split: ESC's FOLD-ID-TAKE names share a group per fold, any other file has its own.
    """

    path: Path
    label: str
    group: str

    @property
    def name(self) -> str:
        """The path relative to the folder, CLASS/NAME."""
        return f"{self.label}/{self.path.name}"


def find_clips(folder: Path) -> tuple[Clip, ...]:
    """List the clips of a folder, by class and then by name; hidden files are left out.

    Args:
        folder: with one sub-folder per class.

    Raises:
        FolderError: if there is no such folder, or no audio file in it where one is accepted.
    """
    if not folder.is_dir():
        raise FolderError(f"there is no folder {folder}; {LAYOUT}")
    clips = tuple(
        Clip(path, path.parent.name, _group(path))
        for path in sorted(folder.glob("*/*"))
        if path.suffix.lower() in SUFFIXES and path.is_file() and not _is_hidden(path)
    )
    if not clips:
        raise FolderError(f"{folder} holds no audio; {LAYOUT}")
    return clips


def read_clip(clip: Clip) -> tuple[NDArray[np.float32], int]:
    """Decode a clip.

    Returns:
        float32 (samples, channels) in [-1, 1], and the samples per second.

    Raises:
        UnreadableFileError: if the file does not decode, with the reason.
    """
    import soundfile

    try:
        samples, rate = soundfile.read(clip.path, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        raise UnreadableFileError(f"{clip.name} does not decode: {error}") from error
    return samples, int(rate)


def split(
    clips: Iterable[Clip], fraction: float, generator: np.random.Generator
) -> tuple[tuple[Clip, ...], tuple[Clip, ...]]:
    """Hold out whole groups, so that no recording is on both sides.

    Class by class, random groups are held out until at least `fraction` of the class's clips are
    (rounded to a whole clip, at least one); a group that holds the last training clips of a class
    is never taken.

    Args:
        clips: of any number of classes.
        fraction: of each class to hold out, above 0 and below 1.
        generator: chooses the groups.

    Returns:
        The training clips and the held-out clips, each in the order of `clips`.

    Raises:
        InvalidParametersError: if `fraction` is out of range.
        InvalidInputError: if a class cannot be on both sides, since all its clips share a group.
    """
    if not 0 < fraction < 1:
        raise InvalidParametersError(f"fraction must be above 0 and below 1, not {fraction}")
    clips = tuple(clips)
    sizes = Counter(clip.label for clip in clips)
    groups: dict[str, Counter[str]] = {}
    for clip in clips:
        groups.setdefault(clip.group, Counter())[clip.label] += 1
    chosen = _choose(groups, sizes, fraction, generator)
    held_out = tuple(clip for clip in clips if clip.group in chosen)
    missing = set(sizes) - {clip.label for clip in held_out}
    if missing:
        raise InvalidInputError(
            f"nothing can be held out of {', '.join(sorted(missing))} without taking a class's "
            "last training clips: each class needs clips from at least two recordings of its own"
        )
    return tuple(clip for clip in clips if clip.group not in chosen), held_out


def _choose(
    groups: dict[str, Counter[str]],
    sizes: Counter[str],
    fraction: float,
    generator: np.random.Generator,
) -> set[str]:
    chosen: set[str] = set()
    taken: Counter[str] = Counter()
    order = [sorted(groups)[i] for i in generator.permutation(len(groups))]
    for label in sorted(sizes):
        wanted = max(1, round(fraction * sizes[label]))
        for group in order:
            if taken[label] >= wanted:
                break
            inside = groups[group]
            if label not in inside or group in chosen:
                continue
            if all(taken[other] + inside[other] < sizes[other] for other in inside):
                chosen.add(group)
                taken += inside
    return chosen


def _group(path: Path) -> str:
    fold = _FOLD_NAME.fullmatch(path.stem)
    return f"fold {fold[1]}" if fold else f"{path.parent.name}/{path.name}"


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.parent.name.startswith(".")
