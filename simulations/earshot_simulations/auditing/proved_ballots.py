"""Each operator's view of a proved ballot, which must not depend on the vote.

Real phones prove their ballots under a real offer; half of them cast a vote that the others do not.
An operator sees its share and both verifier shares. It may also alter its share before it makes its
verifier share, aiming at a change that only ballots with this vote survive: the reports that count
would then reveal how phones voted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.errors import WrongStateError
from earshot_protocol.prio3 import field
from earshot_protocol.prio3.derivation import Derivation, Party
from earshot_protocol.prio3.field import Elements
from earshot_protocol.prio3.prio3 import Prio3, Received
from earshot_protocol.prio3.xof import SEED_BYTES
from earshot_protocol.privacy.mechanisms import BallotSum
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators.messages import OfferMade, SendReport
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.shares import unseal
from earshot_server.proofs.engine import fastest
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check, p_said
from earshot_simulations.auditing.laws import Law
from earshot_simulations.auditing.operators import sums_of_operators
from earshot_simulations.auditing.sampling import UNLIKELY, fit
from earshot_simulations.auditing.watched_operators import WatchedOperators
from earshot_simulations.auditing.watching import replaced

_PHONES = 200
_ENTRIES = 40
_BITS = (0, 1)
_BYTES = Law(0, np.full(256, 1 / 256))


@dataclass(frozen=True)
class WeakProofs:
    """Planted fault of phones' proofs; without arguments there is none.

    Attributes:
        source: Makes the source of all random bytes, from that of the operating system.
        blinding: Changes the random values by which a proof hides its ballot.
    """

    source: Callable[[RandomBytes], RandomBytes] = lambda system: system
    blinding: Callable[[Elements], Elements] = lambda seeds: seeds


SOUND = WeakProofs()


class _Reports(NamedTuple):
    """Reports of one sum, alternating between phones without and with the vote.

    Attributes:
        proof: Proof system.
        verify_key: Key of both operators.
        parts: Part of each operator in every report.
    """

    proof: Prio3
    verify_key: bytes
    parts: dict[Party, list[Received]]


def audit_proved_ballots(weakness: WeakProofs = SOUND) -> Iterator[Check]:
    """Check each operator's view, its active attacks, and both views together."""
    reports = _reported(weakness)
    for party in Party:
        yield _refused_alike(party, reports)
    for party in Party:
        shares = [part.input_share for part in reports.parts[party]]
        yield _uniform(f"the {party.name.lower()}'s share", shares)
    yield _uniform("both verifier shares added up, which both operators see", _added_up(reports))


def _reported(weakness: WeakProofs) -> _Reports:
    """Let phones report to a leader, under an offer of the helper."""
    watched = WatchedOperators()
    operated = next(
        each
        for each in sums_of_operators()
        if each.proved and isinstance(each.mechanism, BallotSum)
    )
    agreed = msgspec.structs.replace(operated.agreed(_ENTRIES), phones=_PHONES)
    leader = watched.keys(os.urandom(16), agreed, os.urandom)
    request = leader.task_for(HELPER)
    made = watched.answer(request) if request is not None else None
    if not isinstance(made, OfferMade):
        raise WrongStateError("the helper has made no offer")
    leader.accept(HELPER, made)
    leader.advance()
    secret = watched.book.secret(made.sum_id)
    key = X25519PrivateKey.from_private_bytes(secret.key if secret else b"")
    proof, digest = proof_of(made.offer, fastest()), made.offer.digest()
    parts: dict[Party, list[Received]] = {party: [] for party in Party}
    randomness = Derivation.prover_randomness

    def blinded(derivation: Derivation, seed: bytes) -> Elements:
        return weakness.blinding(randomness(derivation, seed))

    with (
        replaced(os, urandom=weakness.source(os.urandom)),
        replaced(Derivation, prover_randomness=blinded),
    ):
        for phone in range(_PHONES):
            task = leader.task_for(phone)
            assert isinstance(task, SendReport)  # noqa: S101
            report = ReportingParticipant(task, _ballot(phone % 2)).answer(task)
            seed = unseal(report.sealed, key, digest, report.report_id, report.public)
            for party, share in ((Party.LEADER, report.share), (Party.HELPER, seed or b"")):
                parts[party].append(Received(report.report_id, report.public, share))
    return _Reports(proof, made.verify_key, parts)


def _ballot(bit: int) -> npt.NDArray[np.int64]:
    """Return a ballot with this bit in the first entry, and a vote in the last."""
    ballot = np.zeros(_ENTRIES, dtype=np.int64)
    ballot[0], ballot[-1] = bit, 1
    return ballot


