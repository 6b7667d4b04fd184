"""The sum by two operators: exact totals, what each half shows, and what phones refuse."""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support.operators import (
    NOW,
    TOLD,
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
    InvalidInputError,
    InvalidParametersError,
    MalformedMessageError,
    RepeatedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.two_operators import messages
from earshot_protocol.two_operators.acceptance import LARGEST_SKEW, refusals_of_offer
from earshot_protocol.two_operators.leader import PATIENCE, Leader
from earshot_protocol.two_operators.messages import (
    Offer,
    OfferMade,
    PhoneReport,
    SendReport,
    SignedOffer,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.refusals import UnknownSumError
from earshot_protocol.two_operators.shares import helper_shares
from earshot_protocol.two_operators.summation import TWO_OPERATORS, check
from earshot_protocol.wire import encode

# -------------------------------------------------------------------------------------- the total


@pytest.mark.parametrize("phones", [100, 1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_total_is_that_of_plain_addition_with_losses_in_any_order(phones: int) -> None:
    order = list(range(phones))
    random.Random(phones).shuffle(order)
    there = order[: phones * 8 // 10]
    inputs = inputs_of(there)
    agreed = terms(phones=phones, least=phones // 2)
    operators = Operators()
    leader, reports = operators.collected(inputs, parameters=agreed)
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(inputs.values()))


@given(
    bound=st.one_of(st.integers(1, 2**10), st.integers(2**20, 2**57)),
    shape=st.lists(st.integers(1, 5), max_size=3).map(tuple),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_totals_of_any_shape_and_width_are_exact(
    bound: int, shape: tuple[int, ...], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    inputs = {phone: generator.integers(-bound, bound + 1, shape) for phone in range(4)}
    operators = Operators()
    agreed = terms(phones=5, shape=shape, bound=bound, least=2)
    leader, reports = operators.collected(inputs, parameters=agreed)
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(inputs.values()))


def test_both_operators_add_their_whole_noise() -> None:
    inputs = inputs_of(range(12))
    noise, length = WholeLaplace.of(3.0), 3000
    agreed = terms(shape=(length,), noise=noise)
    inputs = {phone: np.zeros(length, dtype=np.int64) for phone in inputs}
    operators = Operators()
    leader, reports = operators.collected(inputs, parameters=agreed)
    answer = total_of(operators.helper.answer(listed(leader)))
    total = closed(leader, answer, reports.items())
    one = 2 * 3.0**2 - 1 / 6  # the variance of discrete Laplace noise of scale 3, nearly
    assert total.var() == pytest.approx(2 * one, rel=0.25)
    # The helper's half, less the shares, is its noise alone.
    seeds = sum(
        encoding.unpack(report.share, agreed).astype(np.int64) for report in reports.values()
    )
    words = (encoding.unpack(answer.total, agreed) + seeds.astype(np.uint16)).astype(np.uint16)
    assert encoding.decode(words, agreed).var() == pytest.approx(one, rel=0.25)


def test_a_report_that_does_not_open_is_left_out_of_both_halves() -> None:
    def bend(phone: int, report: PhoneReport) -> PhoneReport:
        return msgspec.structs.replace(report, sealed=bytes(80)) if phone in (3, 7) else report

    inputs, operators = inputs_of(range(14)), Operators()
    leader, reports = operators.collected(inputs, bend=bend)
    answer = total_of(operators.helper.answer(listed(leader)))
    assert answer.refused == reports[3].report_id + reports[7].report_id
    leader.accept(HELPER, answer)
    for phone, report in reports.items():
        if phone in (3, 7):
            with pytest.raises(MalformedMessageError, match=f"phone {phone}: the helper cannot"):
                leader.accept(phone, report)
        else:
            leader.accept(phone, report)
    leader.advance()
    counted = [vector for phone, vector in inputs.items() if phone not in (3, 7)]
    np.testing.assert_array_equal(leader.result(), sum(counted))


def test_a_leader_that_is_restored_between_any_two_rounds_goes_on() -> None:
    operators, inputs = Operators(), inputs_of(range(15))
    leader = operators.begin()
    task = request(leader)
    leader = operators.keys.restore(leader.save())
    leader.accept(HELPER, operators.helper.answer(task))
    leader.advance()
    leader = operators.keys.restore(leader.save(b"")[:])
    reports = {phone: reported(leader, phone, vector) for phone, vector in inputs.items()}
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    operators.now += 2000
    ((party, handed_over),) = leader.tasks()
    assert party == HELPER
    with pytest.raises(WrongStateError, match="handed over"):
        leader.task_for(HELPER)
    leader = operators.keys.restore(leader.save())
    with pytest.raises(WrongStateError, match="handed over"):
        leader.task_for(HELPER)
    answer = operators.helper.answer(handed_over)
    with pytest.raises(WrongStateError, match="handed over"):
        leader.accept(HELPER, answer)
    leader.recall(handed_over)
    total = closed(leader, answer, reports.items())
    np.testing.assert_array_equal(total, sum(inputs.values()))
    np.testing.assert_array_equal(operators.keys.restore(leader.save()).result(), total)


def test_the_same_report_twice_counts_once() -> None:
    operators, inputs = Operators(), inputs_of(range(12))
    leader = operators.offered()
    reports = {phone: reported(leader, phone, vector) for phone, vector in inputs.items()}
    copied = msgspec.structs.replace(reports[3], sender=15)
    everything = [*reports.items(), (15, copied)]
    for phone, report in everything[:-1]:
        leader.accept(phone, report)
    with pytest.raises(RepeatedMessageError, match=r"phone 15: .* identifier of another"):
        leader.accept(15, copied)
    leader.advance()
    operators.now += 2000
    leader.accept(HELPER, operators.helper.answer(listed(leader)))
    for phone, report in everything[:-1]:
        leader.accept(phone, report)
    with pytest.raises(UnexpectedMessageError, match="not in the list"):
        leader.accept(15, copied)
    leader.advance()
    np.testing.assert_array_equal(leader.result(), sum(inputs.values()))


@pytest.mark.parametrize("change", [lambda share: share[:-1], lambda share: share + b"\0"])
def test_a_share_of_another_size_is_refused_where_it_is_counted(
    change: Callable[[bytes], bytes],
) -> None:
    operators, inputs = Operators(), inputs_of(range(12))
    leader, reports = operators.collected(inputs)
    leader.accept(HELPER, operators.helper.answer(listed(leader)))
    for phone, report in reports.items():
        other = msgspec.structs.replace(report, share=change(report.share))
        with pytest.raises(MalformedMessageError):
            leader.accept(phone, other)
        leader.accept(phone, report)
    leader.advance()
    np.testing.assert_array_equal(leader.result(), sum(inputs.values()))


def test_bits_behind_the_last_entry_of_a_share_are_refused_at_arrival() -> None:
    operators, agreed = Operators(), terms(shape=(3,), bound=100)
    assert agreed.length * agreed.modulus_bits % 8
    inputs = {phone: np.full(3, phone, dtype=np.int64) for phone in range(12)}
    leader = operators.offered(agreed)
    reports = {phone: reported(leader, phone, vector) for phone, vector in inputs.items()}
    for phone, report in reports.items():
        marked = report.share[:-1] + bytes([report.share[-1] | 0x80])
        with pytest.raises(MalformedMessageError, match="behind its last entry"):
            leader.accept(phone, msgspec.structs.replace(report, share=marked))
        leader.accept(phone, report)
    leader.advance()
    operators.now += 2000
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(inputs.values()))


# ---------------------------------------------------------------------------- one half says nothing


def test_a_share_is_uniform_whatever_the_input_and_fresh_every_time() -> None:
    leader = Operators().offered(terms(shape=(4000,), bound=1))
    bits = leader.parameters.modulus_bits
    for vector in (np.zeros(4000, dtype=np.int64), np.ones(4000, dtype=np.int64)):
        one, other = (reported(leader, 0, vector) for _ in range(2))
        assert one.report_id != other.report_id
        assert one.sealed != other.sealed
        assert one.share != other.share
        counts = np.bincount(encoding.unpack(one.share, leader.parameters), minlength=2**bits)
        assert len(counts) == 2**bits
        expected = 4000 / 2**bits
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert chi_squared < 2**bits + 8 * np.sqrt(2 * 2**bits)


def test_the_helpers_share_is_the_key_stream_of_its_seed() -> None:
    """The same with primitives of another kind, so that another program can do it."""
    from cryptography.hazmat.primitives import hashes, hmac
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    def by_hand(key: bytes, message: bytes) -> bytes:
        code = hmac.HMAC(key, hashes.SHA256())
        code.update(message)
        return code.finalize()

    seed, info = bytes(range(32)), b"earshot two operators: helper's share"
    extracted = by_hand(bytes(32), seed)
    first = by_hand(extracted, info + b"\1")
    second = by_hand(extracted, first + info + b"\2")
    cipher = Cipher(algorithms.AES256(first), modes.CTR(second[:16])).encryptor()
    agreed = terms(shape=(9,), bound=2**20)
    words = np.frombuffer(cipher.update(bytes(36)), dtype="<u4")
    np.testing.assert_array_equal(helper_shares((seed,), agreed), words)


# ------------------------------------------------------------------------------- a phone's refusals


def resigned(operators: Operators, offer: Offer) -> SignedOffer:
    """Sign an offer by both, as two operators that work together could."""
    return SignedOffer(
        offer=offer,
        helper=messages.sign(operators.identity, messages.HELPERS_OFFER, offer.digest()),
        leader=messages.sign(operators.leader, messages.LEADERS_OFFER, offer.digest()),
    )


GAUSSIAN = terms(noise=WholeGaussian.of(100))


def rules(
    change: Callable[[Operators, Offer], Offer | SignedOffer] = lambda operators, offer: offer,
    *,
    now: float = NOW,
    expected: TwoOperatorParameters = GAUSSIAN,
    known: bool = True,
    told: bytes = TOLD,
) -> list[Rule | None]:
    operators = Operators()
    task = opening(operators.offered(GAUSSIAN))
    assert task.offer is not None
    changed = change(operators, task.offer.offer)
    signed = resigned(operators, changed) if isinstance(changed, Offer) else changed
    keys = operators.keys
    return [
        refused.rule
        for refused in refusals_of_offer(
            msgspec.structs.replace(task, offer=signed),
            expected,
            hashlib.sha256(told).digest(),
            (keys.identity,) if known else (),
            (keys.helper,) if known else (),
            now,
        )
    ]


def with_terms(**changes: object) -> Callable[[Operators, Offer], Offer]:
    def change(operators: Operators, offer: Offer) -> Offer:
        return msgspec.structs.replace(
            offer, parameters=msgspec.structs.replace(offer.parameters, **changes)
        )

    return change


def with_fields(**changes: object) -> Callable[[Operators, Offer], Offer]:
    return lambda operators, offer: msgspec.structs.replace(offer, **changes)


def with_leader_as_helper(operators: Operators, offer: Offer) -> Offer:
    return msgspec.structs.replace(offer, helper=offer.leader)


def test_an_honest_offer_is_accepted_an_hour_before_and_after_its_window() -> None:
    assert rules() == []
    for now in (NOW - LARGEST_SKEW, NOW + 1000 + LARGEST_SKEW):
        assert rules(now=now) == []


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ({"known": False}, Rule.UNKNOWN_HELPER),
        ({"change": with_fields(helper=bytes(32))}, Rule.UNKNOWN_HELPER),
        ({"change": with_leader_as_helper}, Rule.UNKNOWN_HELPER),
        ({"change": with_terms(noise=WholeGaussian.of(99))}, Rule.WEAK_NOISE),
        ({"change": with_terms(noise=WholeLaplace.of(1e6))}, Rule.WEAK_NOISE),
        ({"expected": terms(noise=WholeLaplace.of(5.0))}, Rule.WEAK_NOISE),
        ({"change": with_terms(least=9)}, Rule.TOO_FEW),
        ({"change": with_terms(noise=WholeGaussian.of(101))}, Rule.WRONG_OFFER),
        ({"change": with_terms(least=11)}, Rule.WRONG_OFFER),
        ({"change": with_terms(phones=21)}, Rule.WRONG_OFFER),
        ({"change": with_terms(shape=(6,))}, Rule.WRONG_OFFER),
        ({"change": with_terms(bound=8)}, Rule.WRONG_OFFER),
        ({"change": with_terms(window=1001.0)}, Rule.WRONG_OFFER),
        ({"change": with_fields(sum_id=bytes(16))}, Rule.WRONG_OFFER),
        ({"change": with_fields(version=2)}, Rule.WRONG_OFFER),
        ({"change": with_fields(suite=2)}, Rule.WRONG_OFFER),
        ({"change": with_fields(task=bytes(32))}, Rule.WRONG_OFFER),
        ({"change": with_fields(key=bytes(32))}, Rule.WRONG_OFFER),
        ({"told": b"something else"}, Rule.WRONG_OFFER),
        ({"now": NOW - LARGEST_SKEW - 1}, Rule.CLOSED),
        ({"now": NOW + 1001 + LARGEST_SKEW}, Rule.CLOSED),
        ({"change": with_fields(closes=NOW + 5000)}, Rule.CLOSED),
        ({"change": with_fields(closes=NOW + 1000.01)}, Rule.CLOSED),
    ],
)
def test_an_offer_that_breaks_its_phase_is_refused_by_name(
    asked: dict[str, Any], first: Rule
) -> None:
    assert rules(**asked)[:1] == [first]


def test_an_offer_that_lasts_for_no_number_of_seconds_is_refused_by_both_rules() -> None:
    found = rules(with_terms(window=float("nan")))
    assert found == [Rule.WRONG_OFFER, Rule.CLOSED]


def test_an_offer_of_one_operator_alone_is_refused() -> None:
    """Whoever plays both parts, and is known in both, reads every input."""
    operators = Operators()
    task = opening(operators.offered(GAUSSIAN))
    assert task.offer is not None
    operators.identity = operators.leader
    alone = msgspec.structs.replace(task.offer.offer, helper=task.offer.offer.leader)
    task = msgspec.structs.replace(task, offer=resigned(operators, alone))
    both = (operators.keys.identity,)
    found = list(refusals_of_offer(task, GAUSSIAN, hashlib.sha256(TOLD).digest(), both, both, NOW))
    assert [refused.rule for refused in found] == [Rule.UNKNOWN_HELPER]


@pytest.mark.parametrize("role", ["helper", "leader"])
def test_a_phone_believes_no_offer_without_both_signatures(role: str) -> None:
    def forge(operators: Operators, offer: Offer) -> SignedOffer:
        return msgspec.structs.replace(resigned(operators, offer), **{role: bytes(64)})

    assert rules(forge) == [Rule.WRONG_OFFER]


def test_signatures_of_one_kind_do_not_pass_for_another() -> None:
    def swap(operators: Operators, offer: Offer) -> SignedOffer:
        both = resigned(operators, offer)
        by_leader = messages.sign(operators.leader, messages.HELPERS_OFFER, offer.digest())
        return msgspec.structs.replace(both, leader=by_leader)

    assert rules(swap) == [Rule.WRONG_OFFER]


def test_a_task_without_an_offer_is_refused() -> None:
    task = SendReport(sum_id=bytes(16), index=0)
    refused = list(refusals_of_offer(task, terms(), hashlib.sha256(TOLD).digest(), (), (), NOW))
    assert [each.rule for each in refused] == [Rule.WRONG_OFFER]
    with pytest.raises(UnexpectedMessageError, match="without an offer"):
        ReportingParticipant(task, np.zeros((3, 2), dtype=np.int64))
    with pytest.raises(MalformedMessageError, match="without an offer"):
        _ = task.parameters


# ------------------------------------------------------------------------------- a phone, a leader


def test_a_phone_reports_once_and_keeps_nothing() -> None:
    operators = Operators()
    asked, task = request(operators.begin()), opening(operators.offered(), 4)
    phone = ReportingParticipant(task, np.ones((3, 2), dtype=np.int64))
    assert (phone.round, phone.done) == ("report", False)
    assert phone.answer(task).sender == 4
    assert phone.done
    with pytest.raises(UnexpectedMessageError, match="sent already"):
        phone.answer(task)
    other = ReportingParticipant(task, np.ones((3, 2), dtype=np.int64))
    elsewhere = opening(Operators().offered(), 4)
    for wrong in (elsewhere, msgspec.structs.replace(asked, sum_id=task.sum_id)):
        with pytest.raises(UnexpectedMessageError, match="not requested"):
            other.answer(wrong)
    assert not other.done
    for call in (phone.save, lambda: ReportingParticipant.restore(b"")):
        with pytest.raises(WrongStateError):
            call()


def test_an_input_beyond_the_bound_is_refused() -> None:
    task = opening(Operators().offered())
    with pytest.raises(InvalidInputError, match="exceeds the bound 7"):
        ReportingParticipant(task, np.full((3, 2), 8))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sum_id": bytes(16)}, "phones would refuse: wrong_offer"),
        ({"leader": bytes(32)}, "phones would refuse: unknown_helper"),
        ({"task": bytes(32)}, "phones would refuse: wrong_offer"),
        ({"version": 2}, "phones would refuse: wrong_offer"),
        ({"suite": 2}, "phones would refuse: wrong_offer"),
        ({"key": bytes(32)}, "wrong_offer: anybody can open what is sealed to the key"),
        ({"parameters": terms(least=9)}, "phones would refuse: too_few"),
        ({"parameters": terms(least=11)}, "phones would refuse: wrong_offer"),
        ({"closes": NOW + 999.5, "answer_until": NOW + 999.5 + PATIENCE}, "refuse: closed"),
        ({"closes": math.nan, "answer_until": math.nan}, "another patience"),
        ({"answer_until": NOW + 1000.5 + PATIENCE}, "another patience"),
        ({"answer_until": math.nan}, "another patience"),
    ],
)
def test_a_leader_takes_no_other_offer_than_it_asked_for(
    change: dict[str, object], says: str
) -> None:
    operators = Operators()
    leader = operators.begin()
    made = operators.helper.answer(request(leader))
    assert isinstance(made, OfferMade)
    bent = bent_offer(operators, made, **change)
    for take in (
        partial(operators.keys.check, request(leader), bent, NOW),
        partial(leader.accept, HELPER, bent),
    ):
        with pytest.raises(MalformedMessageError, match=says):
            take()
    with pytest.raises(MalformedMessageError, match="another sum"):
        leader.accept(HELPER, msgspec.structs.replace(made, sum_id=bytes(16)))


def bent_offer(operators: Operators, made: OfferMade, **changes: Any) -> OfferMade:
    """Return what a helper says in place of an offer, and signs."""
    offer = msgspec.structs.replace(made.offer, **changes)
    signature = messages.sign(operators.identity, messages.HELPERS_OFFER, offer.digest())
    return msgspec.structs.replace(made, offer=offer, signature=signature)


@pytest.mark.parametrize("years", [-1, 1, 10, 1000])
def test_a_leader_takes_no_offer_whose_window_is_at_another_time(years: int) -> None:
    """And takes it back then: what was kept is shown to phones however late its step is closed."""
    operators = Operators()
    leader = operators.begin()
    made, away = operators.helper.answer(request(leader)), years * 3e7
    assert isinstance(made, OfferMade)
    moved = {name: getattr(made.offer, name) + away for name in ("opens", "closes", "answer_until")}
    bent = bent_offer(operators, made, **moved)
    with pytest.raises(MalformedMessageError, match=r"closed: .* are not accepted now"):
        operators.keys.check(request(leader), bent, NOW)
    operators.keys.check(request(leader), bent, NOW + away)
    leader.accept(HELPER, bent)


def test_a_leader_takes_offers_of_its_helper_alone() -> None:
    operators, other = Operators(), Operators()
    leader = operators.begin()
    other.leader = operators.leader
    with pytest.raises(MalformedMessageError, match="unknown_helper: this app names no helper"):
        leader.accept(HELPER, other.helper.answer(request(leader)))
    unsigned = msgspec.structs.replace(
        operators.helper.answer(request(leader)), signature=bytes(64)
    )
    with pytest.raises(MalformedMessageError, match="not signed"):
        leader.accept(HELPER, unsigned)
    with pytest.raises(TooManyDropoutsError, match="has not offered this sum in time"):
        leader.advance()


def after_the_window() -> tuple[Operators, Leader, dict[int, PhoneReport]]:
    operators = Operators()
    return (operators, *operators.collected(inputs_of(range(15))))


def signed_anew(operators: Operators, answer: messages.HelperTotal, /, **changes: object) -> object:
    bent = msgspec.structs.replace(answer, **changes)
    signature = messages.sign(operators.identity, messages.HELPERS_TOTAL, bent.body())
    return msgspec.structs.replace(bent, signature=signature)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sum_id": bytes(16)}, "another sum"),
        ({"offer": bytes(32)}, "another offer or list"),
        ({"reports": bytes(32)}, "another offer or list"),
        ({"total": b"1"}, "of 1 bytes"),
        ({"refused": bytes(15)}, "ends within one"),
        ({"refused": bytes(32)}, "refuses a report twice"),
    ],
)
def test_a_total_that_does_not_fit_is_refused(changes: dict[str, object], says: str) -> None:
    operators, leader, _ = after_the_window()
    total = total_of(operators.helper.answer(listed(leader)))
    bent = signed_anew(operators, total, **changes)
    with pytest.raises((MalformedMessageError, UnexpectedMessageError), match=says):
        leader.accept(HELPER, bent)  # type: ignore[arg-type]


