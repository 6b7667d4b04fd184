"""Phones that hear sound: every second is embedded once, and kept in a temporary file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder, default_encoder
from earshot_protocol.errors import InvalidParametersError, WrongStateError
from earshot_simulations.populations.array_file import ArrayFile
from earshot_simulations.populations.population import Crowd, Recordings, Skipped, balanced

Progress = Callable[[int, int], None]
"""Called with what is done and all that is to be done, after each batch."""


@dataclass(frozen=True)
class Embedding:
    """An encoder, and to how many dimensions its embeddings are projected."""

    encoder: Encoder
    dimensions: int

    def points(self, sound: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of seconds, one a row."""
        return self.encoder.project(self.encoder.embed(sound), self.dimensions)


class EmbeddedSound(ABC):
    """What all populations of sound share: embed once, then answer from the file."""

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
        """Check the parameters.

        Args:
            crowd: who hears how much of what.
            labels: one per scene.
            dimensions: of the projected embeddings, 1 to the encoder's.
            encoder: the default one if None.
            jobs: processes that embed, at least 1; the result does not depend on it.
            progress: called with the recordings or files that are done and all of them.

        Raises:
            InvalidParametersError: if one of them is out of range.
        """
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
        self._files: dict[str, ArrayFile] = {}
        self._held_out = slice(0)

    def prepare(self) -> None:
        """Embed every recording, in `jobs` processes; calls after the first do nothing.

        Raises:
            InvalidInputError: if a class of the folder has no usable second on either side.
            OSError: if the temporary folder is full.
        """
        if self._files:
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
        return Recordings(np.array(self._stored("points")[rows]), labels, scenes)

    def held_out(self) -> Recordings:
        """Labelled recordings that no phone has heard, at most 200 of each scene.

        Raises:
            WrongStateError: before `prepare` and after `close`.
        """
        return balanced(np.array(self._stored("points")[self._held_out]), len(self.labels))

    def close(self) -> None:
        """Remove the temporary files."""
        while self._files:
            self._files.popitem()[1].close()

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # Once prepared, a copy answers from the files and needs no encoder, which is large.
        encoder = None if self._files else self._encoder
        return {**self.__dict__, "_encoder": encoder, "_progress": None}

    @abstractmethod
    def _embed_all(self) -> None:
        """Write all points to the file that `_reserve` makes."""

    @abstractmethod
    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> slice | NDArray[np.int64]:
        """Where the recordings of a phone stand in the file."""

    def _reserve(self, on_phones: int, held_out: int) -> ArrayFile:
        """Room for the points of recordings: those that phones hear, then those that none does."""
        self._held_out = slice(on_phones, on_phones + held_out)
        self._files["points"] = ArrayFile(on_phones + held_out, self.dimensions, np.float32)
        return self._files["points"]

    def _stored(self, name: str) -> NDArray[Any]:
        if name not in self._files:
            raise WrongStateError("prepare the population first (or use it as a context manager)")
        return self._files[name].view()

    def _embedding(self) -> Embedding:
        if self._encoder is None:
            raise WrongStateError("only the population that was prepared first can be again")
        return Embedding(self._encoder, self.dimensions)

    def _in_parallel(
        self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Results in the order of the tasks, which are taken as they are needed.

        Args:
            function: given the embedding, then what is in a task.
            tasks: the arguments of one call each.
        """
        from joblib import Parallel, delayed

        embedding = self._embedding()
        parallel = Parallel(n_jobs=self._jobs, return_as="generator", batch_size=1)
        yield from parallel(delayed(function)(embedding, *task) for task in tasks)

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)


def starts(counts: Iterable[int]) -> NDArray[np.int64]:
    """Where each run of so many begins, int64 (runs + 1,), and where the last one ends."""
    return np.cumsum(np.fromiter(chain([0], counts), dtype=np.int64))
