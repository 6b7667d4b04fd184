"""What a phone proves of its input to a sum: which vectors are valid, and how they are encoded.

Both shapes are checked by one circuit (`circuit`): some elements of an encoded vector are bits, the
squares of others are added up, and outputs that are linear in all of these are zero for a valid
vector.

*Squares that wrap around* (`Norm`). In a field, a few entries of 2^64 can have a sum of squares
that is small modulo p. So checks on a wrap-around follow Rothblum, Omri, Chen and Talwar (PINE,
2023): the dot product with each of some vectors of signs, which are drawn from commitments to the
shares, must be small. A valid vector fails none: the products of `GRID` or less lie within ± 2^16,
2^16 ≥ 8.7 · `GRID`, but with a probability of 2^-361, when the phone raises an error.

*Soundness.* A vector whose squares wrap has an entry x of at least √(p/ℓ) ≥ 2^54 in magnitude.
Whatever the other signs are, the product with 0 as its own sign differs from those with 1 and −1 by
x modulo p, more than the window of 2^17 numbers in which a product passes. So either 0 alone
passes, or 1 and −1 do (both, where 2 x is small modulo p). As 0 is drawn as often as the other two
together, each check passes with ½ at most, and all of them with 2^-100. A client may try again
until signs suit it, which takes 2^100 tries. The draft advises 2^-128 for what a client can try by
itself; 2^100 hashes are beyond everybody, and what they would buy is one vector in one sum.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.prio3.field import (
    MODULUS,
    Arithmetic,
    Elements,
    Signs,
    elements,
    from_signed,
    unpacked,
)

LARGEST_LENGTH = 2**20
_DRAFTS = 5
"""Number of Prio3MultihotCountVec in draft-irtf-cfrg-vdaf-20."""
_PRIVATE = 0xFFFF0000
"""First of the numbers that the draft leaves to private use."""


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="proof"):
    """Shape of valid vectors.

    `signs` are numbers −1, 0, 1 that the shares of a vector fix, (reports, sign_checks, 2,
    ⌈length / 8⌉); shapes without checks by signs take an empty array.
    """

    sign_checks: ClassVar[int] = 0
    """Dot products with signs, each of which is checked."""

    @abstractmethod
    def algorithm(self, length: int) -> int:
        """Return the number of the algorithm, in all tags."""

    @property
    @abstractmethod
    def valid(self) -> str:
        """What a valid vector is of, in words."""

    def check(self, length: int) -> None:
        """Refuse numbers that describe no valid vector of this many entries.

        Raises:
            InvalidParametersError: A number is out of range.
        """
        checks.whole("length", length, most=LARGEST_LENGTH)

    @abstractmethod
    def squares(self, length: int) -> int:
        """Return the number of elements whose squares are added up: the first ones."""

    @abstractmethod
    def bits(self, length: int) -> int:
        """Return the number of elements that are bits: those after the squares."""

    @abstractmethod
    def outputs(self, length: int) -> int:
        """Return the number of outputs beside the one that tests all bits."""

    @abstractmethod
    def fixed(self, measurement: npt.NDArray[np.int64]) -> Elements:
        """Return the elements of a vector that do not depend on signs.

        Raises:
            InvalidInputError: The vector is not valid.
        """

    @abstractmethod
    def signed(self, measurement: npt.NDArray[np.int64], signs: Signs) -> Elements:
        """Return the elements behind them, which depend on signs of one report."""

    @abstractmethod
    def decoded(self, encoded: Elements, length: int, field: Arithmetic) -> Elements:
        """Return vectors, (reports, length, 2), from shares of encoded ones."""

    @abstractmethod
    def linear(
        self,
        encoded: Elements,
        length: int,
        squared: Elements,
        signs: Signs,
        field: Arithmetic,
    ) -> Elements:
        """Return one operator's shares of the outputs that are linear, (reports, outputs, 2).

        Args:
            encoded: Shares of encoded vectors, (reports, elements, 2).
            length: Entries of a vector.
            squared: Shares of the sums of squares, (reports, 2).
            signs: Signs, (reports, sign_checks, 2, ⌈length / 8⌉).
            field: Engine that computes.
        """


class Counts(Shape, frozen=True, tag="counts"):
    """Vectors of counts from 0 on, of which each block adds up to at most a given number.

    An entry is encoded in plain bits, worth 1, 2, 4, … and behind all entries is the total of each
    block, in bits worth 1, 2, 4, … and a last one worth the rest of `total`. With one bit an entry
    and one block this is Prio3MultihotCountVec (draft-irtf-cfrg-vdaf-20, section 7.4.5).

    Attributes:
        width: Bits of an entry.
        total: Most that the entries of a block add up to.
        block: Entries of a block.
    """

    width: int
    total: int
    block: int

    @override
    def algorithm(self, length: int) -> int:
        is_drafts = (self.width, self.block) == (1, length)
        return _DRAFTS if is_drafts else _PRIVATE + 1

    @property
    @override
    def valid(self) -> str:
        if self.width == 1:
            return f"zeros and at most {self.total} ones in {self.block} entries"
        return (
            f"numbers from 0 to {2**self.width - 1}, at most {self.total} in {self.block} entries"
        )

    @override
    def check(self, length: int) -> None:
        super().check(length)
        checks.whole("width", self.width, most=32)
        checks.whole("block", self.block, most=length)
        checks.whole("total", self.total, most=self.block * (2**self.width - 1))
        checks.whole("entries beyond the last whole block", length % self.block, 0, 0)

    @override
    def squares(self, length: int) -> int:
        return 0

    @override
    def bits(self, length: int) -> int:
        return length * self.width + self._blocks(length) * self.total.bit_length()

    @override
    def outputs(self, length: int) -> int:
        return self._blocks(length)

    @override
    def fixed(self, measurement: npt.NDArray[np.int64]) -> Elements:
        totals = measurement.reshape(-1, self.block).sum(axis=1)
        if np.any((measurement < 0) | (measurement >> self.width != 0)) or any(totals > self.total):
            raise InvalidInputError(f"a vector that is not of {self.valid}")
        *_, last = self.total_bits
        marked = (totals > self.total - last).astype(np.int64)
        rest = totals - marked * last
        places = np.arange(len(self.total_bits) - 1)
        bits = np.concatenate(
            [
                (measurement[:, None] >> np.arange(self.width) & 1).ravel(),
                np.column_stack([rest[:, None] >> places & 1, marked]).ravel(),
            ]
        )
        return from_signed(bits)

    @override
    def signed(self, measurement: npt.NDArray[np.int64], signs: Signs) -> Elements:
        return np.empty((0, 2), dtype=np.uint64)

    @override
    def decoded(self, encoded: Elements, length: int, field: Arithmetic) -> Elements:
        entries = encoded[:, : length * self.width]
        if self.width == 1:
            return entries
        worth = elements(1 << place for place in range(self.width))
        return field.dot(entries.reshape(len(encoded), length, self.width, 2), worth[None, None])

    @override
    def linear(
        self,
        encoded: Elements,
        length: int,
        squared: Elements,
        signs: Signs,
        field: Arithmetic,
    ) -> Elements:
        blocks = self._blocks(length)
        entries = self.decoded(encoded, length, field).reshape(len(encoded), blocks, self.block, 2)
        bits = encoded[:, length * self.width :].reshape(len(encoded), blocks, -1, 2)
        claimed = field.dot(bits, elements(self.total_bits)[None, None])
        return field.subtract(field.total(entries), claimed)

    @property
    def total_bits(self) -> list[int]:
        """What each bit of a block's total is worth."""
        bits = [1 << place for place in range(self.total.bit_length() - 1)]
        return [*bits, self.total - sum(bits)]

    def _blocks(self, length: int) -> int:
        return length // self.block


