"""Generators that learn nothing: they give back clips that they were shown, with noise.

Not in the test that uses them, because other processes must be able to import them too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_studies.pate_aae.systems import Maker, SampleSource, System, TrainingOrder

HEARS_NOBODY = (System.PUBLIC, System.PUBLIC_GAN)


@dataclass
class Echo:
    """Clips that are there, with noise, instead of generated ones."""

    clips: NDArray[np.float32]
    loud: float

    def samples(self, count: int, seed: int) -> NDArray[np.float32]:
        generator = np.random.default_rng(seed)
        own = self.clips[generator.integers(0, len(self.clips), count)]
        noise = generator.normal(0, self.loud, own.shape)
        return np.clip(own + noise, -1, 1).astype(np.float32)


@dataclass
class Makers:
    """Echoes, and what each was asked for."""

    orders: list[tuple[System, TrainingOrder]]

    def maker(self, system: System) -> Maker:
        def make(order: TrainingOrder) -> SampleSource:
            self.orders.append((system, order))
            part = order.split.public if system in HEARS_NOBODY else order.split.private
            # Less noise where there is more to spend.
            loud = 0.1 if order.budget is None else min(3.0, 1.0 / order.budget.epsilon)
            return Echo(part.pictures, loud)

        return make

    def all(self) -> dict[System, Maker]:
        return {system: self.maker(system) for system in System}


def quiet(what: str, done: int, total: int, line: str | None = None) -> None:
    del what, done, total, line
