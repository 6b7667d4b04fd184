"""Mixtures of mel powers: the random draws of each, from which its power is computed on demand.

Unrelated sounds add up in power, so a mixture is a few numbers: its seconds, and the level of each.
Tens of thousands of them fit in memory where their spectra would not. `kit.mixtures.mixing.mix`
adds up waveforms instead, for encoders that take nothing else: there the level of a background
depends on how the sounds interfere, so gains are known only after they are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_studies.kit.mixtures.mixing import MixingRecipe, drawn_labels
from earshot_studies.kit.mixtures.sources import BACKGROUND, Side
from earshot_studies.muschiol.taggers.powers import Powers

LONG_TAIL = MixingRecipe(counts=(0.25, 0.5, 0.25), tail=0.8, least_noise=10.0, most_noise=0.0)
"""Recipe of one to three labels, two on average, with chances rank^−0.8, and a background as loud
as all of them or up to 10 dB softer."""

_NOBODY = -1
"""Placeholder for a missing second."""


@dataclass(frozen=True)
class DrawnMixtures:
    """Mixtures as they were drawn.

    Attributes:
        powers: Powers of the seconds.
        seconds: Indices of the seconds in each mixture, int32 (mixtures, parts); −1 for none.
        gains: Factors of the power of each second, float32 (mixtures, parts); they add up to 1.
        truth: Labels in each mixture, 0 or 1, int8 (mixtures, labels).
    """

    powers: Powers
    seconds: NDArray[np.int32]
    gains: NDArray[np.float32]
    truth: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.seconds)

    def rows(self, rows: slice | NDArray[np.integer]) -> DrawnMixtures:
        """Return some of the mixtures."""
        return DrawnMixtures(self.powers, self.seconds[rows], self.gains[rows], self.truth[rows])

    def power(self) -> NDArray[np.float32]:
        """Return the mel power of all mixtures, float32 (mixtures, frames, bands)."""
        total = np.zeros((len(self), *self.powers.power.shape[1:]), dtype=np.float32)
        for second, gain in zip(self.seconds.T, self.gains.T, strict=True):
            there = second != _NOBODY
            total[there] += gain[there, None, None] * self.powers.power[second[there]]
        return total


def draw(
    powers: Powers,
    side: Side,
    count: int,
    recipe: MixingRecipe,
    generator: np.random.Generator,
) -> DrawnMixtures:
    """Draw mixtures of the recordings of one side.

    Args:
        powers: Powers of all seconds.
        side: Side whose labels and backgrounds are mixed.
        count: Number of mixtures, at least 1.
        recipe: Recipe by which sounds are mixed; the levels of labels are drawn independently, and
            the background is below their sum.
        generator: Only source of randomness.

    Raises:
        InvalidInputError: A label has no sound on this side.
        InvalidParametersError: Fewer labels are there than a mixture may have, or no mixtures.
    """
    of = powers.at(side)
    truth = drawn_labels(np.ones(len(of), dtype=bool), count, recipe, generator)
    parts = len(recipe.counts)
    seconds = np.full((count, parts + 1), _NOBODY, dtype=np.int32)
    levels = generator.uniform(-recipe.spread, recipe.spread, (count, parts))
    gains = np.zeros((count, parts + 1))
    # Place of each label among those of its mixture.
    place = truth.cumsum(axis=1) - 1
    for label, rows in enumerate(of):
        having = np.flatnonzero(truth[:, label])
        at = place[having, label]
        seconds[having, at] = generator.choice(rows, len(having))
        gains[having, at] = 10 ** (levels[having, at] / 10)
    behind = powers.of(side, BACKGROUND)
    if len(behind):
        below = generator.uniform(recipe.most_noise, recipe.least_noise, count)
        seconds[:, parts] = generator.choice(behind, count)
        gains[:, parts] = gains.sum(axis=1) * 10 ** (-below / 10)
    gains /= gains.sum(axis=1, keepdims=True)
    return DrawnMixtures(powers, seconds, gains.astype(np.float32), truth)
