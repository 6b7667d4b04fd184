"""Phones that lie in a sum of proved inputs: reports made by hand, each wrong in one way.

They know the protocol and the sum's offer, and make shares, proofs and seals of their own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.field import MODULUS as PRIME
from earshot_protocol.prio3.field import Elements, Signs, elements, encode, unpacked
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.two_operators.messages import Offer, PhoneReport
from earshot_protocol.two_operators.shares import seal
from earshot_server.proofs.engine import fastest
from support.driven_sum import LOW_ORDER_KEYS

Numbers = list[int]
Parts = list[bytes]
"""Of the public share: leader's and helper's of the signs, if any, then of joint randomness."""


@dataclass
class Liar:
    """A phone that makes its report by hand; without a change, an honest one of its vector."""

    offer: Offer
    phone: int
    vector: Numbers
    """Entries, modulo p."""
    report_id: bytes
    seed: bytes = bytes(range(32))
    blinds: tuple[bytes, bytes] = (bytes(range(32, 64)), bytes(range(64, 96)))
    """Of the leader and of the helper."""
    claims: Callable[[Numbers], Numbers] = list
    """What blocks, or squares, are claimed to add up to, from what they do."""
    products: Callable[[Numbers], Numbers] = list
    """Claimed products with signs, from those that there are."""
    behind: Callable[[Numbers], Numbers] = list
    """Elements behind the entries that do not depend on signs, from those of the claims."""
    whole: Callable[[Numbers], Numbers] = list
    """All elements that do not depend on signs."""
    seeds: int = 1
    """Randomness of the proof; with 0, that of a vector of ones fits any joint randomness."""
    public: Callable[[Parts], Parts] = list
    stated: Callable[[Parts], Parts] | None = None
    """Public share to which the seal is bound; None for the one that is sent."""
    share: Callable[[bytes], bytes] = lambda share: share
    plain: Callable[[bytes], bytes] = lambda plain: plain
    sealed: Callable[[bytes], bytes] = lambda sealed: sealed
    key: bytes = b""
    bound: tuple[bytes, bytes] | None = None
    """Digest of the offer and identifier to which the seal is bound."""
    chunks: int = 0
    """Products more in a call of the gadget."""
    changes: dict[str, object] = field(default_factory=dict)

    @property
    def shape(self) -> Counts | Norm:
        shape = self.offer.parameters.proof
        assert isinstance(shape, Counts | Norm)
        return shape

    @property
    def proof(self) -> Prio3:
        proof = Prio3(self.shape, len(self.vector), None, self.offer.digest(), fastest())
        return replace(proof, chunk_length=proof.circuit.chunk_length + self.chunks)

    def report(self) -> PhoneReport:
        proof, derive = self.proof, self.proof._derivation
        engine, length = proof.arithmetic, len(self.vector)
        theirs, theirs_proof = derive.helper_shares([self.seed])
        fixed = elements(self.whole(self._fixed()))[None]
        shares = engine.subtract(fixed, theirs[:, : fixed.shape[1]]), theirs
        of_signs: Parts = []
        if self.shape.sign_checks:
            entries = [encode(share[:, :length]) for share in shares]
            of_signs = [
                derive.signs_part(role, self.blinds[role], self.report_id, entries[role])
                for role in Party
            ]
        # Operators draw signs from the parts that are stated.
        stated = self.public([*of_signs, bytes(32), bytes(32)])
        encoded = fixed
        if self.shape.sign_checks:
            signs = derive.signs([derive.signs_seed(*stated[:2])])[0]
            behind = elements(self._signed(signs))
            encoded = np.concatenate([fixed, behind[None]], axis=1)
        ours: Elements = engine.subtract(encoded, theirs)
        parts = [
            proof._joint_part(role, self.blinds[role], self.report_id, share, signs_part)
            for role, share, signs_part in zip(
                Party, (ours, theirs), of_signs or (b"", b""), strict=True
            )
        ]
        joint = derive.joint_randomness([derive.joint_seed(*parts)])
        seeds = elements([self.seeds * (at + 1) for at in range(proof.circuit.wires)])
        made = proof.circuit.prove(encoded, seeds[None], joint, engine)
        rest = encode(engine.subtract(made, theirs_proof))
        sealed = seal(
            self.plain(self.seed + self.blinds[1]),
            X25519PublicKey.from_public_bytes(self.key or self.offer.key),
            *(self.bound or (self.offer.digest(), self.report_id)),
            b"".join((self.stated or self.public)([*of_signs, *parts])),
        )
        report = PhoneReport(
            sum_id=self.offer.sum_id,
            sender=self.phone,
            report_id=self.report_id,
            sealed=self.sealed(sealed),
            share=self.share(encode(ours) + rest + self.blinds[0]),
            public=b"".join(self.public([*of_signs, *parts])),
        )
        return msgspec.structs.replace(report, **self.changes)

    def _fixed(self) -> Numbers:
        """Elements that do not depend on signs; what fits into no bits is in the lowest of them."""
        shape, vector = self.shape, self.vector
        if isinstance(shape, Norm):
            squared = sum(x * x for x in vector) % PRIME
            (claimed,) = self.claims([squared])
            return [*vector, *self.behind(bits_of(claimed, shape.squared_bits))]
        sums = [sum(vector[at : at + shape.block]) for at in range(0, len(vector), shape.block)]
        totals: Numbers = []
        for claimed in self.claims([max(0, min(each, shape.total)) for each in sums]):
            *low, rest = shape.total_bits
            marked = claimed > sum(low)
            totals += [*bits_of(claimed - marked * rest, len(low)), int(marked)]
        entries: Numbers = []
        for entry in vector:
            bits = bits_of(entry, shape.width)
            entries += [entry - sum(bit << at for at, bit in enumerate(bits) if at), *bits[1:]]
        return [*entries, *self.behind(totals)]

    def _signed(self, signs: Signs) -> Numbers:
        """Elements that depend on signs: products and what makes them whole numbers, in bits."""
        shape = self.shape
        assert isinstance(shape, Norm)
        rows = unpacked(signs, len(self.vector)).tolist()
        found = [
            sum(int(s) * x for s, x in zip(row, self.vector, strict=True)) % PRIME for row in rows
        ]
        middle = 2 ** (shape.product_bits - 1) - 1
        return [
            bit
            for product in self.products(found)
            for bit in bits_of((product + middle) % PRIME, shape.product_bits)
        ]


def bits_of(number: int, count: int) -> Numbers:
    """The lowest bits of a number."""
    return [number >> place & 1 for place in range(count)]


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def with_element(at: int, number: int) -> Callable[[bytes], bytes]:
    def spoil(share: bytes) -> bytes:
        at_byte = at % (len(share) // 16) * 16
        return share[:at_byte] + number.to_bytes(16, "little") + share[at_byte + 16 :]

    return spoil


def part_flipped(part: int, at: int = 0) -> Callable[[Parts], Parts]:
    def spoil(parts: Parts) -> Parts:
        changed = list(parts)
        changed[part] = flipped(changed[part], at)
        return changed

    return spoil


ANOTHER = X25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw()
ROOT = next(
    found
    for base in range(2, 99)
    if pow(found := pow(base, (PRIME - 1) // 4, PRIME), 2, PRIME) == PRIME - 1
)
"""Of −1: its square and that of 1 add up to 0 modulo p."""

Lie = Callable[[Liar], Liar | None]
"""What an honest phone becomes; None where it would be no lie."""


def lying(**changes: object) -> Lie:
    return lambda liar: replace(liar, **changes)  # type: ignore[arg-type]


def free(**changes: object) -> Lie:
    """With a proof that, of ones alone, fits whatever joint randomness each operator finds."""
    return lying(**{"seeds": 0} | changes)


def with_signs(part: int) -> Lie:
    """Another part of those that fix signs, which are then those of the stated parts."""
    public = part_flipped(part)
    return lambda liar: replace(liar, public=public) if liar.shape.sign_checks else None


def of_vectors(*first: int, **changes: object) -> Lie:
    """A lie about vectors, which begin with these entries; the others are zero."""

    def lie(liar: Liar) -> Liar | None:
        if not isinstance(liar.shape, Norm) or len(liar.vector) < len(first):
            return None
        vector = [*first, *[0] * (len(liar.vector) - len(first))] if first else liar.vector
        return replace(liar, vector=vector, **changes)  # type: ignore[arg-type]

    return lie


def of_counts(first: Callable[[Counts], Numbers] | None, **changes: object) -> Lie:
    """A lie about counts, of which these are the first and all others zero; none where too few."""

    def lie(liar: Liar) -> Liar | None:
        if not isinstance(liar.shape, Counts):
            return None
        vector = liar.vector
        if first:
            entries = first(liar.shape)
            if not entries or len(entries) > len(vector):
                return None
            vector = [*entries, *[0] * (len(vector) - len(entries))]
        return replace(liar, vector=vector, **changes)  # type: ignore[arg-type]

    return lie


def one_more(shape: Counts) -> Numbers:
    """Entries of which each fits into its bits, and whose sum is one beyond the block's total."""
    most, left, entries = 2**shape.width - 1, shape.total + 1, list[int]()
    while left and len(entries) < shape.block:
        entries.append(min(most, left))
        left -= entries[-1]
    return [] if left else entries


