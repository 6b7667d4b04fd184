"""Split of a data set: one speaker is public, the others are private, and some takes are for tests.

Every choice is made on the public speaker. Clips of private speakers train teachers or private
generators; their other takes are used for tests, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio
from earshot_models.datasets import folder, spoken_digits
from earshot_models.datasets.dataset import Clip, Dataset
from earshot_models.datasets.waveforms import waveforms
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.progress import Progress, silent
from earshot_studies.pate_aae.generators.spectrogram import SMALL, SpectrogramSettings, log_mel

_TEST = "test"


@dataclass(frozen=True)
class LabelledClips:
    """Pictures of clips and their labels.

    Attributes:
        pictures: Pictures, float32 (clips, frames, bands) in [-1, 1].
        labels: Indices of the classes, int64 (clips,).
    """

    pictures: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Split:
    """Clips by speaker and use.

    Attributes:
        classes: Names of the classes.
        speaker: Public speaker.
        public: Takes of the public speaker, except those of the tests.
        validation: Takes of the public speaker from the tests, on which every choice is made.
        private: Takes of the other speakers, except those of the tests.
        test: Takes of the other speakers from the official tests.
    """

    classes: tuple[str, ...]
    speaker: str
    public: LabelledClips
    validation: LabelledClips
    private: LabelledClips
    test: LabelledClips


def open_split(
    data: Path,
    speaker: str | None = None,
    cache: Path | None = None,
    progress: Progress = silent,
    settings: SpectrogramSettings = SMALL,
) -> Split:
    """Read spoken digits.

    Args:
        data: Folder of the Free Spoken Digit Dataset.
        speaker: Public speaker; None for the first by name.
        cache: Folder for decoded sound.
        progress: Callback after each file.
        settings: Settings of the pictures.

    Raises:
        DatasetError: There is no such folder, or its files have other names.
        InvalidParametersError: There is no speaker of that name.
        InvalidInputError: There is only one speaker, or one has no clip to train or to test on.
        UnreadableFileError: A file does not decode.
    """
    found = spoken_digits.load(data)
    speakers = sorted({clip.group for clip in found.clips})
    if len(speakers) < 2:
        raise InvalidInputError(
            f"{data} has one speaker, {speakers[0]}: one is public, so there must be at least two"
        )
    own = speakers[0] if speaker is None else speaker
    if own not in speakers:
        raise InvalidParametersError(f"speaker={own}: must be one of {', '.join(speakers)}")
    for each in speakers:
        for split in ("train", _TEST):
            if not any(clip.group == each and clip.split == split for clip in found.clips):
                raise InvalidInputError(
                    f"{data} has no clip of {each} to {split} on: takes 0 to 4 are for tests, "
                    "later ones for training"
                )
    whole = _clips(found, cache, progress, settings)

    def part(public: bool, test: bool) -> LabelledClips:
        return _where(
            whole,
            found.clips,
            lambda clip: (clip.group == own) == public and (clip.split == _TEST) == test,
        )

    return Split(
        found.labels,
        own,
        part(True, False),
        part(True, True),
        part(False, False),
        part(False, True),
    )


@dataclass(frozen=True)
class Sounds:
    """Pictures of public sound and their names.

    Attributes:
        pictures: Pictures, float32 (sounds, frames, bands) in [-1, 1].
        names: Name of each sound.
    """

    pictures: NDArray[np.float32]
    names: tuple[str, ...]


def open_sounds(
    data: Path,
    cache: Path | None = None,
    progress: Progress = silent,
    settings: SpectrogramSettings = SMALL,
) -> Sounds:
    """Read all seconds of public sound that are not silent.

    Args:
        data: Folder of sound with a folder for each source.
        cache: Folder for decoded sound.
        progress: Callback after each file.
        settings: Settings of the pictures.

    Raises:
        DatasetError: There is no such folder, or no sound in it.
        UnreadableFileError: A file does not decode.
    """
    found = folder.load(data)
    waves = waveforms(found, cache, progress, settings.rate).all()
    parts = [audio.seconds(wave, rate=settings.rate) for wave in waves]
    names = tuple(
        str(clip.label) for clip, part in zip(found.clips, parts, strict=True) for _ in part
    )
    return Sounds(log_mel(np.concatenate(parts), settings), names)


def _clips(
    found: Dataset, cache: Path | None, progress: Progress, settings: SpectrogramSettings
) -> LabelledClips:
    sounds = waveforms(found, cache, progress, settings.rate).all()
    # A clip is one digit: of the few that last longer, only the first second is used.
    seconds = np.stack([audio.windows(sound, settings.rate, settings.rate)[0] for sound in sounds])
    labels = np.array([found.labels.index(str(clip.label)) for clip in found.clips])
    return LabelledClips(log_mel(seconds, settings), labels)


def _where(
    whole: LabelledClips, clips: Sequence[Clip], wanted: Callable[[Clip], bool]
) -> LabelledClips:
    rows = [number for number, clip in enumerate(clips) if wanted(clip)]
    return LabelledClips(whole.pictures[rows], whole.labels[rows])
