"""Phones that hear the sound files of a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.features import Unusable, UnusableRecordingError, one_second
from earshot_models.audio import recorded_rate
from earshot_models.datasets.dataset import Clip
from earshot_models.datasets.opening import open_dataset
from earshot_models.datasets.splits import split
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.sound_reading import UnreadableFileError, opened, visible
from earshot_protocol.spectrum import NARROW
from earshot_simulations.populations.embedded import (
    EMBEDDINGS,
    HEAR,
    POINTS,
    EmbeddedSound,
    EncoderSource,
    embedded,
    rate_heard,
    starts,
)
from earshot_simulations.populations.heterogeneity import Heterogeneity
from earshot_simulations.populations.interface import Skipped
from earshot_simulations.populations.population import HELD_OUT_PER_SCENE, PhoneCrowd, Stream
from earshot_simulations.versions import readable_digest
from earshot_simulations.workers import in_parallel

HELD_OUT_FRACTION = 0.25
"""Fraction of a folder's clips that is held out."""

_BATCH = 8
"""Clips that are embedded together."""
_CUT = "cut"
"""Name of the file with the number of embedded seconds and the skipped ones of each clip."""

_MOST_NAMED = 5
_NARROW = "contrast-1"
"""Shipped encoder that hears at the rate of `NARROW`, and has no start centroids."""


class SoundFolder(EmbeddedSound):
    """Phones whose recordings are seconds of the audio files of a folder, one scene per class.

    Clips are cut into seconds. A quarter of the clips, in whole recordings, is held out where a
    result is judged by them; a phone hears a random second of a random remaining clip of each scene
    in its mix.
    """

    def __init__(
        self,
        folder: Path | str,
        phones: int,
        recordings: int,
        labelled: float,
        seed: int,
        dimensions: int = 8,
        jobs: int = 1,
        progress: Progress = silent,
        *,
        heterogeneity: Heterogeneity = Heterogeneity(),  # noqa: B008 - it cannot be changed
        encoder: EncoderSource = None,
        hold_out: bool = True,
    ) -> None:
        """List the folder, read as by `open_dataset`; `prepare` decodes and embeds it.

        Without `hold_out`, phones hear all clips. The other parameters are those of `PhoneCrowd`
        and `EmbeddedSound`.

        Raises:
            InvalidParametersError: A parameter is out of range.
            DatasetError: There is no such folder, no sound in it, or not one class, of several, for
                each clip.
            InvalidInputError: A class's clips all stem from one recording, and some are to be held
                out; or files have fewer samples per second than the encoder hears. The message
                names the first of them.
        """
        self.name = visible(Path(folder).resolve().name)
        dataset = open_dataset(Path(folder))
        dataset.check_classes()
        labels = dataset.labels
        crowd = PhoneCrowd(phones, recordings, len(labels), labelled, seed, heterogeneity)
        super().__init__(crowd, labels, dimensions, jobs, progress, encoder)
        _refuse_below(self.rate, self.encoder, dataset.clips)
        self.unheard = dataset.unheard_sentence()
        self.skipped = self._left_out = tuple(
            Skipped(each.name, each.reason) for each in dataset.unheard
        )
        self._sides: tuple[tuple[Clip, ...], ...] = (dataset.clips,)
        if hold_out:
            sides = split(dataset, HELD_OUT_FRACTION, crowd.generator(Stream.SPLIT))
            self._sides = tuple(side.clips for side in sides)
        self._seconds = _Seconds.index([[] for _ in labels])

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, "_sides": ()} if self._files else state

    def _clips(self) -> list[Clip]:
        """Return the clips of all sides by path, in the same order for all seeds and crowds."""
        return sorted(chain.from_iterable(self._sides), key=lambda clip: clip.path)

    def _sound(self) -> object:
        return [(clip.name, clip.label, readable_digest(clip.path)) for clip in self._clips()]

    def _embed_all(self, sound: Path) -> None:
        clips = self._clips()
        tasks = (
            (clips[first : first + _BATCH], self._encoder) for first in range(0, len(clips), _BATCH)
        )
        cut: list[tuple[int, list[tuple[str, ...]]]] = []
        with (sound / EMBEDDINGS).open("wb") as file:
            for batch in in_parallel(_embed_clips, tasks, self._jobs):
                for embeddings, skipped in batch:
                    file.write(embeddings.tobytes())
                    cut.append((len(embeddings), [astuple(entry) for entry in skipped]))
                self._progress(HEAR, len(cut), len(clips))
        (sound / _CUT).write_text(json.dumps(cut), encoding="utf-8")

    def _arrange(self, sound: Path, folder: Path) -> int:
        cut = json.loads((sound / _CUT).read_bytes())
        blocks = [np.empty((0, self.dimensions), np.float32), *self._projected(sound)]
        ends = np.cumsum([seconds for seconds, _ in cut])
        points = np.split(np.concatenate(blocks), ends[:-1])
        by_path = {
            clip.path: _EmbeddedClip(clip.label or "", own, [Skipped(*entry) for entry in skipped])
            for clip, own, (_, skipped) in zip(self._clips(), points, cut, strict=True)
        }
        heard, *held_out = ([by_path[clip.path] for clip in side] for side in self._sides)
        self.skipped = (
            *self._left_out,
            *chain.from_iterable(clip.skipped for side in (heard, *held_out) for clip in side),
        )
        classes = self._by_class(heard, "hear")
        others = [self._balanced(self._by_class(side, "hold out")) for side in held_out]
        self._seconds = _Seconds.index([[len(points) for points in clips] for clips in classes])
        rows = np.concatenate([*chain.from_iterable(classes), *chain.from_iterable(others)])
        rows.tofile(folder / POINTS)
        return int(self._seconds.seconds[-1])

    def _by_class(self, clips: list[_EmbeddedClip], use: str) -> list[list[NDArray[np.float32]]]:
        """Return the points of each clip that has any, by class."""
        classes: dict[str, list[NDArray[np.float32]]] = {label: [] for label in self.labels}
        for clip in clips:
            if len(clip.points):
                classes[clip.label].append(clip.points)
        empty = [label for label, usable in classes.items() if not usable]
        if empty:
            why = "; ".join(f"{entry.recording} is {entry.reason}" for entry in self.skipped[:3])
            least = "in two recordings at least" if len(self._sides) > 1 else "one at least"
            raise InvalidInputError(
                f"there is no usable second to {use} of {', '.join(empty)}: {why}; give each class "
                f"files of a second or more that play, {least}"
            )
        return list(classes.values())

    def _balanced(self, classes: list[list[NDArray[np.float32]]]) -> list[NDArray[np.float32]]:
        """Return equally many random seconds of each class."""
        points = [np.concatenate(clips) for clips in classes]
        most = min(HELD_OUT_PER_SCENE, *map(len, points))
        generator = self._crowd.generator(Stream.HELD_OUT)
        return [generator.choice(rows, most, replace=False) for rows in points]

    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        return self._seconds.draw(scenes, generator)


