"""The helper: what it offers, its one answer, and what each party can do alone."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scipy import stats
from support.operators import (
    NO_NOISE,
    NOW,
    WINDOW,
    Operators,
    another_list,
    closed,
    entries,
    inputs_of,
    listed,
    opening,
    reported,
    request,
    terms,
    total_of,
)

from earshot_protocol.errors import MalformedMessageError, UnexpectedMessageError
from earshot_protocol.messages import (
    Wait,
    decode_helper_answer,
    decode_helper_task,
)
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.prio3.shapes import ballot
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import ZeroConcentrated
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.secure_sum import encoding
from earshot_protocol.two_operators import messages
from earshot_protocol.two_operators.leader import PATIENCE, Leader
from earshot_protocol.two_operators.messages import AddUp, PhoneReport
from earshot_protocol.two_operators.refusals import (
    AnsweredError,
    EarlyListError,
    HelperRefusalError,
    LateListError,
    SmallListError,
    TooManyOffersError,
    UnknownLeaderError,
    UnknownSumError,
    UnwantedOfferError,
    WrongListError,
)
from earshot_protocol.two_operators.shares import unseal
from earshot_protocol.wire import encode
from earshot_server.helper import helper
from earshot_server.helper.book import Book, MemoryBook
from earshot_server.helper.folder import HelperFolder


def after_the_window(
    phones: int = 15, noise: WholeGaussian | WholeLaplace = NO_NOISE, book: Book | None = None
) -> tuple[Operators, Leader, dict[int, PhoneReport]]:
    operators = Operators(book=book or MemoryBook())
    return (operators, *operators.collected(inputs_of(range(phones)), noise))


@pytest.fixture(params=["memory", "disk"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Book]:
    """Both kinds of book."""
    if request.param == "memory":
        yield MemoryBook()
        return
    folder = HelperFolder.make(tmp_path)
    folder.book.begin(NOW)
    yield folder.book
    folder.database.close()


# ------------------------------------------------------------------------------------------ offers


def test_the_same_request_gets_the_same_offer_and_another_none() -> None:
    operators = Operators()
    leader = operators.begin()
    asked = request(leader)
    first = operators.helper.answer(asked)
    operators.now += 5
    assert encode(operators.helper.answer(asked)) == encode(first)
    body = msgspec.structs.replace(asked, task=bytes(32))
    signature = messages.sign(operators.leader, messages.LEADERS_REQUEST, body.body())
    with pytest.raises(UnknownSumError, match="offered to another request"):
        operators.helper.answer(msgspec.structs.replace(body, signature=signature))


def test_messages_to_and_from_a_helper_come_back_as_they_were() -> None:
    operators, leader, _ = after_the_window()
    for task in (request(operators.begin()), listed(leader)):
        assert decode_helper_task(encode(task)) == task
        answer = operators.helper.answer(task)
        assert decode_helper_answer(encode(answer)) == answer


def test_a_leader_that_is_not_served_gets_no_offer() -> None:
    stranger = Operators()
    with pytest.raises(UnknownLeaderError, match="not served here"):
        Operators().helper.answer(request(stranger.begin()))


def test_a_request_that_its_leader_has_not_signed_is_refused() -> None:
    operators = Operators()
    asked = request(operators.begin())
    for bent in (
        msgspec.structs.replace(asked, signature=bytes(64)),
        msgspec.structs.replace(asked, patience=1.0),
        msgspec.structs.replace(asked, parameters=terms(least=9)),
    ):
        with pytest.raises(MalformedMessageError, match="not signed"):
            operators.helper.answer(bent)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"least_reports": 11}, "least=10; at least 11"),
        ({"least_noise": 1e-3}, "noise over bound=.*at least 0.001"),
        ({"largest_window": 999.0}, "window=1000; at most 999"),
        ({"largest_patience": PATIENCE - 1}, "patience=604800; at most 604799"),
        ({"largest_length": 5}, "length=6; at most 5"),
    ],
)
def test_a_sum_against_the_helpers_policy_is_not_offered(
    policy: dict[str, object], says: str
) -> None:
    operators = Operators(policy=policy)
    with pytest.raises(UnwantedOfferError, match=says):
        operators.helper.answer(request(operators.begin()))


def test_no_offer_is_made_for_parameters_that_no_sum_can_have() -> None:
    operators = Operators()
    asked = request(operators.begin())
    bent = msgspec.structs.replace(asked, parameters=terms(least=21))
    signature = messages.sign(operators.leader, messages.LEADERS_REQUEST, bent.body())
    with pytest.raises(UnwantedOfferError, match="no sum can run"):
        operators.helper.answer(msgspec.structs.replace(bent, signature=signature))


def test_a_leader_gets_so_many_offers_a_day_and_no_more() -> None:
    operators = Operators(policy={"offers_a_day": 2})
    for _ in range(2):
        operators.offered()
    with pytest.raises(TooManyOffersError) as caught:
        operators.offered()
    assert caught.value.again
    operators.now += 86_401
    operators.offered()


# ------------------------------------------------------------------------------------ one answer


def test_a_list_is_answered_once_and_the_same_list_in_the_same_bytes(book: Book) -> None:
    operators, leader, reports = after_the_window(noise=WholeLaplace.of(20.0), book=book)
    task = listed(leader)
    first = operators.helper.answer(task)
    assert encode(operators.helper.answer(task)) == encode(first)
    for kept in (entries(task)[:-1], entries(task)[::-1]):
        with pytest.raises(AnsweredError, match="already had another list") as caught:
            operators.helper.answer(another_list(operators, task, b"".join(kept)))
        assert not caught.value.again
    assert closed(leader, first, reports.items()).shape == (3, 2)


def test_the_key_is_gone_before_the_answer_leaves(book: Book) -> None:
    operators, leader, _ = after_the_window(book=book)
    task = listed(leader)
    assert operators.book.secret(task.sum_id) is not None
    operators.helper.answer(task)
    assert operators.book.secret(task.sum_id) is None


def test_a_key_that_a_killed_helper_left_goes_with_the_next_request() -> None:
    operators, leader, _ = after_the_window()
    task = listed(leader)
    secret = operators.book.secret(task.sum_id)
    assert secret is not None
    first = operators.helper.answer(task)
    assert isinstance(operators.book, MemoryBook)
    operators.book._secrets[task.sum_id] = secret
    assert encode(operators.helper.answer(task)) == encode(first)
    assert operators.book.secret(task.sum_id) is None


@pytest.mark.parametrize("moment", ["secret", "answer"])
def test_of_two_processes_that_answer_at_once_one_answers(
    book: Book, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one answers just before this one reads the key, or keeps its total."""
    faster: list[bytes] = []
    call = getattr(book, moment)
    for other in (False, True):
        operators, leader, _ = after_the_window(noise=WholeLaplace.of(20.0), book=book)
        task = listed(leader)
        mine = another_list(operators, task, b"".join(entries(task)[1:])) if other else task

        def overtaken(
            *given: bytes, task: AddUp = task, operators: Operators = operators
        ) -> object:
            if not faster:
                faster.append(b"")
                faster[0] = encode(operators.helper.answer(task))
            return call(*given)

        faster.clear()
        monkeypatch.setattr(book, moment, overtaken)
        if other:
            with pytest.raises(AnsweredError, match="already had another list"):
                operators.helper.answer(mine)
        else:
            assert encode(operators.helper.answer(mine)) == faster[0]
        assert book.secret(task.sum_id) is None


