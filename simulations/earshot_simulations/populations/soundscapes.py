"""Phones that hear synthesized sound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_client.features import one_second
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.spectrum import SAMPLE_RATE
from earshot_simulations.populations.array_file import ArrayFile
from earshot_simulations.populations.embedded import EmbeddedSound, Embedding, Progress, starts
from earshot_simulations.populations.population import HELD_OUT_PER_SCENE, Crowd, Stream

_BATCH = 256
"""Recordings."""


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
        encoder: Encoder | None = None,
        jobs: int = 1,
        progress: Progress | None = None,
        concentration: float = 0.5,
    ) -> None:
        """Check the parameters of the `Crowd` and of `EmbeddedSound`.

        `prepare` synthesizes and embeds.

        Raises:
            InvalidParametersError: if one of them is out of range: scenes, those of
                `earshot_models.soundscapes.SCENES`, are 1 to 10.
        """
        if scenes > len(SCENES):
            raise InvalidParametersError(f"scenes must be at most {len(SCENES)}, not {scenes}")
        crowd = Crowd(phones, recordings, scenes, labelled, seed, concentration)
        super().__init__(crowd, SCENES[:scenes], dimensions, encoder, jobs, progress)

    def _embed_all(self) -> None:
        crowd, held_out = self._crowd, HELD_OUT_PER_SCENE * len(self.labels)
        first = starts(map(crowd.count, range(self.phones)))
        self._files["starts"] = ArrayFile(len(first), 1, np.int64)
        self._files["starts"].write(0, first)
        on_phones = int(first[-1])
        points = self._reserve(on_phones, held_out)
        tasks = ((crowd, row, phones) for row, phones in _batches(first))
        for row, embedded in self._in_parallel(_embed_phones, tasks):
            points.write(row, embedded)
            self._report(row + len(embedded), on_phones + held_out)
        scenes = np.repeat(np.arange(len(self.labels), dtype=np.int16), HELD_OUT_PER_SCENE)
        generator = crowd.generator(Stream.HELD_OUT)
        points.write(on_phones, _embed_scenes(self._embedding(), scenes, generator))
        self._report(on_phones + held_out, on_phones + held_out)

    def _rows(self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator) -> slice:
        start = int(self._stored("starts")[phone, 0])
        return slice(start, start + len(scenes))


def _batches(first: NDArray[np.int64]) -> Iterator[tuple[int, range]]:
    """Runs of phones that hear about `_BATCH` recordings together, each with its first row."""
    start, phones = 0, len(first) - 1
    while start < phones:
        full = int(np.searchsorted(first, first[start] + _BATCH))
        end = min(max(full, start + 1), phones)
        yield int(first[start]), range(start, end)
        start = end


def _embed_phones(
    embedding: Embedding, crowd: Crowd, row: int, phones: range
) -> tuple[int, NDArray[np.float32]]:
    scenes = np.concatenate([crowd.heard(phone)[0] for phone in phones])
    generator = crowd.generator(Stream.SOUND, phones.start)
    return row, _embed_scenes(embedding, scenes, generator)


def _embed_scenes(
    embedding: Embedding, scenes: NDArray[np.int16], generator: np.random.Generator
) -> NDArray[np.float32]:
    """Synthesize and embed one second of each scene."""
    points = np.empty((len(scenes), embedding.dimensions), dtype=np.float32)
    for start in range(0, len(scenes), _BATCH):
        part = scenes[start : start + _BATCH]
        sound = np.empty((len(part), SAMPLE_RATE), dtype=np.float32)
        for scene in np.unique(part):
            clips = synthesize(SCENES[scene], int(np.sum(part == scene)), generator)
            sound[part == scene] = [one_second(clip, SAMPLE_RATE) for clip in clips]
        points[start : start + _BATCH] = embedding.points(sound)
    return points
