"""A phone chooses which of its centroids to publish (thesis, Algorithm 1, step 5)."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from earshot_protocol.checks import whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.local_mechanisms import NoisyMax
from earshot_protocol.privacy.noise import discrete_laplace
from earshot_protocol.randomness import RandomBytes


def top_centroids(
    counts: npt.NDArray[np.int64], mechanism: NoisyMax, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Indices of large counts, chosen one after the other without replacement, each ε-DP.

    Report noisy max: the largest count after discrete Laplace noise of scale 1/ε, of equals the
    first. Counts must be monotone: one recording raises one of them by one and lowers none. Then
    the proof for continuous noise (Dwork and Roth 2014, Claim 3.9) carries over: fix the noise of
    the others, then i wins for its own noise ≥ t, an integer that depends on the tie order.
    A neighbour's counts move t by at most one, and P(noise ≥ t + 1) ≥ e^-ε P(noise ≥ t).

    Args:
        counts: whole numbers of shape (centroids,).
        mechanism: ε of each choice, and how many there are.
        random: source of bytes; a seeded one belongs in simulations only.

    Returns:
        Distinct indices, int64 of shape (repeats,), in the order in which they were chosen.

    Raises:
        InvalidInputError: counts that are not a vector of whole numbers.
        InvalidParametersError: more to choose than there are.
    """
    counts = np.asarray(counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise InvalidInputError(
            f"counts of shape {counts.shape} and type {counts.dtype}: give a vector of integers"
        )
    whole("repeats", mechanism.repeats, 1, len(counts))
    left = np.arange(len(counts))
    chosen = []
    for _ in range(mechanism.repeats):
        noise = discrete_laplace(1 / mechanism.epsilon, left.shape, random)
        winner = np.argmax(counts[left].astype(np.int64) + noise)
        chosen.append(left[winner])
        left = np.delete(left, winner)
    return np.array(chosen, dtype=np.int64)