class Norm(Shape, frozen=True, tag="norm"):
    """Vectors of whole numbers whose squares add up to less than 2^24.

    Beside the sum of squares, products with signs are checked, as squares may wrap around in a
    field (see the module).

    Encoded are the ℓ entries, 24 bits of the sum of squares, and for each check 17 bits of the
    product plus 2^16 − 1.
    """

    sign_checks: ClassVar[int] = 100
    squared_bits: ClassVar[int] = 24
    product_bits: ClassVar[int] = 17

    @override
    def algorithm(self, length: int) -> int:
        return _PRIVATE

    @property
    @override
    def valid(self) -> str:
        return f"whole numbers whose squares add up to less than 2^{self.squared_bits}"

    @override
    def squares(self, length: int) -> int:
        return length

    @override
    def bits(self, length: int) -> int:
        return self.squared_bits + self.sign_checks * self.product_bits

    @override
    def outputs(self, length: int) -> int:
        return 1 + self.sign_checks

    @override
    def fixed(self, measurement: npt.NDArray[np.int64]) -> Elements:
        # Doubles hold sums that are small enough exactly, and others without an overflow.
        squared = int(np.square(measurement.astype(np.float64)).sum())
        if squared >> self.squared_bits:
            raise InvalidInputError(f"a vector that is not of {self.valid}")
        bits = squared >> np.arange(self.squared_bits) & 1
        return from_signed(np.concatenate([measurement, bits]))

    @override
    def signed(self, measurement: npt.NDArray[np.int64], signs: Signs) -> Elements:
        # Doubles hold these products and their sums exactly.
        numbers = unpacked(signs, len(measurement)).astype(np.float64)
        shifted = (numbers @ measurement.astype(np.float64)).astype(np.int64) + self._middle
        if np.any((shifted < 0) | (shifted >> self.product_bits != 0)):
            raise InvalidInputError("a valid vector that fails a check, as one in 2^361 does")
        return from_signed((shifted[:, None] >> np.arange(self.product_bits) & 1).ravel())

    @override
    def decoded(self, encoded: Elements, length: int, field: Arithmetic) -> Elements:
        return encoded[:, :length]

    @override
    def linear(
        self,
        encoded: Elements,
        length: int,
        squared: Elements,
        signs: Signs,
        field: Arithmetic,
    ) -> Elements:
        first = length + self.squared_bits
        worth = elements(1 << place for place in range(self.squared_bits))
        claimed = field.dot(encoded[:, length:first], worth[None])
        bits = encoded[:, first:].reshape(len(encoded), self.sign_checks, self.product_bits, 2)
        shifted = field.dot(bits, worth[None, None, : self.product_bits])
        products = field.signed_dot(encoded[:, :length], signs)
        # Each of the two shares adds half of the middle.
        off = elements([self._middle * pow(2, -1, MODULUS)])
        return np.concatenate(
            (
                field.subtract(squared, claimed)[:, None],
                field.subtract(field.add(products, off[None]), shifted),
            ),
            axis=1,
        )

    @property
    def _middle(self) -> int:
        """What is added to a product to make it a number from 0 on."""
        return int(2 ** (self.product_bits - 1)) - 1


def ballot(length: int, ones: int) -> Counts:
    """Return the shape of vectors of zeros and ones, at most `ones` of them ones."""
    return Counts(1, ones, length)
