"""The secure sum behind each vote or histogram, which phone and server derive independently."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.prio3.shapes import LARGEST_LENGTH as LARGEST_PROVED
from earshot_protocol.privacy.mechanisms import SumMechanism
from earshot_protocol.privacy.sum_noise import NoiseOfOperators
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.two_operators.parameters import TwoOperatorParameters


# All phones of a simulation derive the same.
@functools.lru_cache(maxsize=64)
def sum_parameters(
    mechanism: SumMechanism, shape: tuple[int, ...], phones: int, dropout: float, corrupted: float
) -> SumParameters:
    """Return parameters of the sum that adds up ballots, or counts, with their noise shares.

    The bound leaves room for a noise share in every entry: an entry of any phone exceeds it only
    with probability 2^-80. Clipping to the bound changes nothing else, so its contribution to δ
    vanishes beside the 2^-40 of the secure sum.

    Args:
        mechanism: Mechanism of the sum.
        shape: Shape of a ballot: (candidates,), (centroids, labels), or (labels,) for a histogram.
        phones: Number of phones that are enrolled, n.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.

    Raises:
        InvalidParametersError: No safe graph exists for these fractions and this many phones.
    """
    bound = mechanism.share_bound(2.0**-80 / (phones * math.prod(shape)))
    return choose(phones, shape, bound, dropout, corrupted)


def two_operator_parameters(
    mechanism: SumMechanism,
    shape: tuple[int, ...],
    phones: int,
    least: int,
    window: float,
    *,
    proved: bool = False,
) -> TwoOperatorParameters:
    """Return parameters of the sum by two operators that adds up ballots, or counts.

    Args:
        mechanism: Mechanism of the sum, with noise of operators.
        shape: Shape of a ballot, as for `sum_parameters`.
        phones: Number of phones that are enrolled, n.
        least: Least number of reports that a total is made of.
        window: Seconds for which phones may report.
        proved: Whether inputs are proved where they can be.

    Raises:
        InvalidParametersError: Phones share the noise, no 64-bit word holds the sum, or it has more
            entries than can be proved.
    """
    noise = mechanism.entry_noise
    if not isinstance(noise, NoiseOfOperators):
        raise InvalidParametersError("phones share the noise of this mechanism; operators do not")
    proof, length = mechanism.proof(shape) if proved else None, math.prod(shape)
    if proof is not None and length > LARGEST_PROVED:
        raise InvalidParametersError(
            f"a sum of {length} entries: inputs of at most {LARGEST_PROVED} are proved; without "
            f"proofs, with summation={SummationName.TWO_OPERATORS_UNPROVED}, there may be more"
        )
    parameters = TwoOperatorParameters(
        phones=phones,
        shape=shape,
        bound=mechanism.share_bound(0.5),
        noise=noise,
        least=max(2, least),
        window=window,
        proof=proof,
    )
    parameters.check()
    return parameters


def with_noise(
    ballot: npt.NDArray[np.int64], mechanism: SumMechanism, bound: int, random: RandomBytes
) -> npt.NDArray[np.int64]:
    """Return the ballot plus this phone's share of the noise, clipped to the bound of the sum."""
    share = mechanism.noise_share(ballot.shape, random)
    # Faster than `numpy.clip`, which first looks up the range of the type.
    noisy: npt.NDArray[np.int64] = np.maximum(np.minimum(ballot + share, bound), -bound)
    return noisy
