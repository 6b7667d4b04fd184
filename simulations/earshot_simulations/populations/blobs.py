"""The synthetic data set of the thesis (9.2.2): round blobs of points in the plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.start_centroids import CentroidSet
from earshot_simulations.populations.heterogeneity import Heterogeneity
from earshot_simulations.populations.population import DrawnPopulation, PhoneCrowd, Stream

DEVIATION = 0.05
"""Standard deviation of a blob, in each coordinate."""

CENTRE_BOUND = 0.85
"""Largest magnitude of a centre's coordinates."""

SEPARATION = 0.35
"""Smallest distance between two centres: seven deviations."""

MOST_SCENES = 20
"""Most scenes; more centres rarely fit at random."""

_DARTS = 2000


class Blobs(DrawnPopulation):
    """Phones whose recordings are points of [-1, 1]², scattered around one centre per scene."""

    name = encoder = "blobs"
    geometry = Geometry.EUCLIDEAN
    dimensions = 2

    def __init__(
        self,
        phones: int,
        recordings: int,
        scenes: int,
        labelled: float,
        seed: int,
        heterogeneity: Heterogeneity = Heterogeneity(),  # noqa: B008 - it cannot be changed
    ) -> None:
        """Place the centres of 1 to 20 scenes; the parameters are those of `PhoneCrowd`.

        Raises:
            InvalidParametersError: A parameter is out of range.
        """
        if scenes > MOST_SCENES:
            raise InvalidParametersError(f"scenes must be at most {MOST_SCENES}, not {scenes}")
        crowd = PhoneCrowd(phones, recordings, scenes, labelled, seed, heterogeneity)
        super().__init__(crowd, tuple(f"scene {scene + 1}" for scene in range(scenes)))
        self.centres = _centres(scenes, crowd.generator(Stream.CENTRES))

    def _points(
        self, phone: int, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        return self._scatter(scenes, generator)

    def _held_out_points(self) -> NDArray[np.float32]:
        return self._scatter(self._each_scene(), self._crowd.generator(Stream.HELD_OUT))

    def _scatter(
        self, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        noise = generator.standard_normal((len(scenes), 2), dtype=np.float32)
        noise *= np.float32(DEVIATION)
        noise += self.centres[scenes]
        return np.minimum(np.maximum(noise, -1, out=noise), 1, out=noise)


class LiftedBlobs(Blobs):
    """The same points on the sphere, where discovery by secure sum looks for directions.

    A point (x, y) becomes the direction of (x, y, 1): directions are close if their points are.
    """

    name = "blobs on the sphere"
    encoder = "lifted-blobs"
    geometry = Geometry.SPHERICAL
    dimensions = 3

    @override
    def start(self, cells: int) -> CentroidSet:
        """Return start centroids evenly spread over [-1, 1]², independent of the blobs.

        They are a low-discrepancy sequence of multiples of inverse powers of the plastic number.
        """
        steps = _PLASTIC ** -np.arange(1.0, 3.0)
        return CentroidSet.of(lifted(2 * np.modf(np.outer(np.arange(1, cells + 1), steps))[0] - 1))

    def _scatter(
        self, scenes: NDArray[np.int16], generator: np.random.Generator
    ) -> NDArray[np.float32]:
        return lifted(super()._scatter(scenes, generator))


_PLASTIC = 1.324717957244746
"""The plastic number, the real root of x³ = x + 1."""


def lifted(points: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the direction of (p, 1) for each point p, float32 (points, dimensions + 1)."""
    raised = np.ones((len(points), points.shape[1] + 1))
    raised[:, :-1] = points
    # No entry is larger than the last, so nothing has to be scaled before it is squared.
    raised /= np.sqrt(np.square(raised).sum(axis=1, keepdims=True))
    return raised.astype(np.float32)


def _centres(scenes: int, generator: np.random.Generator) -> NDArray[np.float32]:
    """Draw centres at random with a minimal distance; start over if not enough fit."""
    centres: list[NDArray[np.float64]] = []
    while len(centres) < scenes:
        centres = []
        for dart in generator.uniform(-CENTRE_BOUND, CENTRE_BOUND, (_DARTS, 2)):
            apart = all(np.hypot(*(dart - centre)) >= SEPARATION for centre in centres)
            if apart and len(centres) < scenes:
                centres.append(dart)
    return np.array(centres, dtype=np.float32)
