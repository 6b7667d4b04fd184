"""Generators that are broken on purpose, so that attacks have something to find.

None of them is offered to anybody: they say what attacks can see at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_simulations.membership.game import Records

_NOISE = 0.05


@dataclass(frozen=True)
class Repeating:
    """Makes the records that it has learned from, with a little noise.

    Attributes:
        records: these.
        noise: its deviation, in parts of the records' own.
    """

    records: Records
    noise: float = _NOISE

    def samples(self, count: int, seed: int) -> npt.NDArray[np.float32]:
        """So many of them at random."""
        generator = np.random.default_rng(seed)
        drawn = self.records[generator.integers(0, len(self.records), count)]
        blurred = drawn + self.noise * self.records.std() * generator.standard_normal(drawn.shape)
        return np.asarray(blurred, dtype=np.float32)


def repeating(records: Records, seed: int) -> Repeating:
    """It has nothing to learn, so the seed does not matter."""
    return Repeating(records)
