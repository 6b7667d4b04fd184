"""Phones that hear sound: every second is embedded once, and kept in a temporary file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder, default_encoder
from earshot_client.features import Unusable, UnusableRecordingError, one_second
from earshot_models.audio import UnreadableFileError, read
from earshot_models.datasets import folder as sound_folder
from earshot_models.datasets.dataset import Clip
from earshot_models.datasets.splits import split
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, WrongStateError
from earshot_protocol.spectrum import SAMPLE_RATE
from earshot_simulations.populations.array_file import ArrayFile
from earshot_simulations.populations.population import (
    HELD_OUT_PER_SCENE,
    Crowd,
    Recordings,
    Skipped,
    Stream,
    balanced,
)

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do, after each batch."""

HELD_OUT_FRACTION = 0.25
"""Of the clips of a folder that no phone hears."""

_BATCH_RECORDINGS = 256
_BATCH_CLIPS = 8


class _EmbeddedSound(ABC):
    """What soundscapes and folders share: embed once, then answer from the file."""

    geometry = "spherical"

    def __init__(
        self,
        crowd: Crowd,
        labels: tuple[str, ...],
        dimensions: int,
        encoder: Encoder | None,
        jobs: int,
        progress: Progress | None,
    ) -> None:
        encoder = encoder or default_encoder()
        if not 1 <= dimensions <= encoder.dimensions:
            raise InvalidParametersError(
                f"dimensions must be 1 to the encoder's {encoder.dimensions}, not {dimensions}"
            )
        if jobs < 1:
            raise InvalidParametersError(f"jobs must be at least 1, not {jobs}")
        self.labels = labels
        self.phones = crowd.phones
        self.dimensions = dimensions
        self.skipped: tuple[Skipped, ...] = ()
        self._crowd = crowd
        self._encoder: Encoder | None = encoder
        self._jobs = jobs
        self._progress = progress
        self._points: ArrayFile | None = None
        self._held_out = range(0)

    def prepare(self) -> None:
        """Embed every recording, in `jobs` processes; calls after the first do nothing.

        Raises:
            InvalidInputError: if a class of the folder has no usable second on either side.
            OSError: if the temporary folder is full.
        """
        if self._points is not None:
            return
        try:
            self._embed_all()
        except BaseException:
            self.close()
            raise

    def recordings(self, phone: int) -> Recordings:
        """What one phone has heard.

        Args:
            phone: 0 to phones - 1.

        Raises:
            InvalidInputError: if there is no such phone.
            WrongStateError: before `prepare` and after `close`.
        """
        scenes, labels, generator = self._crowd.heard(phone)
        rows = self._rows(phone, scenes, generator)
        return Recordings(np.array(self._stored(self._points).view()[rows]), labels, scenes)

    def held_out(self) -> Recordings:
        """Labelled recordings that no phone has heard, at most 200 of each scene.

        Raises:
            WrongStateError: before `prepare` and after `close`.
        """
        rows = slice(self._held_out.start, self._held_out.stop)
        return balanced(np.array(self._stored(self._points).view()[rows]), len(self.labels))

    def close(self) -> None:
        """Remove the temporary files."""
        if self._points is not None:
            self._points.close()
            self._points = None

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # Once prepared, a copy answers from the file and needs no encoder, which is large.
        encoder = self._encoder if self._points is None else None
        return {**self.__dict__, "_encoder": encoder, "_progress": None}

    @abstractmethod
    def _embed_all(self) -> None:
        """Fill `_points`, and set `_held_out` to the rows of the held-out recordings."""

    @abstractmethod
    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> slice | NDArray[np.int64]:
        """Where the recordings of a phone stand in the file."""

    @staticmethod
    def _stored(file: ArrayFile | None) -> ArrayFile:
        if file is None:
            raise WrongStateError("prepare the population first (or use it as a context manager)")
        return file

    def _the_encoder(self) -> Encoder:
        if self._encoder is None:
            raise WrongStateError("only the population that was prepared first can be again")
        return self._encoder

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)


