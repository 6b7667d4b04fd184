"""What a simulation needs to know of its phones, and how much each phone hears of what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import share, whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.start_centroids import CentroidSet, MissingCentroidsError
from earshot_simulations.populations import seeds
from earshot_simulations.populations.heterogeneity import Heterogeneity

UNLABELLED = -1

HELD_OUT_PER_SCENE = 200
"""Recordings of each scene that no phone has heard."""

IDLE = 0.01
"""Fraction of the phones that have heard nothing."""


class Stream(IntEnum):
    """Independent sources of randomness under one seed."""

    PHONES = 0
    CENTRES = 1
    SOUND = 2
    SPLIT = 3
    HELD_OUT = 4


class Recordings(NamedTuple):
    """Embedded recordings.

    Attributes:
        points: float32 (recordings, dimensions).
        labels: int16 (recordings,), index into `Population.labels`, or -1 for unlabelled.
        scenes: int16 (recordings,), index of the true scene, which no phone knows.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int16]
    scenes: NDArray[np.int16]


@dataclass(frozen=True)
class Skipped:
    """A recording that could not be used.

    Attributes:
        recording: which one, such as a file's path relative to its folder.
        reason: why, in a word or two that many share.
        detail: what exactly was found.
    """

    recording: str
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Crowd:
    """How much each phone hears of which scene, and what of it gets a label.

    Every phone has its own number of recordings, uniform from half to one and a half times
    `recordings` (one phone in a hundred has none), and its own mix of scenes; `heterogeneity` says
    how far they differ beyond that.

    Attributes:
        phones: number of phones, at least 1.
        recordings: mean number per phone, at least 1.
        scenes: number of scenes, at least 1.
        labelled: fraction of the recordings that carry their true label, 0 to 1.
        seed: at least 0.
        heterogeneity: how phones differ.

    Raises:
        InvalidParametersError: if one of them is out of range.
    """

    phones: int
    recordings: int
    scenes: int
    labelled: float
    seed: int
    heterogeneity: Heterogeneity = field(default_factory=Heterogeneity)

    def __post_init__(self) -> None:
        for name, least in (("phones", 1), ("recordings", 1), ("scenes", 1), ("seed", 0)):
            whole(name, getattr(self, name), least)
        share("labelled", self.labelled)

    def generator(self, stream: Stream, index: int = 0) -> np.random.Generator:
        """The randomness of one purpose and one phone (or batch)."""
        return seeds.generator(self.seed, stream, index)

    def count(self, phone: int) -> int:
        """Number of recordings of a phone."""
        return self._count(self._of(phone))

    def heard(self, phone: int) -> tuple[NDArray[np.int16], NDArray[np.int16], np.random.Generator]:
        """The scenes and labels of a phone's recordings.

        Args:
            phone: 0 to phones - 1.

        Returns:
            scenes int16 (recordings,), labels int16 (recordings,), and the phone's generator, to
            draw whatever else belongs to this phone.

        Raises:
            InvalidInputError: if there is no such phone.
        """
        generator = self._of(phone)
        count = self._count(generator)
        mix = np.cumsum(self.heterogeneity.mix(self.scenes, generator))
        drawn = np.searchsorted(mix[:-1], generator.random(count), side="right")
        scenes = drawn.astype(np.int16)
        labelled = self.heterogeneity.labelled(self.labelled, generator)
        named = generator.random(count) < labelled
        return scenes, np.where(named, scenes, np.int16(UNLABELLED)), generator

    def _of(self, phone: int) -> np.random.Generator:
        if not 0 <= phone < self.phones:
            raise InvalidInputError(f"phone must be 0 to {self.phones - 1}, not {phone}")
        return self.generator(Stream.PHONES, phone)

    def _count(self, generator: np.random.Generator) -> int:
        if generator.random() < IDLE:
            return 0
        least, most = max(1, (self.recordings + 1) // 2), 3 * self.recordings // 2
        count = int(generator.integers(least, most, endpoint=True))
        return self.heterogeneity.quantity(count, self.recordings, generator)


class Population(ABC):
    """Simulated phones. A copy that was pickled after `prepare` answers in another process.

    Entering prepares it, leaving closes it.

    Attributes:
        name: what the phones hear, in a word or two.
        encoder: name of what made points of it, which a phase over them must ask for.
        geometry: spherical where the points have unit length.
        dimensions: length of a point.
        phones: number of phones.
        labels: names of the labels; label i is the name of scene i.
        skipped: what could not be used; complete after `prepare`.
    """

    name: str
    encoder: str
    geometry: Geometry
    dimensions: int
    skipped: tuple[Skipped, ...] = ()

    def __init__(self, crowd: Crowd, labels: tuple[str, ...]) -> None:
        self.phones = crowd.phones
        self.labels = labels
        self._crowd = crowd

    def prepare(self) -> None:  # noqa: B027 - not all have such work
        """Do the work that takes long, once; calls after the first do nothing."""

    def recordings(self, phone: int) -> Recordings:
        """What one phone has heard: possibly nothing, and the same at every call.

        Args:
            phone: 0 to phones - 1.

        Raises:
            InvalidInputError: if there is no such phone.
            WrongStateError: where `prepare` has work to do, before it and after `close`.
        """
        scenes, labels, generator = self._crowd.heard(phone)
        return Recordings(self._points(phone, scenes, generator), labels, scenes)

    def start(self, cells: int) -> CentroidSet:
        """So many public start centroids among its points, as a discovery phase needs them.

        Raises:
            MissingCentroidsError: its encoder has not so many, or the population has none at all.
        """
        raise MissingCentroidsError(f"{self.name}: there are no public start centroids")

    def held_out(self) -> Recordings:
        """Labelled recordings that no phone has heard, at most 200 and equally many of each scene.

        Raises:
            WrongStateError: as for `recordings`.
        """
        points = self._held_out_points()
        truth = self._each_scene(len(points) // len(self.labels))
        return Recordings(points, truth, truth)

    def close(self) -> None:  # noqa: B027 - not all leave something
        """Remove what `prepare` left on the disk."""

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _each_scene(self, count: int = HELD_OUT_PER_SCENE) -> NDArray[np.int16]:
        """Every scene so many times, in order."""
        return np.repeat(np.arange(len(self.labels), dtype=np.int16), count)

    @abstractmethod
    def _points(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        """What a phone hears that meets these scenes."""

    @abstractmethod
    def _held_out_points(self) -> NDArray[np.float32]:
        """Equally many of each scene, in the scenes' order."""