@pytest.mark.parametrize(
    ("bend", "error", "again"),
    [
        (lambda o, task: b"".join(entries(task)[:9]), SmallListError, False),
        (lambda o, task: task.reports + entries(task)[0], WrongListError, False),
        (lambda o, task: b"".join(os.urandom(96) for _ in range(21)), WrongListError, False),
        (lambda o, task: task.reports[:-1], MalformedMessageError, False),
    ],
)
def test_a_refused_list_uses_nothing_up(
    book: Book, bend: Callable[[Operators, AddUp], bytes], error: type[Exception], again: bool
) -> None:
    operators, leader, reports = after_the_window(book=book)
    task = listed(leader)
    with pytest.raises(error) as caught:
        operators.helper.answer(another_list(operators, task, bend(operators, task)))
    assert getattr(caught.value, "again", False) is again
    total = closed(leader, operators.helper.answer(task), reports.items())
    np.testing.assert_array_equal(total, sum(inputs_of(range(15)).values()))


@pytest.mark.parametrize("proved", [False, True])
def test_of_a_sum_one_list_is_opened_even_if_nothing_comes_of_it(
    book: Book, proved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage costs as much time as reports do, and costs it once."""
    agreed = terms(shape=(6,), bound=1, proof=ballot(6, 2)) if proved else terms()
    operators = Operators(book=book)
    leader, _ = operators.collected(
        {phone: np.eye(6, dtype=np.int64)[0].reshape(agreed.shape) for phone in range(15)}
        if proved
        else inputs_of(range(15)),
        parameters=agreed,
    )
    task, tried = listed(leader), list[bytes]()

    def counted(sealed: bytes, *rest: Any) -> bytes | None:
        tried.append(sealed)
        return unseal(sealed, *rest)

    monkeypatch.setattr(helper, "unseal", counted)
    monkeypatch.setattr(helper, "fastest", LimbArithmetic)
    size = len(task.reports) // 15
    garbage = another_list(operators, task, os.urandom(15 * size))
    for _ in range(3):
        with pytest.raises(SmallListError, match="gets no total") as caught:
            operators.helper.answer(garbage)
        assert not caught.value.again
    assert len(tried) == (15 if proved else 6), "the sixth of 15 that does not open leaves 9 of 10"
    assert book.secret(task.sum_id) is None
    with pytest.raises(AnsweredError, match="already had another list"):
        operators.helper.answer(task)


def test_a_list_of_which_just_enough_open_is_answered(book: Book) -> None:
    operators, leader, _ = after_the_window(book=book)
    task = listed(leader)
    spoilt = b"".join([os.urandom(96) for _ in range(5)] + entries(task)[5:])
    total = total_of(operators.helper.answer(another_list(operators, task, spoilt)))
    assert len(total.refused) == 5 * 16


def test_a_list_waits_for_the_windows_end_unless_everybody_is_in_it() -> None:
    operators, leader, _ = after_the_window()
    operators.now -= 500
    with pytest.raises(EarlyListError, match="for 499 seconds more") as caught:
        operators.helper.answer(listed(leader))
    assert caught.value.again
    operators.now += 500
    operators.helper.answer(listed(leader))

    everybody, leader, _ = after_the_window(20)
    everybody.now -= WINDOW
    everybody.helper.answer(listed(leader))


def test_after_its_time_a_list_is_refused_and_the_key_erased(book: Book) -> None:
    operators, leader, _ = after_the_window(book=book)
    operators.now += PATIENCE + 1
    for _ in range(2):
        with pytest.raises(LateListError):
            operators.helper.answer(listed(leader))
        operators.now -= PATIENCE  # a clock put back brings nothing back


def test_a_list_for_no_sum_or_another_offer_is_refused() -> None:
    operators, leader, _ = after_the_window()
    task = listed(leader)
    with pytest.raises(UnknownSumError, match="never offered"):
        operators.helper.answer(msgspec.structs.replace(task, sum_id=bytes(16)))
    other = another_list(operators, msgspec.structs.replace(task, offer=bytes(32)), task.reports)
    with pytest.raises(UnknownSumError, match="another offer"):
        operators.helper.answer(other)


def test_a_list_that_its_leader_has_not_signed_uses_nothing_up(book: Book) -> None:
    operators, leader, _ = after_the_window(book=book)
    task, stranger = listed(leader), Operators(leader=Ed25519PrivateKey.generate())
    for forged in (
        another_list(stranger, task, task.reports),
        msgspec.structs.replace(task, reports=task.reports[96:]),
    ):
        with pytest.raises(MalformedMessageError, match="not signed"):
            operators.helper.answer(forged)
    operators.helper.answer(task)


def test_reports_of_another_sum_or_under_another_id_do_not_open() -> None:
    operators = Operators()
    other = operators.offered()
    foreign = reported(other, 3, inputs_of([3])[3])

    def bend(phone: int, report: PhoneReport) -> PhoneReport:
        if phone == 3:
            return msgspec.structs.replace(report, sealed=foreign.sealed)
        return msgspec.structs.replace(report, report_id=bytes(16)) if phone == 5 else report

    leader, reports = operators.collected(inputs_of(range(15)), bend=bend)
    answer = total_of(operators.helper.answer(listed(leader)))
    assert answer.refused == reports[3].report_id + reports[5].report_id


def test_a_helper_is_asked_for_offers_and_totals_alone() -> None:
    with pytest.raises(UnexpectedMessageError, match="Wait is not a task of a helper"):
        Operators().helper.answer(Wait(seconds=1.0))


def test_every_refusal_has_a_name_of_its_own() -> None:
    names = [error.name for error in HelperRefusalError.__subclasses__()]
    assert len(set(names)) == len(names) == 9


# ------------------------------------------------------------------------------------------- noise


def test_noise_is_drawn_with_the_offer_fresh_for_every_sum_and_of_its_law() -> None:
    operators = Operators()
    noise, length = WholeLaplace.of(2.0), 500
    agreed = terms(shape=(length,), noise=noise)
    drawn = []
    for _ in range(8):
        sum_id = request(operators.begin(agreed)).sum_id
        assert operators.book.secret(sum_id) is None
    for _ in range(8):
        secret = operators.book.secret(opening(operators.offered(agreed)).sum_id)
        assert secret is not None
        drawn.append(np.frombuffer(secret.noise, dtype="<i8"))
    assert len({each.tobytes() for each in drawn}) == 8
    everything, ratio = np.concatenate(drawn), math.exp(-1 / noise.scale)
    values = np.arange(-12, 13)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    counts = np.array([(everything == value).sum() for value in values])
    rest = len(everything) - counts.sum()
    observed, expected = np.append(counts, rest), np.append(law, 1 - law.sum()) * len(everything)
    assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_one_answer_is_all_that_keeps_a_victim_from_a_leader_with_two_lists() -> None:
    """Answered with the same noise, two lists that differ by one phone differ by its input."""
    operators, leader, reports = after_the_window(noise=WholeGaussian.of(10**6))
    task, inputs = listed(leader), inputs_of(range(15))
    agreed = leader.parameters
    secret = operators.book.secret(task.sum_id)
    assert secret is not None
    halves = []
    for kept in (entries(task), entries(task)[1:]):
        answer = total_of(operators.helper.answer(another_list(operators, task, b"".join(kept))))
        halves.append(encoding.unpack(answer.total, agreed))
        assert isinstance(operators.book, MemoryBook)
        # A book that forgets its answer and brings the key back, as a snapshot of a machine would.
        record = operators.book._records[task.sum_id]
        operators.book._records[task.sum_id] = replace(record, reports=None, total=None)
        operators.book._secrets[task.sum_id] = secret
    victim = halves[0] - halves[1] + encoding.unpack(reports[0].share, agreed)
    np.testing.assert_array_equal(encoding.decode(victim, agreed), inputs[0])


def test_what_two_answers_and_a_report_listed_twice_would_cost() -> None:
    """For a promise of ε = 2 at δ = 10⁻⁶ (section 6 of the design)."""

    def epsilon(times: float) -> float:
        return composed_epsilon((ZeroConcentrated(times * rho),), 1e-6)

    low, high = 1e-4, 1.0
    for _ in range(60):
        rho = math.sqrt(low * high)
        low, high = (rho, high) if epsilon(1) < 2 else (low, rho)
    assert epsilon(1) == pytest.approx(2.0, rel=1e-6)
    assert epsilon(2) == pytest.approx(2.92, abs=0.01)  # two answers with fresh noise
    assert epsilon(4) == pytest.approx(4.29, abs=0.01)  # one report twice: twice the distance
    assert epsilon(1 / 2) == pytest.approx(1.375, abs=0.005)  # who sees both operators' noise


def test_invented_phones_leave_a_victim_behind_the_helpers_whole_noise() -> None:
    """A leader lists one phone beside thirteen of its own, whose inputs it knows."""
    noise = WholeGaussian.of(400)
    agreed = terms(shape=(2000,), noise=noise)
    operators = Operators()
    victim = np.full(2000, 7)
    inputs = {0: victim} | {phone: np.zeros(2000, dtype=np.int64) for phone in range(1, 14)}
    leader, reports = operators.collected(inputs, parameters=agreed)
    answer = total_of(operators.helper.answer(listed(leader)))
    known = encoding.unpack(answer.total, agreed).astype(np.int64)
    for report in reports.values():
        known += encoding.unpack(report.share, agreed)
    left = encoding.decode(known.astype(np.uint16), agreed) - victim
    assert left.std() == pytest.approx(20.0, rel=0.15)  # the helper's σ, whatever the crowd
