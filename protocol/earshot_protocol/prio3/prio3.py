"""Prio3 for two operators: shares of vectors, with proofs that these are valid.

A client splits a vector of a given shape (`shapes`) into two shares with a proof. Each operator
turns its share into a verifier share, and both verifier shares together show whether the vector is
valid, and nothing else. Accepted vectors are added up, share by share.

This is draft-irtf-cfrg-vdaf-20, section 7.2, with two aggregators and one proof. For vectors of
zeros and ones (section 7.4.5) the tests compare it, bit for bit, with the vectors of that draft's
repository at the tag of draft 20. Both operators have to hold the same public share of a report
(section 9.3). Vectors of bounded length need signs that the shares of their entries fix, before
what the draft calls joint randomness (`derivation`).

One check is not the draft's: an operator refuses a report whose public share does not hold the part
that its own share gives. In the draft each compares only the other's part, so a client that sends
one wrong part makes the two operators disagree, and here a report that one of them has counted
cannot be removed (docs/decisions/0057-ballots-prove-themselves.md).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, MalformedMessageError, RemoteError
from earshot_protocol.prio3.circuit import Circuit, shortest_chunks
from earshot_protocol.prio3.derivation import Derivation, Party
from earshot_protocol.prio3.field import (
    ENCODED_BYTES,
    Arithmetic,
    Elements,
    Signs,
    decode,
    encode,
    in_range,
    to_signed,
)
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.prio3.shapes import LARGEST_LENGTH, Shape
from earshot_protocol.prio3.xof import SEED_BYTES

LARGEST_CONTEXT = 2**15

_TILE = 2**15
"""Elements that are queried at a time: enough to be worth a call, few enough for a cache."""


class InvalidProofError(RemoteError):
    """A report whose vector is invalid, or whose shares do not match."""


class Sharded(NamedTuple):
    """A client's report, as it is sent.

    Attributes:
        public_share: Both operators' parts of the randomness that the shares fix, for both: first
            those that fix signs, if there are checks by signs.
        leader_share: Shares of vector and proof, and a blind, for the leader alone.
        helper_share: Seed of the other shares, and a blind, for the helper alone.
    """

    public_share: bytes
    leader_share: bytes
    helper_share: bytes


class Received(NamedTuple):
    """One operator's part of a report.

    Attributes:
        nonce: Public number of the report, 16 bytes, never used twice under a verify key.
        public_share: The client's, the same bytes for both operators.
        input_share: This operator's share.
    """

    nonce: bytes
    public_share: bytes
    input_share: bytes


class VerifierState(NamedTuple):
    """An operator's part of a report until it is decided.

    Attributes:
        seed: Seed of the randomness that the shares fix, as this operator knows it.
        output_share: Its share of the vector, (length, 2).
    """

    seed: bytes
    output_share: Elements


class Verifiers(NamedTuple):
    """An operator's part of many reports until the other's verifier shares arrive.

    Attributes:
        shares: Its verifier shares as bytes, uint8 (reports, verifier_share_bytes); zeros where
            there is none.
        sound: Whether there is one, bool (reports,): not for a report that is malformed, or whose
            public share does not hold this operator's part.
        expected: The other's part of the joint randomness, as the public share has it, uint8
            (reports, 32).
        output_shares: Shares of vectors, (reports, length, 2).
    """

    shares: npt.NDArray[np.uint8]
    sound: npt.NDArray[np.bool_]
    expected: npt.NDArray[np.uint8]
    output_shares: Elements


class Settled(NamedTuple):
    """Outcome of many reports.

    Attributes:
        accepted: Which of them are valid, bool (reports,).
        total: Sum of this operator's shares of those, (length, 2).
    """

    accepted: npt.NDArray[np.bool_]
    total: Elements


@dataclass(frozen=True)
class Prio3:
    """Sum of vectors of one shape.

    Attributes:
        shape: Shape of valid vectors.
        length: Entries of a vector, at most 2^20.
        chunk_length: Products that a call of the circuit's gadget adds up; None for those that make
            the shortest proof, about the square root of `length`.
        context: Description of the sum, at most 2^15 bytes; shares with another one are invalid.
        arithmetic: Engine that computes in the field; servers have a faster one in
            `earshot_server.proofs`.

    Raises:
        InvalidParametersError: A number is out of range, or the context is too long.
    """

    nonce_bytes: ClassVar[int] = 16
    verify_key_bytes: ClassVar[int] = SEED_BYTES
    rand_bytes: ClassVar[int] = 4 * SEED_BYTES
    """Randomness of a client for a report."""
    helper_share_bytes: ClassVar[int] = 2 * SEED_BYTES
    message_bytes: ClassVar[int] = SEED_BYTES
    """Size of what `decide` returns."""

    shape: Shape
    length: int
    chunk_length: int | None = None
    context: bytes = b""
    arithmetic: Arithmetic = attribute(default_factory=LimbArithmetic, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.shape.check(self.length)
        checks.whole("bytes of context", len(self.context), least=0, most=LARGEST_CONTEXT)
        if self.chunk_length is not None:
            checks.whole("chunk_length", self.chunk_length, most=2 * LARGEST_LENGTH)

    @functools.cached_property
    def circuit(self) -> Circuit:
        """Validity circuit, with the default chunk length if none was given."""
        chunk_length = self.chunk_length or shortest_chunks(self.shape, self.length)
        return Circuit(self.shape, self.length, chunk_length)

    @property
    def public_share_bytes(self) -> int:
        """Size of the public share of a report."""
        return 2 * SEED_BYTES * (2 if self.shape.sign_checks else 1)

    @property
    def leader_share_bytes(self) -> int:
        """Size of the leader's share of a report."""
        return ENCODED_BYTES * self._shared_length + SEED_BYTES

    @property
    def verifier_share_bytes(self) -> int:
        """Size of either operator's verifier share."""
        return ENCODED_BYTES * self.circuit.verifier_length + SEED_BYTES

    def shard(
        self, measurement: npt.NDArray[np.integer | np.bool_], nonce: bytes, rand: bytes = b""
    ) -> Sharded:
        """Split a vector into shares that prove that it is valid.

        Args:
            measurement: Whole numbers, (length,), valid for the shape.
            nonce: Public number of the report, 16 bytes.
            rand: `rand_bytes` secret bytes, used once; by default from the operating system.

        Raises:
            InvalidInputError: The vector is invalid, or nonce or randomness has the wrong size.
            MissingExtraError: The package pycryptodomex is not installed.
        """
        rand = rand or os.urandom(self.rand_bytes)
        _check_ours("nonce", nonce, self.nonce_bytes)
        _check_ours("randomness", rand, self.rand_bytes)
        vector = np.asarray(measurement)
        if vector.shape != (self.length,) or vector.dtype.kind not in "biu":
            raise InvalidInputError(
                f"a vector of shape {vector.shape} and type {vector.dtype}; give {self.length} "
                "whole numbers"
            )
        vector = vector.astype(np.int64)
        fixed = self.shape.fixed(vector)
        return self._split(fixed, functools.partial(self.shape.signed, vector), nonce, rand)

    def verifier(
        self,
        role: Party,
        verify_key: bytes,
        nonce: bytes,
        public_share: bytes,
        input_share: bytes,
    ) -> tuple[VerifierState, bytes]:
        """Return what an operator keeps of a report, and its verifier share for the other.

        Args:
            role: The operator.
            verify_key: The operators' common secret, 32 bytes, which no client knows.
            nonce: Public number of the report, as the client used it.
            public_share: The client's, of which both operators have the same bytes.
            input_share: The client's for this operator.

        Raises:
            MalformedMessageError: Nonce or a share has the wrong size, or an element is not below
                the prime.
            InvalidProofError: The public share does not hold this operator's part, or the report's
                test would reveal an input, as one in 2^120 does.
            InvalidInputError: The verify key has the wrong size.
            MissingExtraError: The package pycryptodomex is not installed.
        """
        report = Received(nonce, public_share, input_share)
        self.check(role, report)
        found = self.verifiers(role, verify_key, [report], checked=True)
        if not found.sound[0]:
            raise InvalidProofError("a report whose test point is a root of unity")
        share = found.shares[0].tobytes()
        pair = _in_order(role, share[-SEED_BYTES:], found.expected[0].tobytes())
        seed = self._derivation.joint_seed(*pair)
        return VerifierState(seed, found.output_shares[0]), share

    def check(self, role: Party, report: Received) -> None:
        """Refuse an operator's part of a report that it cannot verify, whatever the other has.

        Raises:
            MalformedMessageError: Nonce or a share has the wrong size, or an element is not below
                the prime.
            InvalidProofError: The public share does not hold this operator's part.
            MissingExtraError: The package pycryptodomex is not installed.
        """
        self._check(role, report)
        if role is Party.LEADER:
            decode(report.input_share[:-SEED_BYTES], self._shared_length)
        encoded, _ = self._opened(role, [report])
        if self._parts(role, [report], encoded)[0] != self._stated(report, role):
            raise InvalidProofError("a public share that does not fit the input share")

    def decide(self, leader_share: bytes, helper_share: bytes) -> bytes:
        """Return the message by which both operators count a report, from both verifier shares.

        Raises:
            MalformedMessageError: A verifier share has the wrong size, or an element is not below
                the prime.
            InvalidProofError: The vector is not valid, or a share was changed.
            MissingExtraError: The package pycryptodomex is not installed.
        """
        elements = []
        for share in (leader_share, helper_share):
            _check_theirs("verifier share", share, self.verifier_share_bytes)
            elements.append(decode(share[:-SEED_BYTES], self.circuit.verifier_length))
        verifier = self.arithmetic.add(*elements)
        if not self.circuit.decide(verifier[None], self.arithmetic)[0]:
            raise InvalidProofError(
                f"a vector that is not of {self.shape.valid}, or whose shares were changed"
            )
        return self._derivation.joint_seed(leader_share[-SEED_BYTES:], helper_share[-SEED_BYTES:])

    def finish(self, state: VerifierState, message: bytes) -> Elements:
        """Return the output share, (length, 2), of a report that counts.

        Raises:
            MalformedMessageError: The message has the wrong size.
            InvalidProofError: The proof was not made with the randomness that the shares fix.
        """
        _check_theirs("verifier message", message, self.message_bytes)
        if message != state.seed:
            raise InvalidProofError("a proof made with randomness that its shares do not fix")
        return state.output_share

    def verifiers(
        self,
        role: Party,
        verify_key: bytes,
        reports: Sequence[Received],
        *,
        checked: bool = False,
    ) -> Verifiers:
        """Return an operator's part of many reports, with its verifier shares.

        Needs about 20 · `length` bytes a report: take some thousand at a time.

        Args:
            role: The operator.
            verify_key: The operators' common secret, 32 bytes, which no client knows.
            reports: Its parts of the reports; those that are malformed are not sound.
            checked: Whether `check` has accepted each of them; by default they are checked here.

        Raises:
            InvalidInputError: The verify key has the wrong size.
            MissingExtraError: The package pycryptodomex is not installed.
        """
        _check_ours("verify key", verify_key, self.verify_key_bytes)
        if checked:
            sound, kept = np.ones(len(reports), dtype=np.bool_), list(reports)
        else:
            sound = np.array([self._fits(role, report) for report in reports], dtype=np.bool_)
            blank = Received(
                *map(bytes, (self.nonce_bytes, self.public_share_bytes, self._bytes(role)))
            )
            kept = [report if fits else blank for report, fits in zip(reports, sound, strict=True)]
        encoded, proofs = self._opened(role, kept)
        stated = [self._stated(report, role) for report in kept]
        if not checked:
            if role is Party.LEADER:  # what a seed expands to is in range
                # An element beyond the prime affects only its own report, which is not sound.
                sound &= in_range(encoded).all(axis=1) & in_range(proofs).all(axis=1)
            # Both operators hold the same public share, so they agree on which part is wrong.
            found_parts = self._parts(role, kept, encoded)
            fixed = (part == given for part, given in zip(found_parts, stated, strict=True))
            sound &= np.fromiter(fixed, dtype=np.bool_)
        parts = [part[-SEED_BYTES:] for part in stated]
        expected = self._expected(role, kept)
        joint = self._derivation.joint_randomness(
            self._derivation.joint_seed(*_in_order(role, part, other))
            for part, other in zip(parts, expected, strict=True)
        )
        drawn = self._derivation.query_randomness(verify_key, (report.nonce for report in kept))
        shares = np.zeros((len(kept), self.verifier_share_bytes), dtype=np.uint8)
        step = max(1, _TILE // self.circuit.encoded_length)
        for at in range(0, len(kept), step):
            tile = slice(at, at + step)
            signs = self._signs([report.public_share for report in kept[tile]])
            found, shown = self.circuit.query(
                encoded[tile], proofs[tile], drawn[tile], joint[tile], signs, self.arithmetic
            )
            shares[tile, :-SEED_BYTES] = found.view(np.uint8).reshape(len(found), -1)
            sound[tile] &= shown
        shares[:, -SEED_BYTES:] = _rows(parts, SEED_BYTES)
        shares[~sound] = 0
        vectors = self.shape.decoded(encoded, self.length, self.arithmetic)
        return Verifiers(shares, sound, _rows(expected, SEED_BYTES), vectors)

    def recalled(self, role: Party, reports: Sequence[Received], shares: bytes) -> Verifiers:
        """Return an operator's part of reports that it has verified, by its verifier shares.

        Args:
            role: The operator.
            reports: Its parts of sound reports, the same as for `verifiers`.
            shares: Its verifier shares of them, one after another.

        Raises:
            InvalidInputError: There are not as many verifier shares as reports.
        """
        _check_ours("verifier shares", shares, len(reports) * self.verifier_share_bytes)
        encoded, _ = self._opened(role, reports)
        return Verifiers(
            shares=_rows([shares], self.verifier_share_bytes),
            sound=np.ones(len(reports), dtype=np.bool_),
            expected=_rows(self._expected(role, reports), SEED_BYTES),
            output_shares=self.shape.decoded(encoded, self.length, self.arithmetic),
        )

    def settle(self, ours: Verifiers, theirs: Sequence[bytes]) -> Settled:
        """Return which reports count, and the sum of this operator's shares of them.

        Args:
            ours: This operator's verifiers of them.
            theirs: The other operator's verifier shares of the same reports in the same order; a
                report with a malformed one does not count.

        Raises:
            InvalidInputError: There are not as many verifier shares as reports.
        """
        size = self.verifier_share_bytes
        if len(theirs) != len(ours.sound):
            raise InvalidInputError(f"{len(theirs)} verifier shares of {len(ours.sound)} reports")
        fits = np.array([len(share) == size for share in theirs], dtype=np.bool_)
        shares = _rows([share if len(share) == size else bytes(size) for share in theirs], size)
        # Comparing the parts compares the seeds of the joint randomness, their hashes.
        agreed = (shares[:, -SEED_BYTES:] == ours.expected).all(axis=1)
        elements = _elements(shares, self.circuit.verifier_length)
        verifiers = self.arithmetic.add(
            _elements(ours.shares, self.circuit.verifier_length), elements
        )
        accepted = ours.sound & fits & agreed & in_range(elements).all(axis=1)
        accepted &= self.circuit.decide(verifiers, self.arithmetic)
        return Settled(accepted, self.aggregate(ours.output_shares[accepted]))

    def aggregate(self, shares: Elements | Sequence[Elements]) -> Elements:
        """Return the sum, (length, 2), of an operator's output shares, or of sums of them.

        Args:
            shares: Elements, (shares, length, 2).
        """
        rows = np.asarray(shares, dtype=np.uint64).reshape(-1, self.length, 2)
        return self.arithmetic.total(rows.swapaxes(0, 1))

    def unshard(self, leader_total: bytes, helper_total: bytes) -> npt.NDArray[np.int64]:
        """Return the sum of all counted vectors, (length,), with the noise that was added to it.

        Args:
            leader_total: The leader's sum of output shares as `field.encode` writes it.
            helper_total: The helper's, of the same reports.

        Raises:
            MalformedMessageError: A total has the wrong size, an element is not below the prime, or
                the sum is beyond 64 bits: the totals are of different reports.
        """
        totals = [decode(total, self.length) for total in (leader_total, helper_total)]
        return to_signed(self.arithmetic.add(*totals))

    @functools.cached_property
    def _derivation(self) -> Derivation:
        return Derivation(self.circuit, self.context)

    @property
    def _shared_length(self) -> int:
        return self.circuit.encoded_length + self.circuit.proof_length

    def _bytes(self, role: Party) -> int:
        return self.leader_share_bytes if role is Party.LEADER else self.helper_share_bytes

    def _split(
        self,
        fixed: Elements,
        signed: Callable[[Signs], Elements],
        nonce: bytes,
        rand: bytes,
    ) -> Sharded:
        """Return the shares of an encoded vector, whether it is valid or not.

        Args:
            fixed: Its elements that do not depend on signs.
            signed: Function from the signs, (sign_checks, 2, ⌈length / 8⌉), to the elements behind
                them.
            nonce: Public number of the report.
            rand: Randomness of the report.
        """
        derive, field = self._derivation, self.arithmetic
        (seed, helper_blind), (leader_blind, prover_seed) = map(_halves, _halves(rand))
        helper_encoded, helper_proofs = derive.helper_shares([seed])
        blinds, public = (leader_blind, helper_blind), b""
        # What does not depend on signs is fixed by both shares of it before they are known.
        shared = helper_encoded[:, : len(fixed)]
        entries = [field.subtract(fixed[None], shared), shared]
        if self.shape.sign_checks:
            public = b"".join(
                derive.signs_part(
                    role, blinds[role], nonce, encode(entries[role][:, : self.length])
                )
                for role in Party
            )
        encoded = np.concatenate([fixed, signed(self._signs([public])[0])])[None]
        leader_encoded = field.subtract(encoded, helper_encoded)
        parts = [
            self._joint_part(role, blinds[role], nonce, share, _halves(public)[role])
            for role, share in zip(Party, (leader_encoded, helper_encoded), strict=True)
        ]
        joint = derive.joint_randomness([derive.joint_seed(*parts)])
        proofs = self.circuit.prove(encoded, derive.prover_randomness(prover_seed), joint, field)
        leader_proofs = field.subtract(proofs, helper_proofs)
        return Sharded(
            public_share=public + b"".join(parts),
            leader_share=encode(leader_encoded) + encode(leader_proofs) + leader_blind,
            helper_share=seed + helper_blind,
        )

    def _signs(self, public_shares: Sequence[bytes]) -> Signs:
        """Return the signs that public shares fix, (reports, sign_checks, 2, ⌈length / 8⌉)."""
        if not self.shape.sign_checks:
            return np.empty((len(public_shares), 0, 2, 0), dtype=np.uint8)
        seeds = (
            self._derivation.signs_seed(*_halves(public[: 2 * SEED_BYTES]))
            for public in public_shares
        )
        return self._derivation.signs(seeds)

    def _joint_part(
        self, role: Party, blind: bytes, nonce: bytes, encoded: Elements, signs_part: bytes
    ) -> bytes:
        """Return the contribution of an encoded share, (elements, 2), to the joint randomness."""
        behind = encoded.reshape(-1, 2)[self.length if self.shape.sign_checks else 0 :]
        return self._derivation.joint_part(role, blind, nonce, signs_part + encode(behind))

    def _parts(self, role: Party, reports: Sequence[Received], encoded: Elements) -> list[bytes]:
        """Return the contributions of an operator's shares to signs, if any, and randomness."""
        found = []
        for report, share in zip(reports, encoded, strict=True):
            blind, nonce, part = report.input_share[-SEED_BYTES:], report.nonce, b""
            if self.shape.sign_checks:
                entries = encode(share[: self.length])
                part = self._derivation.signs_part(role, blind, nonce, entries)
            found.append(part + self._joint_part(role, blind, nonce, share, part))
        return found

    def _stated(self, report: Received, role: Party) -> bytes:
        """Return the contributions of an operator's shares as the public share has them."""
        pairs = report.public_share
        return b"".join(
            _halves(pairs[at : at + 2 * SEED_BYTES])[role]
            for at in range(0, len(pairs), 2 * SEED_BYTES)
        )

    def _expected(self, role: Party, reports: Sequence[Received]) -> list[bytes]:
        """Return the other operator's parts of the joint randomness, as public shares have them."""
        pairs = (report.public_share[-2 * SEED_BYTES :] for report in reports)
        return [_halves(pair)[1 - role] for pair in pairs]

    def _opened(self, role: Party, reports: Sequence[Received]) -> tuple[Elements, Elements]:
        """Return the shares of encoded vectors and proofs that input shares are or expand to."""
        if role is Party.HELPER:
            return self._derivation.helper_shares(
                report.input_share[:SEED_BYTES] for report in reports
            )
        rows = _rows([report.input_share for report in reports], self.leader_share_bytes)
        values = _elements(rows, self._shared_length)
        encoded, proofs = np.split(values, [self.circuit.encoded_length], axis=1)
        return encoded, proofs

    def _fits(self, role: Party, report: Received) -> bool:
        try:
            self._check(role, report)
        except MalformedMessageError:
            return False
        return True

    def _check(self, role: Party, report: Received) -> None:
        _check_theirs("nonce", report.nonce, self.nonce_bytes)
        _check_theirs("public share", report.public_share, self.public_share_bytes)
        _check_theirs(f"{role.name.lower()}'s share", report.input_share, self._bytes(role))


def _halves(data: bytes) -> tuple[bytes, bytes]:
    return data[: len(data) // 2], data[len(data) // 2 :]


def _in_order(role: Party, ours: bytes, theirs: bytes) -> tuple[bytes, bytes]:
    return (ours, theirs) if role is Party.LEADER else (theirs, ours)


def _rows(parts: Sequence[bytes], size: int) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, size)


def _elements(rows: npt.NDArray[np.uint8], length: int) -> Elements:
    """Return the elements, (rows, length, 2), with which rows of bytes begin."""
    return rows[:, : ENCODED_BYTES * length].view("<u8").reshape(len(rows), length, 2)


def _check_ours(name: str, data: bytes, size: int) -> None:
    if len(data) != size:
        raise InvalidInputError(f"{name} of {len(data)} bytes; give {size}")


def _check_theirs(name: str, data: bytes, size: int) -> None:
    if len(data) != size:
        raise MalformedMessageError(f"a {name} of {len(data)} bytes; {size} are expected")
