"""A phone's choice of the centroids that it publishes (thesis, Algorithm 1, step 5).

Three methods behind one interface. All choose one index after the other without replacement, from
counts that are *monotone*: one recording raises one of them by one and lowers none. For scores that
a recording may move by Δ either way the rates below would have to be ε / 2Δ; here they are ε.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from earshot_protocol.checks import whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.coins import bernoulli_exp, grid_exp, uniform_below
from earshot_protocol.privacy.local_mechanisms import Selection, SelectionMethod
from earshot_protocol.privacy.noise import discrete_laplace
from earshot_protocol.randomness import RandomBytes

Counts = npt.NDArray[np.int64]


def top_centroids(
    counts: Counts, mechanism: Selection, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Return indices of large counts, chosen one by one without replacement, each ε-DP.

    Args:
        counts: Whole numbers of shape (centroids,), monotone.
        mechanism: Mechanism with the method, ε of each choice, and the number of choices.
        random: Source of bytes; a seeded one belongs in simulations only.

    Returns:
        Distinct indices, int64 of shape (repeats,), in the order in which they were chosen.

    Raises:
        InvalidInputError: The counts are not a vector of whole numbers.
        InvalidParametersError: There are more to choose than there are counts.
    """
    counts = np.asarray(counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise InvalidInputError(
            f"counts of shape {counts.shape} and type {counts.dtype}: give a vector of integers"
        )
    whole("repeats", mechanism.repeats, 1, len(counts))
    choose = _METHODS[mechanism.method]
    left = np.arange(len(counts))
    chosen = []
    for _ in range(mechanism.repeats):
        winner = choose(counts[left].astype(np.int64), mechanism.epsilon, random)
        chosen.append(left[winner])
        left = np.delete(left, winner)
    return np.array(chosen, dtype=np.int64)


def _noisy_max(counts: Counts, epsilon: float, random: RandomBytes) -> int:
    """Choose the largest count after discrete Laplace noise of scale 1/ε; of equals, the first.

    The proof for continuous noise (Dwork and Roth 2014, Claim 3.9) carries over: fix the noise of
    the others, then i wins for its own noise ≥ t, an integer that depends on the tie order. A
    neighbour's counts move t by at most one, and P(noise ≥ t + 1) ≥ e^-ε P(noise ≥ t).
    """
    return int(np.argmax(counts + discrete_laplace(1 / epsilon, counts.shape, random)))


def _permute_and_flip(counts: Counts, epsilon: float, random: RandomBytes) -> int:
    """Choose, in random order, the first whose coin, exp(−ε (largest − count)), is heads.

    The coin of a count has that probability: McKenna and Sheldon (NeurIPS 2020), Algorithm 1 with
    the rate for monotone counts. The order is independent of the coins, so the first of the heads
    is any of them with equal probability; the largest count always is one.
    """
    heads = [i for i, steps in enumerate(_behind(counts)) if bernoulli_exp(epsilon, steps, random)]
    return heads[uniform_below(len(heads), random)]


def _exponential(counts: Counts, epsilon: float, random: RandomBytes) -> int:
    """Choose one with probability proportional to exp(ε · count).

    Repeated without replacement this is the law of the largest counts after Gumbel noise of scale
    1/ε, drawn once (Durfee and Rogers, NeurIPS 2019, Lemma 4.2), without any real-valued noise.
    """
    weights = itertools.accumulate(grid_exp(epsilon, steps) for steps in _behind(counts))
    bounds = list(weights)
    target = uniform_below(bounds[-1], random)
    return sum(bound <= target for bound in bounds)


_METHODS: Mapping[SelectionMethod, Callable[[Counts, float, RandomBytes], int]] = {
    SelectionMethod.NOISY_MAX: _noisy_max,
    SelectionMethod.PERMUTE_AND_FLIP: _permute_and_flip,
    SelectionMethod.GUMBEL: _exponential,
}


def _behind(counts: Counts) -> list[int]:
    """Return the difference of each count to the largest."""
    behind: list[int] = (counts.max() - counts).tolist()
    return behind
