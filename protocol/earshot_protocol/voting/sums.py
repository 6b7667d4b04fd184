"""The secure sum behind each vote or histogram, which phone and server derive on their own."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.parameters import SumParameters, choose


# All phones of a simulation derive the same.
@functools.lru_cache(maxsize=64)
def sum_parameters(
    mechanism: SumMechanism, shape: tuple[int, ...], phones: int, dropout: float, corrupted: float
) -> SumParameters:
    """Parameters of the sum that adds up ballots, or counts, with their noise shares.

    The bound leaves room for a noise share in every entry: no entry of any phone exceeds it but
    with probability 2^-80. Clipping to the bound changes nothing else, so what it adds to δ
    vanishes beside the 2^-40 of the secure sum.

    Args:
        mechanism: of the sum.
        shape: of a ballot: (candidates,), (centroids, labels), or (labels,) for a histogram.
        phones: n.
        dropout: ρ.
        corrupted: γ.

    Raises:
        InvalidParametersError: no safe graph exists for these fractions and this many phones.
    """
    bound = mechanism.share_bound(2.0**-80 / (phones * math.prod(shape)))
    return choose(phones, shape, bound, dropout, corrupted)


def with_noise(
    ballot: npt.NDArray[np.int64], mechanism: SumMechanism, bound: int, random: RandomBytes
) -> npt.NDArray[np.int64]:
    """The ballot plus this phone's share of the noise, clipped to the bound of the sum."""
    share = mechanism.noise_share(ballot.shape, random)
    # As `numpy.clip`, which first looks up what the type holds.
    noisy: npt.NDArray[np.int64] = np.maximum(np.minimum(ballot + share, bound), -bound)
    return noisy
