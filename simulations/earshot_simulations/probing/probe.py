"""A whole probe: every fold, one encoder or several on the same sound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder, rate_of
from earshot_models.datasets.dataset import Dataset
from earshot_protocol.progress import Progress, silent
from earshot_simulations.probing.baseline import LogMelStatistics
from earshot_simulations.probing.measures import FoldMeasures, Projected, fit, measure, projected
from earshot_simulations.probing.places import PlaceMeasures, measure_places
from earshot_simulations.probing.robustness import Heard, degraded_sides, measure_heard
from earshot_simulations.probing.seconds import (
    ClipWindows,
    cut_at,
    embed,
    side_names,
)

MEASURES = tuple(
    field.name for field in fields(FoldMeasures) if field.name not in ("confusion", "penalty")
)
"""Measures of kinds of sound."""

PLACES = ("halves", "seconds", "ari")
"""Measures of places: those of `PlaceMeasures` that can be better or worse."""

CLEAN = {"second_accuracy": "second_accuracy", "same_place": "places.halves"}
"""Measure of clean sound to which each of `Heard` is compared."""


@dataclass
class Probe:
    """The results of one encoder; each list has an entry for each side of `seconds.names`.

    Attributes:
        encoder: Names of the encoders.
        dataset: Name of the data set.
        seconds: Embedded windows, at the rate of the last fold's encoder.
        embeddings: Embeddings of the last fold's encoder, (windows, dimensions).
        folds: Measures of kinds of sound; empty without labels.
        projected: Measures of clusters by the number of projected dimensions; empty without labels,
            or for an encoder without a projection.
        places: Measures of places; None where a side has fewer than two.
        heard: Measures by condition.
    """

    encoder: str
    dataset: str
    seconds: ClipWindows
    embeddings: NDArray[np.float32]
    folds: list[FoldMeasures] = field(default_factory=list)
    projected: list[dict[int, Projected]] = field(default_factory=list)
    places: list[PlaceMeasures | None] = field(default_factory=list)
    heard: list[dict[str, Heard]] = field(default_factory=list)

    def values(self) -> dict[str, NDArray[np.float64]]:
        """Return every measure by name, (sides,); a dot in a name separates group and member.

        Measures that a side does not have are omitted.
        """
        rows: dict[str, list[float | None]] = {}
        for fold in self.folds:
            for name in MEASURES:
                rows.setdefault(name, []).append(getattr(fold, name))
        for by in self.projected:
            for name in ("ari", "ari_twice"):
                for dimensions, found in by.items():
                    key = f"{name}_by_dimensions.{dimensions}"
                    rows.setdefault(key, []).append(getattr(found, name))
        for place in self.places:
            for name in PLACES:
                found_again = None if place is None else getattr(place, name)
                rows.setdefault(f"places.{name}", []).append(found_again)
        for conditions in self.heard:
            for condition, of in conditions.items():
                for name in CLEAN:
                    rows.setdefault(f"robustness.{condition}.{name}", []).append(getattr(of, name))
        return {
            name: np.array(row, dtype=np.float64) for name, row in rows.items() if None not in row
        }

    def chance(self) -> dict[str, float]:
        """Return the chance levels of measures, mean over sides, where known.

        For an accuracy, it is the share of the most frequent class; for an adjusted Rand index it
        would be 0, and is not listed.
        """
        chances = {}
        if self.folds:
            commonest = [
                fold.confusion.sum(axis=1).max() / fold.confusion.sum() for fold in self.folds
            ]
            chances["second_accuracy"] = float(np.mean(commonest))
        drawn = [place.chance for place in self.places if place is not None]
        if drawn and len(drawn) == len(self.places):
            chances["places.halves"] = float(np.mean(drawn))
        for condition in self.heard[0]:
            for name, clean in CLEAN.items():
                if clean in chances:
                    chances[f"robustness.{condition}.{name}"] = chances[clean]
        return chances


def probe(
    dataset: Dataset,
    encoder_for: Callable[[str], Encoder],
    cache: Path | None = None,
    progress: Progress = silent,
) -> Probe:
    """Measure an encoder with each fold, speaker or set of groups held out in turn.

    Args:
        dataset: Data set in which all clips have a label, or none: then only places are measured.
        encoder_for: Function from the name of the held-out side to an encoder. It must not have
            been trained on the labels of that side; nor on its sound, for an unbiased figure.
        cache: Folder for decoded sound.
        progress: Callback for progress.
    """
    return probe_several(dataset, [encoder_for], cache, progress)[0]


def probe_several(
    dataset: Dataset,
    encoders: Sequence[Callable[[str], Encoder]],
    cache: Path | None = None,
    progress: Progress = silent,
) -> list[Probe]:
    """Probe several encoders on the same sound, as `probe`.

    Each hears it at its own rate; windows, and the draws of degradations, are the same.

    One thread is used: on a busy machine, many small products on several threads take ten times as
    long, as each waits for the slowest.
    """
    from threadpoolctl import threadpool_limits

    sides = side_names(dataset)
    asked = [{held: encoder_for(held) for held in sides} for encoder_for in encoders]
    rates = {rate_of(encoder) for by_side in asked for encoder in by_side.values()}
    seconds = cut_at(sorted(rates), dataset, cache, progress)
    nothing = np.empty((0, 0), dtype=np.float32)
    sound = next(iter(seconds.values()))
    probes = [Probe("", dataset.name, sound, nothing) for _ in encoders]
    last: list[Encoder | None] = [None] * len(encoders)
    names: list[list[str]] = [[] for _ in encoders]
    total, done = len(sound.names) * len(encoders), 0
    for side, held in enumerate(sound.names):
        degraded = {rate: list(degraded_sides(own, side)) for rate, own in seconds.items()}
        for number, (found, by_side) in enumerate(zip(probes, asked, strict=True)):
            encoder = by_side[held]
            rate = rate_of(encoder)
            if encoder is not last[number]:
                last[number] = encoder
                names[number].append(encoder.name)
                found.seconds = seconds[rate]
                found.embeddings = embed(encoder, found.seconds.sound)
            with threadpool_limits(1):
                _hold_out(found, encoder, side, degraded[rate])
            done += 1
            progress("probing", done, total)
    for found, own in zip(probes, names, strict=True):
        found.encoder = ", ".join(dict.fromkeys(own))
    return probes


def _hold_out(
    found: Probe, encoder: Encoder, side: int, degraded: Sequence[tuple[str, NDArray[np.float32]]]
) -> None:
    """Measure one encoder on one side."""
    seconds, embeddings = found.seconds, found.embeddings
    linear = None
    if seconds.labels:
        linear = fit(seconds, embeddings, side)
        found.folds.append(measure(seconds, embeddings, linear, side))
        if not isinstance(encoder, LogMelStatistics):
            found.projected.append(projected(seconds, embeddings, encoder.project, side))
    found.places.append(measure_places(seconds, embeddings, side))
    found.heard.append(
        {
            name: measure_heard(seconds, embeddings, sound, encoder, linear, side)
            for name, sound in degraded
        }
    )