def test_a_total_that_the_helper_has_not_signed_is_refused() -> None:
    operators, leader, _ = after_the_window()
    total = total_of(operators.helper.answer(listed(leader)))
    stranger = Operators(identity=Ed25519PrivateKey.generate())
    for bent in (signed_anew(stranger, total), msgspec.structs.replace(total, refused=bytes(16))):
        with pytest.raises(MalformedMessageError, match="not signed"):
            leader.accept(HELPER, bent)  # type: ignore[arg-type]


def test_no_total_comes_of_other_reports_than_those_listed() -> None:
    operators, leader, reports = after_the_window()
    total = operators.helper.answer(listed(leader))
    fewer = list(reports.items())[:-1]
    with pytest.raises(UnexpectedMessageError, match="not those that were listed"):
        closed(leader, total, fewer)


def test_a_helper_that_refuses_whom_nobody_listed_spoils_the_sum_by_name() -> None:
    operators, leader, reports = after_the_window()
    total = total_of(operators.helper.answer(listed(leader)))
    bent = signed_anew(operators, total, refused=bytes(16))
    with pytest.raises(UnexpectedMessageError, match="that was not listed"):
        closed(leader, bent, reports.items())  # type: ignore[arg-type]


def test_a_helper_that_refuses_nearly_all_gets_no_result() -> None:
    """It would read the one report that is left, were it not for the leader's noise and `least`."""
    operators, leader, reports = after_the_window()
    total = total_of(operators.helper.answer(listed(leader)))
    refused = b"".join(report.report_id for report in list(reports.values())[:-1])
    bent = signed_anew(operators, total, refused=refused)
    leader.accept(HELPER, bent)  # type: ignore[arg-type]
    for phone, report in list(reports.items())[:-1]:
        with pytest.raises(MalformedMessageError):
            leader.accept(phone, report)
    leader.accept(14, reports[14])
    with pytest.raises(TooManyDropoutsError, match=r"1 of 20 phones .* at least 10"):
        leader.advance()
    with pytest.raises(WrongStateError, match="no result"):
        leader.result()


