"""Proved inputs in a sum by two operators: who sends another is refused by name, others count."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from support.operators import (
    TOLD,
    WINDOW,
    Operators,
    closed,
    listed,
    opening,
    reported,
    request,
    terms,
    total_of,
)
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)

from earshot_protocol.errors import (
    InvalidInputError,
    MalformedMessageError,
    RemoteError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.phases.learning import LABEL_VOTE
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.prio3.field import elements
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.two_operators import acceptance, messages
from earshot_protocol.two_operators.halves import check_report
from earshot_protocol.two_operators.lists import entries
from earshot_protocol.two_operators.messages import PhoneReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.proofs import available, proof_of
from earshot_protocol.two_operators.refusals import AnsweredError
from earshot_protocol.two_operators.shares import seal
from earshot_protocol.two_operators.summation import check
from earshot_protocol.voting.vectors import quantized
from earshot_server.proofs.engine import fastest

ONES = 2
BALLOTS = terms(shape=(4, 3), bound=1, proof=Counts(1, ONES, 12))
Ballot = npt.NDArray[np.int64]


def ballots(phones: int) -> dict[int, Ballot]:
    generator = np.random.default_rng(7)
    cast = {}
    for phone in range(phones):
        ballot = np.zeros(12, dtype=np.int64)
        ballot[generator.choice(12, generator.integers(0, ONES + 1), replace=False)] = 1
        cast[phone] = ballot.reshape(4, 3)
    return cast


def forged(report: PhoneReport, operators: Operators, ballot: list[int]) -> PhoneReport:
    """Return a report of a vector that the prover's own program would not take."""
    made = decode_helper_answer(next(iter(operators.book._records.values())).offer)
    assert isinstance(made, messages.OfferMade)
    offer = made.offer
    proof, nothing = proof_of(offer), np.zeros(12, dtype=np.int64)
    honest = proof.shape.fixed(nothing)
    vector = honest.copy()
    vector[:12] = elements(ballot)
    public, share, seed = proof._split(
        vector, functools.partial(proof.shape.signed, nothing), report.report_id, bytes(range(128))
    )
    key = X25519PublicKey.from_public_bytes(offer.key)
    sealed = seal(seed, key, offer.digest(), report.report_id, public)
    return msgspec.structs.replace(report, public=public, share=share, sealed=sealed)


@pytest.mark.parametrize("phones", [12, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["of phones", "of servers"])
def test_the_total_is_that_of_plain_addition(phones: int, engine: str) -> None:
    operators = Operators()
    if engine == "of servers":
        operators.arithmetic = fastest
    agreed = msgspec.structs.replace(BALLOTS, phones=max(20, phones))
    leader, reports = operators.collected(ballots(phones), parameters=agreed)
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(ballots(phones).values()))


WRONG: dict[str, list[int]] = {
    "a 2": [2] + [0] * 11,
    "a −1": [-1, 1] + [0] * 10,
    "more ones than there may be": [1] * (ONES + 1) + [0] * (11 - ONES),
    "many": [10**6] + [0] * 11,
}


def refused_by_the_helper(
    bend: Callable[[Operators, PhoneReport], PhoneReport],
) -> tuple[Ballot, list[tuple[int, str]]]:
    """Return the total of fourteen phones, of which number 5 reports something else."""
    operators = Operators()

    def only_five(phone: int, report: PhoneReport) -> PhoneReport:
        return bend(operators, report) if phone == 5 else report

    leader, reports = operators.collected(ballots(14), parameters=BALLOTS, bend=only_five)
    leader.accept(HELPER, operators.helper.answer(listed(leader)))
    named = []
    for phone, report in reports.items():
        try:
            leader.accept(phone, report)
        except MalformedMessageError as error:
            named.append((phone, str(error)))
    leader.advance()
    return np.asarray(leader.result(), dtype=np.int64), named


