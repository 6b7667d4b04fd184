"""Recovery of a shared secret from shares of which some are wrong.

Shares of one secret are a Reed–Solomon code word; Gao, "A new algorithm for decoding Reed–Solomon
codes" (2003), finds the polynomial as long as at most (shares − threshold) / 2 of them are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import NamedTuple

from earshot_protocol.errors import RemoteError
from earshot_protocol.secure_sum.shamir import PRIME, recover

Polynomial = list[int]
"""Coefficients mod PRIME, constant first, without leading zeros; the zero polynomial is empty."""


class UnrecoverableSecretError(RemoteError):
    """Too few shares of a secret, or too many wrong ones."""


class Recovered(NamedTuple):
    """A shared secret and the shares of it that were wrong.

    Attributes:
        secret: Shared secret, 32 bytes.
        wrong: Points whose shares do not belong to the secret.
    """

    secret: bytes
    wrong: frozenset[int] = frozenset()


def recover_checked(
    shares: Mapping[int, int], threshold: int, count: int, is_right: Callable[[bytes], bool]
) -> Recovered:
    """Return the secret, tried first as if all shares were right, then with wrong ones corrected.

    Args:
        shares: Shares of the secret, point → value.
        threshold: Threshold of the sharing.
        count: Number of shares that were made.
        is_right: Test whether 32 bytes are the secret.

    Returns:
        The secret and the points of wrong shares.

    Raises:
        UnrecoverableSecretError: There are fewer than `threshold` shares, or too many wrong ones.
    """
    if len(shares) < threshold:
        raise UnrecoverableSecretError(f"{len(shares)} shares; {threshold} are needed")
    secret = recover(shares, count).to_bytes(32)
    if is_right(secret):
        return Recovered(secret)
    polynomial = _nearest(shares, threshold)
    corrected = (polynomial[0] if polynomial else 0).to_bytes(32)
    if is_right(corrected):
        wrong = (x for x, y in shares.items() if _evaluate(polynomial, x) != y % PRIME)
        return Recovered(corrected, frozenset(wrong))
    raise UnrecoverableSecretError(f"more than {(len(shares) - threshold) // 2} shares are wrong")


def _nearest(shares: Mapping[int, int], threshold: int) -> Polynomial:
    """Return the polynomial nearest to the shares (Gao's algorithm), or the zero one if none is."""
    points = list(shares)
    vanishing: Polynomial = [1]
    for point in points:
        vanishing = _multiply(vanishing, [-point % PRIME, 1])
    interpolated: Polynomial = []
    for point, value in shares.items():
        others, _ = _divide(vanishing, [-point % PRIME, 1])
        scale = value * pow(_evaluate(others, point), -1, PRIME)
        interpolated = _add(interpolated, [c * scale for c in others])
    older, newer = vanishing, interpolated
    older_factor: Polynomial = []
    newer_factor: Polynomial = [1]
    while 2 * len(newer) > len(points) + threshold:
        quotient, remainder = _divide(older, newer)
        older, newer = newer, remainder
        step = _multiply(quotient, newer_factor)
        older_factor, newer_factor = newer_factor, _add(older_factor, [-c for c in step])
    message, remainder = _divide(newer, newer_factor)
    return [] if remainder else message


def _trim(polynomial: Polynomial) -> Polynomial:
    reduced = [c % PRIME for c in polynomial]
    while reduced and not reduced[-1]:
        reduced.pop()
    return reduced


def _add(a: Polynomial, b: Polynomial) -> Polynomial:
    return _trim([x + y for x, y in zip_longest(a, b, fillvalue=0)])


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    product = [0] * (len(a) + len(b))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return _trim(product)


def _divide(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    remainder = list(a)
    quotient = [0] * max(0, len(a) - len(b) + 1)
    inverse = pow(b[-1], -1, PRIME)
    for shift in reversed(range(len(quotient))):
        factor = remainder[shift + len(b) - 1] * inverse % PRIME
        quotient[shift] = factor
        for i, coefficient in enumerate(b):
            remainder[shift + i] -= factor * coefficient
    return _trim(quotient), _trim(remainder)


def _evaluate(polynomial: Polynomial, point: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * point + coefficient) % PRIME
    return value