class Soundscapes(_EmbeddedSound):
    """Phones whose every recording is a freshly synthesized second of one of ten scenes."""

    name = "soundscapes"

    def __init__(
        self,
        phones: int,
        recordings: int,
        scenes: int,
        labelled: float,
        seed: int,
        dimensions: int = 8,
        encoder: Encoder | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        concentration: float = 0.5,
    ) -> None:
        """Check the parameters; `prepare` synthesizes and embeds.

        Args:
            phones: number of phones, at least 1.
            recordings: mean number per phone, at least 1.
            scenes: how many of `soundscapes.SCENES` there are to hear, 1 to 10.
            labelled: fraction of the recordings that carry their label, 0 to 1.
            seed: at least 0.
            dimensions: of the projected embeddings, 1 to the encoder's.
            encoder: the default one if None.
            jobs: processes that embed, at least 1; the result does not depend on it.
            progress: called with the recordings that are done and all of them.
            concentration: of the phones' mixes of scenes (`Crowd`).

        Raises:
            InvalidParametersError: if one of them is out of range.
        """
        if scenes > len(SCENES):
            raise InvalidParametersError(f"scenes must be at most {len(SCENES)}, not {scenes}")
        crowd = Crowd(phones, recordings, scenes, labelled, seed, concentration)
        super().__init__(crowd, SCENES[:scenes], dimensions, encoder, jobs, progress)
        self._starts: ArrayFile | None = None

    def close(self) -> None:
        """Remove the temporary files."""
        super().close()
        if self._starts is not None:
            self._starts.close()
            self._starts = None

    def _embed_all(self) -> None:
        crowd, scenes = self._crowd, len(self.labels)
        counts = np.fromiter(map(crowd.count, range(self.phones)), dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)])
        heard, total = int(starts[-1]), int(starts[-1]) + HELD_OUT_PER_SCENE * scenes
        self._starts = ArrayFile(len(starts), 1, np.int64)
        self._starts.write(0, starts)
        self._points = ArrayFile(total, self.dimensions, np.float32)
        self._held_out = range(heard, total)
        encoder = self._the_encoder()
        tasks = ((crowd, row, phones, encoder, self.dimensions) for row, phones in _batches(starts))
        done = 0
        for row, embedded in _in_parallel(_embed_phones, tasks, self._jobs):
            self._points.write(row, embedded)
            done += len(embedded)
            self._report(done, total)
        truth = np.repeat(np.arange(scenes, dtype=np.int16), HELD_OUT_PER_SCENE)
        generator = crowd.generator(Stream.HELD_OUT)
        self._points.write(heard, _embed_scenes(truth, generator, encoder, self.dimensions))
        self._report(total, total)

    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> slice | NDArray[np.int64]:
        start = int(self._stored(self._starts).view()[phone, 0])
        return slice(start, start + len(scenes))


