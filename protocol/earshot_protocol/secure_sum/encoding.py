"""Conversion of arrays of any shape to packed vectors modulo 2^b, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.secure_sum.masks import Words, word_type


class VectorFormat(Protocol):
    """Parameters of a sum that determine the format of its vectors."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the summed array."""

    @property
    def length(self) -> int:
        """Number of entries of a vector."""

    @property
    def bound(self) -> int:
        """Largest absolute value of one entry of an input."""

    @property
    def precision(self) -> int:
        """Number of decimal digits of a fixed-point input."""

    @property
    def modulus_bits(self) -> int:
        """Bits of an entry."""


_BLOCK = 2**16  # entries packed at a time, a multiple of 8 so that blocks end on whole bytes
_ADDED_AT_ONCE = 2**19
"""Bytes of vectors that are added at a time: they fit a processor's cache."""
_LARGEST_SHIFTED = 57
"""Most bits of an entry that eight bytes hold wherever in a byte the entry begins."""


def encode(values: npt.ArrayLike, parameters: VectorFormat) -> Words:
    """Flatten an array to words; decimals become integers at the sum's precision.

    Args:
        values: Integers, or decimals where the precision is above 0, of the sum's shape.
        parameters: Parameters of the sum; 10^precision · |value| must not exceed its bound.

    Returns:
        Words of shape (length,); a negative entry −x is 2^w − x.

    Raises:
        InvalidInputError: The array has the wrong shape or type, or an entry is not finite or
            beyond the bound.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidInputError(f"input is not an array: {error}") from error
    if array.shape != parameters.shape:
        raise InvalidInputError(f"input of shape {array.shape}; this sum takes {parameters.shape}")
    if parameters.precision:
        array = _whole_digits(array, parameters)
    elif array.dtype.kind not in "iu":
        raise InvalidInputError(
            f"input of type {array.dtype}; a sum without precision takes integers"
        )
    _check_within((array <= parameters.bound) & (array >= -parameters.bound), parameters)
    return array.reshape(-1).astype(np.int64).astype(word_type(parameters.modulus_bits))


def _whole_digits(array: npt.NDArray[np.generic], parameters: VectorFormat) -> npt.NDArray[Any]:
    """Return decimals in units of their last digit, int64: exact to 2^53, then as float64."""
    if array.dtype.kind not in "iuf":
        raise InvalidInputError(f"input of type {array.dtype}; a sum takes real numbers")
    with np.errstate(over="ignore"):  # infinity, which exceeds every bound
        scaled = np.rint(array.astype(np.float64) * 10.0**parameters.precision)
    # NaN fails this too; other values fit int64, where a bound above 2^53 is compared exactly.
    _check_within(np.abs(scaled) < 2.0**63, parameters)
    return scaled.astype(np.int64)


def _check_within(fits: npt.NDArray[np.bool_], parameters: VectorFormat) -> None:
    if not fits.all():
        raise InvalidInputError(f"an entry is not finite or exceeds the bound {parameters.bound}")


def decode(total: Words, parameters: VectorFormat) -> npt.NDArray[np.int64 | np.float64]:
    """Return the signed sum in its shape: int64, or float64 where the precision is above 0."""
    bits = parameters.modulus_bits
    spare = 64 - bits
    # Shifting up and arithmetically down again carries bit b − 1 into the sign.
    signed = (total.astype(np.uint64) << np.uint64(spare)).view(np.int64) >> spare
    array = signed.reshape(parameters.shape)
    return np.asarray(array / 10.0**parameters.precision) if parameters.precision else array


def packed_bytes(parameters: VectorFormat) -> int:
    """Return the size of a packed vector, ⌈length · b / 8⌉ bytes."""
    return -(-parameters.length * parameters.modulus_bits // 8)


def pack(words: Words, bits: int) -> bytes:
    """Pack the low `bits` bits of every word without gaps, low bit first."""
    blocks = (words[at : at + _BLOCK] for at in range(0, len(words), _BLOCK))
    return b"".join(
        np.packbits(
            np.unpackbits(
                block.view(np.uint8).reshape(len(block), -1), axis=1, count=bits, bitorder="little"
            ),
            bitorder="little",
        ).tobytes()
        for block in blocks
    )


def check_packed(data: bytes, parameters: VectorFormat) -> None:
    """Refuse data that `unpack` would refuse, without unpacking them.

    Raises:
        MalformedMessageError: The size is wrong, or bits behind the last entry are set.
    """
    if len(data) != packed_bytes(parameters):
        raise MalformedMessageError(
            f"a masked vector of {len(data)} bytes; this sum takes {packed_bytes(parameters)}"
        )
    used = parameters.length * parameters.modulus_bits % 8
    if used and data[-1] >> used:
        raise MalformedMessageError("a masked vector with bits set behind its last entry")


def add_packed(total: Words, vectors: Sequence[bytes], parameters: VectorFormat) -> None:
    """Add packed, checked vectors to words of shape (length,), in place.

    Entries whose numbers differ by a multiple of eight begin at the same bit of a byte. So eight
    strided views of eight bytes an entry, shifted and cut, are all entries of all vectors.
    """
    bits, length = parameters.modulus_bits, parameters.length
    if bits > _LARGEST_SHIFTED:
        for vector in vectors:
            total += unpack(vector, parameters)
        return
    size = packed_bytes(parameters)
    kept = np.uint64(2**bits - 1)
    step = max(1, _ADDED_AT_ONCE // size)
    for some in (vectors[at : at + step] for at in range(0, len(vectors), step)):
        # Eight bytes from where the last entry begins reach behind the vector.
        raw = np.zeros((len(some), size + 8), dtype=np.uint8)
        raw[:, :size] = np.frombuffer(b"".join(some), dtype=np.uint8).reshape(-1, size)
        for first in range(min(8, length)):
            at, shift = divmod(first * bits, 8)
            count = -(-(length - first) // 8)
            entries = np.ndarray(
                (len(some), count), "<u8", buffer=raw.data, offset=at, strides=(size + 8, bits)
            )
            added = (entries >> np.uint64(shift)) & kept
            total[first::8] += added.sum(axis=0, dtype=np.uint64).astype(total.dtype)


def unpack(data: bytes, parameters: VectorFormat) -> Words:
    """Return words of shape (length,) from a packed vector.

    Raises:
        MalformedMessageError: The data are not exactly ⌈length · b / 8⌉ bytes, or bits behind the
            last entry are set.
    """
    check_packed(data, parameters)
    length, bits = parameters.length, parameters.modulus_bits
    word = word_type(bits)
    raw = np.frombuffer(data, dtype=np.uint8)
    words = np.empty(length, dtype=word)
    for at in range(0, length, _BLOCK):
        size = min(_BLOCK, length - at)
        block = np.unpackbits(
            raw[at * bits // 8 : -(-(at + size) * bits // 8)], count=size * bits, bitorder="little"
        )
        filled = np.zeros((size, 8 * word.itemsize), dtype=np.uint8)
        filled[:, :bits] = block.reshape(size, bits)
        words[at : at + size] = np.packbits(filled, axis=1, bitorder="little").view(word)[:, 0]
    return words
