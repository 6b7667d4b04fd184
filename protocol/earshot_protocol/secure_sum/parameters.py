"""Number of neighbours that a phone needs, and of those that must answer.

Bell et al. (CCS 2020, section 3) require three things of a graph of n phones with k neighbours each
and a secret-sharing threshold t, where a fraction γ may be corrupted and a fraction ρ may drop out:

1. *secrecy*: n · Pr[HG(n−1, ⌈γn⌉, k) ≥ t] ≤ 2^-σ, or corrupted neighbours rebuild a secret;
2. *recovery*: n · Pr[k − HG(n−1, ⌈ρn⌉, k) < t] ≤ 2^-η, or too few neighbours stay to rebuild one;
3. *connection*: n · (γ+ρ)^(k/2) ≤ 2^-σ, or a run of k/2 bad positions on the ring may cut the
   honest survivors in two, whose sums could then be distinguished.

One more condition guards against a server that sends neighbours contradictory lists:

4. *one story*: 2t > k, or half of a phone's honest neighbours, which hear that it stayed, reveal
   its seed, and the other half, which hear that it dropped, the seeds of its masks.

HG is the hypergeometric law, whose tails are computed exactly: a Chernoff bound would cost phones
about twice the neighbours. Conditions 1 and 4 bound t from below and condition 2 from above. Only
the largest threshold between is accepted: slack goes to secrecy, because a failed recovery costs a
repetition and a lost secret is lost.

On the complete graph (n ≤ k+1) nothing is random: all corrupted phones are neighbours of every
phone, conditions 1 and 2 become ⌈γn⌉ < t ≤ n−1−⌈ρn⌉, and condition 3 holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import fraction, whole
from earshot_protocol.errors import InvalidParametersError

LARGEST_DEGREE = 254
"""Most neighbours of a phone: a share's index is one byte, and zero is the secret's own place."""

LARGEST_LENGTH = 2**24
"""Entries of the longest vector that one sum adds."""

_LIMITS = {
    "phones": (3, 10**8),
    "length": (1, LARGEST_LENGTH),
    "bound": (1, 2**63 - 1),
    "neighbours": (2, LARGEST_DEGREE),
    "threshold": (1, LARGEST_DEGREE),
    "precision": (0, 18),
    "statistical_security": (1, 128),
    "correctness": (1, 128),
}
_LARGEST_RANK = 32


class SumParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters that the phones and the server of one secure sum must agree on.

    Attributes:
        phones: Number of phones that are invited, n.
        length: Number of entries of a vector, ℓ; the product of `shape`.
        bound: Largest absolute value of one encoded entry, noise included.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        neighbours: Number of phones that each phone talks to, k.
        threshold: Number of shares that rebuild a secret, t: the largest that is admitted.
        shape: Shape of the summed array.
        precision: Number of decimal digits of a fixed-point input (thesis 9.1.2).
        statistical_security: Statistical security σ, in bits: a secret is exposed with probability
            at most 2^-σ for each condition.
        correctness: Correctness η, in bits: the sum fails for lack of shares with probability at
            most 2^-η.
    """

    phones: int
    length: int
    bound: int
    dropout: float
    corrupted: float
    neighbours: int
    threshold: int
    shape: tuple[int, ...]
    precision: int = 0
    statistical_security: int = 40
    correctness: int = 30

    @property
    def modulus_bits(self) -> int:
        """Smallest b whose signed b-bit numbers hold `phones · bound`; at most 64.

        Raises:
            InvalidParametersError: No signed 64-bit number holds it.
        """
        largest_sum = self.phones * self.bound
        if largest_sum.bit_length() > 63:
            raise InvalidParametersError(
                f"phones · bound = {largest_sum} does not fit a signed 64-bit sum; for "
                f"{self.phones} phones bound may be at most {(2**63 - 1) // self.phones}"
            )
        return largest_sum.bit_length() + 1

    @property
    def largest_dropout_count(self) -> int:
        """Most phones that may vanish before the sum is given up, ⌊ρn⌋."""
        return math.floor(_share_of(self.phones, self.dropout))

    @property
    def least_survivors(self) -> int:
        """Phones that must stay after every round."""
        return self.phones - self.largest_dropout_count

    @property
    def degree(self) -> int:
        """Number of neighbours that a phone really has."""
        return min(self.neighbours, self.phones - 1)

    def check(self) -> None:
        """Recompute every condition, as a phone does with parameters that a server sent.

        Raises:
            InvalidParametersError: A value is wrong; the message names the first such value and
                what is accepted.
        """
        for name in _LIMITS:
            _limited(name, getattr(self, name))
        fraction("dropout", self.dropout)
        fraction("corrupted", self.corrupted)
        if math.prod(_shape(self.shape)) != self.length:
            raise InvalidParametersError(
                f"length must be the product of shape {self.shape}, not {self.length}"
            )
        _ = self.modulus_bits
        _check_graph(
            _Setting(
                self.phones,
                self.dropout,
                self.corrupted,
                self.statistical_security,
                self.correctness,
            ),
            self.neighbours,
            self.threshold,
        )