def test_a_sum_of_too_few_reports_ends_by_name_and_of_just_enough_does_not() -> None:
    operators = Operators()
    with pytest.raises(TooManyDropoutsError, match=r"9 of 20 phones .* at least 10"):
        operators.collected(inputs_of(range(9)))
    leader, reports = operators.collected(inputs_of(range(10)))
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(inputs_of(range(10)).values()))


def test_a_sum_whose_helper_is_silent_ends_by_name() -> None:
    _, leader, reports = after_the_window()
    for phone, report in reports.items():
        leader.accept(phone, report)
    with pytest.raises(TooManyDropoutsError, match="has not given its total in time"):
        leader.advance()


# -------------------------------------------------------------------------------- before it is kept


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sender": 4}, "phone 3: an answer in the name of 4"),
        ({"sum_id": bytes(16)}, "phone 3: an answer to another sum"),
        ({"share": b"12"}, "of 2 bytes"),
    ],
)
def test_a_report_that_does_not_fit_its_task_is_not_kept(
    change: dict[str, object], says: str
) -> None:
    leader = Operators().offered()
    task, report = opening(leader, 3), reported(leader, 3, np.zeros((3, 2), dtype=np.int64))
    check(task, 3, report, encode(task))
    with pytest.raises((MalformedMessageError, UnexpectedMessageError), match=says):
        check(task, 3, msgspec.structs.replace(report, **change), b"")


