"""The sound of a data set at one rate, decoded once and kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models.audio import read_mono
from earshot_models.datasets.dataset import Clip, Dataset
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replacement
from earshot_protocol.progress import Progress, silent
from earshot_protocol.sound_reading import UnreadableFileError
from earshot_protocol.spectrum import SAMPLE_RATE

_VERSION = 2
"""Cache format version; part of the key."""


@dataclass(frozen=True)
class Waveforms:
    """Clip after clip in one array.

    Attributes:
        samples: Samples of all clips, float32 (all samples,), mapped from disk if cached.
        ends: End of each clip, int64 (clips,), in samples.
        unreadable: Error of each clip's file, or an empty string; a clip with an error has no
            samples.
    """

    samples: NDArray[np.float32]
    ends: NDArray[np.int64]
    unreadable: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ends)

    def clip(self, index: int) -> NDArray[np.float32]:
        """Return one clip, float32 (samples,)."""
        start = int(self.ends[index - 1]) if index else 0
        return self.samples[start : int(self.ends[index])]

    def all(self) -> list[NDArray[np.float32]]:
        """Return every clip, in order.

        Raises:
            UnreadableFileError: Some files cannot be decoded; the message names the first ones.
        """
        errors = [error for error in self.unreadable if error]
        if errors:
            more = f", and {len(errors) - 3} more files" if len(errors) > 3 else ""
            raise UnreadableFileError("; ".join(errors[:3]) + more)
        return np.split(self.samples, self.ends[:-1])


def readable(dataset: Dataset, unreadable: Sequence[str]) -> Dataset:
    """Return a data set without its unreadable files, given the error of each or an empty string.

    Raises:
        InvalidInputError: No file is left, or none of a class; the message names the first.
    """
    bad = {clip: wrong for clip, wrong in zip(dataset.clips, unreadable, strict=True) if wrong}
    if not bad:
        return dataset
    left = {clip.label for clip in dataset.clips if clip not in bad}
    lost = {clip.label for clip in bad} - left
    if lost:
        why = "; ".join([wrong for clip, wrong in bad.items() if clip.label in lost][:3])
        named = ", ".join(sorted(label or dataset.name for label in lost))
        raise InvalidInputError(f"no file of {named} can be read: {why}")
    return dataset.where(lambda clip: clip not in bad)


def waveforms(
    dataset: Dataset,
    cache: Path | None = None,
    progress: Progress = silent,
    rate: int = SAMPLE_RATE,
) -> Waveforms:
    """Decode all clips, or map clips that were decoded before.

    Args:
        dataset: Data set whose clips are decoded.
        cache: Folder for decoded sound; nothing is kept if it is None, or if a file cannot be
            decoded. The key is made of the rate and each file's path, size and modification time.
        progress: Callback after each file.
        rate: Samples per second.

    Raises:
        OSError: The cache cannot be written.
    """
    if cache is None:
        return _decode(dataset, progress, rate)
    folder = cache / _key(dataset.clips, rate)
    decoded = _open(folder)
    if decoded is None:
        decoded = _decode(dataset, progress, rate)
        if not any(decoded.unreadable):
            _keep(decoded, folder)
    return decoded


def _decode(dataset: Dataset, progress: Progress, rate: int) -> Waveforms:
    sounds, errors = [], []
    for done, clip in enumerate(dataset.clips, start=1):
        sound, wrong = np.empty(0, dtype=np.float32), ""
        try:
            sound = read_mono(clip.path, rate)
        except UnreadableFileError as error:
            wrong = str(error)
        sounds.append(sound)
        errors.append(wrong)
        progress(f"reading {dataset.name} at {rate // 1000} kHz", done, len(dataset.clips))
    ends = np.cumsum([len(sound) for sound in sounds])
    return Waveforms(np.concatenate(sounds), ends, tuple(errors))


def _key(clips: Sequence[Clip], rate: int) -> str:
    digest = hashlib.sha256(json.dumps([_VERSION, rate]).encode())
    for clip in clips:
        try:
            status = clip.path.stat()
            changed = f"\0{status.st_size}\0{status.st_mtime_ns}\n"
        except OSError:  # an unreadable file is not cached anyway
            changed = "\n"
        digest.update(os.fsencode(clip.path.resolve()) + changed.encode())
    return digest.hexdigest()[:32]


def _open(folder: Path) -> Waveforms | None:
    """Return the cached sound; None if there is none, or it is incomplete."""
    try:
        samples = np.load(folder / "samples.npy", mmap_mode="r")
        ends = np.load(folder / "ends.npy")
    except (OSError, ValueError, EOFError):
        return None
    if samples.dtype != np.float32 or not len(ends) or ends[-1] != len(samples):
        return None
    return Waveforms(samples, ends, ("",) * len(ends))


def _keep(decoded: Waveforms, folder: Path) -> None:
    """Write each file under a temporary name first, so that none is ever half-written."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (("samples", decoded.samples), ("ends", decoded.ends)):
        with replacement(folder / f"{name}.npy") as draft:
            np.save(draft, array)
