"""Parameters of a sum by two operators, and the width of its words."""

from __future__ import annotations

import math

import msgspec

from earshot_protocol.checks import positive, whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.privacy.sum_noise import NoiseOfOperators
from earshot_protocol.secure_sum.parameters import LARGEST_LENGTH

USUAL_REPORTS = 50
"""Default of the least number of reports of which a helper makes a total."""
_LARGEST_PHONES = 10**8
_LARGEST_RANK = 8


class TwoOperatorParameters(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Parameters that phones and both operators of one sum must agree on.

    Attributes:
        phones: Phones that are invited, n.
        shape: Shape of the summed array.
        bound: Largest absolute value of one entry of a phone's input.
        noise: Noise that each operator adds to every entry.
        least: Least number of reports that a total is made of.
        window: Seconds for which phones may report.
        proof: What is proved of an input; None where inputs are not proved.
    """

    phones: int
    shape: tuple[int, ...]
    bound: int
    noise: NoiseOfOperators
    least: int
    window: float
    proof: Counts | Norm | None = None

    @property
    def length(self) -> int:
        """Number of entries of a vector, ℓ."""
        return math.prod(self.shape)

    @property
    def precision(self) -> int:
        """Decimal digits of an input: none, as inputs are whole numbers."""
        return 0

    @property
    def modulus_bits(self) -> int:
        """Width w of a word: signed, it holds n inputs and both operators' noise; at most 64.

        A total beyond it would wrap, which spoils the total but reveals nothing.

        Raises:
            InvalidParametersError: No signed 64-bit number holds it.
        """
        largest = self.phones * self.bound + self.noise.reach(self.length)
        if largest.bit_length() > 63:
            raise InvalidParametersError(
                f"phones · bound and the noise come to {largest}, which does not fit a signed "
                "64-bit sum: give fewer phones or less noise"
            )
        return largest.bit_length() + 1

    def check(self) -> None:
        """Refuse parameters under which no sum should run.

        Raises:
            InvalidParametersError: A value is wrong; the message says which, and what is accepted.
        """
        whole("phones", self.phones, 3, _LARGEST_PHONES)
        whole("the number of dimensions", len(self.shape), 0, _LARGEST_RANK)
        for size in self.shape:
            whole("a dimension of shape", size, 1, LARGEST_LENGTH)
        whole("length", self.length, 1, LARGEST_LENGTH)
        whole("bound", self.bound, 1, 2**62)
        positive("window", self.window)
        whole("least", self.least, 2, self.phones)
        if self.proof is not None:
            self.proof.check(self.length)
        self.noise.check()
        _ = self.modulus_bits
