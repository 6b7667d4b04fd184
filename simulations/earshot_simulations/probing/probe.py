"""A whole probe: every fold, the encoder's cost, and what is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_models.datasets.dataset import Dataset
from earshot_simulations.probing.baseline import LogMelStatistics
from earshot_simulations.probing.measures import FoldMeasures, interval, measure, projected_ari
from earshot_simulations.probing.seconds import Progress, Seconds, cut, embed, no_progress

MEASURES = tuple(
    field.name for field in fields(FoldMeasures) if field.name not in ("confusion", "penalty")
)


@dataclass(frozen=True)
class Probe:
    """What was found.

    Attributes:
        encoder: names of the encoders.
        dataset: its name.
        seconds: what was embedded.
        embeddings: of the last fold's encoder, (windows, dimensions).
        folds: per side, in the order of `seconds.names`.
        projected: per side, the adjusted Rand index with twice as many clusters as classes, by the
            dimensions projected to; empty for an encoder without a projection.
    """

    encoder: str
    dataset: str
    seconds: Seconds
    embeddings: NDArray[np.float32]
    folds: list[FoldMeasures]
    projected: list[dict[int, float]]

    def figures(self) -> dict[str, Any]:
        """For JSON: means with 95 % intervals over folds, and each fold."""
        figures: dict[str, Any] = {
            "encoder": self.encoder,
            "dataset": self.dataset,
            "clips": len(self.seconds.clip_labels),
            "seconds": int(self.seconds.disjoint.sum()),
            "silent_seconds": self.seconds.silent,
            "unreadable": {
                "count": len(self.seconds.unreadable),
                "files": list(self.seconds.unreadable),
            },
            "classes": len(self.seconds.labels),
            "held_out": list(self.seconds.names),
        }
        for name in MEASURES:
            values = np.array([getattr(fold, name) for fold in self.folds])
            mean, wide = interval(values)
            figures[name] = {
                "mean": round(mean, 4),
                "interval_95": round(wide, 4),
                "folds": [round(float(value), 4) for value in values],
            }
        if all(self.projected):
            figures["ari_twice_by_dimensions"] = {
                str(dimensions): round(float(np.mean([of[dimensions] for of in self.projected])), 4)
                for dimensions in self.projected[0]
            }
        figures["penalties"] = [fold.penalty for fold in self.folds]
        return figures


def probe(
    dataset: Dataset,
    encoder_for: Callable[[str], Encoder],
    cache: Path | None = None,
    progress: Progress = no_progress,
) -> Probe:
    """Hold each fold, speaker or set of groups out in turn.

    Args:
        dataset: labelled.
        encoder_for: the name of what is held out → an encoder, which must not have been trained on
            its labels, and for an honest figure not on its sound either.
        cache: folder for decoded sound.
        progress: told how far it is.
    """
    seconds = cut(dataset, cache, progress)
    measured, projected, names = [], [], []
    last, embeddings = None, np.empty((0, 0), dtype=np.float32)
    for side, held in enumerate(seconds.names):
        encoder = encoder_for(held)
        if encoder is not last:
            last, embeddings = encoder, embed(encoder, seconds.sound)
            names.append(encoder.name)
        measured.append(measure(seconds, embeddings, side))
        own = (
            {}
            if isinstance(encoder, LogMelStatistics)
            else projected_ari(seconds, embeddings, encoder.project, side)
        )
        projected.append(own)
        progress("probing", side + 1, len(seconds.names))
    return Probe(
        ", ".join(dict.fromkeys(names)), dataset.name, seconds, embeddings, measured, projected
    )
