"""Tagging of sound files, which are cut into pieces; each label's likeliest piece is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio
from earshot_models.datasets.dataset import DatasetError, check_folder, sound_files
from earshot_models.tagging.evidence import CONFIDENCE
from earshot_models.tagging.mel_power import mel_power
from earshot_models.tagging.tagger_file import PublishedTagger
from earshot_protocol.sound_reading import SOUND_SUFFIXES, UnreadableFileError

Progress = Callable[[str, int, int], None]

LAYOUT = "a folder with files that end in .au, .flac, .mp3, .ogg or .wav, in it or below"


@dataclass(frozen=True)
class Tagged:
    """Results of a tagger for one file.

    Attributes:
        name: Path of the file within the folder.
        seconds: Length in seconds; 0 if the file cannot be read.
        pieces: Number of tagged pieces, those that are not silent.
        probabilities: Probability of each label in its likeliest piece, (labels,); 0 without any
            piece.
        starts: Start of each label's likeliest piece, in seconds, (labels,).
        counts: Number of pieces in which each label is named, (labels,).
        error: Reason why the file cannot be read; empty if it can.
    """

    name: str
    seconds: float
    pieces: int
    probabilities: NDArray[np.float64]
    starts: NDArray[np.float64]
    counts: NDArray[np.int64]
    error: str = ""


@dataclass(frozen=True)
class TaggedRecordings:
    """Results of a tagger for the files of a folder.

    Attributes:
        tagger: Tagger that was used.
        files: Results for all files, by name.
    """

    tagger: PublishedTagger
    files: tuple[Tagged, ...]

    @property
    def pieces(self) -> int:
        """Number of tagged pieces of all files."""
        return sum(file.pieces for file in self.files)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of pieces of all files in which each label is named, (labels,)."""
        zero = np.zeros(len(self.tagger.card.labels), np.int64)
        return sum((file.counts for file in self.files), zero)

    def expected(self) -> NDArray[np.float64] | None:
        """Return each label's expected false names, (labels,); None without evidence.

        They are counted in pieces, as if no label were in any.
        """
        evidence = self.tagger.card.evidence
        if not evidence:
            return None
        return self.pieces * np.array([each.false_alarms for each in evidence])

    def doubtful(self) -> NDArray[np.bool_] | None:
        """Return which labels are named no more often than false alarms are, bool (labels,).

        None is returned without evidence. Pieces are counted as if they were independent. With
        `CONFIDENCE`, no label at all passes where all names are false alarms.
        """
        evidence = self.tagger.card.evidence
        if not evidence:
            return None
        chances = [
            each.chance(int(count), self.pieces)
            for each, count in zip(evidence, self.counts, strict=True)
        ]
        doubts: NDArray[np.bool_] = np.array(chances) > (1 - CONFIDENCE) / len(chances)
        return doubts


def tag_folder(
    tagger: PublishedTagger,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> TaggedRecordings:
    """Tag every sound file in a folder and below it; files that are not read are marked.

    Raises:
        DatasetError: There is no such folder, or it holds no sound file.
    """
    check_folder(folder, LAYOUT)
    paths = list(sound_files(folder, "**/*", SOUND_SUFFIXES))
    if not any(path.suffix.lower() in audio.SUFFIXES for path in paths):
        raise DatasetError(f"{folder} holds no sound; expected {LAYOUT}")
    files = []
    for done, path in enumerate(paths, start=1):
        files.append(tag_file(tagger, path, path.relative_to(folder).as_posix()))
        progress("tagging", done, len(paths))
    return TaggedRecordings(tagger, tuple(files))


def tag_file(tagger: PublishedTagger, path: Path, name: str) -> Tagged:
    """Tag one file; one that cannot be read has an `error`, and raises none."""
    mel, labels = tagger.card.mel, len(tagger.card.labels)
    nothing = np.zeros(labels)
    if path.suffix.lower() not in audio.SUFFIXES:
        read = ", ".join(audio.SUFFIXES)
        error = f"{path.suffix.lower()} is not read, but {read}"
        return Tagged(name, 0.0, 0, nothing, nothing, nothing.astype(np.int64), error)
    try:
        sound = audio.read_mono(path, mel.rate)
    except UnreadableFileError as unreadable:
        return Tagged(name, 0.0, 0, nothing, nothing, nothing.astype(np.int64), str(unreadable))
    cut, starts = pieces(sound, mel.samples)
    loud = audio.loud(cut)
    cut, begins = cut[loud], starts[loud] / mel.rate
    seconds = len(sound) / mel.rate
    if not len(cut):
        return Tagged(name, seconds, 0, nothing, nothing, nothing.astype(np.int64))
    likely = tagger.tagger.probabilities(mel_power(at_level(cut, tagger.card.level), mel))
    most = likely.argmax(axis=0)
    return Tagged(
        name,
        seconds,
        len(cut),
        likely.max(axis=0).astype(np.float64),
        begins[most],
        tagger.named(likely).sum(axis=0),
    )


def pieces(
    sound: NDArray[np.float32], samples: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Cut a sound into pieces of one length, one after the other; the last ends where it ends.

    A shorter sound is put in the middle of silence, like the short sounds that taggers learn from.

    Args:
        sound: Samples, float32 (any,).
        samples: Samples of a piece.

    Returns:
        float32 (pieces, samples), and where each piece begins, int64 (pieces,).
    """
    if len(sound) <= samples:
        before = (samples - len(sound)) // 2
        return np.pad(sound, (before, samples - len(sound) - before))[None], np.zeros(1, np.int64)
    starts = np.arange(0, len(sound) - samples + 1, samples)
    if starts[-1] + samples < len(sound):
        starts = np.append(starts, len(sound) - samples)
    return np.lib.stride_tricks.sliding_window_view(sound, samples)[starts], starts


def at_level(cut: NDArray[np.float32], level: float) -> NDArray[np.float32]:
    """Scale pieces (pieces, samples), none silent, to a root mean square."""
    root = np.sqrt(np.mean(np.square(cut, dtype=np.float64), axis=1, keepdims=True))
    brought: NDArray[np.float32] = (cut * (level / root)).astype(np.float32)
    return brought
