"""Phones that hear sound: every second is embedded once, and its point stored in a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder, open_encoder, rate_of, start_centroids
from earshot_protocol.checks import whole
from earshot_protocol.errors import InvalidParametersError, WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.progress import Progress
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_protocol.start_centroids import CentroidSet
from earshot_simulations.populations.hearing import heard
from earshot_simulations.populations.own_encoder import OwnEncoder
from earshot_simulations.populations.population import DrawnPopulation, PhoneCrowd
from earshot_simulations.temporary import TemporaryFolder
from earshot_simulations.versions import file_digest

EncoderSource = Path | OwnEncoder | None
"""An encoder: its file, one of the caller's own, or the default one."""
HEAR = "hear"
"""Name of the progress of synthesizing and embedding sound."""


class EmbeddedSound(DrawnPopulation):
    """Base of all populations of sound: embed, project, then read points from files.

    Files let many processes share the points and bound memory. They are in the system's temporary
    folder (TMPDIR), and are removed by `close` or with the object that made them. Embeddings of
    full length are removed earlier, unless populations hear within `hearing.hearing_once` or
    `hearing.hearing_kept`.
    """

    geometry = Geometry.SPHERICAL

    def __init__(
        self,
        crowd: PhoneCrowd,
        labels: tuple[str, ...],
        dimensions: int,
        jobs: int,
        progress: Progress,
        encoder: EncoderSource,
    ) -> None:
        """Check the parameters.

        Args:
            crowd: Numbers of recordings, scenes and labels of the phones.
            labels: Names of the labels, one per scene.
            dimensions: Dimensions of the projected embeddings, 1 to the encoder's.
            jobs: Processes that embed, at least 1; the result does not depend on it.
            progress: Callback that receives the number of finished recordings or files, and of all.
            encoder: Encoder file, or an encoder of the caller's own, which embeds in this process
                alone; None for the default encoder.

        Raises:
            InvalidParametersError: A parameter is out of range.
            DamagedEncoderError: There is no such encoder file, or it is damaged.
        """
        super().__init__(crowd, labels)
        opened = open_encoder(encoder)
        if not 1 <= dimensions <= opened.dimensions:
            raise InvalidParametersError(
                f"dimensions={dimensions}: must be 1 to {opened.dimensions}, the length of an "
                f"embedding of the encoder '{opened.name}'"
            )
        self.encoder, self.rate = opened.name, rate_of(opened)
        self._encoder = encoder
        self.dimensions = dimensions
        self._jobs = 1 if isinstance(encoder, OwnEncoder) else whole("jobs", jobs)
        self._progress = progress
        self._folder: TemporaryFolder | None = None
        self._files: Path | None = None
        self._on_phones = 0

    def prepare(self) -> None:
        """Embed and project every recording; calls after the first do nothing.

        Embedding uses `jobs` processes, and is skipped if the same sound is cached.

        Raises:
            InvalidInputError: A class of the folder has no usable second on either side.
            OSError: The temporary folder is full.
        """
        if self._files is not None:
            return
        self._folder = TemporaryFolder("sound")
        self._files = self._folder.path
        try:
            with heard(self._heard_as(), self._embed_all) as sound:
                self._on_phones = self._arrange(sound, self._files)
        except BaseException:
            self.close()
            raise

    @override
    def start(self, cells: int) -> CentroidSet:
        """Return the encoder's public start centroids."""
        opened = open_encoder(self._encoder)
        return CentroidSet.of(start_centroids(opened, self.dimensions, cells))

    def close(self) -> None:
        """Remove the temporary files, if this object made them."""
        self._files = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy only reads, and must not remove the files.
        own = isinstance(self._encoder, OwnEncoder)
        encoder = None if own else self._encoder
        return {**self.__dict__, "_folder": None, "_progress": None, "_encoder": encoder}

    def _points(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        return np.array(self._embedded()[self._rows(phone, scenes, generator)])

    def _held_out_points(self) -> NDArray[np.float32]:
        return np.array(self._embedded()[self._on_phones :])

    def _embedded(self) -> NDArray[np.float32]:
        return self._stored(POINTS, np.float32).reshape(-1, self.dimensions)

    def _stored(self, name: str, kind: type[Any]) -> NDArray[Any]:
        """Map the numbers of a file, read-only."""
        if self._files is None:
            raise WrongStateError("prepare the population first (or use it as a context manager)")
        return np.memmap(self._files / name, dtype=kind, mode="r")

    def _heard_as(self) -> object:
        """Return an object whose `repr` identifies sound and encoder; None where nothing does."""
        encoder = self._encoder
        if isinstance(encoder, OwnEncoder):
            named = encoder.name, encoder.rate, encoder.dimensions, encoder.key
            return None if encoder.key is None else (self._sound(), named)
        digest = SHIPPED_ENCODERS[DEFAULT_ENCODER] if encoder is None else file_digest(encoder)
        return self._sound(), digest

    def _projected(self, sound: Path) -> Iterator[NDArray[np.float32]]:
        """Yield the points of all recordings, in order, some rows at a time."""
        opened = _current(self._encoder)
        with (sound / EMBEDDINGS).open("rb") as file:
            while block := file.read(_ROWS_AT_ONCE * opened.dimensions * 4):
                rows = np.frombuffer(block, np.float32).reshape(-1, opened.dimensions)
                yield opened.project(rows, self.dimensions)

    @abstractmethod
    def _sound(self) -> object:
        """Return an object whose `repr` identifies the sound by its contents, without paths."""

    @abstractmethod
    def _embed_all(self, sound: Path) -> None:
        """Write `EMBEDDINGS`, and all other files that `_arrange` needs, to a folder."""

    @abstractmethod
    def _arrange(self, sound: Path, folder: Path) -> int:
        """Write `POINTS`, first those of the phones, then the held-out ones.

        Returns:
            The number of the phones' points.
        """

    @abstractmethod
    def _rows(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> slice | NDArray[np.int64]:
        """Return the rows of a phone's recordings in the file."""


POINTS = "points"
"""Name of the file of all points, float32."""
EMBEDDINGS = "embeddings"
"""Name of the file of embeddings before projection, float32, at the encoder's full length."""
_ROWS_AT_ONCE = 2**14


def embedded(sound: NDArray[np.float32], encoder: EncoderSource) -> NDArray[np.float32]:
    """Return embeddings of seconds at the encoder's rate, one per row."""
    from threadpoolctl import threadpool_limits

    # One thread, so that sums have one order however many cores and processes there are.
    with threadpool_limits(1):
        return _current(encoder).embed(sound)


def rate_heard(encoder: EncoderSource) -> int:
    """Return samples per second of the seconds that `embedded` takes."""
    return rate_of(_current(encoder))


def _current(encoder: EncoderSource) -> Encoder:
    if isinstance(encoder, OwnEncoder):
        return encoder
    return _opened(encoder, changed(encoder))


@lru_cache(maxsize=1)
def _opened(encoder: Path | None, changed: int) -> Encoder:
    """Open an encoder once in each process, and again when the file has changed."""
    return open_encoder(encoder)


def changed(file: Path | None) -> int:
    """Return the modification time of a file in nanoseconds; 0 without a file."""
    with suppress(OSError):
        return file.stat().st_mtime_ns if file else 0
    return 0


def starts(counts: Iterable[int]) -> NDArray[np.int64]:
    """Return the start of each run, and the end of the last, given lengths: int64 (runs + 1,)."""
    return np.cumsum(np.fromiter(chain([0], counts), dtype=np.int64))
