"""Generators that are broken on purpose, so that attacks have something to find.

They are not offered to users: they show what attacks can detect at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_simulations.membership.game import Records

_NOISE = 0.05


@dataclass(frozen=True)
class Repeating:
    """A generator that repeats the records that it has learned from, with a little noise.

    Attributes:
        records: Records that it has learned from.
        noise: Standard deviation of the noise, as a fraction of the records' own.
    """

    records: Records
    noise: float = _NOISE

    def samples(self, count: int, seed: int) -> npt.NDArray[np.float32]:
        """Return this many records, drawn at random, with noise."""
        generator = np.random.default_rng(seed)
        drawn = self.records[generator.integers(0, len(self.records), count)]
        blurred = drawn + self.noise * self.records.std() * generator.standard_normal(drawn.shape)
        return np.asarray(blurred, dtype=np.float32)


def repeating(records: Records, seed: int) -> Repeating:
    """Return a generator of these records; nothing is trained, so the seed does not matter."""
    return Repeating(records)
