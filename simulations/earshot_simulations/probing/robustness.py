"""Robustness of probes trained on clean sound to degraded sound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_simulations.probing.degradations import CONDITIONS, degraded
from earshot_simulations.probing.measures import LinearProbe
from earshot_simulations.probing.places import same_place
from earshot_simulations.probing.seconds import ClipWindows, embed


@dataclass(frozen=True)
class Heard:
    """The measures of the held-out side of one fold, in one condition.

    Attributes:
        second_accuracy: Accuracy of the linear probe fitted on clean sound; None without labels.
        same_place: `PlaceMeasures.halves` of degraded halves among clean ones; None if there are
            fewer than two places.
    """

    second_accuracy: float | None
    same_place: float | None


def degraded_sides(seconds: ClipWindows, side: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield a side's disjoint seconds in each condition in turn: (name, sound)."""
    tested = seconds.tested(side)
    for condition in CONDITIONS:
        yield condition.name, degraded(condition, seconds.sound[tested], seconds.clip[tested])


def measure_heard(
    seconds: ClipWindows,
    clean: NDArray[np.floating],
    sound: NDArray[np.float32],
    encoder: Encoder,
    linear: LinearProbe | None,
    side: int,
) -> Heard:
    """Measure one fold in one condition.

    Args:
        seconds: Embedded windows.
        clean: Embeddings of clean sound, (windows, dimensions).
        sound: Sound of the side, from `degraded_sides`.
        encoder: Encoder of `clean`.
        linear: Linear probe, fitted on clean sound; None without labels.
        side: Side that is held out.
    """
    tested = seconds.tested(side)
    embeddings = embed(encoder, sound)
    return Heard(
        linear.accuracy(embeddings, seconds.label[tested]) if linear else None,
        same_place(seconds, clean[tested], embeddings, side),
    )
