"""Measures of how well embeddings recognize the same place when it is heard again.

The first half of each clip serves as an earlier visit, the second as a later one. A **place** is
the recording that a clip was cut from: ESC-10 and ESC-50 have several clips of some recordings
(`Clip.recording`), and a half of another clip of the recording counts as right, too. Clips of one
group but of different recordings (a location, an artist) may be one place or two: neither is a
candidate for the other, unless the whole held-out side is one group, such as a speaker.

Labels are not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_simulations.probing.measures import clusters_ari
from earshot_simulations.probing.seconds import NO_HALF, ClipWindows

_NOTHING = 1e-9


@dataclass(frozen=True)
class PlaceMeasures:
    """The measures of one fold, over each clip with sound in both halves.

    Attributes:
        halves: Fraction of halves whose nearest opposite half of any clip, by cosine of mean
            embeddings, is of the same place; in both directions.
        seconds: Fraction of disjoint seconds whose nearest second of an opposite half is of the
            same place.
        ari: Adjusted Rand index of k-means on these seconds, k = places, against the places; mean
            over seeds.
        chance: Value of `halves` if one of the opposite halves were drawn at random.
    """

    halves: float
    seconds: float
    ari: float
    chance: float


def measure_places(
    seconds: ClipWindows, embeddings: NDArray[np.floating], side: int
) -> PlaceMeasures | None:
    """Measure one fold; None if it has fewer than two places.

    Args:
        seconds: Embedded windows.
        embeddings: Embeddings, (windows, dimensions), unit rows.
        side: Side that is held out.
    """
    tested = seconds.tested(side)
    each = _Visits(embeddings[tested], seconds.clip[tested], seconds.half[tested]).whole()
    places = len(np.unique(seconds.recordings[each.clip]))
    if places < 2:
        return None
    halves, chance = _found(seconds, each.means(), each.means())
    return PlaceMeasures(
        halves,
        _found(seconds, each, each)[0],
        clusters_ari(each.points, seconds.recordings[each.clip], places),
        chance,
    )


def comparable(seconds: ClipWindows) -> int:
    """Return the number of clips that have sound in both halves."""
    clip, half = seconds.clip[seconds.disjoint], seconds.half[seconds.disjoint]
    return len(np.intersect1d(clip[half == 0], clip[half == 1]))


def same_place(
    seconds: ClipWindows, known: NDArray[np.floating], heard: NDArray[np.floating], side: int
) -> float | None:
    """Return `PlaceMeasures.halves` of degraded halves among clean ones; None without two places.

    Args:
        seconds: Embedded windows.
        known: Embeddings of clean sound, (tested seconds of the side, dimensions), unit rows.
        heard: Embeddings of the same seconds, degraded.
        side: Side that is held out.
    """
    tested = seconds.tested(side)
    clip, half = seconds.clip[tested], seconds.half[tested]
    sought = _Visits(known, clip, half).whole()
    if len(np.unique(seconds.recordings[sought.clip])) < 2:
        return None
    return _found(seconds, _Visits(heard, clip, half).whole().means(), sought.means())[0]


@dataclass(frozen=True)
class _Visits:
    """Embeddings (visits, dimensions), with their clip and its half: int64 (visits,)."""

    points: NDArray[np.floating]
    clip: NDArray[np.int64]
    half: NDArray[np.int64]

    def whole(self) -> _Visits:
        """Return the visits of clips with both halves."""
        both = np.intersect1d(self.clip[self.half == 0], self.clip[self.half == 1])
        kept = np.isin(self.clip, both) & (self.half != NO_HALF)
        return _Visits(self.points[kept], self.clip[kept], self.half[kept])

    def means(self) -> _Visits:
        """Return one visit for each half of each clip."""
        halves, of = np.unique(2 * self.clip + self.half, return_inverse=True)
        means = np.zeros((len(halves), self.points.shape[1]))
        np.add.at(means, of, self.points)
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), _NOTHING)
        return _Visits(means, halves // 2, halves % 2)


def _found(seconds: ClipWindows, seeking: _Visits, known: _Visits) -> tuple[float, float]:
    """Return how often the nearest opposite half is of the same place, and its chance level."""
    here, there = seconds.recordings[seeking.clip], seconds.recordings[known.clip]
    same = here[:, np.newaxis] == there
    group = seconds.groups[seeking.clip], seconds.groups[known.clip]
    doubtful = group[0][:, np.newaxis] == group[1]
    if doubtful.all():
        doubtful = same
    candidates = (same | ~doubtful) & (seeking.half[:, np.newaxis] != known.half)
    likeness = np.where(candidates, seeking.points @ known.points.T, -np.inf)
    right = same[np.arange(len(same)), likeness.argmax(axis=1)]
    chance = (same & candidates).sum(axis=1) / candidates.sum(axis=1)
    return float(right.mean()), float(chance.mean())