def exchanged(liar: Liar) -> Liar | None:
    """Totals of two blocks, each claimed for the other."""
    shape = liar.shape
    if not isinstance(shape, Counts) or len(liar.vector) == shape.block:
        return None
    return replace(liar, vector=[1, *[0] * (len(liar.vector) - 1)], claims=lambda sums: sums[::-1])


def of_ones(liar: Liar) -> Liar | None:
    """Nothing but ones, encoded."""
    shape = liar.shape
    if isinstance(shape, Counts) and shape.total == shape.block * (2**shape.width - 1):
        return None
    return replace(liar, whole=lambda numbers: [1] * len(numbers), seeds=0)


def longer(liar: Liar) -> Liar:
    """A vector, and a proof, of one block more."""
    more = liar.shape.block if isinstance(liar.shape, Counts) else 1
    return replace(liar, vector=[*liar.vector, *[0] * more])


def of_another_sum(liar: Liar) -> Liar:
    """A report that was honest in another sum, sent to this one."""
    other = msgspec.structs.replace(liar.offer, sum_id=bytes(16))
    return replace(liar, offer=other, changes={"sum_id": liar.offer.sum_id})


def fitted(liar: Liar) -> Liar:
    """A proof in other chunks, of the size that is expected."""
    size = liar.proof.leader_share_bytes
    return replace(liar, chunks=1, share=lambda share: (share + bytes(size))[:size])


