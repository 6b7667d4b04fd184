"""Length and learning rate of a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from earshot_protocol.checks import between, positive, whole


@dataclass(frozen=True)
class Schedule:
    """Length and learning rate of a training.

    Attributes:
        steps: Batches in all, at least 1.
        steps_per_epoch: Batches between two checkpoints.
        learning_rate: Highest learning rate, reached after `warm_up` steps; it then falls to 0 as a
            cosine.
        warm_up: Steps over which the learning rate rises.
        weight_decay: Weight decay of AdamW.
        patience: Epochs without better retrieval after which training stops; None to train on.
    """

    steps: int
    steps_per_epoch: int = 250
    learning_rate: float = 2e-3
    warm_up: int = 50
    weight_decay: float = 0.02
    patience: int | None = None

    def __post_init__(self) -> None:
        whole("steps", self.steps)
        whole("steps_per_epoch", self.steps_per_epoch)
        whole("warm_up", self.warm_up, 0)
        positive("learning_rate", self.learning_rate)
        between("weight_decay", self.weight_decay, 0)
        if self.patience is not None:
            whole("patience", self.patience)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        if step < self.warm_up:
            return self.learning_rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return float(self.learning_rate * 0.5 * (1 + np.cos(np.pi * min(done, 1.0))))
