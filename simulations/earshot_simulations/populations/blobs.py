"""The synthetic data set of the thesis (9.2.2): round blobs of points in the plane."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.populations.population import (
    HELD_OUT_PER_SCENE,
    Crowd,
    Recordings,
    Skipped,
    Stream,
    balanced,
)

DEVIATION = 0.05
"""Standard deviation of a blob, in each coordinate."""

CENTRE_BOUND = 0.85
"""No coordinate of a centre is larger in magnitude."""

SEPARATION = 0.35
"""Smallest distance between two centres: seven deviations."""

MOST_SCENES = 20
"""More centres than this rarely fit when they are thrown at random."""

_DARTS = 2000


class Blobs:
    """Phones whose recordings are points of [-1, 1]², scattered around one centre per scene."""

    name = "blobs"
    geometry = "euclidean"
    dimensions = 2
    skipped: tuple[Skipped, ...] = ()

    def __init__(
        self,
        phones: int,
        recordings: int,
        scenes: int,
        labelled: float,
        seed: int,
        concentration: float = 0.5,
    ) -> None:
        """Place the centres.

        Args:
            phones: number of phones, at least 1.
            recordings: mean number per phone, at least 1.
            scenes: number of blobs, 1 to 20.
            labelled: fraction of the recordings that carry their label, 0 to 1.
            seed: at least 0.
            concentration: of the phones' mixes of scenes (`Crowd`).

        Raises:
            InvalidParametersError: if one of them is out of range.
        """
        if scenes > MOST_SCENES:
            raise InvalidParametersError(f"scenes must be at most {MOST_SCENES}, not {scenes}")
        self._crowd = Crowd(phones, recordings, scenes, labelled, seed, concentration)
        self.phones = phones
        self.labels = tuple(f"scene {scene + 1}" for scene in range(scenes))
        self.centres = _centres(scenes, self._crowd.generator(Stream.CENTRES))

    def prepare(self) -> None:
        """Nothing takes long here."""

    def recordings(self, phone: int) -> Recordings:
        """What one phone has heard.

        Args:
            phone: 0 to phones - 1.

        Raises:
            InvalidInputError: if there is no such phone.
        """
        scenes, labels, generator = self._crowd.heard(phone)
        return Recordings(self._scatter(scenes, generator), labels, scenes)

    def held_out(self) -> Recordings:
        """200 labelled points of each blob."""
        scenes = len(self.labels)
        truth = np.repeat(np.arange(scenes, dtype=np.int16), HELD_OUT_PER_SCENE)
        return balanced(self._scatter(truth, self._crowd.generator(Stream.HELD_OUT)), scenes)

    def close(self) -> None:
        """Nothing lies on the disk."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def _scatter(
        self, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        noise = generator.standard_normal((len(scenes), 2), dtype=np.float32)
        points = self.centres[scenes] + np.float32(DEVIATION) * noise
        return np.clip(points, -1, 1, out=points)


def _centres(scenes: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Throw darts that keep their distance; where they got stuck, start over."""
    centres: list[NDArray[np.float64]] = []
    while len(centres) < scenes:
        centres = []
        for dart in generator.uniform(-CENTRE_BOUND, CENTRE_BOUND, (_DARTS, 2)):
            apart = all(np.hypot(*(dart - centre)) >= SEPARATION for centre in centres)
            if apart and len(centres) < scenes:
                centres.append(dart)
    return np.array(centres, dtype=np.float32)