OTHERS = sum(ballot for phone, ballot in ballots(14).items() if phone != 5)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_a_ballot_is_refused_by_name_and_the_others_count(name: str) -> None:
    total, named = refused_by_the_helper(
        lambda operators, report: forged(report, operators, WRONG[name])
    )
    assert named == [(5, "phone 5: the helper cannot count its report")]
    np.testing.assert_array_equal(total, OTHERS)


@pytest.mark.parametrize("change", [lambda share: share[:-1], lambda share: share + b"\0"])
def test_a_share_of_another_size_is_refused_where_it_is_counted(
    change: Callable[[bytes], bytes],
) -> None:
    operators = Operators()
    leader, reports = operators.collected(ballots(14), parameters=BALLOTS)
    leader.accept(HELPER, operators.helper.answer(listed(leader)))
    for phone, report in reports.items():
        other = msgspec.structs.replace(report, share=change(report.share))
        with pytest.raises(MalformedMessageError, match="a share of"):
            leader.accept(phone, other)
        leader.accept(phone, report)
    leader.advance()
    np.testing.assert_array_equal(leader.result(), sum(ballots(14).values()))


def flipped(report: PhoneReport, part: str) -> PhoneReport:
    data = bytearray(getattr(report, part))
    data[0] ^= 1
    return msgspec.structs.replace(report, **{part: bytes(data)})


def test_a_changed_seal_is_refused_by_name_and_the_others_count() -> None:
    total, named = refused_by_the_helper(lambda operators, report: flipped(report, "sealed"))
    assert named == [(5, "phone 5: the helper cannot count its report")]
    np.testing.assert_array_equal(total, OTHERS)


@pytest.mark.parametrize("part", ["share", "public"])
def test_what_the_leader_cannot_verify_is_refused_by_name_and_not_listed(part: str) -> None:
    operators = Operators()
    leader = operators.offered(BALLOTS)
    reports = {phone: reported(leader, phone, ballot) for phone, ballot in ballots(14).items()}
    with pytest.raises(MalformedMessageError, match=r"^phone 5: .* does not fit the input share"):
        leader.accept(5, flipped(reports.pop(5), part))
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    operators.now += WINDOW + 1
    task = listed(leader)
    ids = [entry.report_id for entry in entries(task.reports, BALLOTS)]
    assert ids == [report.report_id for report in reports.values()]
    total = closed(leader, operators.helper.answer(task), reports.items())
    np.testing.assert_array_equal(total, OTHERS)


def test_a_phone_does_not_cast_what_is_not_a_ballot() -> None:
    task = opening(Operators().offered(BALLOTS))
    for ballot in ([1] * (ONES + 1) + [0] * (11 - ONES), [-1] + [0] * 11):
        phone = ReportingParticipant(task, np.array(ballot).reshape(4, 3), TOLD)
        with pytest.raises(InvalidInputError):
            phone.answer(task)


def test_a_helper_that_changes_a_verifier_share_spoils_the_sum_by_name() -> None:
    operators = Operators()
    leader, reports = operators.collected(ballots(14), parameters=BALLOTS)
    task = listed(leader)
    total = total_of(operators.helper.answer(task))
    changed = bytearray(total.verifiers)
    changed[7] ^= 1
    for verifiers in (bytes(changed), total.verifiers[:-1], b""):
        bent = msgspec.structs.replace(total, verifiers=verifiers)
        signature = messages.sign(operators.identity, messages.HELPERS_TOTAL, bent.body())
        signed = msgspec.structs.replace(bent, signature=signature)
        again = operators.keys.restore(leader.save())
        again.recall(task)
        with pytest.raises(RemoteError, match=r"do not agree on which|without a verifier share"):
            closed(again, signed, reports.items())


