"""Whatever one phone reports to a proved sum, it is refused by name, and all others count.

The lies are those of `support.liars`; sums have a phone for every lie, among honest ones.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from support.liars import LIES, Liar, told, vector_of
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
from earshot_protocol.prio3.shapes import ballot
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators.leader import Leader
from earshot_protocol.two_operators.messages import Offer
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.summation import check
from earshot_server.proofs.engine import fastest

Ballot = npt.NDArray[np.int64]
SIZES = [(1, 1), (2, 2), (3, 3), (4, 4), (7, 7), (2, 1), (3, 2), (12, 2), (12, 11)]
HONEST = 12


def cast(length: int, ones: int) -> dict[int, Ballot]:
    generator = np.random.default_rng(length)
    ballots = {}
    for phone in range(HONEST):
        ballots[phone] = np.zeros(length, dtype=np.int64)
        some = generator.integers(0, ones + 1) if phone % 2 else ones
        ballots[phone][generator.choice(length, some, replace=False)] = 1
    return ballots


class Played:
    """A whole sum, in which whatever is refused is left out, as the coordinator does."""

    def __init__(self, operators: Operators, length: int, ones: int) -> None:
        self.operators = operators
        parameters = terms(shape=(length,), bound=1, proof=ballot(length, ones), phones=100)
        self.leader: Leader = operators.offered(parameters)
        self.honest = cast(length, ones)
        self.reports = {
            phone: reported(self.leader, phone, ballot) for phone, ballot in self.honest.items()
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

    def total(self) -> Ballot:
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


@pytest.mark.parametrize(("length", "ones"), SIZES)
def test_every_liar_is_refused_by_name_and_all_others_count(length: int, ones: int) -> None:
    operators = Operators(arithmetic=fastest)
    played = Played(operators, length, ones)
    liars = {}
    for phone, name in enumerate(LIES, start=HONEST):
        report = told(played.offer, phone, name)
        if report is not None:
            liars[phone], played.reports[phone] = name, report
    np.testing.assert_array_equal(played.total(), sum(played.honest.values()))
    assert {liars[phone] for phone in played.refused} == set(liars.values())
    assert all(said.startswith(f"phone {phone}: ") for phone, said in played.refused.items())
    assert {liars[phone] for phone in played.by_helper} >= {"another part of the helper"}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIES)
def test_one_liar_alone_ends_no_sum_where_ones_are_a_ballot(name: str) -> None:
    played = Played(Operators(arithmetic=fastest), 2, 2)
    report = told(played.offer, HONEST, name)
    if report is not None:
        played.reports[HONEST] = report
    np.testing.assert_array_equal(played.total(), sum(played.honest.values()))
    assert list(played.refused) == ([] if report is None else [HONEST])


@pytest.mark.parametrize(("length", "ones"), SIZES)
def test_a_report_by_hand_counts_if_it_lies_about_nothing(length: int, ones: int) -> None:
    """Or the lies might be refused for how they were made."""
    played = Played(Operators(), length, ones)
    for phone, seeds in ((HONEST, 0), (HONEST + 1, 1)):
        liar = Liar(played.offer, phone, vector_of(length, ones), seeds=seeds)
        played.reports[phone] = replace(liar, report_id=b"by hand" + phone.to_bytes(9)).report()
    honest = sum(played.honest.values()) + 2 * np.array(vector_of(length, ones))
    np.testing.assert_array_equal(played.total(), honest)
    assert not played.refused


def test_a_copy_of_anothers_report_and_another_sum_s_are_refused_by_name() -> None:
    played = Played(Operators(), 2, 2)
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
    played = Played(Operators(), 3, 3)
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
    honest = ReportingParticipant(task, np.ones(3, dtype=np.int64), TOLD).answer(task)
    check(task, HONEST, honest, b"")
