"""Phones that lie in a sum of proved ballots: reports made by hand, each wrong in one way.

They know the protocol and the sum's offer, and make shares, proofs and seals of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.field import MODULUS as PRIME
from earshot_protocol.prio3.field import Elements, elements, encode
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Counts, ballot
from earshot_protocol.two_operators.messages import Offer, PhoneReport
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.shares import seal
from support.driven_sum import LOW_ORDER_KEYS


@dataclass
class Liar:
    """A phone that makes its report by hand; without a change, an honest one of its vector."""

    offer: Offer
    phone: int
    vector: list[int]
    report_id: bytes = b"a phone that lies"[:16]
    seed: bytes = bytes(range(32))
    blinds: tuple[bytes, bytes] = (bytes(range(32, 64)), bytes(range(64, 96)))
    """Of the leader and of the helper."""
    weight: list[int] | None = None
    """Weight that is claimed, in bits."""
    seeds: int = 1
    """Randomness of the proof; with 0, that of a vector of ones fits any joint randomness."""
    public: Callable[[bytes, bytes], bytes] = lambda leaders, helpers: leaders + helpers
    stated: Callable[[bytes, bytes], bytes] | None = None
    """Public share to which the seal is bound; None for the one that is sent."""
    share: Callable[[bytes], bytes] = lambda share: share
    plain: Callable[[bytes], bytes] = lambda plain: plain
    sealed: Callable[[bytes], bytes] = lambda sealed: sealed
    key: bytes = b""
    bound: tuple[bytes, bytes] | None = None
    """Digest of the offer and identifier to which the seal is bound."""
    changes: dict[str, object] = field(default_factory=dict)

    @property
    def proof(self) -> Prio3:
        return proof_of(self.offer)

    def report(self) -> PhoneReport:
        proof, derive = self.proof, self.proof._derivation
        circuit, engine = proof.circuit, proof.arithmetic
        bits = weight_bits(self.offer, self.vector) if self.weight is None else self.weight
        vector = elements([*self.vector, *bits])
        theirs, theirs_proof = derive.helper_shares([self.seed])
        ours: Elements = engine.subtract(vector[None], theirs)
        parts = (
            derive.joint_part(Party.LEADER, self.blinds[0], self.report_id, encode(ours)),
            derive.joint_part(Party.HELPER, self.blinds[1], self.report_id, encode(theirs)),
        )
        joint = derive.joint_randomness([derive.joint_seed(*parts)])
        seeds = elements([self.seeds * (at + 1) for at in range(circuit.wires)])
        made = circuit.prove(vector[None], seeds[None], joint, engine)
        rest = encode(engine.subtract(made, theirs_proof))
        public = self.public(*parts)
        key = self.key or self.offer.key
        sealed = seal(
            self.plain(self.seed + self.blinds[1]),
            X25519PublicKey.from_public_bytes(key),
            *(self.bound or (self.offer.digest(), self.report_id)),
            (self.stated or self.public)(*parts),
        )
        report = PhoneReport(
            sum_id=self.offer.sum_id,
            sender=self.phone,
            report_id=self.report_id,
            sealed=self.sealed(sealed),
            share=self.share(encode(ours) + rest + self.blinds[0]),
            public=public,
        )
        return msgspec.structs.replace(report, **self.changes)


def weight_bits(offer: Offer, vector: list[int]) -> list[int]:
    """Bits of the number of ones of a vector, or of the most ones that a ballot may have."""
    length, most = offer.parameters.length, most_ones(offer)
    ones = max(0, min(sum(vector), most))
    fixed = ballot(length, most).fixed(np.array(vector_of(length, ones)))
    return [int(bit) for bit in fixed[length:, 0]]


def most_ones(offer: Offer) -> int:
    """Most ones of a ballot."""
    assert isinstance(offer.parameters.proof, Counts)
    return offer.parameters.proof.total


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def with_element(at: int, number: int) -> Callable[[bytes], bytes]:
    def spoil(share: bytes) -> bytes:
        at_byte = at % (len(share) // 16) * 16
        return share[:at_byte] + number.to_bytes(16, "little") + share[at_byte + 16 :]

    return spoil


ANOTHER = X25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw()

# Of a valid vector, and of a proof that fits whatever joint randomness each operator finds.
_FREE = {"seeds": 0}
LIES: dict[str, dict[str, object]] = {
    "another part of the helper": _FREE | {"public": lambda a, b: a + flipped(b, 0)},
    "another last byte of it": _FREE | {"public": lambda a, b: a + flipped(b, 31)},
    "another part of the leader": _FREE | {"public": lambda a, b: flipped(a, 0) + b},
    "two other parts": _FREE | {"public": lambda a, b: flipped(a, 7) + flipped(b, 7)},
    "parts exchanged": _FREE | {"public": lambda a, b: b + a},
    "the leader's part twice": _FREE | {"public": lambda a, b: a + a},
    "the helper's part twice": _FREE | {"public": lambda a, b: b + b},
    "no parts": _FREE | {"public": lambda a, b: bytes(64)},
    "a part, and a proof of another": {"public": lambda a, b: a + flipped(b, 0)},
    "another blind for the helper": _FREE | {"plain": lambda plain: flipped(plain, 40)},
    "no blind for the helper": _FREE | {"plain": lambda plain: plain[:32] + bytes(32)},
    "another blind for the leader": _FREE | {"share": lambda share: flipped(share, -1)},
    "another seed": _FREE | {"plain": lambda plain: flipped(plain, 0)},
    "seed and blind exchanged": _FREE | {"plain": lambda plain: plain[32:] + plain[:32]},
    "a seed of another size": {"plain": lambda plain: plain[:63]},
    "a seed without a blind": {"plain": lambda plain: plain[:32]},
    "an entry changed": _FREE | {"share": lambda share: flipped(share, 0)},
    "a proof changed": {"share": lambda share: flipped(share, -48)},
    "a seed of the proof changed": {"share": lambda share: flipped(share, -33)},
    "an entry that is the prime": {"share": with_element(0, PRIME)},
    "an entry beyond the prime": {"share": with_element(0, 2**128 - 1)},
    "an element of the proof that is the prime": {"share": with_element(-3, PRIME)},
    "a share of zeros": {"share": lambda share: bytes(len(share))},
    "nothing but zeros": {
        "share": lambda share: bytes(len(share)),
        "public": lambda a, b: bytes(64),
    },
    "a short share": {"share": lambda share: share[:-1]},
    "a long share": {"share": lambda share: share + bytes(16)},
    "no share": {"share": lambda share: b""},
    "half a public share": {"changes": {"public": bytes(32)}},
    "no public share": {"changes": {"public": b""}},
    "a changed seal": {"sealed": lambda sealed: flipped(sealed, 50)},
    "a changed tag": {"sealed": lambda sealed: flipped(sealed, -1)},
    "a seal of zeros": {"sealed": lambda sealed: bytes(len(sealed))},
    "a seal to another key": {"key": ANOTHER},
    "a seal under another offer": {"bound": (bytes(32), b"a phone that lies"[:16])},
    "a seal under another identifier": {"stated": lambda a, b: a + b, "bound": (b"", bytes(16))},
    "a seal under another public share": {"stated": lambda a, b: b + a},
    "another identifier": {"changes": {"report_id": bytes(16)}},
    **{
        f"a key of low order, {at}": {"sealed": lambda sealed, key=key: key + sealed[32:]}
        for at, key in enumerate(LOW_ORDER_KEYS)
    },
    "a 2": {"vector": lambda length: [2] + [0] * (length - 1)},
    "a −1": {"vector": lambda length: [-1] + [1] * (length - 1)},
    "a million": {"vector": lambda length: [10**6] * length},
    "a weight that is not the vector's": {"weight": lambda bits: [1 - bits[0], *bits[1:]]},
    "a weight that is not in bits": {"weight": lambda bits: [bits[0] + 1, *bits[1:]]},
    "more ones than there may be": {"vector": lambda length: [1] * length, "only": "fewer"},
}


def vector_of(length: int, ones: int) -> list[int]:
    """A ballot of as many ones as there may be: of ones alone if that is every entry."""
    return [1] * ones + [0] * (length - ones)


def told(offer: Offer, phone: int, name: str) -> PhoneReport | None:
    """The report of that lie; None where it would be none."""
    length, ones = offer.parameters.length, most_ones(offer)
    lie = dict(LIES[name])
    if lie.pop("only", None) == "fewer" and ones == length:
        return None
    vector = lie.pop("vector", lambda length: vector_of(length, ones))(length)  # type: ignore[operator]
    liar = Liar(offer, phone, vector, report_id=b"liar" + phone.to_bytes(12))
    if "weight" in lie:
        lie["weight"] = lie["weight"](weight_bits(offer, vector))  # type: ignore[operator]
    if "bound" in lie:
        digest, report_id = lie["bound"]  # type: ignore[misc]
        lie["bound"] = (digest or offer.digest(), report_id or liar.report_id)
    return replace(liar, **lie).report()  # type: ignore[arg-type]
