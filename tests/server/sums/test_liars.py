"""Whatever one phone reports to a proved sum, it is refused by name, and all others count.

The lies are those of `support.liars`; sums have a phone for every lie, among honest ones.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from support.liars import LIES, honest, told, valid_vector
from support.operators import (
    TOLD,
    WINDOW,
    Operators,
    listed,
    opening,
    reported,
    terms,
    total_of,
)

from earshot_protocol.errors import RemoteError
from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.prio3 import Received
from earshot_protocol.prio3.shapes import Counts, Norm, Shape, ballot
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators.leader import Leader
from earshot_protocol.two_operators.messages import Offer
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.shares import unseal
from earshot_protocol.two_operators.summation import check
from earshot_server.proofs.engine import fastest

Vector = npt.NDArray[np.int64]
SHAPES: list[tuple[Shape, int]] = [
    *((ballot(length, ones), length) for length, ones in ((1, 1), (3, 3), (7, 7))),
    *((ballot(length, ones), length) for length, ones in ((2, 1), (12, 2), (12, 11))),
    (Counts(1, 1, 3), 6),  # votes on two samples for three labels
    (Counts(1, 1, 1), 4),  # and the check of four samples, where ones alone are valid
    (Counts(2, 3, 3), 6),  # the same, where a vote weighs three
    (Counts(2, 3, 1), 4),
    (Norm(), 1),
    (Norm(), 12),
]
"""Of every shape that a mechanism has; of ballots also those that ones alone fill."""
HONEST = 12


@pytest.fixture(scope="module")
def compiled() -> None:
    """Load the servers' engine, which takes a second."""
    fastest()


def cast(shape: Shape, length: int) -> dict[int, Vector]:
    """Valid vectors, half of them as large as they may be."""
    generator = np.random.default_rng(length)
    vectors = {}
    for phone in range(HONEST):
        if isinstance(shape, Norm):
            direction = generator.standard_normal(length)
            direction *= 4095 if phone % 2 else generator.uniform(0, 4095)
            vector = np.trunc(direction / np.linalg.norm(direction))
        else:
            blocks = np.zeros((length // shape.block, shape.block), dtype=np.int64)
            for block in blocks:
                room = np.repeat(np.arange(shape.block), 2**shape.width - 1)
                some = shape.total if phone % 2 else generator.integers(shape.total + 1)
                np.add.at(block, generator.permutation(room)[:some], 1)
            vector = blocks.ravel()
        vectors[phone] = vector.astype(np.int64)
    return vectors


class Played:
    """A whole sum, in which whatever is refused is left out, as the coordinator does."""

    def __init__(self, operators: Operators, shape: Shape, length: int) -> None:
        self.operators = operators
        parameters = terms(shape=(length,), bound=GRID, proof=shape, phones=100)
        self.leader: Leader = operators.offered(parameters)
        self.honest = cast(shape, length)
        self.reports = {
            phone: reported(self.leader, phone, vector) for phone, vector in self.honest.items()
        }
        self.refused: dict[int, str] = {}
        self.by_helper: set[int] = set()

    @property
    def offer(self) -> Offer:
        signed = opening(self.leader).offer
        assert signed is not None
        return signed.offer

    def accept_all(self) -> set[int]:
        """Let the leader take all reports, and return whose it refused."""
        left_out = set()
        for phone, report in self.reports.items():
            try:
                self.leader.accept(phone, report)
            except RemoteError as error:
                self.refused.setdefault(phone, str(error))
                left_out.add(phone)
        return left_out

    def verdicts(self) -> dict[Party, list[bool]]:
        """What each operator makes of every report of the right sizes, by the other's shares."""
        (record,) = self.operators.book._records.values()  # type: ignore[attr-defined]
        made = record.made
        secret = self.operators.book.secret(made.sum_id)
        assert secret is not None
        key = X25519PrivateKey.from_private_bytes(secret.key)
        proof, digest = proof_of(self.offer, self.operators.arithmetic()), self.offer.digest()
        sent: dict[Party, list[Received]] = {role: [] for role in Party}
        for each in self.reports.values():
            share = unseal(each.sealed, key, digest, each.report_id, each.public)
            for role, part in ((Party.LEADER, each.share), (Party.HELPER, share or b"")):
                sent[role].append(Received(each.report_id, each.public, part))
        found = {role: proof.verifiers(role, made.verify_key, sent[role]) for role in Party}
        shares = {role: [each.tobytes() for each in found[role].shares] for role in Party}
        return {
            role: proof.settle(found[role], shares[Party(1 - role)]).accepted.tolist()
            for role in Party
        }

    def total(self) -> Vector:
        """Return the total of the whole sum, each round as a coordinator closes it."""
        before = self.accept_all()
        self.leader.advance()
        self.operators.now += WINDOW + 1
        again = self.operators.keys.restore(self.leader.save())
        task = listed(self.leader)
        answer = total_of(self.operators.helper.answer(task))
        self.leader = again
        self.leader.recall(task)
        self.leader.accept(HELPER, answer)
        self.by_helper = self.accept_all() - before
        assert len(answer.refused) == 16 * len(self.by_helper)
        self.leader.advance()
        return np.asarray(self.leader.result(), dtype=np.int64)


@pytest.mark.parametrize(("shape", "length"), SHAPES)
def test_every_liar_is_refused_by_name_and_all_others_count(
    shape: Shape, length: int, compiled: None
) -> None:
    """By both operators alike: whatever a phone sends, their verdicts are one."""
    played = Played(Operators(arithmetic=fastest), shape, length)
    liars = {}
    for phone, name in enumerate(LIES, start=HONEST):
        report = told(played.offer, phone, name)
        if report is not None:
            liars[phone], played.reports[phone] = name, report
    verdicts = played.verdicts()
    assert (
        verdicts[Party.LEADER] == verdicts[Party.HELPER] == [True] * HONEST + [False] * len(liars)
    ), liars
    np.testing.assert_array_equal(played.total(), sum(played.honest.values()))
    assert {liars[phone] for phone in played.refused} == set(liars.values())
    assert all(said.startswith(f"phone {phone}: ") for phone, said in played.refused.items())
    assert {liars[phone] for phone in played.by_helper} >= {"another part of the helper"}


ONES = [(Counts(1, 2, 2), 2), (Counts(1, 1, 1), 3)]
"""Shapes for which ones alone are valid."""


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "length"), ONES)
@pytest.mark.parametrize("name", LIES)
def test_one_liar_alone_ends_no_sum_where_ones_are_valid(
    name: str, shape: Shape, length: int
) -> None:
    played = Played(Operators(arithmetic=fastest), shape, length)
    report = told(played.offer, HONEST, name)
    if report is not None:
        played.reports[HONEST] = report
    np.testing.assert_array_equal(played.total(), sum(played.honest.values()))
    assert list(played.refused) == ([] if report is None else [HONEST])