def choose(
    phones: int,
    shape: tuple[int, ...],
    bound: int,
    dropout: float,
    corrupted: float,
    *,
    precision: int = 0,
    neighbours: int | None = None,
    statistical_security: int = 40,
    correctness: int = 30,
) -> SumParameters:
    """Return the cheapest safe parameters of one sum (Bell et al., section 3; see above).

    They have the smallest even number of neighbours for which some threshold is safe, and the
    largest such threshold. Where no sparse graph is safe, the complete one is tried, whose degree
    may be odd.

    Args:
        phones: Number of phones, n, from 3 to 10^8.
        shape: Shape of the array to sum, at most 2^24 entries; () is a single number.
        bound: Largest absolute value of one encoded entry, noise included.
        dropout: Largest fraction of phones that may vanish, ρ, in [0, 1).
        corrupted: Largest fraction of phones that an adversary may control, γ, in [0, 1).
        precision: Decimal digits of a fixed-point input.
        neighbours: Forced value of k (n−1 if that is less); the threshold is chosen for it.
        statistical_security: Statistical security σ, in bits.
        correctness: Correctness η, in bits.

    Returns:
        Parameters that pass `SumParameters.check`.

    Raises:
        InvalidParametersError: A number is out of range, no graph of at most 254 neighbours is
            safe, or the forced one is not; the message says what would be accepted.
    """
    setting = _Setting(
        _limited("phones", phones),
        fraction("dropout", dropout),
        fraction("corrupted", corrupted),
        _limited("statistical_security", statistical_security),
        _limited("correctness", correctness),
    )
    if neighbours is None:
        least = _least_degree(setting)
        if least is None:
            raise _no_safe_graph(setting)
        degree = least
    else:
        degree = min(_limited("neighbours", neighbours), setting.phones - 1)
    dimensions = _shape(shape)
    parameters = SumParameters(
        phones=setting.phones,
        length=math.prod(dimensions),
        bound=_limited("bound", bound),
        dropout=setting.dropout,
        corrupted=setting.corrupted,
        neighbours=degree,
        threshold=_largest_threshold(setting, degree),
        shape=dimensions,
        precision=_limited("precision", precision),
        statistical_security=setting.statistical_security,
        correctness=setting.correctness,
    )
    parameters.check()
    return parameters


class _Setting(msgspec.Struct, frozen=True):
    """Values on which the safety of a graph depends, apart from the graph."""

    phones: int
    dropout: float
    corrupted: float
    statistical_security: int
    correctness: int


