"""A phone chooses which of its centroids to publish (thesis, Algorithm 1, step 5)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from earshot_protocol.checks import positive, whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import SelectionMethod, selection_method
from earshot_protocol.privacy.noise import bernoulli_exp, discrete_laplace, grid_exp
from earshot_protocol.randomness import RandomBytes

_UNIFORM_BYTES = 32


def top_centroids(
    counts: npt.NDArray[np.int64],
    top: int,
    epsilon: float,
    method: SelectionMethod = SelectionMethod.NOISY_MAX,
    random: RandomBytes = os.urandom,
) -> npt.NDArray[np.int64]:
    """Indices of large counts, chosen one after the other without replacement, each ε-DP.

    Counts must be monotone: one recording raises one of them by one and lowers none. Then all
    three methods need no more noise than 1/ε, and `top` selections cost top · ε; see `NoisyMax`.

    Args:
        counts: whole numbers of shape (centroids,).
        top: k*, how many to choose.
        epsilon: ε2, of each choice.
        method: report noisy max, permute-and-flip, or one-shot Gumbel top-k.
        random: source of bytes; a seeded one belongs in simulations only.

    Returns:
        Distinct indices, int64 of shape (top,), in the order in which they were chosen.

    Raises:
        InvalidInputError: counts that are not a vector of whole numbers.
        InvalidParametersError: more to choose than centroids, an ε that is not positive, or an
            unknown method.
    """
    counts = np.asarray(counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise InvalidInputError(
            f"counts of shape {counts.shape} and type {counts.dtype}: give a vector of integers"
        )
    whole("top", top, 1, len(counts))
    positive("epsilon", epsilon)
    choose = _METHODS[selection_method(method)]
    left = np.arange(len(counts))
    chosen = []
    for _ in range(top):
        winner = choose(counts[left].astype(np.int64), epsilon, random)
        chosen.append(left[winner])
        left = np.delete(left, winner)
    return np.array(chosen, dtype=np.int64)


def _noisy_max(counts: npt.NDArray[np.int64], epsilon: float, random: RandomBytes) -> int:
    """The largest count after discrete Laplace noise of scale 1/ε; of equals the first.

    The proof for continuous noise (Dwork and Roth 2014, Claim 3.9) carries over: fix the noise of
    the others, then i wins for its own noise ≥ t, an integer that depends on the tie order.
    A neighbour's counts move t by at most one, and P(noise ≥ t + 1) ≥ e^-ε P(noise ≥ t).
    """
    return int(np.argmax(counts + discrete_laplace(1 / epsilon, counts.shape, random)))


def _permute_and_flip(counts: npt.NDArray[np.int64], epsilon: float, random: RandomBytes) -> int:
    """In random order, the first whose coin of probability exp(ε (count − largest)) is heads.

    McKenna and Sheldon, NeurIPS 2020, Algorithm 1, in the monotone case. As the order is
    independent of the coins, the first of the heads is a uniformly chosen one.
    """
    heads = np.flatnonzero(bernoulli_exp(epsilon, _behind(counts), random))
    return int(heads[_uniform_below(len(heads), random)])


def _exponential(counts: npt.NDArray[np.int64], epsilon: float, random: RandomBytes) -> int:
    """One with probability proportional to exp(ε count).

    Repeated without replacement this has the law of one-shot top-k with Gumbel noise of scale
    1/ε (Durfee and Rogers, NeurIPS 2019, Lemma 4.2) and releases no floating-point noise.
    """
    weights = [grid_exp(epsilon, steps) for steps in _behind(counts)]
    target = _uniform_below(sum(weights), random)
    return sum(total <= target for total in itertools.accumulate(weights))


_METHODS: dict[SelectionMethod, Callable[[npt.NDArray[np.int64], float, RandomBytes], int]] = {
    SelectionMethod.NOISY_MAX: _noisy_max,
    SelectionMethod.PERMUTE_AND_FLIP: _permute_and_flip,
    SelectionMethod.GUMBEL: _exponential,
}


def _behind(counts: npt.NDArray[np.int64]) -> list[int]:
    """How far each count is behind the largest."""
    behind: list[int] = (counts.max() - counts).tolist()
    return behind


def _uniform_below(limit: int, random: RandomBytes) -> int:
    """A uniform integer below `limit` ≤ 2^140, with a statistical distance below 2^-115."""
    return int.from_bytes(random(_UNIFORM_BYTES)) % limit
