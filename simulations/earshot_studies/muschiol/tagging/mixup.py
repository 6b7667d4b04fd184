"""Mixup of list neighbours (Muschiol 2021, section 4.4.3): twice as many clips to learn from.

All clips are put in a random order, and as many mixtures are added: each clip mixed with its
neighbour, x = β·x₁ + (1 − β)·x₂, with targets mixed in the same way. Muschiol does not give the
distribution of β; a symmetric Beta is usual, here Beta(1, 1) by default (Zhang et al. 2018). Mel
power is mixed, as simultaneous sounds add up in power; Muschiol mixes logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks


@dataclass(frozen=True)
class Mixup:
    """Settings of the mixture of clips.

    Attributes:
        concentration: Parameter a of Beta(a, a), the distribution of β.
    """

    concentration: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("concentration", self.concentration)

    def shares(self, count: int, generator: np.random.Generator) -> NDArray[np.float32]:
        """Draw shares β, float32 (count,)."""
        drawn = generator.beta(self.concentration, self.concentration, count)
        return drawn.astype(np.float32)


@dataclass(frozen=True)
class ClipPairs:
    """Pairs of clips that examples are made of.

    Attributes:
        first, second: Indices of clips, int64 (examples,), equal for an unmixed clip.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    def present(self, targets: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return the labels that an example has at any share, bool (examples, labels).

        Args:
            targets: Targets of the clips, (clips, labels).
        """
        there = np.asarray(targets) > 0
        found: NDArray[np.bool_] = there[self.first] | there[self.second]
        return found


def alone(clips: int) -> ClipPairs:
    """Return every clip unmixed."""
    places = np.arange(clips)
    return ClipPairs(places, places)


def doubled(clips: int, generator: np.random.Generator) -> ClipPairs:
    """Return every clip unmixed, then every clip with its neighbour in a random order.

    The last clip's neighbour is the first.
    """
    order = generator.permutation(clips)
    return ClipPairs(np.concatenate([order, order]), np.concatenate([order, np.roll(order, -1)]))
