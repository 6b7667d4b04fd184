"""Generators of spoken digits by name: their training data, and their share of a budget."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.split import Split


class System(enum.StrEnum):
    """Generators, by their kind and training data."""

    PRINTED = "AAE, as printed"
    """Adversarial autoencoder of the private clips themselves, which is not private."""
    PUBLIC = "AAE, public"
    """Adversarial autoencoder of the public speaker alone, at no privacy cost."""
    PRIVATE = "AAE, DP-SGD"
    """Adversarial autoencoder of the private clips, by noisy gradients."""
    PATE_GAN = "PATE-GAN"
    """GAN whose critic learns from noisy votes of critics on parts of the private clips."""
    DP_GAN = "DP-GAN"
    """GAN whose critic learns from the private clips by noisy gradients."""
    PUBLIC_GAN = "GAN, public"
    """GAN of the public speaker alone, at no privacy cost: the start of GANs."""
    STARTED_PRIVATE = "AAE, DP-SGD, from a public start"
    """Autoencoder that continues from one of the public speaker, beside that speaker's clips."""
    STARTED_PATE_GAN = "PATE-GAN, from a public start"
    """PATE-GAN that continues from the public GAN, beside the public speaker's clips."""
    STARTED_DP_GAN = "DP-GAN, from a public start"
    """DP-GAN that continues from the public GAN, beside the public speaker's clips."""

    @property
    def spends(self) -> bool:
        """Whether the generator spends a part of the budget."""
        return self not in (System.PRINTED, System.PUBLIC, System.PUBLIC_GAN)

    @property
    def started(self) -> bool:
        """Whether the generator starts with public networks, or is such a start itself."""
        return self not in (
            System.PRINTED, System.PUBLIC, System.PRIVATE, System.PATE_GAN, System.DP_GAN,
        )  # fmt: skip


@dataclass(frozen=True)
class PublicationBudget:
    """ε and δ of a publication, for a clip that is present or absent."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        checks.epsilon("epsilon", self.epsilon)
        checks.probability("delta", self.delta)

    @property
    def half(self) -> PublicationBudget:
        """Budget of each of two publications that together cost this one, by plain addition."""
        return PublicationBudget(self.epsilon / 2, self.delta / 2)


def shares(
    system: System, whole: PublicationBudget
) -> tuple[PublicationBudget | None, PublicationBudget]:
    """Return the budgets of the generator, None if it spends nothing, and of the labels."""
    return (whole.half, whole.half) if system.spends else (None, whole)


class SampleSource(Protocol):
    """A trained generator of samples."""

    def samples(self, count: int, seed: int) -> NDArray[np.float32]:
        """Return generated pictures, float32 (count, frames, bands) in [-1, 1]."""


@dataclass(frozen=True)
class TrainingOrder:
    """The inputs of a generator's training.

    Attributes:
        split: All clips; the system determines those that the generator is trained on.
        budget: Budget of the training; None if the system spends nothing.
        seed: Seed of all randomness.
        checkpoint: File from which an interrupted training continues.
        progress: Callback for progress.
    """

    split: Split
    budget: PublicationBudget | None
    seed: int
    checkpoint: Path
    progress: Progress


Maker = Callable[[TrainingOrder], SampleSource]
Makers = Mapping[System, Maker]
