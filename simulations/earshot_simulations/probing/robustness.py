"""How far what was learned from clean sound holds for sound that is heard worse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_simulations.probing.degradations import CONDITIONS, degraded
from earshot_simulations.probing.measures import LinearProbe
from earshot_simulations.probing.places import same_place
from earshot_simulations.probing.seconds import Seconds, embed


@dataclass(frozen=True)
class Heard:
    """The held-out side of one fold, in one condition.

    Attributes:
        second_accuracy: of the linear probe that was fitted on clean sound; None without labels.
        same_place: as `PlaceMeasures.halves`: a half that is heard so, among clean ones; None where
            there are no two places.
    """

    second_accuracy: float | None
    same_place: float | None


def degraded_sides(seconds: Seconds, side: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """A side's seconds that do not overlap, in each condition in turn: (name, sound)."""
    tested = seconds.tested(side)
    for condition in CONDITIONS:
        yield condition.name, degraded(condition, seconds.sound[tested], seconds.clip[tested])


def measure_heard(
    seconds: Seconds,
    clean: NDArray[np.floating],
    sound: NDArray[np.float32],
    encoder: Encoder,
    linear: LinearProbe | None,
    side: int,
) -> Heard:
    """Measure one fold in one condition.

    Args:
        seconds: what was embedded.
        clean: (windows, dimensions).
        sound: of the side, as `degraded_sides` gives it.
        encoder: that gave `clean`.
        linear: fitted on clean sound; None without labels.
        side: held out.
    """
    tested = seconds.tested(side)
    embeddings = embed(encoder, sound)
    return Heard(
        linear.accuracy(embeddings, seconds.label[tested]) if linear else None,
        same_place(seconds, clean[tested], embeddings, side),
    )