def test_a_phone_cannot_answer_in_the_helpers_place() -> None:
    operators = Operators()
    leader = operators.begin()
    offered = operators.helper.answer(request(leader))
    check(request(leader), HELPER, offered, b"")
    leader.accept(HELPER, offered)
    leader.advance()
    with pytest.raises(UnexpectedMessageError, match="OfferMade where PhoneReport is expected"):
        check(opening(leader, 3), 3, offered, b"")
    with pytest.raises(UnexpectedMessageError, match="not expected in the round 'report'"):
        leader.accept(HELPER, offered)


@pytest.mark.parametrize("change", [{"sender": 4}, {"sum_id": bytes(16)}])
def test_a_leader_takes_no_report_of_another_phone_or_sum(change: dict[str, object]) -> None:
    leader = Operators().offered()
    report = reported(leader, 3, np.zeros((3, 2), dtype=np.int64))
    with pytest.raises(UnexpectedMessageError, match="a report of another phone or sum"):
        leader.accept(3, msgspec.structs.replace(report, **change))
    leader.accept(3, report)


def test_a_helpers_answer_is_checked_before_it_is_kept() -> None:
    operators, stranger = Operators(), Operators()
    leader = operators.begin()
    asked, keys = request(leader), operators.keys
    offered = operators.helper.answer(asked)
    keys.check(asked, offered, NOW)
    unsigned = msgspec.structs.replace(offered, signature=bytes(64))
    with pytest.raises(MalformedMessageError, match="not signed"):
        keys.check(asked, unsigned, NOW)
    with pytest.raises(MalformedMessageError, match="another sum"):
        stranger.keys.check(request(stranger.begin()), offered, NOW)
    leader, _ = operators.collected(inputs_of(range(12)))
    task = listed(leader)
    total = total_of(operators.helper.answer(task))
    keys.check(task, total, NOW)
    for wrong in (total.total[::-1], bytes(len(total.total))):
        with pytest.raises(MalformedMessageError, match="not signed"):
            keys.check(task, msgspec.structs.replace(total, total=wrong), NOW)
    for other in ((asked, total), (task, offered)):
        with pytest.raises(UnexpectedMessageError, match="does not answer"):
            keys.check(*other, NOW)


