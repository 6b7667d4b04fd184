"""The clips that a generator is trained on: one second of each sound file, as a picture."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio
from earshot_models.datasets import spoken_digits
from earshot_models.datasets.dataset import Clip, Dataset, sound_files
from earshot_models.datasets.opening import guess, open_dataset
from earshot_models.datasets.waveforms import waveforms
from earshot_models.generators.spectrogram import SMALL, SpectrogramSettings, log_mel
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress, silent

_LAYOUT = "a folder with audio files in it, or in its sub-folders"
_PARTS = 20
"""Number of parts of a second at which the chosen second may begin."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class Clips:
    """Pictures of clips, one for each file.

    Attributes:
        pictures: Pictures, float32 (clips, frames, bands) in [-1, 1].
        labels: Names of the clips' classes.
        names: Paths of the files, within the folder.
    """

    pictures: NDArray[np.float32]
    labels: tuple[str, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pictures)


def listed(folder: Path) -> Dataset:
    """List the sound files of a folder and its sub-folders, by name, without decoding any.

    Published data sets have their own classes; see `open_dataset`. Of any other folder, spoken
    digits (DIGIT_SPEAKER_TAKE) are labelled by their digit, and files by their sub-folder or, in
    the folder itself, by their name without numbers.

    Raises:
        DatasetError: There is no such folder, no sound in it, or not all of its data set.
    """
    if guess(folder) not in ("folder", "spoken-digits"):
        published = open_dataset(folder)
        own = (replace(clip, group=clip.name) for clip in published.clips)
        return replace(published, clips=tuple(own))
    clips = [
        Clip(path, _label(path, folder), path.relative_to(folder).as_posix())
        for path in sound_files(folder, "**/*")
    ]
    return Dataset.of_files(folder.resolve().name, clips, folder, _LAYOUT)


def opened(
    dataset: Dataset,
    progress: Progress = silent,
    settings: SpectrogramSettings = SMALL,
) -> Clips:
    """Decode the loudest second of each file; nothing of it is kept on the disk.

    Args:
        dataset: Files as listed by `listed`.
        progress: Callback after each file.
        settings: Settings of the pictures.

    Raises:
        UnreadableFileError: A file does not decode, or holds NaN.
        InvalidInputError: A clip is silent, or two are the same sound, whose price would then be
            paid twice without anyone knowing for whom.
    """
    decoded = waveforms(dataset, None, progress, settings.rate).all()
    names = [clip.group for clip in dataset.clips]
    seconds = np.stack([_loudest(sound, settings.rate) for sound in decoded])
    silent = [name for name, sounds in zip(names, audio.loud(seconds), strict=True) if not sounds]
    if silent:
        raise InvalidInputError(f"{_some(silent)}: silent, with nothing to learn; remove them")
    owners: dict[bytes, str] = {}
    for name, second in zip(names, seconds, strict=True):
        first = owners.setdefault(_digest(second), name)
        if first != name:
            raise InvalidInputError(
                f"{name} is the same sound as {first}: remove one, for a clip that occurs twice "
                "is protected half as well"
            )
    labels = tuple(clip.label or "" for clip in dataset.clips)
    return Clips(log_mel(seconds, settings), labels, tuple(names))


def refuse_shared(clips: Clips, public: Clips) -> None:
    """Refuse public sound that is also among the sensitive.

    Raises:
        InvalidInputError: Some clips are in both.
    """
    sensitive = {_digest(picture) for picture in clips.pictures}
    shared = [
        name
        for name, picture in zip(public.names, public.pictures, strict=True)
        if _digest(picture) in sensitive
    ]
    if shared:
        raise InvalidInputError(
            f"{_some(shared)}: both in --public and in --clips; sensitive clips cannot be public"
        )


def _label(path: Path, folder: Path) -> str:
    digit = spoken_digits.NAME.fullmatch(path.stem)
    if digit:
        return digit[1]
    if path.parent != folder:
        return path.parent.name
    return re.sub(r"[\d\W_]+$", "", path.stem) or path.stem


def _loudest(sound: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    cut = audio.windows(sound, rate // _PARTS, rate)
    energy = np.square(cut, dtype=np.float64).sum(axis=1)
    return np.asarray(cut[energy.argmax()], dtype=np.float32)


def _digest(numbers: NDArray[np.float32]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).digest()


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
