"""The phones of a simulation, and the number of recordings of each scene that they hear."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import share, whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_simulations.populations import seeds
from earshot_simulations.populations.heterogeneity import Heterogeneity
from earshot_simulations.populations.interface import Recordings, SimulatedPopulation

UNLABELLED = -1

HELD_OUT_PER_SCENE = 200
"""Held-out recordings of each scene."""

IDLE = 0.01
"""Fraction of the phones that have heard nothing."""


class Stream(IntEnum):
    """Independent sources of randomness under one seed."""

    PHONES = 0
    CENTRES = 1
    SOUND = 2
    SPLIT = 3
    HELD_OUT = 4
    WRONG_LABELS = 5


@dataclass(frozen=True)
class PhoneCrowd:
    """The scenes and labels of each phone's recordings.

    Every phone has its own number of recordings, uniform from half to one and a half times
    `recordings` (one phone in a hundred has none), and its own mix of scenes; `heterogeneity` sets
    further differences.

    Attributes:
        phones: Number of phones, at least 1.
        recordings: Mean number of recordings per phone, at least 1.
        scenes: Number of scenes, at least 1.
        labelled: Fraction of the recordings that carry a label, 0 to 1.
        seed: Seed of the crowd, at least 0.
        heterogeneity: Differences between phones.

    Raises:
        InvalidParametersError: A number is out of range.
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
        """Return the generator of one purpose and one phone (or batch)."""
        return seeds.generator(self.seed, stream, index)

    def count(self, phone: int) -> int:
        """Return the number of recordings of a phone."""
        return self._count(self._of(phone))

    def heard(self, phone: int) -> tuple[NDArray[np.int16], NDArray[np.int16], np.random.Generator]:
        """Return the scenes and labels of a phone's recordings.

        Args:
            phone: Number of the phone, 0 to phones - 1.

        Returns:
            Scenes int16 (recordings,), labels int16 (recordings,), and the phone's generator, for
            all further draws of this phone.

        Raises:
            InvalidInputError: There is no such phone.
        """
        generator = self._of(phone)
        count = self._count(generator)
        mix = np.cumsum(self.heterogeneity.mix(self.scenes, generator))
        drawn = np.searchsorted(mix[:-1], generator.random(count), side="right")
        scenes = drawn.astype(np.int16)
        labelled = self.heterogeneity.labelled(self.labelled, generator)
        named = generator.random(count) < labelled
        labels = scenes
        if self.heterogeneity.mislabelled:
            # From a separate stream, so that recordings and labelled ones stay the same.
            wrong = self.generator(Stream.WRONG_LABELS, phone)
            labels = self.heterogeneity.mislabel(scenes, self.scenes, wrong)
        return scenes, np.where(named, labels, np.int16(UNLABELLED)), generator

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


class DrawnPopulation(SimulatedPopulation):
    """Phones of a `PhoneCrowd`, whose recordings are drawn by scene."""

    def __init__(self, crowd: PhoneCrowd, labels: tuple[str, ...]) -> None:
        self.phones = crowd.phones
        self.labels = labels
        self._crowd = crowd

    @override
    def recordings(self, phone: int) -> Recordings:
        scenes, labels, generator = self._crowd.heard(phone)
        return Recordings(self._points(phone, scenes, generator), labels, scenes)

    @override
    def held_out(self) -> Recordings:
        """Return labelled recordings that no phone has heard, at most 200 per scene and balanced.

        Raises:
            WrongStateError: The population is not prepared, or is closed, as for `recordings`.
        """
        points = self._held_out_points()
        truth = self._each_scene(len(points) // len(self.labels))
        return Recordings(points, truth, truth)

    def _each_scene(self, count: int = HELD_OUT_PER_SCENE) -> NDArray[np.int16]:
        """Return every scene this many times, in order."""
        return np.repeat(np.arange(len(self.labels), dtype=np.int16), count)

    @abstractmethod
    def _points(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        """Return the points of a phone's recordings, given their scenes."""

    @abstractmethod
    def _held_out_points(self) -> NDArray[np.float32]:
        """Return equally many points of each scene, in the scenes' order."""