def test_a_leader_that_changes_its_verifier_shares_gets_no_report_counted() -> None:
    """And learns the same whatever the phone cast: its list is too small."""
    operators = Operators()
    leader, _ = operators.collected(ballots(14), parameters=BALLOTS)
    task = listed(leader)
    spoiled = bytearray(task.reports)
    size = len(spoiled) // 14
    for entry in range(14):
        spoiled[entry * size + size - 1] ^= 1
    body = messages.list_body(task.offer, bytes(spoiled))
    signature = messages.sign(operators.leader, messages.LEADERS_LIST, body)
    bent = msgspec.structs.replace(task, reports=bytes(spoiled), signature=signature)
    with pytest.raises(RemoteError, match="too few reports of the list open"):
        operators.helper.answer(bent)
    with pytest.raises(AnsweredError):  # which it cannot try again in another way
        operators.helper.answer(task)


def test_the_key_for_proofs_goes_to_the_leader_alone_and_is_fresh() -> None:
    keys = set()
    for _ in range(2):
        operators = Operators()
        leader = operators.begin(BALLOTS)
        made = operators.helper.answer(request(leader))
        assert isinstance(made, messages.OfferMade)
        keys.add(made.verify_key)
        leader.accept(HELPER, made)
        leader.advance()
        assert made.verify_key not in msgspec.msgpack.encode(opening(leader))
        for wrong in (b"", bytes(31)):
            bent = msgspec.structs.replace(made, verify_key=wrong)
            with pytest.raises(MalformedMessageError, match="key for proofs"):
                again(operators, leader, bent)
    assert {len(key) for key in keys} == {32}
    assert len(keys) == 2


def again(operators: Operators, leader: Any, made: messages.OfferMade) -> None:
    state = msgspec.structs.replace(leader._state, round="offer", offer=None)
    operators.keys.restore(msgspec.msgpack.encode(state)).accept(HELPER, made)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"share": b"12"}, "a share of 2 bytes"),
        ({"public": b""}, "a public share of 0 bytes; 64 are expected"),
        ({"sealed": bytes(80)}, "a sealed seed of 80 bytes; 112 are expected"),
    ],
)
def test_a_report_of_another_size_is_not_kept(change: dict[str, bytes], says: str) -> None:
    operators = Operators()
    leader = operators.offered(BALLOTS)
    task = opening(leader, 3)
    report = ReportingParticipant(task, ballots(4)[3], TOLD).answer(task)
    check(task, 3, report, b"")
    with pytest.raises(MalformedMessageError, match=says):
        check(task, 3, msgspec.structs.replace(report, **change), b"")
    plain = opening(operators.offered(terms(shape=(4, 3), bound=1)), 3)
    sent = ReportingParticipant(plain, ballots(4)[3], TOLD).answer(plain)
    with pytest.raises(MalformedMessageError, match="share of 64 bytes; 0 are expected"):
        check(plain, 3, msgspec.structs.replace(sent, public=bytes(64)), b"")


def test_a_phone_without_the_package_refuses_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    task = opening(Operators().offered(BALLOTS))
    monkeypatch.setattr(acceptance, "available", lambda: False)
    digest = hashlib.sha256(TOLD).digest()
    refused = list(acceptance.refusals_of_offer(task, BALLOTS, digest, (), (), 0.0))
    assert refused[0].rule is Rule.PROOFS
    assert "lacks pycryptodomex for that: pip install" in str(refused[0])
    plain = list(acceptance.refusals_of_offer(task, terms(), digest, (), (), 0.0))
    assert Rule.PROOFS not in {each.rule for each in plain}
    assert available()
    monkeypatch.setitem(sys.modules, "Cryptodome", None)
    assert not available()


def test_a_proof_is_worked_out_by_the_engine_that_is_given() -> None:
    task = opening(Operators().offered(BALLOTS))
    assert task.offer is not None
    engine = fastest()
    assert proof_of(task.offer.offer, engine).arithmetic is engine
    assert isinstance(proof_of(task.offer.offer).arithmetic, LimbArithmetic)


VECTORS = terms(shape=(3, 4), bound=GRID, proof=Norm())


