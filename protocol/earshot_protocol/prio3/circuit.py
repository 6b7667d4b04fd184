"""Proof that a shared vector is valid, whatever shape of vectors is (`shapes`).

One gadget multiplies: ParallelSum(Mul) of draft-irtf-cfrg-vdaf-20, section 7.4.2, which adds up
`chunk_length` products a call. With every random r, Σ r^k (b_k − 1) b_k is zero if all b are bits,
and Σ x_k x_k adds up squares. The proof is the fully linear one of Boneh et al. (CRYPTO 2019,
theorem 4.3), as the draft has it in section 7.3. All functions take many reports, along the first
axis.
"""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.prio3 import polynomials
from earshot_protocol.prio3.field import MODULUS, Arithmetic, Elements, Signs, elements
from earshot_protocol.prio3.shapes import Shape


@dataclass(frozen=True)
class Circuit:
    """Circuit that is zero on valid vectors of `length` entries.

    Encoded, a vector is some elements whose squares are added up, and bits behind them. The gadget
    is called for one chunk of bits after another, then for the chunks of the squares.

    Attributes:
        shape: Shape of valid vectors.
        length: Entries of a vector.
        chunk_length: Products that a call of the gadget adds up.
    """

    shape: Shape
    length: int
    chunk_length: int

    @property
    def squares(self) -> int:
        """Elements of an encoded vector whose squares are added up."""
        return self.shape.squares(self.length)

    @property
    def encoded_length(self) -> int:
        """Elements of an encoded vector."""
        return self.squares + self.shape.bits(self.length)

    @property
    def bit_calls(self) -> int:
        """Calls of the gadget for bits, and elements of the randomness r that both shares fix."""
        return -(-self.shape.bits(self.length) // self.chunk_length)

    @property
    def calls(self) -> int:
        """Calls of the gadget."""
        return self.bit_calls - (-self.squares // self.chunk_length)

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
    def outputs(self) -> int:
        """Outputs, which are zero for a valid vector: all bits together, and the linear ones."""
        return 1 + self.shape.outputs(self.length)

    @property
    def query_randomness(self) -> int:
        """Elements that verifiers draw: a weight for each output, and the point of the test."""
        return self.outputs + 1

    @property
    def verifier_length(self) -> int:
        """Elements of a verifier: the circuit, each wire, and the gadget's polynomial."""
        return self.wires + 2

    def prove(
        self, encoded: Elements, seeds: Elements, joint: Elements, field: Arithmetic
    ) -> Elements:
        """Return proofs that the circuit accepts these encoded vectors.

        Args:
            encoded: Encoded vectors, (reports, encoded_length, 2).
            seeds: The prover's randomness, (reports, wires, 2).
            joint: Randomness that both shares fix, (reports, bit_calls, 2).
            field: Engine that computes.

        Returns:
            Proofs, (reports, proof_length, 2): the seeds, and the gadget's values at all powers but
            the last of the root of order 2 · points.
        """
        bits, squares = self._chunks(encoded)
        weights = polynomials.powers(joint, joint, self.chunk_length, field)
        wires = np.zeros((len(encoded), self.points, self.wires, 2), dtype=np.uint64)
        wires[:, 0] = seeds
        wires[:, 1 : self.bit_calls + 1, 0::2] = field.multiply(weights, bits)
        wires[:, 1 : self.bit_calls + 1, 1::2] = field.subtract(bits, elements([1]))
        wires[:, self.bit_calls + 1 : self.calls + 1, 0::2] = squares
        wires[:, self.bit_calls + 1 : self.calls + 1, 1::2] = squares
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
        signs: Signs,
        field: Arithmetic,
    ) -> tuple[Elements, npt.NDArray[np.bool_]]:
        """Return one operator's shares of the verifiers of reports.

        Args:
            encoded: Shares of encoded vectors, (reports, encoded_length, 2).
            proofs: Shares of proofs, (reports, proof_length, 2).
            randomness: The operators' randomness, (reports, query_randomness, 2).
            joint: Randomness that both shares fix, (reports, bit_calls, 2).
            signs: Signs that both shares fix, (reports, sign_checks, 2, ⌈length / 8⌉).
            field: Engine that computes.

        Returns:
            Shares of verifiers, (reports, verifier_length, 2), and which of them may be shown: a
            test at a root of unity, which one in 2^120 is, would reveal an input.
        """
        bits, squares = self._chunks(encoded)
        point = randomness[:, -1]
        basis = polynomials.basis(point, self.points, field)
        of_bits = basis[:, 1 : self.bit_calls + 1]
        of_squares = basis[:, self.bit_calls + 1 : self.calls + 1]
        verifiers = np.empty((len(encoded), self.verifier_length, 2), dtype=np.uint64)
        outputs = self._outputs(encoded, proofs, signs, field)
        verifiers[:, 0] = field.dot(randomness[:, :-1], outputs)
        # A wire's polynomial at the point is Σ basis · its values, which need not be stored.
        weights = polynomials.powers(
            field.multiply(of_bits, joint), joint, self.chunk_length, field
        )
        wires = verifiers[:, 1:-1]
        wires[:, 0::2] = field.dot(weights.swapaxes(1, 2), bits.swapaxes(1, 2))
        wires[:, 1::2] = field.subtract(
            field.dot(of_bits[:, None], bits.swapaxes(1, 2)),
            field.multiply(field.total(of_bits), _half())[:, None],
        )
        if self.squares:
            both = field.dot(of_squares[:, None], squares.swapaxes(1, 2))
            wires[:, 0::2] = field.add(wires[:, 0::2], both)
            wires[:, 1::2] = field.add(wires[:, 1::2], both)
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

    def _outputs(
        self, encoded: Elements, proofs: Elements, signs: Signs, field: Arithmetic
    ) -> Elements:
        """Return the outputs of the circuit, (reports, outputs, 2), zero for a valid vector.

        The first adds up what the gadget returned for bits.
        """
        returned = proofs[:, self.wires + 2 :][:, : 2 * self.calls : 2]
        tested = field.total(returned[:, : self.bit_calls])
        squared = field.total(returned[:, self.bit_calls :])
        linear = self.shape.linear(encoded, self.length, squared, signs, field)
        return np.concatenate((tested[:, None], linear), axis=1)

    def _gadget_basis(self, point: Elements, field: Arithmetic) -> Elements:
        """Return the weights, (reports, 2 · points − 1, 2), of a proof's values at the point.

        The value that a proof leaves out follows from the others: with w the root of order n = 2 ·
        points, the coefficient of x^(n−1) is Σ y_k w^(k+1) / n, k < n, and it is zero.
        """
        order = 2 * self.points
        basis = polynomials.basis(point, order, field)
        follows = field.multiply(basis[:, -1:], polynomials.roots(order)[1:])
        return field.subtract(basis[:, :-1], follows)

    def _chunks(self, encoded: Elements) -> tuple[Elements, Elements]:
        """Return bits and squares by calls of the gadget, (reports, calls, chunk_length, 2)."""
        return (
            self._padded(encoded[:, self.squares :], self.bit_calls),
            self._padded(encoded[:, : self.squares], self.calls - self.bit_calls),
        )

    def _padded(self, values: Elements, calls: int) -> Elements:
        padded = np.zeros((len(values), calls * self.chunk_length, 2), dtype=np.uint64)
        padded[:, : values.shape[1]] = values
        return padded.reshape(len(values), calls, self.chunk_length, 2)


@functools.lru_cache(maxsize=64)  # a server asks once a report
def shortest_chunks(shape: Shape, length: int) -> int:
    """Return the chunk length, near the root of the encoded length, of the shortest proof."""
    longest = Circuit(shape, length, 1).encoded_length

    def least(most_calls: int) -> int:
        """Return the least chunk length with at most this many calls."""

        def fits(chunk_length: int) -> bool:
            return Circuit(shape, length, chunk_length).calls <= most_calls

        return 1 + bisect.bisect_left(range(1, longest), True, key=fits)

    # Of the circuits with a number of points, that with the fewest wires has the shortest proof.
    most = ((2 << log) - 1 for log in range(longest.bit_length()))
    candidates = {least(calls) for calls in most}
    return min(sorted(candidates), key=lambda each: Circuit(shape, length, each).proof_length)


@functools.cache
def _half() -> Elements:
    """Return one half: each of the two shares subtracts this much of the 1."""
    return elements([pow(2, -1, MODULUS)])