@lru_cache(maxsize=4096)
def _thresholds(setting: _Setting, degree: int) -> range:
    """Return the thresholds that the conditions admit for this degree, perhaps none."""
    allowance = -math.log2(setting.phones)
    if degree < setting.phones - 1:
        bad = setting.dropout + setting.corrupted
        run = degree / 2 * math.log2(bad) if bad > 0 else -math.inf
        if run > allowance - setting.statistical_security:
            return range(0)
    corrupted = math.ceil(_share_of(setting.phones, setting.corrupted))
    dropped = math.ceil(_share_of(setting.phones, setting.dropout))
    leaks = _log2_tails(setting.phones, corrupted, degree)
    losses = _log2_tails(setting.phones, dropped, degree)
    # Entry j of a tail is Pr[at least j are bad]; both fall as j grows, so counting finds the edge.
    least = int(np.count_nonzero(leaks > allowance - setting.statistical_security))
    spared = int(np.count_nonzero(losses > allowance - setting.correctness)) - 1
    return range(max(least, degree // 2 + 1), degree - spared + 1)


def _log2_tails(phones: int, marked: int, degree: int) -> NDArray[np.float64]:
    """Return log2 Pr[HG(phones − 1, marked, degree) ≥ j] for j = 0 … degree + 1."""
    marked = min(marked, phones - 1)
    inside = _log2_binomials(marked)[: degree + 1]
    outside = _log2_binomials(phones - 1 - marked)[: degree + 1]
    log2_law = inside + outside[::-1] - _log2_binomials(phones - 1)[degree]
    tails = np.logaddexp2.accumulate(log2_law[::-1])[::-1]
    return np.append(tails, -np.inf)


@lru_cache(maxsize=64)
def _log2_binomials(size: int) -> NDArray[np.float64]:
    """Return log2 of `size` over i, for i = 0 … `LARGEST_DEGREE`; −∞ where i > size."""
    i = np.arange(LARGEST_DEGREE)
    with np.errstate(divide="ignore"):
        factors = np.log2(np.maximum(size - i, 0)) - np.log2(i + 1)
    binomials = np.concatenate(([0.0], np.cumsum(factors)))
    binomials.setflags(write=False)
    return binomials


@lru_cache(maxsize=4096)
def _least_degree(setting: _Setting) -> int | None:
    """Return the smallest safe degree, that of the complete graph last; None if none is safe."""
    complete = setting.phones - 1
    degrees = list(range(2, min(LARGEST_DEGREE, complete - 1) + 1, 2))
    if complete <= LARGEST_DEGREE:
        degrees.append(complete)
    return next((degree for degree in degrees if _thresholds(setting, degree)), None)


def _check_graph(setting: _Setting, neighbours: int, threshold: int) -> None:
    """Refuse a number of neighbours that breaks one of the conditions, or a wrong threshold."""
    degree = min(neighbours, setting.phones - 1)
    largest = _largest_threshold(setting, degree)
    if threshold == largest:
        return
    reason = (
        "fewer shares leave secrets to corrupted neighbours, or to two stories about one phone"
        if threshold < largest
        else "more shares may not be found after dropouts"
    )
    raise InvalidParametersError(
        f"threshold must be {largest} for {degree} neighbours, not {threshold}: {reason}"
    )


def _largest_threshold(setting: _Setting, degree: int) -> int:
    """Return the threshold of a degree, or refuse the degree and name the smallest with one."""
    if degree % 2 and degree < setting.phones - 1:
        raise InvalidParametersError(
            f"neighbours must be even, not {degree}: half of them lie on each side of the ring"
        )
    if admitted := _thresholds(setting, degree):
        return admitted[-1]
    least = _least_degree(setting)
    if least is None:
        raise _no_safe_graph(setting)
    raise InvalidParametersError(
        f"neighbours={degree} admits no safe threshold for {setting.phones} phones at "
        f"dropout={setting.dropout} and corrupted={setting.corrupted}; the smallest number that "
        f"does is {least}"
    )


def _no_safe_graph(setting: _Setting) -> InvalidParametersError:
    """Return the error for a setting without a safe degree; it names accepted fractions."""
    dropout, corrupted = _largest_fractions(setting)
    return InvalidParametersError(
        f"dropout={setting.dropout} with corrupted={setting.corrupted} leaves {setting.phones} "
        f"participants no safe graph of at most {LARGEST_DEGREE} neighbours (a share's index is "
        f"one byte); in this proportion dropout={dropout} with corrupted={corrupted} is accepted"
    )


def _largest_fractions(setting: _Setting) -> tuple[float, float]:
    """Return the largest dropout and corrupted accepted in this proportion, in thousandths."""
    accepted, refused = 0.0, 1.0
    fractions = (0.0, 0.0)
    for _ in range(12):
        scale = (accepted + refused) / 2
        # Rounding down only makes a setting safer, so the message can state what was tried.
        tried = (
            math.floor(setting.dropout * scale * 1000) / 1000,
            math.floor(setting.corrupted * scale * 1000) / 1000,
        )
        attempt = msgspec.structs.replace(setting, dropout=tried[0], corrupted=tried[1])
        if _least_degree(attempt) is None:
            refused = scale
        else:
            accepted, fractions = scale, tried
    return fractions


def _share_of(phones: int, fraction: float) -> float:
    """Return `fraction · phones`, where 0.07 · 100 is 7 and not the next float above it."""
    return round(fraction * phones, 6)


def _limited(name: str, value: int) -> int:
    return whole(name, value, *_LIMITS[name])


def _shape(shape: Iterable[int]) -> tuple[int, ...]:
    dimensions = tuple(shape)
    if len(dimensions) > _LARGEST_RANK:
        raise InvalidParametersError(
            f"shape must have at most {_LARGEST_RANK} dimensions, not {len(dimensions)}"
        )
    return tuple(whole("dimension of shape", size, 1, LARGEST_LENGTH) for size in dimensions)