def vectors(phones: int) -> dict[int, npt.NDArray[np.int64]]:
    """Vectors almost as long as they may be, with negative entries."""
    drawn = np.random.default_rng(5).standard_normal((phones, 3, 4))
    return {
        phone: quantized(vector / np.linalg.norm(vector) * 0.9999)
        for phone, vector in enumerate(drawn)
    }


def test_a_vector_that_is_too_long_is_left_out_and_all_others_add_up() -> None:
    operators, sent = Operators(), vectors(14)
    lies = {1: [GRID] + [0] * 11, 5: [0] * 11 + [-5000], 8: [2000] * 12, 11: [2**62] + [0] * 11}

    def bend(phone: int, report: PhoneReport) -> PhoneReport:
        return forged(report, operators, lies[phone]) if phone in lies else report

    leader, reports = operators.collected(sent, parameters=VECTORS, bend=bend)
    answer = total_of(operators.helper.answer(listed(leader)))
    assert answer.refused == b"".join(reports[phone].report_id for phone in lies)
    leader.accept(HELPER, answer)
    for phone, report in reports.items():
        if phone in lies:
            with pytest.raises(MalformedMessageError, match=f"phone {phone}: the helper cannot"):
                leader.accept(phone, report)
        else:
            leader.accept(phone, report)
    leader.advance()
    honest = sum(vector for phone, vector in sent.items() if phone not in lies)
    np.testing.assert_array_equal(leader.result(), honest)


@pytest.mark.parametrize("public", [bytes(64), bytes(127), bytes(128)])
def test_a_vector_with_another_public_share_is_not_listed(public: bytes) -> None:
    leader = Operators().offered(VECTORS)
    task = opening(leader)
    report = reported(leader, 0, vectors(1)[0])
    assert task.offer is not None
    with pytest.raises(MalformedMessageError, match="phone 0: "):
        check_report(0, msgspec.structs.replace(report, public=public), task.offer.offer)


def heavy(**changes: Any) -> Parameters:
    """Of a phase in which a phone may cast three votes."""
    return labelling_parameters(largest_weight=3, **changes)


@pytest.mark.parametrize(
    ("make", "part", "shape", "wanted"),
    [
        (learning_parameters, LABEL_VOTE, (4, 2), Counts(1, 2, 8)),
        (learning_parameters, LABEL_VOTE, (1, 1), Counts(1, 1, 1)),
        (discovery_parameters, "labels", (4, 64), Norm()),
        (statistics_parameters, "histogram", (9,), Norm()),
        (labelling_parameters, "votes", (5, 3), Counts(1, 1, 3)),
        (labelling_parameters, "check", (5, 1), Counts(1, 1, 1)),
        (heavy, "votes", (5, 3), Counts(2, 3, 3)),
        (heavy, "check", (5, 1), Counts(2, 3, 1)),
    ],
)
def test_what_a_phone_proves_follows_from_the_mechanism(
    make: Callable[..., Parameters], part: str, shape: tuple[int, ...], wanted: Counts | Norm
) -> None:
    proved = make(summation=SummationName.TWO_OPERATORS)
    proved.check_feasible()
    planned = proved.plan().part(part)
    assert isinstance(planned, SecureSum)
    agreed = proved.sum_parameters(planned, shape)
    assert isinstance(agreed, TwoOperatorParameters)
    assert agreed.proof == wanted
    plain = make(summation=SummationName.TWO_OPERATORS_UNPROVED).sum_parameters(planned, shape)
    assert isinstance(plain, TwoOperatorParameters)
    assert plain.proof is None


def test_another_answer_than_a_ballots_total_is_refused() -> None:
    operators = Operators()
    leader, _ = operators.collected(ballots(14), parameters=BALLOTS)
    total = total_of(operators.helper.answer(listed(leader)))
    bent = msgspec.structs.replace(total, total=total.total[:-1])
    signature = messages.sign(operators.identity, messages.HELPERS_TOTAL, bent.body())
    with pytest.raises((MalformedMessageError, UnexpectedMessageError)):
        leader.accept(HELPER, msgspec.structs.replace(bent, signature=signature))
