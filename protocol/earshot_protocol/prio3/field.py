"""Field128 of the VDAF draft: its elements, their bytes, and the operations of an engine.

The prime is p = 2^66 · 4611686018427387897 + 1 = 2^128 − 28 · 2^64 + 1 (draft-irtf-cfrg-vdaf-20,
section 6.1.4). Two engines give the same elements: `limbs`, of numpy alone, for phones, and
`earshot_server.proofs.kernels`, compiled by numba.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import MalformedMessageError

MODULUS = 2**66 * 4611686018427387897 + 1
FOLD = 28
"""2^128 = FOLD · 2^64 − 1 modulo p."""
TOP = 2**64 - FOLD
"""Upper half of p; the lower half is 1."""
ENCODED_BYTES = 16
LOG_ORDER = 66
"""There are roots of unity of order 2^66."""

Elements = npt.NDArray[np.uint64]
"""Elements below p as (…, 2): lower and upper half of each, which are its 16 bytes."""


Signs = npt.NDArray[np.uint8]
"""Numbers −1, 0, 1 as (…, 2, bytes): two runs of bits, lowest bit first, of which a number is its
bit of the first run less that of the second."""


class Arithmetic(Protocol):
    """Arithmetic of elements in arrays of two axes or more; `add` and its like broadcast them."""

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b."""

    def subtract(self, a: Elements, b: Elements) -> Elements:
        """Return a − b."""

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Return a · b."""

    def total(self, a: Elements) -> Elements:
        """Return sums along the last axis of elements: (…, n, 2) becomes (…, 2)."""

    def dot(self, a: Elements, b: Elements) -> Elements:
        """Return sums of products along the last axis of elements, of at most 2^16 each."""

    def butterfly(self, pairs: Elements, roots: Elements) -> Elements:
        """Return even + root · odd and even − root · odd, a step of a Fourier transform.

        Args:
            pairs: Even and odd elements, (…, 2, n, 2).
            roots: Roots of unity, (n, 2), the first of which is 1.

        Returns:
            Sums and differences, (…, 2, n, 2).
        """

    def signed_dot(self, a: Elements, signs: Signs) -> Elements:
        """Return sums with signs, of at most 2^20 elements each.

        Args:
            a: Elements, (reports, n, 2).
            signs: Numbers −1, 0, 1, (reports, sums, 2, ⌈n / 8⌉).

        Returns:
            Elements, (reports, sums, 2).
        """


def elements(numbers: Iterable[int]) -> Elements:
    """Return whole numbers, taken modulo p, as elements of shape (numbers, 2)."""
    encoded = b"".join((number % MODULUS).to_bytes(ENCODED_BYTES, "little") for number in numbers)
    return np.frombuffer(encoded, dtype="<u8").reshape(-1, 2)


def from_signed(numbers: npt.NDArray[np.int64]) -> Elements:
    """Return numbers of shape (…) as elements; −x is p − x."""
    negative = numbers < 0
    # p + x is TOP · 2^64 + (1 + x), and 1 + x borrows from the upper half below −1.
    low = (numbers + negative).view(np.uint64)
    high = negative * np.uint64(TOP) - (numbers < -1)
    return np.stack((low, high), axis=-1)


def to_signed(values: Elements) -> npt.NDArray[np.int64]:
    """Return the numbers that `from_signed` maps to these elements.

    Raises:
        MalformedMessageError: An element is not a signed number of 64 bits.
    """
    low, high = values[..., 0], values[..., 1]
    numbers: npt.NDArray[np.int64] = (low - (high != 0)).view(np.int64)
    if not np.array_equal(from_signed(numbers), values):
        raise MalformedMessageError("a total beyond 64 bits: shares of different sums")
    return numbers


def unpacked(signs: Signs, length: int) -> npt.NDArray[np.int8]:
    """Return the first numbers −1, 0, 1, int8 (…, length), that runs of bits are."""
    bits = np.unpackbits(signs, axis=-1, count=length, bitorder="little").view(np.int8)
    numbers: npt.NDArray[np.int8] = bits[..., 0, :] - bits[..., 1, :]
    return numbers


def encode(values: Elements) -> bytes:
    """Return the elements one after the other, 16 bytes each, lowest byte first."""
    return values.astype("<u8", copy=False).tobytes()


def decode(data: bytes, length: int) -> Elements:
    """Return the elements, (length, 2), that `encode` wrote.

    Raises:
        MalformedMessageError: These are not that many elements, or one is not below p.
    """
    if len(data) != ENCODED_BYTES * length:
        raise MalformedMessageError(
            f"{len(data)} bytes of field elements; {ENCODED_BYTES * length} are expected"
        )
    values = np.frombuffer(data, dtype="<u8").reshape(length, 2)
    if not in_range(values).all():
        raise MalformedMessageError("a field element that is not below the field's prime")
    return values


def in_range(values: Elements) -> npt.NDArray[np.bool_]:
    """Return which pairs of words, (…, 2), are elements, that is below p."""
    low, high = values[..., 0], values[..., 1]
    below: npt.NDArray[np.bool_] = (high < TOP) | ((high == TOP) & (low == 0))
    return below