@dataclass(frozen=True)
class _Seconds:
    """The beginnings of the seconds of each training clip, and of the clips of each class.

    Attributes:
        clips: First clip of each class, and the number of clips, int64 (classes + 1,).
        seconds: First second of each clip, and the number of seconds, int64 (clips + 1,).
    """

    clips: NDArray[np.int64]
    seconds: NDArray[np.int64]

    @classmethod
    def index(cls, lengths: list[list[int]]) -> _Seconds:
        """Build the index from the number of seconds of every clip of every class."""
        return cls(starts(map(len, lengths)), starts(chain.from_iterable(lengths)))

    def draw(self, scenes: NDArray[np.int16], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw for each scene a random clip of it, and of that clip a random second."""
        clip = generator.integers(self.clips[scenes], self.clips[scenes + 1])
        return generator.integers(self.seconds[clip], self.seconds[clip + 1])


@dataclass(frozen=True)
class _EmbeddedClip:
    label: str
    points: NDArray[np.float32]
    skipped: list[Skipped]


def _embed_clips(
    clips: list[Clip], encoder: EncoderSource
) -> list[tuple[NDArray[np.float32], list[Skipped]]]:
    """Return embeddings of the usable seconds of each clip, and its skipped parts."""
    rate, found = rate_heard(encoder), []
    for clip in clips:
        seconds, skipped = _cut(clip, rate)
        sound = np.array(seconds, np.float32).reshape(-1, rate)
        found.append((embedded(sound, encoder), skipped))
    return found


def _refuse_below(rate: int, encoder: str, clips: Sequence[Clip]) -> None:
    """Refuse files with fewer samples per second than the encoder hears.

    Only headers are read; files that do not decode are skipped later.
    """
    below, least = [], rate
    for clip in clips:
        with suppress(UnreadableFileError):
            own = recorded_rate(clip.path)
            least = min(least, own)
            if own < rate:
                below.append(f"{clip.name} ({own:,})")
    if below:
        more = len(below) - _MOST_NAMED
        narrow = f", as {_NARROW} does (with --discovery local alone)"
        raise InvalidInputError(
            f"the encoder '{encoder}' hears {rate:,} samples per second, but {len(below)} of "
            f"{len(clips)} files have fewer: {', '.join(below[:_MOST_NAMED])}"
            + (f" and {more} more" if more > 0 else "")
            + "; record at that rate or above, or choose an encoder that hears less"
            + (narrow if NARROW.rate <= least < rate else "")
        )


def _cut(clip: Clip, wanted: int) -> tuple[list[NDArray[np.float32]], list[Skipped]]:
    """Return the usable seconds of a clip at a rate, and the others with the reason.

    The rest after the last full second is left out.
    """
    usable: list[NDArray[np.float32]] = []
    unusable: list[tuple[int, UnusableRecordingError]] = []
    seconds = 0
    try:
        with opened(clip.path) as file:
            for samples in file.seconds():
                if seconds and len(samples) < file.rate:
                    break
                seconds += 1
                try:
                    usable.append(one_second(samples, file.rate, wanted))
                except UnusableRecordingError as error:
                    unusable.append((seconds, error))
    except UnreadableFileError as error:
        return [], [Skipped(clip.name, Unusable.UNREADABLE, str(error))]
    return usable, [
        Skipped(
            clip.name if seconds == 1 else f"{clip.name}, second {number}",
            error.reason,
            error.detail,
        )
        for number, error in unusable
    ]