def test_the_noise_of_a_sum_is_drawn_when_it_begins_and_erased_with_its_total() -> None:
    """Its request says by a salted digest which, and nobody can tell anything from that."""
    operators, drawn = Operators(), list[bytes]()

    def watched(size: int) -> bytes:
        drawn.append(os.urandom(size))
        return drawn[-1]

    noisy = terms(noise=WholeLaplace.of(50.0))
    keys = replace(operators.keys, random=watched)
    leader = keys(os.urandom(16), noisy, os.urandom, TOLD)
    noise, salt = leader._state.noise, drawn[-1]
    assert len(salt) == 32
    assert (
        request(leader).commitment
        == hashlib.sha256(b"earshot two operators: leader's noise" + salt + noise).digest()
    )
    before = len(drawn)
    leader.accept(HELPER, operators.helper.answer(request(leader)))
    leader.advance()
    reports = {p: reported(leader, p, v) for p, v in inputs_of(range(20)).items()}
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    operators.now += 1001
    secret = operators.book.secret(leader._state.sum_id)
    assert secret is not None
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    both = sum(np.frombuffer(each, "<i8").reshape(3, 2) for each in (noise, secret.noise))
    np.testing.assert_array_equal(total, sum(inputs_of(range(20)).values()) + both)
    assert len(drawn) == before
    assert noise not in bytes(leader.save())
    assert operators.book.secret(leader._state.sum_id) is None


