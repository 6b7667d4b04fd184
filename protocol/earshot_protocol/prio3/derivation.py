"""Values that Prio3 derives from seeds: shares, and randomness fixed by shares or by a key.

Tags and binders are those of draft-irtf-cfrg-vdaf-20, sections 6.2.3 and 7.2.6. Where the draft has
one part of a share that fixes randomness, shapes with checks by signs have two: the first is of the
entries and fixes the signs, and the second is of the first and of the bits that depend on them.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from earshot_protocol.prio3 import xof
from earshot_protocol.prio3.circuit import Circuit
from earshot_protocol.prio3.field import Elements, Signs
from earshot_protocol.prio3.xof import SEED_BYTES

_VERSION = 18
"""Version in the tags of drafts 18, 19 and 20, between which no message changed."""
_CLASS = 0
"""Class of algorithm, a VDAF."""
_PROOFS = bytes([1])


class Party(enum.IntEnum):
    """An operator; the value is the draft's number of its share."""

    LEADER = 0
    HELPER = 1


class _Usage(enum.IntEnum):
    """Purpose of a derived value, in its tag."""

    MEASUREMENT_SHARE = 1
    PROOF_SHARE = 2
    JOINT_RANDOMNESS = 3
    PROVE_RANDOMNESS = 4
    QUERY_RANDOMNESS = 5
    JOINT_SEED = 6
    JOINT_PART = 7
    SIGNS = 8
    SIGNS_SEED = 9
    SIGNS_PART = 10


@dataclass(frozen=True)
class Derivation:
    """Derivations of one circuit in one context.

    Attributes:
        circuit: Circuit, which determines the numbers of elements.
        context: Description of the sum, bound to every derived value.
    """

    circuit: Circuit
    context: bytes

    def helper_shares(self, seeds: Iterable[bytes]) -> tuple[Elements, Elements]:
        """Return the helper's shares of encoded vectors and of proofs, for each report's seed."""
        seeds, number = list(seeds), bytes([Party.HELPER])
        return (
            xof.expand(
                ((seed, number) for seed in seeds),
                self._tags[_Usage.MEASUREMENT_SHARE],
                self.circuit.encoded_length,
            ),
            xof.expand(
                ((seed, _PROOFS + number) for seed in seeds),
                self._tags[_Usage.PROOF_SHARE],
                self.circuit.proof_length,
            ),
        )

    def prover_randomness(self, seed: bytes) -> Elements:
        """Return the seeds of the wires, (1, wires, 2)."""
        tag = self._tags[_Usage.PROVE_RANDOMNESS]
        return xof.expand([(seed, _PROOFS)], tag, self.circuit.wires)

    def query_randomness(self, verify_key: bytes, nonces: Iterable[bytes]) -> Elements:
        """Return the operators' randomness for each report, which clients cannot predict."""
        return xof.expand(
            ((verify_key, _PROOFS + nonce) for nonce in nonces),
            self._tags[_Usage.QUERY_RANDOMNESS],
            self.circuit.query_randomness,
        )

    def joint_part(self, role: Party, blind: bytes, nonce: bytes, fixed: bytes) -> bytes:
        """Return the 32 bytes that a share of the vector contributes to the joint randomness.

        The other operator sees them; the blind hides the share.

        Args:
            role: Whose share it is.
            blind: Its secret.
            nonce: Public number of the report.
            fixed: The encoded share; where it has a part that fixes signs, this part in place of
                the entries.
        """
        return self._part(_Usage.JOINT_PART, role, blind, nonce, fixed)

    def signs_part(self, role: Party, blind: bytes, nonce: bytes, entries: bytes) -> bytes:
        """Return the 32 bytes that a share of the entries contributes to the signs."""
        return self._part(_Usage.SIGNS_PART, role, blind, nonce, entries)

    def _part(self, usage: _Usage, role: Party, blind: bytes, nonce: bytes, fixed: bytes) -> bytes:
        return xof.derive_seed(blind, self._tags[usage], bytes([role]) + nonce + fixed)

    def joint_seed(self, leader_part: bytes, helper_part: bytes) -> bytes:
        """Return the seed of the joint randomness, which both parts fix."""
        return self._seed(_Usage.JOINT_SEED, leader_part, helper_part)

    def signs_seed(self, leader_part: bytes, helper_part: bytes) -> bytes:
        """Return the seed of the signs, which both parts fix."""
        return self._seed(_Usage.SIGNS_SEED, leader_part, helper_part)

    def _seed(self, usage: _Usage, leader_part: bytes, helper_part: bytes) -> bytes:
        return xof.derive_seed(bytes(SEED_BYTES), self._tags[usage], leader_part + helper_part)

    def joint_randomness(self, seeds: Iterable[bytes]) -> Elements:
        """Return the randomness by which bits are checked, (reports, bit_calls, 2).

        Clients know it, but only after both shares are fixed.
        """
        tag = self._tags[_Usage.JOINT_RANDOMNESS]
        return xof.expand(((seed, _PROOFS) for seed in seeds), tag, self.circuit.bit_calls)

    def signs(self, seeds: Iterable[bytes]) -> Signs:
        """Return signs, (reports, sign_checks, 2, ⌈length / 8⌉): −1, 0, 1 with ¼, ½, ¼.

        Clients know them, but only after the entries are fixed. Bits beyond the length count for
        nothing.
        """
        checks, length = self.circuit.shape.sign_checks, self.circuit.length
        run = -(-length // 8)
        drawn = xof.expand_bytes(
            ((seed, _PROOFS) for seed in seeds), self._tags[_Usage.SIGNS], checks * 2 * run
        )
        return drawn.reshape(-1, checks, 2, run)

    @functools.cached_property
    def _tags(self) -> dict[_Usage, bytes]:
        number = self.circuit.shape.algorithm(self.circuit.length)
        algorithm = bytes([_VERSION, _CLASS]) + number.to_bytes(4)
        return {usage: algorithm + usage.to_bytes(2) + self.context for usage in _Usage}
