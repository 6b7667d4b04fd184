"""Phones that hear synthesized sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_client.features import one_second
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.checks import whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.spectrum import SAMPLE_RATE
from earshot_simulations.populations import seeds
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
from earshot_simulations.populations.population import HELD_OUT_PER_SCENE, PhoneCrowd, Stream
from earshot_simulations.workers import in_parallel

_BATCH = 256
"""Recordings that are embedded together."""
_PUBLIC = 0
"""Seed of the public pool, independent of the crowd's."""
_STARTS = "starts"
"""Name of the file that holds where each phone's points begin, int64."""


class Soundscapes(EmbeddedSound):
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
        jobs: int = 1,
        progress: Progress = silent,
        *,
        heterogeneity: Heterogeneity = Heterogeneity(),  # noqa: B008 - it cannot be changed
        encoder: EncoderSource = None,
    ) -> None:
        """Check the parameters of the `PhoneCrowd` and of `EmbeddedSound`.

        `prepare` synthesizes and embeds.

        Raises:
            InvalidParametersError: A parameter is out of range: scenes, those of
                `earshot_models.soundscapes.SCENES`, are 1 to 10.
        """
        crowd = PhoneCrowd(phones, recordings, _known(scenes), labelled, seed, heterogeneity)
        super().__init__(crowd, SCENES[:scenes], dimensions, jobs, progress, encoder)

    def _sound(self) -> object:
        # The choice of labelled recordings does not affect the sound.
        differ = replace(self._crowd.heterogeneity, labelled_correlation=0.0)
        return self.name, replace(self._crowd, labelled=0.0, heterogeneity=differ)

    def _embed_all(self, sound: Path) -> None:
        first = self._starts()
        done, total = 0, int(first[-1]) + HELD_OUT_PER_SCENE * len(self.labels)
        # Not a memory map, with which a full disk would kill the process.
        with (sound / EMBEDDINGS).open("wb") as file:
            tasks = ((self._crowd, phones, self._encoder) for phones in _batches(first))
            for embeddings in in_parallel(_embed_phones, tasks, self._jobs):
                file.write(embeddings.tobytes())
                done += len(embeddings)
                self._progress(HEAR, done, total)
            generator = self._crowd.generator(Stream.HELD_OUT)
            held_out = _embed_scenes(self._each_scene(), generator, self._encoder)
            file.write(held_out.tobytes())
        self._progress(HEAR, total, total)

    def _arrange(self, sound: Path, folder: Path) -> int:
        first = self._starts()
        first.tofile(folder / _STARTS)
        _write_points(self._projected(sound), folder)
        return int(first[-1])

    def _starts(self) -> NDArray[np.int64]:
        """Return where the recordings of each phone begin."""
        return starts(map(self._crowd.count, range(self.phones)))

    def _rows(self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator) -> slice:
        start = int(self._stored(_STARTS, np.int64)[phone])
        return slice(start, start + len(scenes))


class PooledSoundscapes(EmbeddedSound):
    """Phones whose recordings are seconds of a public pool, as if they visited the same places.

    The pool depends on its size and the scenes alone, not on the crowd or the seed. Held-out
    seconds are not in the pool.
    """

    name = "soundscapes"

    def __init__(
        self,
        pool: int,
        phones: int,
        recordings: int,
        scenes: int,
        labelled: float,
        seed: int,
        dimensions: int = 8,
        jobs: int = 1,
        progress: Progress = silent,
        *,
        heterogeneity: Heterogeneity = Heterogeneity(),  # noqa: B008 - it cannot be changed
        encoder: EncoderSource = None,
    ) -> None:
        """Check the parameters: those of `Soundscapes`, and the distinct seconds of each scene.

        `prepare` synthesizes and embeds the pool.

        Raises:
            InvalidParametersError: A parameter is out of range; `pool` must be at least 1.
        """
        self._pool = whole("pool", pool)
        crowd = PhoneCrowd(phones, recordings, _known(scenes), labelled, seed, heterogeneity)
        super().__init__(crowd, SCENES[:scenes], dimensions, jobs, progress, encoder)

    def _sound(self) -> object:
        return self.name, self.labels, self._pool

    def _embed_all(self, sound: Path) -> None:
        scenes = np.concatenate([self._each_scene(self._pool), self._each_scene()])
        firsts = range(0, len(scenes), _BATCH)
        tasks = ((scenes[first : first + _BATCH], first, self._encoder) for first in firsts)
        done = 0
        with (sound / EMBEDDINGS).open("wb") as file:
            for embeddings in in_parallel(_embed_public, tasks, self._jobs):
                file.write(embeddings.tobytes())
                done += len(embeddings)
                self._progress(HEAR, done, len(scenes))

    def _arrange(self, sound: Path, folder: Path) -> int:
        _write_points(self._projected(sound), folder)
        return self._pool * len(self.labels)

    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.int64]:
        seconds = generator.integers(self._pool, size=len(scenes))
        return np.asarray(scenes * np.int64(self._pool) + seconds)


def _known(scenes: int) -> int:
    if scenes > len(SCENES):
        raise InvalidParametersError(f"scenes must be at most {len(SCENES)}, not {scenes}")
    return scenes


def _write_points(blocks: Iterable[NDArray[np.float32]], folder: Path) -> None:
    with (folder / POINTS).open("wb") as file:
        for points in blocks:
            file.write(points.tobytes())


def _batches(first: NDArray[np.int64]) -> Iterator[range]:
    """Yield runs of phones that hear about `_BATCH` recordings together."""
    start, phones = 0, len(first) - 1
    while start < phones:
        full = int(np.searchsorted(first, first[start] + _BATCH))
        end = min(max(full, start + 1), phones)
        yield range(start, end)
        start = end


def _embed_phones(crowd: PhoneCrowd, phones: range, encoder: EncoderSource) -> NDArray[np.float32]:
    scenes = np.concatenate([crowd.heard(phone)[0] for phone in phones])
    return _embed_scenes(scenes, crowd.generator(Stream.SOUND, phones.start), encoder)


def _embed_public(
    scenes: NDArray[np.int16], first: int, encoder: EncoderSource
) -> NDArray[np.float32]:
    """Embed one batch of public seconds, seeded by the index of the first alone."""
    return _embed_scenes(scenes, seeds.generator(_PUBLIC, Stream.SOUND, first), encoder)


def _embed_scenes(
    scenes: NDArray[np.int16], generator: np.random.Generator, encoder: EncoderSource
) -> NDArray[np.float32]:
    """Synthesize and embed one second of each scene."""
    rate = rate_heard(encoder)
    made = -(-rate // SAMPLE_RATE) * SAMPLE_RATE
    embeddings = []
    for start in range(0, len(scenes), _BATCH):
        part = scenes[start : start + _BATCH]
        sound = np.empty((len(part), rate), dtype=np.float32)
        for scene in np.unique(part):
            clips = synthesize(SCENES[scene], int(np.sum(part == scene)), generator, made)
            sound[part == scene] = [one_second(clip, made, rate) for clip in clips]
        embeddings.append(embedded(sound, encoder))
    return np.concatenate(embeddings)