def test_a_leader_that_is_set_back_has_the_same_noise_or_no_sum() -> None:
    """Whatever moment its state is of: one total, to the last unit."""
    operators = Operators()
    noisy = terms(noise=WholeLaplace.of(50.0))
    leader = operators.begin(noisy)
    states = [bytes(leader.save())]
    leader.accept(HELPER, operators.helper.answer(request(leader)))
    leader.advance()
    states.append(bytes(leader.save()))
    inputs = inputs_of(range(20))
    reports = {phone: reported(leader, phone, vector) for phone, vector in inputs.items()}

    def ended(leader: Leader) -> npt.NDArray[np.int64]:
        for phone, report in reports.items():
            leader.accept(phone, report)
        leader.advance()
        return closed(leader, operators.helper.answer(listed(leader)), reports.items())

    total = ended(leader)
    for state in states:
        again = operators.keys.restore(state)
        if again._state.round == "offer":
            again.accept(HELPER, operators.helper.answer(request(again)))
            again.advance()
        np.testing.assert_array_equal(ended(again), total)
    # A new draw is another request, which is not offered under the same identifier.
    other = operators.keys(leader._state.sum_id, noisy, os.urandom, TOLD)
    with pytest.raises(UnknownSumError, match="was offered to another request"):
        operators.helper.answer(request(other))


def test_inputs_that_are_not_proved_have_no_proof() -> None:
    offer = opening(Operators().offered()).offer
    assert offer is not None
    with pytest.raises(WrongStateError, match="not proved"):
        proof_of(offer.offer)


def test_a_sum_opens_as_all_phones_are_told_it_alike() -> None:
    task = opening(Operators().offered(), 7)
    assert TWO_OPERATORS.open(task.sum_id, terms()) == task.told_alike


def test_a_process_without_keys_leads_no_sum() -> None:
    with pytest.raises(InvalidParametersError, match="needs a helper"):
        TWO_OPERATORS.aggregator(bytes(16), terms(), bytes)
    with pytest.raises(InvalidParametersError, match="needs a helper"):
        TWO_OPERATORS.aggregator.restore(b"")


def test_options_of_commands_are_spelled_as_in_parameters() -> None:
    """Commands make the words of a choice from the names of an enumeration."""
    for each in SummationName:
        assert each.name.lower().replace("_", "-") == each.value
