"""Tests of whether a published number stands clear of the noise, at a stated level of 5 %.

A secure sum publishes a true count plus noise whose law is known exactly. The probability that
noise alone reaches a number, times how many numbers were looked at (Bonferroni), is the number's
p-value here: without a single vote, the probability that any of them has a p-value of at most
`LEVEL` is at most `LEVEL`. A number with a larger p-value is shown as possible noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from earshot_protocol.privacy.laws import NoiseLaw, SkellamNoise, bounded

LEVEL = 0.05
"""Largest share of all phases in which anything is published from noise alone."""

PValue = Annotated[float, Meta(ge=0, le=1)]


def count_p_values(
    counts: npt.ArrayLike, noise: NoiseLaw, looked_at: int | None = None
) -> tuple[float, ...]:
    """Return P(noise ≥ count) times how many were looked at, at most 1, for each count.

    Args:
        counts: Integers (counts,).
        noise: Law of the noise on each of them.
        looked_at: Number of counts that these were chosen from; by default their own number.
    """
    numbers = bounded(counts)
    return _corrected(noise.at_least(numbers), len(numbers) if looked_at is None else looked_at)


def name_p_values(totals: npt.ArrayLike, noise: NoiseLaw) -> tuple[float, ...]:
    """Return the p-value of each centroid's name, the label with the most votes.

    A name makes two claims. *It has votes*: P(N ≥ votes) is small. *It has more than any other
    label*: its margin m over the runner-up is clear of the difference of two noises, P(N − N' ≥ m).
    The larger of both, times the number of (centroid, label) cells, is its p-value.

    The factor is right for the margin. Let b be a label with the most true votes for a centroid. A
    label a ≠ b is named only if noise lifts it over b by the margin, for which P(N − N' ≥ m) is a
    bound; b is named where another has as many votes only if noise parts the two. That is one event
    a cell, so over all centroids a label that is not the sole true winner is named with probability
    `LEVEL` at most. For the votes it is the number of counts that were looked at. With one label
    there is no runner-up, and the votes decide.

    Args:
        totals: Integers (centroids, labels), at least one label.
        noise: Law of the noise on each of them.
    """
    table = bounded(totals)
    if not len(table):
        return ()
    ordered = np.sort(table, axis=1)
    chances = noise.at_least(ordered[:, -1])
    if table.shape[1] > 1:
        margins = ordered[:, -1] - ordered[:, -2]
        chances = np.maximum(chances, noise.of_difference.at_least(margins))
    return _corrected(chances, table.size)


def answer_p_values(
    votes: npt.ArrayLike, agreement: npt.ArrayLike, noise: SkellamNoise, check: SkellamNoise
) -> tuple[float, ...]:
    """Return the p-value of each sample's name, the label with the most noisy votes.

    The agreement with that label is a second sum, with noise of its own. A name makes two claims.
    *Phones agree*: P(N₁ ≥ agreement) is small. *More agree than voted for any other label*: the
    agreement's margin m over the runner-up of the votes is clear of both noises, 2 · P(N₁ − N₂ ≥
    m). The larger of both, times the number of samples, is its p-value.

    No factor for the labels is needed. N₁ is drawn after the proposal and independent of it. Where
    a label is proposed that has fewer true votes than another one, b, the runner-up has b's noisy
    votes at least, and b depends on no noise: the margin is at most N₁ − N₂. Where c labels share
    the most true votes, the runner-up is at least the second largest of theirs, so of their c
    noises all but one are below N₁ − m; that has a probability of c/(c − 1) ≤ 2 times that of one
    of them (Markov). Phones that vanish between the sums make the margin smaller.

    Args:
        votes: Integers (samples, labels), at least two labels.
        agreement: Integers (samples,), the agreement with the label that has the most votes.
        noise: Law of the noise on each of the votes.
        check: Law of the noise on each agreement.
    """
    table, agreed = bounded(votes), bounded(agreement)
    if not len(table):
        return ()
    runner_up = np.sort(table, axis=1)[:, -2]
    chances = 2 * check.plus(noise).at_least(agreed - runner_up)
    return _corrected(np.maximum(chances, check.at_least(agreed)), len(table))


def are_clear(p_values: Sequence[float], count: int) -> tuple[bool, ...]:
    """Return whether each of `count` numbers stands clear; none does if p-values do not fit."""
    if len(p_values) != count:
        return (False,) * count
    return tuple(p_value <= LEVEL for p_value in p_values)


def _corrected(chances: npt.NDArray[np.float64], looked_at: int) -> tuple[float, ...]:
    return tuple(np.minimum(1.0, chances * looked_at).tolist())