class SoundFolder(_EmbeddedSound):
    """Phones whose recordings are seconds of the audio files of a folder, one scene per class.

    Clips are cut into seconds. A quarter of the clips, whole recordings of them, is held out; a
    phone hears a random second of a random remaining clip of each scene in its mix.
    """

    def __init__(
        self,
        folder: Path | str,
        phones: int,
        recordings: int,
        labelled: float,
        seed: int,
        dimensions: int = 8,
        encoder: Encoder | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        concentration: float = 0.5,
    ) -> None:
        """List the folder; `prepare` reads and embeds it.

        Args:
            folder: CLASS/NAME.wav, .flac or .ogg, as `datasets.folder` accepts it.
            phones: number of phones, at least 1.
            recordings: mean number per phone, at least 1.
            labelled: fraction of the recordings that carry their label, 0 to 1.
            seed: at least 0.
            dimensions: of the projected embeddings, 1 to the encoder's.
            encoder: the default one if None.
            jobs: processes that embed, at least 1; the result does not depend on it.
            progress: called with the files that are done and all of them.
            concentration: of the phones' mixes of scenes (`Crowd`).

        Raises:
            InvalidParametersError: if a parameter is out of range.
            DatasetError: if there is no such folder, or no sound in it.
            InvalidInputError: if a class's clips all stem from one recording.
        """
        self.name = Path(folder).resolve().name
        dataset = sound_folder.load(Path(folder))
        labels = dataset.labels
        crowd = Crowd(phones, recordings, len(labels), labelled, seed, concentration)
        super().__init__(crowd, labels, dimensions, encoder, jobs, progress)
        training, held_out = split(dataset, HELD_OUT_FRACTION, crowd.generator(Stream.SPLIT))
        self._sides = training.clips, held_out.clips
        self._seconds = _Seconds.index([[] for _ in labels])

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state if self._points is None else {**state, "_sides": ((), ())}

    def _embed_all(self) -> None:
        training, held_out = self._sides
        embedded = self._embed(training + held_out)
        self.skipped = tuple(chain.from_iterable(clip.skipped for clip in embedded))
        heard = self._by_class(embedded[: len(training)], "hear")
        unheard = self._by_class(embedded[len(training) :], "hold out")
        self._seconds = _Seconds.index([[len(points) for points in clips] for clips in heard])
        rows = np.concatenate(list(chain.from_iterable(heard)))
        kept = self._balance(unheard)
        self._points = ArrayFile(len(rows) + len(kept), self.dimensions, np.float32)
        self._points.write(0, rows)
        self._points.write(len(rows), kept)
        self._held_out = range(len(rows), len(rows) + len(kept))

    def _embed(self, clips: tuple[Clip, ...]) -> list[_EmbeddedClip]:
        encoder = self._the_encoder()
        tasks = (
            (clips[first : first + _BATCH_CLIPS], encoder, self.dimensions)
            for first in range(0, len(clips), _BATCH_CLIPS)
        )
        embedded: list[_EmbeddedClip] = []
        for batch in _in_parallel(_embed_clips, tasks, self._jobs):
            embedded += batch
            self._report(len(embedded), len(clips))
        return embedded

    def _by_class(self, clips: list[_EmbeddedClip], use: str) -> list[list[NDArray[np.float32]]]:
        """Per class, the points of each clip that has any."""
        classes: dict[str, list[NDArray[np.float32]]] = {label: [] for label in self.labels}
        for clip in clips:
            if len(clip.points):
                classes[clip.label].append(clip.points)
        empty = [label for label, usable in classes.items() if not usable]
        if empty:
            why = "; ".join(f"{entry.recording} is {entry.reason}" for entry in self.skipped[:3])
            raise InvalidInputError(
                f"there is no usable second to {use} of {', '.join(empty)}: {why}"
            )
        return list(classes.values())

    def _balance(self, classes: list[list[NDArray[np.float32]]]) -> NDArray[np.float32]:
        """Equally many random seconds of each class, in the order of the classes."""
        points = [np.concatenate(clips) for clips in classes]
        most = min(HELD_OUT_PER_SCENE, *map(len, points))
        generator = self._crowd.generator(Stream.HELD_OUT)
        return np.concatenate([generator.choice(rows, most, replace=False) for rows in points])

    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> slice | NDArray[np.int64]:
        return self._seconds.draw(scenes, generator)


@dataclass(frozen=True)
class _Seconds:
    """Where the seconds of each training clip, and the clips of each class, begin.

    Attributes:
        clips: int64 (classes + 1,), the first clip of each class, and the number of clips.
        seconds: int64 (clips + 1,), the first second of each clip, and the number of seconds.
    """

    clips: NDArray[np.int64]
    seconds: NDArray[np.int64]

    @classmethod
    def index(cls, lengths: list[list[int]]) -> _Seconds:
        """From the number of seconds of every clip of every class."""
        return cls(_starts(map(len, lengths)), _starts(chain.from_iterable(lengths)))

    def draw(self, scenes: NDArray[np.int16], generator: np.random.Generator) -> NDArray[np.int64]:
        """For each scene, a random clip of it, and of that clip a random second."""
        clip = generator.integers(self.clips[scenes], self.clips[scenes + 1])
        return generator.integers(self.seconds[clip], self.seconds[clip + 1])


