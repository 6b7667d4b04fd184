"""Mixtures of one to three sounds in one second, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.kit.mixtures.sources import BACKGROUND, Side, Sources

LEVEL = 0.1
"""Root mean square of a mixture; encoders bring every second to one level anyway."""

_BATCH = 256


@dataclass(frozen=True)
class MixingRecipe:
    """The way in which sounds are mixed.

    Attributes:
        counts: Probabilities of one, two, three, … labels. By default about those of Pascal VOC
            (Dziedzic et al. 2023, Table 13, mean 1.52), with more than three counted as three.
        tail: Exponent of a label's chance, rank^−tail; 0 for equal chances.
        spread: Maximum decibels by which a sound is above or below `LEVEL` before mixing.
        least_noise, most_noise: Decibels by which the background is below the mixture, drawn
            uniformly between them.
    """

    counts: tuple[float, ...] = (0.61, 0.28, 0.11)
    tail: float = 0.0
    spread: float = 3.0
    least_noise: float = 20.0
    most_noise: float = 10.0

    def __post_init__(self) -> None:
        if not self.counts or min(self.counts) < 0 or abs(sum(self.counts) - 1) > 1e-9:
            raise InvalidParametersError(
                f"counts={self.counts}: must be probabilities that add up to 1"
            )
        checks.between("tail", self.tail, 0)
        checks.between("spread", self.spread, 0)
        checks.between("most_noise", self.most_noise, -60, self.least_noise)

    @property
    def mean(self) -> float:
        """Mean number of labels of a mixture."""
        return sum(number * chance for number, chance in enumerate(self.counts, start=1))


def mix(
    sources: Sources,
    side: Side,
    holdings: Sequence[NDArray[np.int64]],
    count: int,
    recipe: MixingRecipe,
    generator: np.random.Generator,
) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Mix the given seconds.

    Args:
        sources: All sound.
        side: Side whose backgrounds are used.
        holdings: Seconds that may be mixed, by label; a label without any is never drawn.
        count: Number of mixtures, at least 1.
        recipe: Recipe by which sounds are mixed.
        generator: Only source of randomness.

    Returns:
        Mixtures float32 (count, rate), and their labels, 0 or 1, int8 (count, labels).

    Raises:
        InvalidParametersError: Fewer labels have seconds than a mixture may have, or there are no
            mixtures.
    """
    there = np.array([len(rows) > 0 for rows in holdings])
    truth = drawn_labels(there, count, recipe, generator)
    mixed = np.zeros((count, sources.rate), dtype=np.float32)
    for label, rows in enumerate(holdings):
        having = np.flatnonzero(truth[:, label])
        if len(having):
            chosen = sources.sound[generator.choice(rows, len(having))]
            levels = generator.uniform(-recipe.spread, recipe.spread, len(having))
            mixed[having] += _at_level(chosen, levels)
    behind = sources.of(side, BACKGROUND)
    if len(behind):
        mixed = _at_level(mixed, np.zeros(count))
        for start in range(0, count, _BATCH):
            part = mixed[start : start + _BATCH]
            levels = -generator.uniform(recipe.most_noise, recipe.least_noise, len(part))
            part += _at_level(sources.sound[generator.choice(behind, len(part))], levels)
    return _at_level(mixed, np.zeros(count)), truth


def drawn_labels(
    there: NDArray[np.bool_], count: int, recipe: MixingRecipe, generator: np.random.Generator
) -> NDArray[np.int8]:
    """Draw distinct labels for each mixture, by their chance: 0 or 1, int8 (count, labels).

    Args:
        there: Labels that may be drawn, bool (labels,).
        count: Number of mixtures, at least 1.
        recipe: Probabilities of numbers of labels, and of labels.
        generator: Only source of randomness.

    Raises:
        InvalidParametersError: Fewer labels are there than a mixture may have, or no mixtures.
    """
    checks.whole("count", count)
    labels = len(there)
    if there.sum() < len(recipe.counts):
        raise InvalidParametersError(
            f"{there.sum()} labels: a mixture has up to {len(recipe.counts)} of them"
        )
    chance = np.arange(1, labels + 1, dtype=np.float64) ** -recipe.tail * there
    sizes = 1 + generator.choice(len(recipe.counts), count, p=recipe.counts)
    with np.errstate(divide="ignore"):
        # The largest log p + Gumbel noise sample without replacement in proportion to p.
        keys = np.log(chance) + generator.gumbel(size=(count, labels))
    ranks = np.argsort(np.argsort(-keys, axis=1), axis=1)
    return (ranks < sizes[:, None]).astype(np.int8)


def _at_level(sound: NDArray[np.float32], decibels: NDArray[np.float64]) -> NDArray[np.float32]:
    """Bring seconds to this many decibels above `LEVEL`."""
    root = np.sqrt(np.mean(np.square(sound), axis=1, keepdims=True))
    gain = LEVEL * 10 ** (decibels[:, None] / 20) / np.maximum(root, 1e-6)
    return np.asarray(sound * gain, dtype=np.float32)
