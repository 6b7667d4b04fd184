"""What a simulation asks of its phones: their number, what they have heard, and the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.geometry import Geometry
from earshot_protocol.start_centroids import CentroidSet
from earshot_simulations.shapes import shapes

LEAST_PHONES, MOST_PHONES = 3, 10**7
"""Fewest and most phones of a simulation, whose server keeps all answers to a step in memory."""
_STARTS = 0x57A27
"""Seed of the public start centroids of points without an encoder."""


class Recordings(NamedTuple):
    """Embedded recordings.

    Attributes:
        points: Points, float32 (recordings, dimensions).
        labels: Index into `Population.labels`, or -1 for unlabelled, int16 (recordings,).
        scenes: Index of the true scene, which no phone knows, or -1 where it is unknown, int16
            (recordings,).
        days: Day in UTC on which each was heard, or NaT where it is unknown, datetime64[D]
            (recordings,); None if no day is known. Only the window of a statistics phase needs
            them.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int16]
    scenes: NDArray[np.int16]
    days: NDArray[np.datetime64] | None = None

    def rows(self, chosen: Any) -> Recordings:
        """Return some of the recordings, by an index of an array."""
        days = None if self.days is None else self.days[chosen]
        return Recordings(self.points[chosen], self.labels[chosen], self.scenes[chosen], days)

    def __repr__(self) -> str:
        held = {name: each for name, each in self._asdict().items() if each is not None}
        return shapes("Recordings", held)


@dataclass(frozen=True)
class Skipped:
    """A recording that could not be used.

    Attributes:
        recording: Name of the recording, such as a file's path relative to its folder.
        reason: Reason in a word or two, shared by many recordings.
        detail: Exact finding.
    """

    recording: str
    reason: str
    detail: str = ""


class Population(Protocol):
    """Phones and what they have heard: a population of one's own, for `simulate` and `sweep`.

    Any object with these five serves; it need not inherit from this class. It may have more:

    - `geometry`: `"spherical"`, the default, where every point has length 1; or `"euclidean"`,
      where coordinates are from -1 to 1.
    - `start(cells)`: public start centroids of a phase by secure sums, floats (cells, dimensions).
      They must not depend on what phones heard. Without it they are random directions, or in the
      plane random places, the same for everybody.
    - `encoder`: name of the encoder of the points, for which the phase asks.
    - `key`: text that changes whenever the recordings do. Sweeps need it, and `result.json` has it.
    - `name`: what the phones heard, in a word or two, for reports.
    - `prepare()` and `close()`, called before the first recording is asked for and at the end.

    With more than one job, phones run in other processes, to which the object is copied.
    """

    @property
    def labels(self) -> Sequence[str]:
        """Names of the labels, two or more; label i is the name of scene i."""

    @property
    def phones(self) -> int:
        """Number of phones, at least 3."""

    @property
    def dimensions(self) -> int:
        """Length of a point."""

    def recordings(self, phone: int) -> Recordings:
        """Return the recordings of one phone: possibly none, and the same at every call.

        Args:
            phone: Number of the phone, 0 to phones - 1.
        """

    def held_out(self) -> Recordings:
        """Return recordings that no phone has heard, at least one, whose scenes are all known."""


class SimulatedPopulation(ABC):
    """Phones as the engine asks them. A copy pickled after `prepare` answers in another process.

    As a context manager, a population is prepared on entering and closed on leaving.

    Attributes:
        name: Kind of the phones' recordings, in a word or two.
        encoder: Name of the encoder of the points, which a phase over them must ask for.
        geometry: Geometry of the points, spherical if they have unit length.
        dimensions: Length of a point.
        phones: Number of phones.
        labels: Names of the labels; label i is the name of scene i.
        skipped: Recordings that could not be used; complete after `prepare`.
        unheard: Sentence on sound files that are left out without being read; empty if none is.
    """

    name: str
    encoder: str
    geometry: Geometry
    dimensions: int
    phones: int
    labels: tuple[str, ...]
    skipped: tuple[Skipped, ...] = ()
    unheard: str = ""

    def prepare(self) -> None:  # noqa: B027 - not all need it
        """Do all slow work, such as embedding sound; calls after the first do nothing."""

    @abstractmethod
    def recordings(self, phone: int) -> Recordings:
        """Return the recordings of one phone: possibly none, and the same at every call.

        Args:
            phone: Number of the phone, 0 to phones - 1.

        Raises:
            InvalidInputError: There is no such phone.
            WrongStateError: `prepare` has work to do and was not called, or `close` was.
        """

    def first_number(self, phone: int) -> int:
        """Return the number of a phone's oldest recording in its store, 1 for its first one."""
        del phone
        return 1

    def start(self, cells: int) -> CentroidSet:
        """Return this many public start centroids among its points, for a discovery phase.

        By default they are random directions, the same for everybody.

        Raises:
            MissingCentroidsError: The encoder has fewer.
        """
        return CentroidSet.of(random_directions(cells, self.dimensions))

    @abstractmethod
    def held_out(self) -> Recordings:
        """Return labelled recordings that no phone has heard, and whose scenes are known.

        Raises:
            WrongStateError: The population is not prepared, or is closed, as for `recordings`.
        """

    def close(self) -> None:  # noqa: B027 - not all leave something
        """Remove the files that `prepare` left on the disk."""

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def random_directions(count: int, dimensions: int) -> NDArray[np.float64]:
    """Return directions drawn uniformly from the sphere by a public seed, (count, dimensions)."""
    return np.random.default_rng([_STARTS, dimensions]).standard_normal((count, dimensions))
