"""Values that Prio3 derives from seeds: shares, and randomness fixed by shares or by a key.

Tags and binders are those of draft-irtf-cfrg-vdaf-20, sections 6.2.3 and 7.2.6, for algorithm 5,
Prio3MultihotCountVec.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from earshot_protocol.prio3 import xof
from earshot_protocol.prio3.field import Elements
from earshot_protocol.prio3.multihot import QUERY_RANDOMNESS, MultihotCircuit
from earshot_protocol.prio3.xof import SEED_BYTES

_VERSION = 18
"""Version in the tags of drafts 18, 19 and 20, between which no message changed."""
_ALGORITHM = bytes([_VERSION, 0]) + (5).to_bytes(4)
"""Version, class of algorithm (a VDAF), and number of the algorithm."""
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


@dataclass(frozen=True)
class Derivation:
    """Derivations of one circuit in one context.

    Attributes:
        circuit: Circuit, which determines the numbers of elements.
        context: Description of the sum, bound to every derived value.
    """

    circuit: MultihotCircuit
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
            QUERY_RANDOMNESS,
        )

    def joint_part(self, role: Party, blind: bytes, nonce: bytes, encoded_share: bytes) -> bytes:
        """Return the 32 bytes that a share of the vector contributes to the joint randomness.

        The other operator sees them; the blind hides the share.
        """
        binder = bytes([role]) + nonce + encoded_share
        return xof.derive_seed(blind, self._tags[_Usage.JOINT_PART], binder)

    def joint_seed(self, leader_part: bytes, helper_part: bytes) -> bytes:
        """Return the seed of the joint randomness, which both parts fix."""
        tag = self._tags[_Usage.JOINT_SEED]
        return xof.derive_seed(bytes(SEED_BYTES), tag, leader_part + helper_part)

    def joint_randomness(self, seeds: Iterable[bytes]) -> Elements:
        """Return the randomness by which entries are checked, (reports, calls, 2).

        Clients know it, but only after both shares are fixed.
        """
        tag = self._tags[_Usage.JOINT_RANDOMNESS]
        return xof.expand(((seed, _PROOFS) for seed in seeds), tag, self.circuit.calls)

    @functools.cached_property
    def _tags(self) -> dict[_Usage, bytes]:
        return {usage: _ALGORITHM + usage.to_bytes(2) + self.context for usage in _Usage}
