"""Reports of Prio3 in plain integers, for both shapes of vectors, and nothing shared.

The oracle for the product's encodings, commitments, signs, shares and verifier shares. Only
TurboSHAKE128 is a library's; proofs and verifiers are those of `textbook_proof`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from Cryptodome.Hash import TurboSHAKE128

from support import textbook_proof
from support.textbook_proof import PRIME

MEASUREMENT_SHARE, PROOF_SHARE, JOINT_RANDOMNESS, PROVE_RANDOMNESS, QUERY_RANDOMNESS = range(1, 6)
JOINT_SEED, JOINT_PART, SIGNS, SIGNS_SEED, SIGNS_PART = range(6, 11)


def plain_bits(number: int, count: int) -> list[int]:
    """A number from 0 on in bits worth 1, 2, 4, and so on."""
    return [number >> place & 1 for place in range(count)]


def number_of(bits: Sequence[int]) -> int:
    """What bits worth 1, 2, 4, … amount to, whatever they are."""
    return sum(bit * 2**place for place, bit in enumerate(bits)) % PRIME


@dataclass(frozen=True)
class CountsBook:
    """Counts of some bits each, and what each block of them adds up to."""

    length: int
    width: int
    total: int
    block: int
    squares: int = 0
    checks: int = 0

    @property
    def algorithm(self) -> int:
        """The draft's number, or the second private one."""
        return 5 if self.width == 1 and self.block == self.length else 0xFFFF0001

    def encoded(self, entries: Sequence[int], signs: Sequence[Sequence[int]]) -> list[int]:
        """Entries in bits, then totals: bits of 1, 2, 4, …, and one for what is missing to all."""
        bits = [bit for entry in entries for bit in plain_bits(entry, self.width)]
        for at in range(0, self.length, self.block):
            number = sum(entries[at : at + self.block])
            *plain, worth = self.worth()
            last = int(number > sum(plain))
            bits += [*plain_bits(number - last * worth, len(plain)), last]
        return bits

    def worth(self) -> list[int]:
        """What the bits of a total are worth."""
        plain = [2**place for place in range(self.total.bit_length() - 1)]
        return [*plain, self.total - sum(plain)]

    def linear(
        self, encoded: Sequence[int], squared: int, signs: Sequence[Sequence[int]], shares: int
    ) -> list[int]:
        """For each block, its entries less its total."""
        size, worth = self.block * self.width, self.worth()
        outputs = []
        for number in range(self.length // self.block):
            entries = encoded[number * size : (number + 1) * size]
            at = self.length * self.width + number * len(worth)
            summed = sum(bit * 2 ** (place % self.width) for place, bit in enumerate(entries))
            outputs.append(summed - textbook_proof.dot(worth, encoded[at : at + len(worth)]))
        return outputs


@dataclass(frozen=True)
class NormBook:
    """Whole numbers, the sum of their squares in 24 bits, and products with signs in 17 each."""

    length: int
    checks: int = 100
    algorithm: int = 0xFFFF0000

    @property
    def squares(self) -> int:
        """All entries are squared."""
        return self.length

    def encoded(self, entries: Sequence[int], signs: Sequence[Sequence[int]]) -> list[int]:
        """Entries, bits of their squares' sum, bits of their products with signs, from 0 on."""
        bits = plain_bits(sum(x * x for x in entries), 24)
        for row in signs:
            bits += plain_bits(sum(s * x for s, x in zip(row, entries, strict=True)) + 65535, 17)
        return [*(x % PRIME for x in entries), *bits]

    def linear(
        self, encoded: Sequence[int], squared: int, signs: Sequence[Sequence[int]], shares: int
    ) -> list[int]:
        """The squares less their bits; products less theirs, which are 65,535 more."""
        entries, behind = encoded[: self.length], encoded[self.length + 24 :]
        outputs = [squared - number_of(encoded[self.length : self.length + 24])]
        for check, row in enumerate(signs):
            shifted = textbook_proof.dot(row, entries) + 65535 * pow(shares, -1, PRIME)
            outputs.append(shifted - number_of(behind[17 * check : 17 * check + 17]))
        return outputs


@dataclass(frozen=True)
class Textbook:
    """Reports of two operators about vectors of a shape, in calls of `chunk` products."""

    shape: CountsBook | NormBook
    chunk: int
    context: bytes

    def shard(
        self, entries: Sequence[int], nonce: bytes, rand: bytes
    ) -> tuple[bytes, bytes, bytes]:
        """Public share, leader's share and helper's share of a valid vector."""
        seed, helper_blind, leader_blind, prover = (rand[at : at + 32] for at in range(0, 128, 32))
        blinds, public = (leader_blind, helper_blind), b""
        signs: list[list[int]] = []
        helper = self.helper_vector(seed)
        if self.shape.checks:
            leader = [(x - y) % PRIME for x, y in zip(entries, helper, strict=False)]
            public = b"".join(
                self.signs_part(role, blind, nonce, share)
                for role, (blind, share) in enumerate(zip(blinds, (leader, helper), strict=True))
            )
            signs = self.signs(public)
        encoded = self.shape.encoded(entries, signs)
        leader = [(x - y) % PRIME for x, y in zip(encoded, helper, strict=True)]
        parts = b"".join(
            self.joint_part(role, blind, nonce, share, public[32 * role : 32 * role + 32])
            for role, (blind, share) in enumerate(zip(blinds, (leader, helper), strict=True))
        )
        squares, bits = self.divided(encoded)
        seeds = self.elements(prover, PROVE_RANDOMNESS, b"\x01", 2 * self.chunk)
        proof = textbook_proof.proof(bits, squares, seeds, self.joint(parts), self.chunk)
        helper_proof = self.elements(seed, PROOF_SHARE, b"\x01\x01", len(proof))
        leader += [(x - y) % PRIME for x, y in zip(proof, helper_proof, strict=True)]
        return public + parts, self.encode(leader) + leader_blind, seed + helper_blind

    def verifier_share(
        self, role: int, key: bytes, nonce: bytes, public: bytes, share: bytes
    ) -> bytes:
        """One operator's verifier share."""
        blind, size = share[-32:], self.encoded_length
        if role == 0:
            data = share[:-32]
            values = [
                int.from_bytes(data[at : at + 16], "little") for at in range(0, len(data), 16)
            ]
            vector, proof = values[:size], values[size:]
        else:
            points = 2
            calls = sum(len(textbook_proof.chunks(part, self.chunk)) for part in self.empty())
            while points < 1 + calls:
                points *= 2
            vector = self.helper_vector(share[:32])
            many = 2 * self.chunk + 2 * points - 1
            proof = self.elements(share[:32], PROOF_SHARE, b"\x01\x01", many)
        signs, part = [], b""
        if self.shape.checks:
            signs, part = self.signs(public[:64]), self.signs_part(role, blind, nonce, vector)
        joint_part = self.joint_part(role, blind, nonce, vector, part)
        squares, bits = self.divided(vector)

        def linear(squared: int) -> list[int]:
            return self.shape.linear(vector, squared, signs, 2)

        drawn = self.elements(key, QUERY_RANDOMNESS, b"\x01" + nonce, 2 + len(linear(0)))
        made = textbook_proof.verifier(
            bits, squares, proof, drawn, self.joint(public[-64:]), self.chunk, linear, 2
        )
        return self.encode(made) + joint_part

    @property
    def encoded_length(self) -> int:
        """Elements of an encoded vector."""
        return len(
            self.shape.encoded(
                [0] * self.shape.length, [[0] * self.shape.length] * self.shape.checks
            )
        )

    def empty(self) -> tuple[list[int], list[int]]:
        """Squares and bits of nothing."""
        return self.divided([0] * self.encoded_length)

    def divided(self, encoded: Sequence[int]) -> tuple[list[int], list[int]]:
        """Elements whose squares are added up, and bits."""
        return list(encoded[: self.shape.squares]), list(encoded[self.shape.squares :])

    def helper_vector(self, seed: bytes) -> list[int]:
        """The helper's share of an encoded vector."""
        return self.elements(seed, MEASUREMENT_SHARE, b"\x01", self.encoded_length)

    def signs_part(self, role: int, blind: bytes, nonce: bytes, share: Sequence[int]) -> bytes:
        """What a share of the entries contributes to the signs."""
        entries = self.encode(share[: self.shape.length])
        return self.stream(blind, SIGNS_PART, bytes([role]) + nonce + entries).read(32)

    def joint_part(
        self, role: int, blind: bytes, nonce: bytes, share: Sequence[int], signs_part: bytes
    ) -> bytes:
        """What a share contributes to the joint randomness: entries by their part, if any."""
        fixed = signs_part + self.encode(share[self.shape.length if self.shape.checks else 0 :])
        return self.stream(blind, JOINT_PART, bytes([role]) + nonce + fixed).read(32)

    def joint(self, parts: bytes) -> list[int]:
        """Randomness that both parts fix."""
        seed = self.stream(bytes(32), JOINT_SEED, parts).read(32)
        calls = len(textbook_proof.chunks(self.empty()[1], self.chunk))
        return self.elements(seed, JOINT_RANDOMNESS, b"\x01", calls)

    def signs(self, parts: bytes) -> list[list[int]]:
        """Signs that both parts fix: the difference of two runs of bits for each check."""
        seed = self.stream(bytes(32), SIGNS_SEED, parts).read(32)
        stream = self.stream(seed, SIGNS, b"\x01")
        rows = []
        for _ in range(self.shape.checks):
            size = (self.shape.length + 7) // 8
            plus, minus = (int.from_bytes(stream.read(size), "little") for _ in range(2))
            rows.append([(plus >> at & 1) - (minus >> at & 1) for at in range(self.shape.length)])
        return rows

    def stream(self, seed: bytes, usage: int, binder: bytes) -> TurboSHAKE128.TurboSHAKE:
        """XofTurboShake128 of the draft, with its tag of a usage."""
        tag = bytes([18, 0]) + self.shape.algorithm.to_bytes(4) + usage.to_bytes(2) + self.context
        data = len(tag).to_bytes(2, "little") + tag + bytes([len(seed)]) + seed + binder
        return TurboSHAKE128.new(domain=1, data=data)

    def elements(self, seed: bytes, usage: int, binder: bytes, count: int) -> list[int]:
        """Uniform elements."""
        stream, found = self.stream(seed, usage, binder), list[int]()
        while len(found) < count:
            number = int.from_bytes(stream.read(16), "little")
            found += [number] if number < PRIME else []
        return found

    def encode(self, numbers: Sequence[int]) -> bytes:
        """Elements of 16 bytes, lowest first."""
        return b"".join((number % PRIME).to_bytes(16, "little") for number in numbers)