def drawn(seed: int) -> Callable[[bytes], bytes]:
    return lambda data: random.Random(seed).randbytes(len(data))


def pieces(seed: int) -> Callable[[Parts], Parts]:
    return lambda parts: [random.Random(seed + at).randbytes(32) for at in range(len(parts))]


LIES: dict[str, Lie] = {
    # Of a valid vector.
    "another part of the helper": free(public=part_flipped(-1)),
    "another last byte of it": free(public=part_flipped(-1, 31)),
    "another part of the leader": free(public=part_flipped(-2)),
    "two other parts": free(public=lambda p: part_flipped(-1)(part_flipped(-2)(p))),
    "parts exchanged": free(public=lambda p: [*p[:-2], p[-1], p[-2]]),
    "the leader's part twice": free(public=lambda p: [*p[:-1], p[-2]]),
    "the helper's part twice": free(public=lambda p: [*p[:-2], p[-1], p[-1]]),
    "no parts": free(public=lambda p: [bytes(32)] * len(p)),
    "drawn parts": free(public=pieces(1)),
    "a part, and a proof of another": lying(public=part_flipped(-1)),
    "another part of the leader for signs": with_signs(0),
    "another part of the helper for signs": with_signs(1),
    "another blind for the helper": free(plain=lambda plain: flipped(plain, 40)),
    "no blind for the helper": free(plain=lambda plain: plain[:32] + bytes(32)),
    "another blind for the leader": free(share=lambda share: flipped(share, -1)),
    "another seed": free(plain=lambda plain: flipped(plain, 0)),
    "seed and blind exchanged": free(plain=lambda plain: plain[32:] + plain[:32]),
    "a seed of another size": lying(plain=lambda plain: plain[:63]),
    "a seed without a blind": lying(plain=lambda plain: plain[:32]),
    "an entry changed": free(share=lambda share: flipped(share, 0)),
    "an element of the proof changed": lying(share=lambda share: flipped(share, -48)),
    "another one": lying(share=lambda share: flipped(share, -33)),
    "an entry that is the prime": lying(share=with_element(0, PRIME)),
    "an entry beyond the prime": lying(share=with_element(0, 2**128 - 1)),
    "an element of the proof that is the prime": lying(share=with_element(-3, PRIME)),
    "a share of zeros": lying(share=lambda share: bytes(len(share))),
    "a share of ones": lying(share=lambda share: b"\x01".ljust(16, b"\0") * (len(share) // 16)),
    "a drawn share": lying(share=drawn(2)),
    "nothing but zeros": lying(
        share=lambda share: bytes(len(share)), public=lambda p: [bytes(32)] * len(p)
    ),
    "nothing but chance": lying(share=drawn(3), public=pieces(4), sealed=drawn(5)),
    "a short share": lying(share=lambda share: share[:-1]),
    "a long share": lying(share=lambda share: share + bytes(16)),
    "no share": lying(share=lambda share: b""),
    "a share of another length": longer,
    "a proof in other chunks": lying(chunks=1),
    "a proof in other chunks, fitted": fitted,
    "half a public share": lying(public=lambda p: p[: len(p) // 2], stated=list),
    "a public share of two more parts": lying(public=lambda p: [*p, *p[:2]], stated=list),
    "no public share": lying(changes={"public": b""}),
    "a changed seal": lying(sealed=lambda sealed: flipped(sealed, 50)),
    "a changed tag": lying(sealed=lambda sealed: flipped(sealed, -1)),
    "a seal of zeros": lying(sealed=lambda sealed: bytes(len(sealed))),
    "a seal of an unproved sum": lying(sealed=lambda sealed: sealed[:80]),
    "a seal to another key": lying(key=ANOTHER),
    "a seal under another offer": lambda liar: replace(liar, bound=(bytes(32), liar.report_id)),
    "a seal under another identifier": lambda liar: replace(
        liar, bound=(liar.offer.digest(), bytes(16))
    ),
    "a seal under another public share": lying(stated=lambda p: p[::-1]),
    "another identifier": lying(changes={"report_id": bytes(16)}),
    "a report of another sum": of_another_sum,
    **{
        f"a key of low order, {at}": lying(sealed=lambda sealed, key=key: key + sealed[32:])
        for at, key in enumerate(LOW_ORDER_KEYS)
    },
    # Of what is no valid vector.
    "nothing but ones": of_ones,
    "a count beyond its bits": of_counts(lambda shape: [2**shape.width]),
    "a −1": of_counts(lambda shape: [-1, *[1] * (shape.block - 1)]),
    "a million everywhere": of_counts(lambda shape: [10**6] * shape.block),
    "one more than a block may have": of_counts(one_more),
    "a total that is not the block's": of_counts(
        None, claims=lambda sums: [abs(sums[0] - 1), *sums[1:]]
    ),
    "a total that is not in bits": of_counts(None, behind=lambda bits: [bits[0] + 1, *bits[1:]]),
    "totals of two blocks exchanged": exchanged,
    "a step too long": of_vectors(GRID),
    "a step too long, negative": of_vectors(PRIME - GRID),
    "too long in many entries": of_vectors(2000, 2000, 2000, 2000, 2000),
    "too long, and claims what fits": of_vectors(GRID, claims=lambda squared: [5]),
    "a sum of squares that is too large": of_vectors(1, claims=lambda squared: [2]),
    "an entry moved by 2^62": of_vectors(2**62),
    "an entry wrapped in a word": of_vectors(PRIME - 2**16),
    "the root of p in one entry": of_vectors(math.isqrt(PRIME) + 1),
    "the root of p, and claims what fits": of_vectors(
        math.isqrt(PRIME) + 1, claims=lambda squared: [squared[0] % 2**24]
    ),
    "1 and a root of −1": of_vectors(1, ROOT),
    "huge entries whose squares cancel": of_vectors(2**60, 2**60 * ROOT % PRIME),
    "and claims small products": of_vectors(1, ROOT, products=lambda found: [0] * len(found)),
    "products that are none": of_vectors(1, products=lambda found: [7] * len(found)),
    "a bit of squares that is 2": of_vectors(5, behind=lambda bits: [2, *bits[1:]]),
    "bits of the right worth that are none": of_vectors(
        5, behind=lambda bits: [bits[0] + 2, bits[1] - 1, *bits[2:]]
    ),
}


def valid_vector(shape: Counts | Norm, length: int) -> Numbers:
    """The most that there may be: of counts ones alone, in bits, if that is valid."""
    if isinstance(shape, Norm):
        return [4095, -90, 9, 3, *[0] * (length - 4)][:length]
    block, left = list[int](), shape.total
    for _ in range(shape.block):
        block.append(min(left, 2**shape.width - 1))
        left -= block[-1]
    return block * (length // shape.block)


def honest(offer: Offer, phone: int) -> Liar:
    """A phone that makes its report by hand and lies about nothing."""
    parameters = offer.parameters
    assert isinstance(parameters.proof, Counts | Norm)
    vector = valid_vector(parameters.proof, parameters.length)
    return Liar(offer, phone, vector, report_id=b"by hand" + phone.to_bytes(9))


def told(offer: Offer, phone: int, name: str) -> PhoneReport | None:
    """The report of that lie; None where it would be none."""
    liar = LIES[name](honest(offer, phone))
    return None if liar is None else liar.report()
