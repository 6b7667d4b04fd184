"""Recordings of all phones of a population in joint arrays, for studies of many phases."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from earshot_simulations.adversary.attack import Attacks
from earshot_simulations.populations import SimulatedPopulation


class HeardByAll(NamedTuple):
    """Recordings of all phones, one phone after the other.

    Attributes:
        points: Points, real numbers (recordings, dimensions).
        labels: Labels, int16 (recordings,); -1 for none.
        starts: Beginning of each phone's recordings, int64 (phones + 1,).
    """

    points: npt.NDArray[np.floating]
    labels: npt.NDArray[np.int16]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, population: SimulatedPopulation, attack: Attacks | None = None) -> Self:
        """Return all recordings of a prepared population, as changed by attacks."""
        heard = [population.recordings(phone) for phone in range(population.phones)]
        if attack is not None:
            heard = [attack.heard(phone, recordings) for phone, recordings in enumerate(heard)]
        starts = np.cumsum([0, *(len(each.points) for each in heard)])
        return cls(
            np.concatenate([each.points for each in heard]),
            np.concatenate([each.labels for each in heard]),
            starts,
        )

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """Phone of each recording, int64 (recordings,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
