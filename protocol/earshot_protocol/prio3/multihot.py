"""Proof that a shared vector is of zeros and ones, of which at most a given number are ones.

The validity circuit is the draft's MultihotCountVec, and its proof the fully linear one of Boneh et
al. (CRYPTO 2019, theorem 4.3), as draft-irtf-cfrg-vdaf-20 has them in sections 7.4.5 and 7.3. All
functions take many reports, along the first axis.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.prio3 import polynomials
from earshot_protocol.prio3.field import MODULUS, Arithmetic, Elements, elements

QUERY_RANDOMNESS = 3
"""Elements that verifiers draw: a weight for each of two checks, and the point of the test."""


@dataclass(frozen=True)
class MultihotCircuit:
    """Circuit that is zero on vectors of `length` bits of which at most `max_weight` are ones.

    A vector is encoded with its weight behind it, in bits worth 1, 2, 4, … and a last one worth the
    rest of `max_weight`. The gadget adds up `chunk_length` products; it is called for one chunk
    after another, and is zero with every random r if and only if all entries are bits.

    Attributes:
        length: Entries of a vector.
        max_weight: Most ones that it may have.
        chunk_length: Entries that a call of the gadget checks.
    """

    length: int
    max_weight: int
    chunk_length: int

    @property
    def encoded_length(self) -> int:
        """Elements of an encoded vector."""
        return self.length + self.max_weight.bit_length()

    @property
    def calls(self) -> int:
        """Calls of the gadget, and elements of the randomness r that both operators' shares fix."""
        return -(-self.encoded_length // self.chunk_length)

    @property
    def points(self) -> int:
        """Values that define the polynomial of a wire: a seed, one for each call, and zeros."""
        return 1 << self.calls.bit_length()

    @property
    def wires(self) -> int:
        """Inputs of the gadget, and elements of the prover's randomness."""
        return 2 * self.chunk_length

    @property
    def proof_length(self) -> int:
        """Elements of a proof: a seed for each wire, and the polynomial of the gadget."""
        return self.wires + 2 * self.points - 1

    @property
    def verifier_length(self) -> int:
        """Elements of a verifier: the circuit, each wire, and the gadget's polynomial."""
        return self.wires + 2

    def encode(self, measurement: npt.NDArray[np.int64]) -> Elements:
        """Return an encoded vector, (encoded_length, 2).

        Raises:
            InvalidInputError: The vector is not of `length` zeros and ones, at most `max_weight` of
                them ones.
        """
        if measurement.shape != (self.length,) or measurement.dtype.kind not in "biu":
            raise InvalidInputError(
                f"a vector of shape {measurement.shape} and type {measurement.dtype}; give "
                f"{self.length} zeros and ones"
            )
        ones = int(np.count_nonzero(measurement))
        if np.any((measurement != 0) & (measurement != 1)) or ones > self.max_weight:
            raise InvalidInputError(
                f"a vector that is not of zeros and at most {self.max_weight} ones"
            )
        encoded = np.zeros((self.encoded_length, 2), dtype=np.uint64)
        encoded[: self.length, 0] = measurement
        encoded[self.length :, 0] = self.weight_bits(ones)
        return encoded

    def weight_bits(self, ones: int) -> list[int]:
        """Return the bits that encode a weight of at most `max_weight`."""
        *_, last = self._bit_weights
        marked = int(ones > self.max_weight - last)
        rest = ones - marked * last
        return [rest >> place & 1 for place in range(len(self._bit_weights) - 1)] + [marked]

    def prove(
        self, encoded: Elements, seeds: Elements, joint: Elements, field: Arithmetic
    ) -> Elements:
        """Return proofs that the circuit accepts these encoded vectors.

        Args:
            encoded: Encoded vectors, (reports, encoded_length, 2).
            seeds: The prover's randomness, (reports, wires, 2).
            joint: Randomness that both shares fix, (reports, calls, 2).
            field: Engine that computes.

        Returns:
            Proofs, (reports, proof_length, 2): the seeds, and the gadget's values at all powers but
            the last of the root of order 2 · points.
        """
        chunks = self._chunks(encoded)
        weights = polynomials.powers(joint, joint, self.chunk_length, field)
        wires = np.zeros((len(encoded), self.points, self.wires, 2), dtype=np.uint64)
        wires[:, 0] = seeds
        wires[:, 1 : self.calls + 1, 0::2] = field.multiply(weights, chunks)
        wires[:, 1 : self.calls + 1, 1::2] = field.subtract(chunks, elements([1]))
        odd = polynomials.doubled(wires.swapaxes(1, 2), field).swapaxes(1, 2)
        gadget = np.empty((len(encoded), 2 * self.points, 2), dtype=np.uint64)
        gadget[:, 0::2] = field.dot(wires[:, :, 0::2], wires[:, :, 1::2])
        gadget[:, 1::2] = field.dot(odd[:, :, 0::2], odd[:, :, 1::2])
        return np.concatenate((seeds, gadget[:, :-1]), axis=1)

    def query(
        self,
        encoded: Elements,
        proofs: Elements,
        randomness: Elements,
        joint: Elements,
        field: Arithmetic,
    ) -> tuple[Elements, npt.NDArray[np.bool_]]:
        """Return one operator's shares of the verifiers of reports.

        Args:
            encoded: Shares of encoded vectors, (reports, encoded_length, 2).
            proofs: Shares of proofs, (reports, proof_length, 2).
            randomness: The operators' randomness, (reports, QUERY_RANDOMNESS, 2).
            joint: Randomness that both shares fix, (reports, calls, 2).
            field: Engine that computes.

        Returns:
            Shares of verifiers, (reports, verifier_length, 2), and which of them may be shown: a
            test at a root of unity, which one in 2^120 is, would reveal an input.
        """
        chunks = self._chunks(encoded)
        point = randomness[:, 2]
        basis = polynomials.basis(point, self.points, field)
        used = basis[:, 1 : self.calls + 1]
        verifiers = np.empty((len(encoded), self.verifier_length, 2), dtype=np.uint64)
        verifiers[:, 0] = field.dot(randomness[:, :2], self._checks(encoded, proofs, field))
        # A wire's polynomial at the point is Σ basis · its values, which need not be stored.
        weights = polynomials.powers(field.multiply(used, joint), joint, self.chunk_length, field)
        wires = verifiers[:, 1:-1]
        wires[:, 0::2] = field.dot(weights.swapaxes(1, 2), chunks.swapaxes(1, 2))
        wires[:, 1::2] = field.subtract(
            field.dot(used[:, None], chunks.swapaxes(1, 2)),
            field.multiply(field.total(used), _half())[:, None],
        )
        seeds = field.multiply(basis[:, :1], proofs[:, : self.wires])
        verifiers[:, 1:-1] = field.add(wires, seeds)
        gadget = proofs[:, self.wires :]
        verifiers[:, -1] = field.dot(self._gadget_basis(point, field), gadget)
        for _ in range(self.calls.bit_length()):  # to the power `points`, which is 1 for a root
            point = field.multiply(point, point)
        return verifiers, (point != elements([1])).any(axis=-1)

    def decide(self, verifiers: Elements, field: Arithmetic) -> npt.NDArray[np.bool_]:
        """Return which verifiers, (reports, verifier_length, 2), are those of a valid vector."""
        wires = verifiers[:, 1:-1]
        products = field.dot(wires[:, 0::2], wires[:, 1::2])
        fits: npt.NDArray[np.bool_] = (products == verifiers[:, -1]).all(axis=-1)
        return fits & ~verifiers[:, 0].any(axis=-1)

    def _checks(self, encoded: Elements, proofs: Elements, field: Arithmetic) -> Elements:
        """Return both outputs of the circuit, (reports, 2, 2), which are zero for a valid vector.

        The first adds up what the gadget returned, the second is the weight less the claimed one.
        """
        outputs = proofs[:, self.wires + 2 :][:, : 2 * self.calls : 2]
        claimed = field.dot(encoded[:, self.length :], elements(self._bit_weights)[None])
        weight = field.total(encoded[:, : self.length])
        return np.stack((field.total(outputs), field.subtract(weight, claimed)), axis=1)

    def _gadget_basis(self, point: Elements, field: Arithmetic) -> Elements:
        """Return the weights, (reports, 2 · points − 1, 2), of a proof's values at the point.

        The value that a proof leaves out follows from the others: with w the root of order n = 2 ·
        points, the coefficient of x^(n−1) is Σ y_k w^(k+1) / n, k < n, and it is zero.
        """
        order = 2 * self.points
        basis = polynomials.basis(point, order, field)
        follows = field.multiply(basis[:, -1:], polynomials.roots(order)[1:])
        return field.subtract(basis[:, :-1], follows)

    def _chunks(self, encoded: Elements) -> Elements:
        """Return entries by calls of the gadget, (reports, calls, chunk_length, 2)."""
        padded = np.zeros((len(encoded), self.calls * self.chunk_length, 2), dtype=np.uint64)
        padded[:, : self.encoded_length] = encoded
        return padded.reshape(len(encoded), self.calls, self.chunk_length, 2)

    @property
    def _bit_weights(self) -> list[int]:
        bits = [1 << place for place in range(self.max_weight.bit_length() - 1)]
        return [*bits, self.max_weight - sum(bits)]


def shortest_chunks(length: int, max_weight: int) -> int:
    """Return the chunk length, near the root of the encoded length, of the shortest proof."""

    def proof_length(chunk_length: int) -> int:
        return MultihotCircuit(length, max_weight, chunk_length).proof_length

    encoded = MultihotCircuit(length, max_weight, 1).encoded_length
    # Of the circuits with a number of points, that with the fewest wires has the shortest proof.
    candidates = {-(-encoded // ((2 << log) - 1)) for log in range(encoded.bit_length())}
    return min(sorted(candidates), key=proof_length)


@functools.cache
def _half() -> Elements:
    """Return one half: each of the two shares subtracts this much of the 1."""
    return elements([pow(2, -1, MODULUS)])
