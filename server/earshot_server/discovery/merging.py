"""Merging of candidates or cells of one environment, weighted by what was heard in each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def merged(
    places: npt.NDArray[np.float32], votes: npt.NDArray[np.int64], groups: int
) -> npt.NDArray[np.int64]:
    """Merge candidates into groups; return the candidate of each group with the most votes.

    Args:
        places: Positions of the candidates, (candidates, dimensions).
        votes: Votes for each candidate, above 0.
        groups: Number of groups to keep; with fewer candidates, each is one.

    Returns:
        Indices of candidates, int64, those with the most votes first.
    """
    owner = grouped(places, votes.astype(np.float64), groups)
    members = [np.flatnonzero(owner == group) for group in np.unique(owner)]
    kept = np.array([group[np.argmax(votes[group])] for group in members], dtype=np.int64)
    return kept[np.argsort(-votes[kept], kind="stable")]


def grouped(
    places: npt.NDArray[np.floating], weights: npt.NDArray[np.float64], groups: int
) -> npt.NDArray[np.int64]:
    """Return the group of each place, as the index of one of the group's places.

    This is Ward's method (1963) with weights: it repeatedly merges the two groups of least cost
    W_a W_b / (W_a + W_b) · |a − b|². Places that are close together, or of little weight, are
    merged first.

    Args:
        places: Positions, (places, dimensions).
        weights: Weight of each place; 0 counts as the smallest positive weight, at most 1.
        groups: Number of groups to keep; with fewer places, each is one.

    Returns:
        Index of a place for each place, int64 (places,); equal within a group.
    """
    least = weights[weights > 0].min(initial=1.0)
    centres, weights = places.astype(np.float64), np.maximum(weights, least)
    owner = np.arange(len(centres))
    alive = np.ones(len(centres), dtype=bool)

    def nearest(one: int) -> tuple[int, float]:
        """Return the group of least merging cost, and that cost."""
        shared = weights[one] * weights / (weights[one] + weights)
        costs = shared * np.square(centres - centres[one]).sum(axis=1)
        costs[~alive] = np.inf
        costs[one] = np.inf
        other = int(np.argmin(costs))
        return other, float(costs[other])

    # A merged group is never nearer to a third than the nearer of its parts was, so only groups
    # whose nearest was one of the two are updated.
    closest = [nearest(one) for one in range(len(centres))]
    for _ in range(len(centres) - groups):
        living = np.flatnonzero(alive)
        kept = int(min(living, key=lambda one: closest[one][1]))
        gone = closest[kept][0]
        weight = weights[kept] + weights[gone]
        moved = weights[kept] * centres[kept] + weights[gone] * centres[gone]
        centres[kept] = moved / weight
        weights[kept] = weight
        alive[gone] = False
        owner[owner == gone] = kept
        for one in np.flatnonzero(alive):
            if one == kept or closest[one][0] in (kept, gone):
                closest[one] = nearest(int(one))
    return owner
