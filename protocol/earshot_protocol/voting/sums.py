"""The secure sum behind each vote or histogram, which phone and server derive on their own."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol.phase import Parameters
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.parameters import SumParameters, choose


def vote_sum(parameters: Parameters, mechanism: BallotSum, shape: tuple[int, ...]) -> SumParameters:
    """Parameters of the sum that adds up the ballots of a vote, or the counts of a histogram.

    The bound leaves room for a noise share in every entry: no entry of any phone exceeds it but
    with probability 2^-80. Clipping to the bound changes nothing else, so what it adds to δ
    vanishes beside the 2^-40 of the secure sum.

    Args:
        parameters: of the phase.
        mechanism: of the vote.
        shape: of a ballot: (candidates,), (centroids, labels), or (labels,) for a histogram.

    Raises:
        InvalidParametersError: no safe graph exists for these fractions and this many phones.
    """
    entries = parameters.phones * math.prod(shape)
    return choose(
        parameters.phones,
        shape,
        mechanism.share_bound(2.0**-80 / entries),
        parameters.dropout,
        parameters.corrupted,
    )


def noisy_ballot(
    ballot: npt.NDArray[np.int64], mechanism: BallotSum, bound: int, random: RandomBytes
) -> npt.NDArray[np.int64]:
    """The ballot plus this phone's share of the noise, clipped to the bound of the sum."""
    share = mechanism.noise_share(ballot.shape, random)
    noisy: npt.NDArray[np.int64] = np.clip(ballot + share, -bound, bound)
    return noisy