def _refused_alike(party: Party, reports: _Reports) -> Check:
    """Check that an altered share reveals nothing about a ballot."""
    who, half = party.name.lower(), _PHONES // 2
    unaltered = _counted(party, reports, None)
    guessed = [_counted(party, reports, guess) for guess in _BITS]
    return Check(
        f"a {who} that alters its shares so that one vote turns into the other",
        f"all {half} and {half} reports count unaltered, and none of them altered",
        f"{unaltered} unaltered; {' and '.join(map(str, guessed))} by the vote that is guessed",
        unaltered == [half, half] and not np.any(guessed),
        "reports that count, of phones without and with the vote, the proofs' shares altered as if "
        "nothing hid what they are about",
        power.of_tries(half),
    )


def _counted(party: Party, reports: _Reports, guess: int | None) -> list[int]:
    """Return how many reports without and with the vote the other operator counts.

    Args:
        party: Operator that may alter its shares.
        reports: Reports.
        guess: Bit that it guesses, and flips; None if it alters nothing.
    """
    proof, other = reports.proof, Party(1 - party)
    honest = proof.verifiers(other, reports.verify_key, reports.parts[other])
    accepted = proof.settle(honest, _verifier_shares(party, reports, guess)).accepted
    return [int(accepted[bit::2].sum()) for bit in _BITS]


def _verifier_shares(party: Party, reports: _Reports, guess: int | None) -> list[bytes]:
    """Return an operator's verifier shares, of altered shares if it guesses a vote.

    It keeps the joint randomness that phones' shares fix, since a change there would be detected.
    The altered proof is valid if the guess is right and the proof does not hide its ballot.
    """
    proof, parts = reports.proof, reports.parts[party]
    circuit, arithmetic = proof.circuit, proof.arithmetic
    derived = Derivation(circuit, proof.context)
    halves = [(part.public_share[:SEED_BYTES], part.public_share[SEED_BYTES:]) for part in parts]
    joint = derived.joint_randomness(derived.joint_seed(*both) for both in halves)
    if party is Party.LEADER:
        length = circuit.encoded_length + circuit.proof_length
        own = np.stack([field.decode(each.input_share[:-SEED_BYTES], length) for each in parts])
        encoded, proofs = np.split(own, [circuit.encoded_length], axis=1)
    else:
        encoded, proofs = derived.helper_shares(each.input_share[:SEED_BYTES] for each in parts)
    if guess is not None:
        nothing = np.zeros((len(parts), circuit.wires, 2), dtype=np.uint64)
        votes = [circuit.shape.fixed(_ballot(bit))[None] for bit in (guess, 1 - guess)]
        whole = [np.repeat(each, len(parts), axis=0) for each in votes]
        before, after = (circuit.prove(each, nothing, joint, arithmetic) for each in whole)
        encoded = arithmetic.add(encoded, arithmetic.subtract(whole[1], whole[0]))
        proofs = arithmetic.add(proofs, arithmetic.subtract(after, before))
    nonces = (part.nonce for part in parts)
    drawn = derived.query_randomness(reports.verify_key, nonces)
    no_signs = np.empty((len(parts), 0, 2, 0), dtype=np.uint8)
    shares, _ = circuit.query(encoded, proofs, drawn, joint, no_signs, arithmetic)
    return [field.encode(each) + both[party] for each, both in zip(shares, halves, strict=True)]


def _added_up(reports: _Reports) -> list[bytes]:
    """Return the sum of each report's verifier shares, for every input of the gadget.

    The element before these is zero in every valid report, and the one after them follows.
    """
    proof = reports.proof
    both = [proof.verifiers(party, reports.verify_key, reports.parts[party]) for party in Party]
    length = proof.circuit.verifier_length
    one, other = (
        np.stack([field.decode(each.tobytes(), length) for each in found.shares[:, :-SEED_BYTES]])
        for found in both
    )
    return [field.encode(each) for each in proof.arithmetic.add(one, other)[:, 1:-1]]


def _uniform(what: str, parts: list[bytes]) -> Check:
    """Check that bytes are uniform in reports without the vote, and in reports with it."""
    drawn = [np.frombuffer(b"".join(parts[bit::2]), dtype=np.uint8) for bit in _BITS]
    fits = [fit(_BYTES, each.astype(np.int64)) for each in drawn]
    worst = min(fits)
    return Check(
        what,
        f"uniform, whatever the vote (p ≥ {UNLIKELY:g})",
        " and ".join(p_said(found) for found, _ in fits),
        worst[0] >= UNLIKELY,
        f"χ² tests of the {len(drawn[0])} bytes of {_PHONES // 2} reports without a vote and as "
        "many with it",
        power.of_fit(worst[1], len(drawn[0]), UNLIKELY),
    )