@dataclass(frozen=True)
class _EmbeddedClip:
    label: str
    points: NDArray[np.float32]
    skipped: tuple[Skipped, ...]


def _starts(counts: Iterable[int]) -> NDArray[np.int64]:
    return np.cumsum(np.fromiter(chain([0], counts), dtype=np.int64))


def _in_parallel(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], jobs: int
) -> Iterator[Any]:
    """Results in the order of the tasks, which are taken as they are needed."""
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)
    yield from parallel(delayed(function)(*task) for task in tasks)


def _batches(starts: NDArray[np.int64]) -> Iterator[tuple[int, range]]:
    """Runs of phones that hear about `_BATCH_RECORDINGS` together, each with its first row."""
    first, phones = 0, len(starts) - 1
    while first < phones:
        full = int(np.searchsorted(starts, starts[first] + _BATCH_RECORDINGS))
        end = min(max(full, first + 1), phones)
        yield int(starts[first]), range(first, end)
        first = end


def _embed_phones(
    crowd: Crowd, row: int, phones: range, encoder: Encoder, dimensions: int
) -> tuple[int, NDArray[np.float32]]:
    scenes = np.concatenate([crowd.heard(phone)[0] for phone in phones])
    generator = crowd.generator(Stream.SOUND, phones.start)
    return row, _embed_scenes(scenes, generator, encoder, dimensions)


def _embed_scenes(
    scenes: NDArray[np.int16], generator: np.random.Generator, encoder: Encoder, dimensions: int
) -> NDArray[np.float32]:
    """Synthesize and embed one second of each scene."""
    points = np.empty((len(scenes), dimensions), dtype=np.float32)
    for start in range(0, len(scenes), _BATCH_RECORDINGS):
        part = scenes[start : start + _BATCH_RECORDINGS]
        sound = np.empty((len(part), SAMPLE_RATE), dtype=np.float32)
        for scene in np.unique(part):
            clips = synthesize(SCENES[scene], int(np.sum(part == scene)), generator)
            sound[part == scene] = [one_second(clip, SAMPLE_RATE) for clip in clips]
        points[start : start + _BATCH_RECORDINGS] = _points(sound, encoder, dimensions)
    return points


def _embed_clips(clips: tuple[Clip, ...], encoder: Encoder, dimensions: int) -> list[_EmbeddedClip]:
    return [_embed_clip(clip, encoder, dimensions) for clip in clips]


def _embed_clip(clip: Clip, encoder: Encoder, dimensions: int) -> _EmbeddedClip:
    """Embed every usable second of a clip; what remains after the last full one is left out."""
    try:
        samples, rate = read(clip.path)
    except UnreadableFileError as error:
        nothing = np.empty((0, dimensions), dtype=np.float32)
        skipped = Skipped(clip.name, Unusable.UNREADABLE, str(error))
        return _EmbeddedClip(clip.label or "", nothing, (skipped,))
    usable, unusable = _cut(clip.name, samples, rate)
    points = _points(np.array(usable, np.float32).reshape(-1, SAMPLE_RATE), encoder, dimensions)
    return _EmbeddedClip(clip.label or "", points, tuple(unusable))


def _cut(
    name: str, samples: NDArray[np.float32], rate: int
) -> tuple[list[NDArray[np.float32]], list[Skipped]]:
    """The usable seconds of a clip, and the others with the reason."""
    usable: list[NDArray[np.float32]] = []
    unusable: list[Skipped] = []
    seconds = max(1, len(samples) // rate)
    for second in range(seconds):
        try:
            usable.append(one_second(samples[second * rate : (second + 1) * rate], rate))
        except UnusableRecordingError as error:
            recording = name if seconds == 1 else f"{name}, second {second + 1}"
            unusable.append(Skipped(recording, error.reason, error.detail))
    return usable, unusable


def _points(sound: NDArray[np.float32], encoder: Encoder, dimensions: int) -> NDArray[np.float32]:
    return encoder.project(encoder.embed(sound), dimensions)