@pytest.mark.parametrize(("shape", "length"), SHAPES)
def test_a_report_by_hand_counts_if_it_lies_about_nothing(
    shape: Shape, length: int, compiled: None
) -> None:
    """Or the lies might be refused for how they were made; with a proof of ones alone, too."""
    played = Played(Operators(arithmetic=fastest), shape, length)
    vector = valid_vector(shape, length)
    ones = isinstance(shape, Counts) and shape.total == shape.block * (2**shape.width - 1)
    phones = {HONEST: 1} | ({HONEST + 1: 0} if ones else {})
    for phone, seeds in phones.items():
        played.reports[phone] = replace(honest(played.offer, phone), seeds=seeds).report()
    expected = sum(played.honest.values()) + len(phones) * np.array(vector)
    np.testing.assert_array_equal(played.total(), expected)
    assert not played.refused


def test_a_copy_of_anothers_report_and_another_sum_s_are_refused_by_name() -> None:
    played = Played(Operators(), ballot(2, 2), 2)
    copied = msgspec.structs.replace(played.reports[3], sender=HONEST)
    played.reports[HONEST] = copied
    played.reports[HONEST + 1] = msgspec.structs.replace(
        played.reports[4], sender=HONEST + 1, sum_id=bytes(16)
    )
    played.reports[HONEST + 2] = msgspec.structs.replace(played.reports[4], report_id=bytes(16))
    np.testing.assert_array_equal(played.total(), sum(played.honest.values()))
    assert list(played.refused) == [HONEST, HONEST + 1, HONEST + 2]
    assert "identifier of another" in played.refused[HONEST]


def test_what_the_leader_cannot_list_is_refused_before_it_is_kept() -> None:
    played = Played(Operators(), ballot(3, 3), 3)
    task = opening(played.leader, HONEST)
    for name, says in (
        ("another part of the leader", "public share that does not fit"),
        ("another blind for the leader", "public share that does not fit"),
        ("an entry that is the prime", "not below the field's prime"),
        ("a short share", "a share of"),
    ):
        report = told(played.offer, HONEST, name)
        assert report is not None
        with pytest.raises(RemoteError, match=rf"^phone {HONEST}: .*{says}"):
            check(task, HONEST, report, b"")
    report = ReportingParticipant(task, np.ones(3, dtype=np.int64), TOLD).answer(task)
    check(task, HONEST, report, b"")
