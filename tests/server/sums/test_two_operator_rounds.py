"""The rounds of a sum by two operators: who has a task, whose answer counts, how long it waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from support.operators import (
    NOW,
    Operators,
    closed,
    inputs_of,
    listed,
    opening,
    reported,
    request,
    terms,
    total_of,
)

from earshot_protocol.errors import (
    MalformedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Counts, ballot
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.two_operators import leader as leading
from earshot_protocol.two_operators.halves import PlainHalf
from earshot_protocol.two_operators.leader import Leader
from earshot_protocol.two_operators.messages import PhoneReport
from earshot_protocol.wire import Answer

PHONES = range(20)


class Rounds:
    """The same sum in every round, with an honest answer to each."""

    def __init__(self) -> None:
        self.operators = Operators()
        begun = self.operators.begin()
        self.offered = self.operators.helper.answer(request(begun))
        self._begun = begun.save()
        begun.accept(HELPER, self.offered)
        begun.advance()
        self._reporting = begun.save()
        self.reports = {
            phone: reported(begun, phone, vector) for phone, vector in inputs_of(range(12)).items()
        }
        self.total = total_of(self.operators.helper.answer(listed(self.at("total"))))

    def at(self, name: str) -> Leader:
        keys = self.operators.keys
        leader = keys.restore(self._begun if name == "offer" else self._reporting)
        if name in ("offer", "report"):
            return leader
        for phone, report in self.reports.items():
            leader.accept(phone, report)
        leader.advance()
        self.operators.now = NOW + 2000
        if name == "done":
            closed(leader, self.total, self.reports.items())
        return leader


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


@pytest.mark.parametrize(
    ("name", "parties"), [("offer", {HELPER}), ("report", set(PHONES)), ("total", {HELPER})]
)
def test_a_task_is_for_those_who_are_expected_and_for_nobody_else(
    rounds: Rounds, name: str, parties: set[int]
) -> None:
    leader = rounds.at(name)
    assert set(leader.expected()) == parties
    for party in (HELPER - 1, HELPER, *PHONES, len(PHONES)):
        assert (leader.task_for(party) is not None) == (party in parties)
    assert [party for party, _ in leader.tasks()] == [party for party in parties if party < 0]


def test_a_sum_that_is_over_has_no_tasks(rounds: Rounds) -> None:
    leader = rounds.at("done")
    assert [leader.task_for(party) for party in (HELPER, 0)] == [None, None]
    assert list(leader.tasks()) == []
    result = leader.result()
    leader.advance()
    assert leader.done
    np.testing.assert_array_equal(leader.result(), result)


@pytest.mark.parametrize(
    ("name", "party", "answer"),
    [
        ("offer", HELPER, lambda rounds: rounds.total),
        ("offer", 3, lambda rounds: rounds.offered),
        ("offer", 3, lambda rounds: rounds.reports[3]),
        ("report", HELPER, lambda rounds: rounds.offered),
        ("report", HELPER, lambda rounds: rounds.total),
        ("report", HELPER, lambda rounds: sent_by(rounds, HELPER)),
        ("report", 3, lambda rounds: rounds.offered),
        ("total", HELPER, lambda rounds: rounds.offered),
        ("total", HELPER, lambda rounds: sent_by(rounds, HELPER)),
        ("total", 3, lambda rounds: rounds.total),
        ("done", HELPER, lambda rounds: rounds.total),
        ("done", 3, lambda rounds: rounds.reports[3]),
    ],
)
def test_an_answer_of_another_round_or_party_is_refused(
    rounds: Rounds, name: str, party: int, answer: Callable[[Rounds], Answer]
) -> None:
    leader = rounds.at(name)
    with pytest.raises(UnexpectedMessageError, match=f"not expected in the round '{name}'"):
        leader.accept(party, answer(rounds))


def sent_by(rounds: Rounds, party: int) -> Answer:
    return msgspec.structs.replace(rounds.reports[3], sender=party)


def test_a_report_of_another_size_changes_nothing(rounds: Rounds) -> None:
    leader = rounds.at("report")
    for changes in ({"share": b"12"}, {"sealed": bytes(81)}, {"public": bytes(64)}):
        with pytest.raises(MalformedMessageError, match=r"phone 3|of 2 bytes"):
            leader.accept(3, msgspec.structs.replace(rounds.reports[3], **changes))
    leader.accept(3, rounds.reports[3])


def test_a_sum_that_lost_its_offer_says_so(rounds: Rounds) -> None:
    leader = rounds.at("report")
    lost: dict[str, Any] = msgspec.msgpack.decode(leader.save()) | {"offer": None}
    leader = rounds.operators.keys.restore(msgspec.msgpack.encode(lost))
    with pytest.raises(WrongStateError, match="no offer yet"):
        leader.accept(3, rounds.reports[3])


def test_a_helper_is_waited_for_a_week_and_phones_have_their_window(rounds: Rounds) -> None:
    week = 7 * 24 * 3600.0
    assert request(rounds.at("offer")).patience == week
    ends = [rounds.at(name).deadline(5.0, 77.0) - 5.0 for name in ("offer", "report", "total")]
    assert ends == [week, 1000.0, week]


@pytest.mark.parametrize("proof", [None, ballot(6, 2)])
def test_reports_count_alike_however_many_are_worked_in_together(proof: Counts | None) -> None:
    """And each batch is settled by the verifier shares of its own reports."""
    generator = np.random.default_rng(3)
    inputs = {phone: np.eye(6, dtype=np.int64)[generator.integers(6)] for phone in range(7)}
    operators = Operators()

    def bend(phone: int, report: Any) -> Any:
        return msgspec.structs.replace(report, sealed=report.sealed[::-1]) if phone == 1 else report

    with mock.patch.object(leading, "_TOGETHER", 3):
        agreed = terms(shape=(6,), bound=1, proof=proof, least=6)
        leader, reports = operators.collected(inputs, parameters=agreed, bend=bend)
        leader.accept(HELPER, operators.helper.answer(listed(leader)))
        for phone, report in reports.items():
            try:
                leader.accept(phone, report)
            except MalformedMessageError:
                assert phone == 1
        leader.advance()
    del inputs[1]
    np.testing.assert_array_equal(leader.result(), sum(inputs.values()))


@pytest.mark.parametrize("proof", [None, ballot(6, 2)])
def test_no_total_comes_of_a_report_that_is_not_listed(proof: Counts | None) -> None:
    """In the place of one that is; and beside them it is not added."""
    operators = Operators()
    inputs = {phone: np.eye(6, dtype=np.int64)[phone % 6] for phone in range(9)}
    agreed = terms(shape=(6,), bound=1, proof=proof, least=6)
    leader, reports = operators.collected(inputs, parameters=agreed)
    late = msgspec.structs.replace(reports[4], sender=5, report_id=bytes(16))
    task = listed(leader)
    total, state = operators.helper.answer(task), leader.save()

    def ended(reports: dict[int, PhoneReport], refused: set[int]) -> npt.NDArray[Any]:
        again = operators.keys.restore(state)
        again.recall(task)
        again.accept(HELPER, total)
        for sender, report in reports.items():
            if sender in refused:
                with pytest.raises(UnexpectedMessageError, match=f"phone {sender}: its report"):
                    again.accept(sender, report)
            else:
                again.accept(sender, report)
        again.advance()
        return again.result()

    beside = reports | {9: msgspec.structs.replace(late, sender=9)}
    np.testing.assert_array_equal(ended(beside, {9}), sum(inputs.values()))
    resealed = msgspec.structs.replace(reports[8], sealed=reports[8].sealed[::-1])
    for bent, refused in (
        (reports | {5: late}, {5, 6, 7, 8}),
        (reports | {8: resealed}, {8}),
        (reports | {8: msgspec.structs.replace(reports[8], public=b"other")}, {8}),
        ({phone: reports[phone] for phone in range(8)}, set()),
    ):
        with pytest.raises(UnexpectedMessageError, match="not those that were listed"):
            ended(bent, refused)


def test_inputs_are_verified_once() -> None:
    """The list has the leader's verifier shares, which its total needs again."""
    operators = Operators()
    inputs = {phone: np.eye(6, dtype=np.int64)[phone % 6] for phone in range(9)}
    agreed = terms(shape=(6,), bound=1, proof=ballot(6, 2), least=6)
    with mock.patch.object(Prio3, "verifiers", autospec=True, side_effect=Prio3.verifiers) as made:
        leader, reports = operators.collected(inputs, parameters=agreed)
        task = listed(leader)
        assert [call.args[1] for call in made.call_args_list] == [Party.LEADER]
        total = operators.helper.answer(task)
        closed(leader, total, reports.items())
    assert [call.args[1] for call in made.call_args_list] == [Party.LEADER, Party.HELPER]


def test_the_leaders_noise_is_in_the_total_as_it_was_drawn(rounds: Rounds) -> None:
    noise, agreed = np.arange(-3, 3, dtype=np.int64), terms()
    total = PlainHalf(agreed).total(rounds.total, noise)
    bare = PlainHalf(agreed).total(rounds.total, np.zeros(6, dtype=np.int64))
    width = 2**agreed.modulus_bits
    np.testing.assert_array_equal((total - bare) % width, noise % width)


def test_a_sum_without_an_offer_in_time_is_over(rounds: Rounds) -> None:
    with pytest.raises(TooManyDropoutsError, match="has not offered this sum in time"):
        rounds.at("offer").advance()


def test_a_phone_is_told_its_own_number(rounds: Rounds) -> None:
    leader = rounds.at("report")
    first, last = opening(leader, 0), opening(leader, 19)
    assert (first.index, last.index) == (0, 19)
    assert first.for_phone(19) == last
    assert first.told_alike == last.told_alike
    assert (last.told_alike.index, last.told_alike.offer) == (0, None)
