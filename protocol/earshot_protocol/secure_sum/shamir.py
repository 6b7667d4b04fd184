"""Shamir's secret sharing of 32-byte secrets, over the largest prime below 2^256.

Secrets and shares are 32 bytes, big-endian, and the points are 1, 2, …, n ≤ 254. Shamir, "How to
share a secret", CACM 1979.

Splitting is one matrix product: powers of the points times random coefficients, both cut into limbs
of 20 bits so that every partial sum is an integer below 2^53 and float64 is exact. Rebuilding many
secrets at once takes one such product for each: coefficients times shares.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError

PRIME = 2**256 - 189
SECRET_BYTES = 32
LARGEST_COUNT = 254

_LIMB_BITS = 20
_PAIR_BYTES = 5  # two limbs of 20 bits fill five bytes
_PAIRS = 7  # 7 · 5 bytes hold a number below 2^256
_LIMBS = 2 * _PAIRS
_FACTOR_BITS = 62
"""Bits of headroom for interpolating with missing points in `recover_many`."""
_SMALL_PRODUCT = 2**17  # multiplications; OpenBLAS uses threads from twice as many on
# The largest partial sum: 14 limb products of 40 bits for each of at most 254 coefficients.
assert _LIMBS * LARGEST_COUNT * 2 ** (2 * _LIMB_BITS) < 2**53  # noqa: S101


def split(secrets: Sequence[bytes], threshold: int, count: int) -> npt.NDArray[np.uint8]:
    """Share each secret among the points 1 … count; any `threshold` shares determine it.

    Args:
        secrets: Secrets of 32 bytes, s of them, each below `PRIME` as a big-endian number.
        threshold: Least number of shares that determine the secret.
        count: Number of shares, at most 254.

    Returns:
        uint8 of shape (s, count, 32): the share of secret i at point j + 1.

    Raises:
        InvalidInputError: A secret has the wrong size or range, or 1 ≤ threshold ≤ count ≤ 254 does
            not hold.
    """
    if not 1 <= threshold <= count <= LARGEST_COUNT:
        raise InvalidInputError(
            f"threshold {threshold} of {count} shares: "
            f"must be 1 ≤ threshold ≤ count ≤ {LARGEST_COUNT}"
        )
    for secret in secrets:
        if len(secret) != SECRET_BYTES or int.from_bytes(secret) >= PRIME:
            raise InvalidInputError("a secret must be 32 bytes and a number below 2^256 − 189")
    # 256 random bits are uniform modulo PRIME up to a distance of 189/2^256.
    coefficients = np.frombuffer(
        os.urandom(SECRET_BYTES * (threshold - 1) * len(secrets)), dtype=np.uint8
    ).reshape(threshold - 1, len(secrets), SECRET_BYTES)
    constant = np.frombuffer(b"".join(bytes(s) for s in secrets), dtype=np.uint8)
    polynomial = np.concatenate(
        [constant.reshape(1, len(secrets), SECRET_BYTES)[:, :, ::-1], coefficients]
    )
    limbs = _to_limbs(polynomial).transpose(2, 1, 0).reshape(_LIMBS * len(secrets), threshold)
    products = _multiply(limbs, _powers(count, threshold)).reshape(
        _LIMBS, len(secrets), _LIMBS, count
    )
    values = np.zeros((2 * _LIMBS, len(secrets), count))
    for low in range(_LIMBS):
        values[low : low + _LIMBS] += products[:, :, low]
    return _reduce(values.astype(np.int64))


def recover(shares: Mapping[int, int], count: int) -> int:
    """Return the secret from shares of one sharing among 1 … count, using all shares given.

    Lagrange's coefficient at zero for the points 1 … n is (−1)^(i−1)·C(n, i); leaving out the
    points D multiplies it by ∏_{d ∈ D} (d − i)/d. So one modular inverse serves all shares.

    Args:
        shares: Shares, point → value; with fewer than the sharing's threshold, the result is
            meaningless.
        count: Number of shares that were made.

    Returns:
        The secret as a number below `PRIME`.

    Raises:
        InvalidInputError: A point lies outside 1 … count.
    """
    signed_binomials = _signed_binomials(count)
    if not all(1 <= point <= count for point in shares):
        raise InvalidInputError(f"a share's point must lie between 1 and {count}")
    absent = [point for point in range(1, count + 1) if point not in shares]
    total = 0
    for point, value in shares.items():
        total += signed_binomials[point] * math.prod([d - point for d in absent]) * value
    return total * _inverse(math.prod(absent)) % PRIME


def recover_many(shares: npt.NDArray[np.uint8], present: npt.NDArray[np.bool_]) -> Iterator[bytes]:
    """Yield the result of `recover` for each of many sharings among the same number of points.

    Args:
        shares: Share of each secret i at each point j + 1, big-endian, uint8 of shape (s, count,
            32).
        present: Whether each share is there, bool of shape (s, count).

    Yields:
        The secrets, 32 bytes each.
    """
    count = shares.shape[1]
    places = np.arange(1, count + 1)
    absences = count - np.count_nonzero(present, axis=1)
    most = int(absences.max(initial=0))
    if most * math.log2(count) > _FACTOR_BITS:  # at most a few sharings lack this many points
        for own, there in zip(shares, present, strict=True):
            given = {at: int.from_bytes(own[at - 1].tobytes()) for at in places[there].tolist()}
            yield recover(given, count).to_bytes(SECRET_BYTES)
        return
    # The points that are absent, each row filled up with zeros, which make factors of one.
    absent = np.sort(np.where(present, 0, places), axis=1)[:, count - most :]
    factors = np.ones(present.shape, dtype=np.int64)
    for column in absent.T[:, :, None]:
        factors *= np.where(column > 0, column - places, 1)
    sums = np.matmul(
        _to_limbs(shares[:, :, ::-1]).transpose(0, 2, 1), _coefficients(factors, count)
    )
    limbs = np.zeros((len(shares), _LIMBS + sums.shape[2] + 1), dtype=np.int64)
    for low in range(_LIMBS):
        limbs[:, low : low + sums.shape[2]] += sums[:, low].astype(np.int64)
    for number, away in zip(_whole(limbs), absent.tolist(), strict=True):
        inverse = _inverse(math.prod(point for point in away if point))
        yield (number * inverse % PRIME).to_bytes(SECRET_BYTES)


def _coefficients(factors: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.float64]:
    """Return signed binomials times factors (s, count), in limbs of 20 bits: (s, count, l)."""
    binomials = _binomial_limbs(count)
    sizes, signs = np.abs(factors), np.sign(factors)
    signs[:, 1::2] *= -1
    parts = -(-_FACTOR_BITS // _LIMB_BITS)
    limbs = np.zeros((*factors.shape, binomials.shape[1] + parts), dtype=np.int64)
    for part in range(parts):
        own = (sizes >> (_LIMB_BITS * part)) & (2**_LIMB_BITS - 1)
        limbs[:, :, part : part + binomials.shape[1]] += own[:, :, None] * binomials
    for low in range(limbs.shape[2] - 1):
        limbs[:, :, low + 1] += limbs[:, :, low] >> _LIMB_BITS
        limbs[:, :, low] &= 2**_LIMB_BITS - 1
    return (limbs * signs[:, :, None]).astype(np.float64)


def _whole(limbs: npt.NDArray[np.int64]) -> Iterator[int]:
    """Yield numbers from limbs (s, l), which may lie outside 0 … 2^20 and are changed."""
    for low in range(limbs.shape[1] - 1):
        limbs[:, low + 1] += limbs[:, low] >> _LIMB_BITS
        limbs[:, low] &= 2**_LIMB_BITS - 1
    last = limbs.shape[1] - 1
    even = np.zeros((len(limbs), last + last % 2), dtype=np.int64)
    even[:, :last] = limbs[:, :last]
    pairs = (even[:, 0::2] | (even[:, 1::2] << _LIMB_BITS)).astype("<u8")
    little = pairs.view(np.uint8).reshape(*pairs.shape, 8)[..., :_PAIR_BYTES]
    size = _PAIR_BYTES * pairs.shape[1]
    for own, top in zip(little.reshape(len(limbs), size), limbs[:, last].tolist(), strict=True):
        yield int.from_bytes(own.tobytes(), "little") + (top << (_LIMB_BITS * last))


@functools.lru_cache(maxsize=64)
def _binomial_limbs(count: int) -> npt.NDArray[np.int64]:
    """Return the binomials C(count, 1 … count) in limbs of 20 bits, shape (count, l)."""
    binomials = [math.comb(count, point) for point in range(1, count + 1)]
    limbs = -(-max(binomials).bit_length() // _LIMB_BITS)
    mask = 2**_LIMB_BITS - 1
    return np.array([[(b >> (_LIMB_BITS * i)) & mask for i in range(limbs)] for b in binomials])


@functools.lru_cache(maxsize=4096)
def _inverse(number: int) -> int:
    return pow(number, -1, PRIME)


@functools.lru_cache(maxsize=1024)
def _signed_binomials(count: int) -> tuple[int, ...]:
    return tuple((-1) ** (i - 1) * math.comb(count, i) for i in range(count + 1))


@functools.lru_cache(maxsize=64)
def _powers(count: int, threshold: int) -> npt.NDArray[np.float64]:
    """Return x^i mod PRIME in limbs, shape (threshold, limbs · count), for x = 1 … count."""
    powers = bytearray()
    for x in range(1, count + 1):
        power = 1
        for _ in range(threshold):
            powers += power.to_bytes(SECRET_BYTES, "little")
            power = power * x % PRIME
    little = np.frombuffer(powers, dtype=np.uint8).reshape(count, threshold, SECRET_BYTES)
    return _to_limbs(little).transpose(1, 2, 0).reshape(threshold, _LIMBS * count)


def _multiply(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the matrix product a b, in pieces so small that a BLAS uses no second thread.

    Its threads would spin for longer than they compute, at the cost of a phone's battery.
    """
    step = max(1, _SMALL_PRODUCT // a.size)
    pieces = [a @ b[:, at : at + step] for at in range(0, b.shape[1], step)]
    return np.concatenate(pieces, axis=1)


def _to_limbs(little: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Split little-endian numbers (…, 32) into limbs of 20 bits (…, 14), low limb first."""
    padded = np.zeros((*little.shape[:-1], _PAIRS * _PAIR_BYTES), dtype=np.uint8)
    padded[..., :SECRET_BYTES] = little
    words = np.zeros((*little.shape[:-1], _PAIRS, 8), dtype=np.uint8)
    words[..., :_PAIR_BYTES] = padded.reshape(*little.shape[:-1], _PAIRS, _PAIR_BYTES)
    pairs = words.view("<u8")[..., 0]
    limbs = np.empty((*little.shape[:-1], _PAIRS, 2), dtype=np.float64)
    limbs[..., 0] = pairs & (2**_LIMB_BITS - 1)
    limbs[..., 1] = pairs >> np.uint64(_LIMB_BITS)
    return limbs.reshape(*little.shape[:-1], _LIMBS)


def _reduce(limbs: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Reduce sums of limb products (28, …), each below 2^53, to big-endian numbers (…, 32)."""
    for low in range(2 * _LIMBS - 1):
        limbs[low + 1] += limbs[low] >> _LIMB_BITS
    limbs &= 2**_LIMB_BITS - 1
    pairs = np.ascontiguousarray((limbs[0::2] | (limbs[1::2] << _LIMB_BITS)).T).astype("<u8")
    little = pairs.view(np.uint8).reshape(*pairs.shape, 8)[..., :_PAIR_BYTES].tobytes()
    size = _LIMBS * _PAIR_BYTES
    reduced = b"".join(
        (int.from_bytes(little[at : at + size], "little") % PRIME).to_bytes(SECRET_BYTES, "big")
        for at in range(0, len(little), size)
    )
    return (
        np.frombuffer(reduced, dtype=np.uint8)
        .reshape(*pairs.shape[:-1], SECRET_BYTES)
        .swapaxes(0, 1)
    )
