"""Generators of spoken digits by name: what each learns from, and what of a budget it spends."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_models.commands.progress import Progress
from earshot_protocol import checks
from earshot_studies.pate_aae.split import Split


class System(enum.StrEnum):
    """A generator, by what it is made of and whom it has heard."""

    PRINTED = "AAE, as printed"
    """An adversarial autoencoder of the private clips themselves: not private."""
    PUBLIC = "AAE, public"
    """Of the public speaker alone: it costs nobody anything."""
    PRIVATE = "AAE, DP-SGD"
    """Of the private clips, by noisy gradients."""
    PATE_GAN = "PATE-GAN"
    """A critic that learns from noisy votes of critics on parts of the private clips."""
    DP_GAN = "DP-GAN"
    """A critic that learns from the private clips by noisy gradients."""
    PUBLIC_GAN = "GAN, public"
    """Of the public speaker alone: what GANs start with, which costs nobody anything."""
    STARTED_PRIVATE = "AAE, DP-SGD, from a public start"
    """Goes on from an autoencoder of the public speaker, and beside that speaker's clips."""
    STARTED_PATE_GAN = "PATE-GAN, from a public start"
    """Goes on from the public GAN, and beside the public speaker's clips."""
    STARTED_DP_GAN = "DP-GAN, from a public start"
    """As that."""

    @property
    def spends(self) -> bool:
        """Whether the generator needs a part of the budget."""
        return self not in (System.PRINTED, System.PUBLIC, System.PUBLIC_GAN)

    @property
    def started(self) -> bool:
        """Whether the generator starts with public networks, or is such a start itself."""
        return self not in (
            System.PRINTED, System.PUBLIC, System.PRIVATE, System.PATE_GAN, System.DP_GAN,
        )  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """ε and δ of something that is published, for a clip that is there or not."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        checks.epsilon("epsilon", self.epsilon)
        checks.probability("delta", self.delta)

    @property
    def half(self) -> Budget:
        """What each of two things may cost that together cost this, by plain addition."""
        return Budget(self.epsilon / 2, self.delta / 2)


def shares(system: System, whole: Budget) -> tuple[Budget | None, Budget]:
    """What the generator may spend, None if it spends nothing, and what the labels may."""
    return (whole.half, whole.half) if system.spends else (None, whole)


class Samples(Protocol):
    """What a generator is asked for."""

    def samples(self, count: int, seed: int) -> NDArray[np.float32]:
        """Generated pictures, float32 (count, frames, bands) in [-1, 1]."""


@dataclass(frozen=True)
class Order:
    """What a generator is trained on and with.

    Attributes:
        split: whose clips there are; only the system says which it may meet.
        budget: of the training; None where the system spends nothing.
        seed: of all randomness.
        checkpoint: file that a killed training goes on from.
        progress: told how far it is.
    """

    split: Split
    budget: Budget | None
    seed: int
    checkpoint: Path
    progress: Progress


Maker = Callable[[Order], Samples]
Makers = Mapping[System, Maker]
