"""Heterogeneity of phones: what they hear, how much, and how much of it they label.

The names are those of federated learning (Hsu et al. 2019; Kairouz et al. 2021, section 3.1) and of
the beta-binomial distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import between, fraction, share
from earshot_simulations.fields import settle

LARGEST_QUANTITY = 20
"""Most recordings of a phone, in multiples of the mean, for any skew."""


@dataclass(frozen=True)
class Heterogeneity:
    """The differences between phones.

    Attributes:
        concentration: Concentration of the symmetric Dirichlet distribution that a phone's mix of
            scenes is drawn from, 0.01 to 10⁶: small for phones that hear few scenes each, large
            where all hear the same.
        quantity_skew: Skew σ of a log-normal factor of mean 1 on a phone's number of recordings, 0
            to 2.
        labelled_correlation: Correlation between two recordings of one phone, as to whether they
            are labelled (the intra-class correlation of a beta-binomial): 0 where all phones label
            the same fraction, towards 1 where some label all and the others nothing; below 1.
        mislabelled: Fraction of wrong labels, each of another scene drawn at random.

    Raises:
        InvalidParametersError: A number is out of range.
    """

    concentration: float = 0.5
    quantity_skew: float = 0.0
    labelled_correlation: float = 0.0
    mislabelled: float = 0.0

    def __post_init__(self) -> None:
        settle(self)
        between("concentration", self.concentration, 0.01, 1e6)
        between("quantity_skew", self.quantity_skew, 0, 2)
        fraction("labelled_correlation", self.labelled_correlation)
        share("mislabelled", self.mislabelled)

    def mix(self, scenes: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return a phone's share of each scene, float64 (scenes,), of sum 1."""
        return generator.dirichlet(np.full(scenes, self.concentration))

    def quantity(self, count: int, mean: int, generator: np.random.Generator) -> int:
        """Return a number of recordings after the skew, 1 to 20 times the mean."""
        if not self.quantity_skew:
            return count
        exponent = self.quantity_skew * generator.standard_normal() - self.quantity_skew**2 / 2
        return int(np.clip(round(count * np.exp(exponent)), 1, LARGEST_QUANTITY * mean))

    def labelled(self, mean: float, generator: np.random.Generator) -> float:
        """Return the fraction of its recordings that a phone labels."""
        if not self.labelled_correlation or mean in (0, 1):
            return mean
        # For shape parameters of sum s the correlation is 1 / (s + 1).
        total = 1 / self.labelled_correlation - 1
        return float(generator.beta(mean * total, (1 - mean) * total))

    def mislabel(
        self, scenes: NDArray[np.int16], count: int, generator: np.random.Generator
    ) -> NDArray[np.int16]:
        """Return a label for each recording of a phone, some of them wrong, int16 (recordings,).

        Args:
            scenes: True scene of each recording.
            count: Number of scenes; with a single one, no label is wrong.
            generator: Generator of the phone's wrong labels.
        """
        if count < 2:
            return scenes
        others = (scenes + generator.integers(1, count, len(scenes))) % count
        wrong = generator.random(len(scenes)) < self.mislabelled
        return np.where(wrong, others, scenes).astype(np.int16)
