"""The phones' ballots before noise, and the server's reading of their sum (thesis, Algorithm 1).

A ballot holds at most `votes` ones. For published candidates, one more recording raises one count
by one, which moves at most one winner: it changes a ballot by at most 2 in L1 however many votes
there are, and a whole phone changes the sum of ballots by at most `votes`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError


def top_votes(counts: NDArray[np.integer], votes: int) -> NDArray[np.int64]:
    """Return a ballot for the candidates with the most recordings (Algorithm 1, step 8).

    Args:
        counts: Integers (candidates,), recordings closest to each candidate; none negative.
        votes: Ones allowed, from 1 to the number of candidates.

    Returns:
        int64 (candidates,), one at the `votes` largest positive counts, zero elsewhere; of equal
        counts the lower index wins.

    Raises:
        InvalidInputError: `counts` has another shape or type, or a negative entry.
        InvalidParametersError: There are fewer candidates than votes, or no votes.
    """
    counts = _counts("counts", counts, dimensions=1)
    _check_places("votes", votes, len(counts))
    chosen = _descending(counts)[:votes]
    ballot = np.zeros_like(counts)
    ballot[chosen] = counts[chosen] > 0
    return ballot


def label_votes(counts: NDArray[np.integer], votes: int) -> NDArray[np.int64]:
    """Return a ballot with the majority label of the best known centroids (thesis 7.1; step 12).

    Args:
        counts: Integers (centroids, labels), labelled recordings closest to each centroid; none
            negative.
        votes: Ones allowed, from 1 to the number of centroids.

    Returns:
        int64 (centroids, labels): each centroid proposes the label with its largest positive count,
        and the `votes` proposals with the largest counts get a one. So a centroid gets at most one
        label. Among equal counts the lower index wins.

    Raises:
        InvalidInputError: `counts` has another shape or type, or a negative entry.
        InvalidParametersError: There are fewer centroids than votes, or no votes.
    """
    counts = _counts("counts", counts, dimensions=2)
    chosen = np.flatnonzero(top_votes(counts.max(axis=1), votes))
    ballot = np.zeros_like(counts)
    ballot[chosen, counts[chosen].argmax(axis=1)] = 1
    return ballot


def top_candidates(totals: NDArray[np.integer], top: int) -> NDArray[np.int64]:
    """Return the candidates that the vote keeps (Algorithm 1, step 10).

    Args:
        totals: Integers (candidates,), the noisy sum of the ballots.
        top: Number of candidates to keep, from 1 to all.

    Returns:
        int64 (top,), their indices by descending total; of equal totals the lower index first.

    Raises:
        InvalidInputError: `totals` has another shape or type.
        InvalidParametersError: There are fewer candidates than `top`, or `top` < 1.
    """
    totals = _integers("totals", totals, dimensions=1)
    _check_places("top", top, len(totals))
    return _descending(totals)[:top]


def winning_labels(totals: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the label that each centroid gets (Algorithm 1, step 14).

    Args:
        totals: Integers (centroids, labels), the noisy sum of the ballots.

    Returns:
        int64 (centroids,), the label with the largest total; of equal totals the lower index.

    Raises:
        InvalidInputError: `totals` has another shape or type.
    """
    totals = _integers("totals", totals, dimensions=2)
    winners: NDArray[np.int64] = totals.argmax(axis=1).astype(np.int64, copy=False)
    return winners


def _descending(values: NDArray[np.int64]) -> NDArray[np.int64]:
    # Unlike the negative, the complement reverses the order of every int64, the smallest included.
    order: NDArray[np.int64] = np.argsort(~values, kind="stable").astype(np.int64, copy=False)
    return order


def _counts(name: str, values: NDArray[np.integer], dimensions: int) -> NDArray[np.int64]:
    counts = _integers(name, values, dimensions)
    if counts.min() < 0:
        raise InvalidInputError(f"{name} must not be negative, but one is {counts.min()}")
    return counts


def _integers(name: str, values: NDArray[np.integer], dimensions: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != dimensions or array.size == 0 or not np.can_cast(array.dtype, np.int64):
        raise InvalidInputError(
            f"{name} must be a non-empty array of integers with {dimensions} dimension(s), not "
            f"{array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _check_places(name: str, places: int, candidates: int) -> None:
    if not 1 <= places <= candidates:
        raise InvalidParametersError(
            f"{name} must be from 1 to the {candidates} candidates there are, not {places}"
        )
