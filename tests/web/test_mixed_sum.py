"""Phones in Python and in TypeScript in one sum by two operators, with a helper: exact totals."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from support.operators import (
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
    statistics_parameters,
)
from support.web_phone import WebPhone, WebPhoneError

from earshot_protocol.errors import RemoteError
from earshot_protocol.messages import decode_answer
from earshot_protocol.phases.discovery import SumCells, SumLabels
from earshot_protocol.phases.labelling import CheckLabels, LabelSamples
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.phases.statistics import CountContacts
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.secure_sum import encoding
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.two_operators.leader import Leader
from earshot_protocol.two_operators.messages import PhoneReport, SendReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.shares import helper_shares, seal
from earshot_protocol.wire import Matrix, canonical, encode

PHONES = 40
COMMON: dict[str, Any] = {
    "phones": PHONES,
    "dropout": 0.3,
    "corrupted": 0.0,
    "step_seconds": 1000.0,
}
# Each noise is so little that it is 0 but for a chance below 2^-128.
STATISTICS = statistics_parameters(**COMMON, noise=1e-7)
DISCOVERY = discovery_parameters(**COMMON, cells_noise=1e-9, labels_noise=1e-9, rows=2)
LABELLING = labelling_parameters(
    **COMMON, votes_noise=1e-6, check_noise=1e-6, threshold=1.0, largest_weight=3
)
PHASE, CENTROIDS = bytes(range(16)), Matrix.of(np.array([[1.0, 0.5], [-0.5, 1.0]]))
FIRST = SendReport(sum_id=bytes(16), index=0)
SUMS: dict[str, tuple[Parameters, SumPartTask, tuple[int, ...]]] = {
    "histogram": (
        STATISTICS,
        CountContacts(phase=PHASE, parameters=STATISTICS, opening=FIRST),
        (5,),
    ),
    "cells 1": (
        DISCOVERY,
        SumCells(phase=PHASE, repetition=1, parameters=DISCOVERY, opening=FIRST),
        (3, 2),
    ),
    "labels": (
        DISCOVERY,
        SumLabels(phase=PHASE, centroids=CENTROIDS, opening=FIRST),
        (2, 3),
    ),
    "votes": (
        LABELLING,
        LabelSamples(phase=PHASE, parameters=LABELLING, opening=FIRST),
        (3, 2),
    ),
    "check": (LABELLING, CheckLabels(phase=PHASE, proposed=(0, 1, 1), opening=FIRST), (3, 1)),
}


OFFERED = Operators().offered()


@pytest.fixture(scope="module")
def web() -> Iterator[WebPhone]:
    with WebPhone() as phone:
        yield phone


@pytest.mark.parametrize("summation", [name for name in SummationName if name.by_operators])
@pytest.mark.parametrize("name", SUMS)
def test_a_mixed_crowd_with_drop_outs_adds_up_exactly(
    web: WebPhone, name: str, summation: SummationName
) -> None:
    parameters, task, shape = SUMS[name]
    parameters = msgspec.structs.replace(parameters, summation=summation)
    changes = {"parameters": parameters} if getattr(task, "parameters", None) else {}
    task = msgspec.structs.replace(
        task, opening=msgspec.structs.replace(task.opening, sum_id=os.urandom(16)), **changes
    )
    part = parameters.plan().part(name)
    assert isinstance(part, SecureSum)
    agreed = parameters.sum_parameters(part, shape)
    assert isinstance(agreed, TwoOperatorParameters)
    assert (agreed.proof is None) != summation.proved
    told = task.told(parameters)
    operators = Operators()
    leader = operators.keys(task.opening.sum_id, agreed, os.urandom, told)
    leader.accept(HELPER, operators.helper.answer(request(leader)))
    leader.advance()

    generator = np.random.default_rng(len(name))
    stays = generator.permutation(PHONES)[:34]  # of both kinds
    inputs = {int(phone): drawn_input(generator, agreed) for phone in stays}
    assert {phone % 2 for phone in inputs} == {0, 1}
    reports: dict[int, PhoneReport] = {}
    for phone, values in inputs.items():
        offered = opening(leader, phone)
        if phone % 2:
            reports[phone] = ReportingParticipant(offered, values, told).answer(offered)
            continue
        body = encode(msgspec.structs.replace(task, opening=offered))
        names = parameters_of(parameters)
        identities = (operators.keys.identity, operators.identity.public_key().public_bytes_raw())
        assert web.ask("told", body, names) == told.hex()
        assert web.ask("offered", body, names, *identities, operators.now) == []
        assert web.ask("offered", body, names, *reversed(identities), operators.now) != []
        answer = decode_answer(bytes.fromhex(web.ask("report", body, values.reshape(-1).tolist())))
        assert isinstance(answer, PhoneReport)
        reports[phone] = answer
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    operators.now += agreed.window + 1
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(inputs.values()))


def drawn_input(
    generator: np.random.Generator, agreed: TwoOperatorParameters
) -> npt.NDArray[np.int64]:
    """An input as long as one may be: where nothing is proved, of any entries within the bound."""
    match agreed.proof:
        case Norm():
            vector = generator.standard_normal(agreed.shape)
            return np.trunc((GRID - 1) * vector / np.linalg.norm(vector)).astype(np.int64)
        case Counts(width, total, block):
            votes = np.zeros((agreed.length // block, block), dtype=np.int64)
            for row in votes:
                row[generator.integers(block)] = generator.integers(min(total, 2**width - 1) + 1)
            return votes.reshape(agreed.shape)
        case _:
            return generator.integers(-agreed.bound, agreed.bound + 1, agreed.shape)


@pytest.mark.parametrize(("shape", "ones"), [((3, 4), 3), ((5,), 5), ((1,), 1)])
def test_a_mixed_crowd_of_proved_ballots_adds_up_exactly(
    web: WebPhone, shape: tuple[int, ...], ones: int
) -> None:
    operators = Operators()
    leader = operators.offered(
        terms(shape=shape, bound=1, proof=Counts(1, ones, int(np.prod(shape))))
    )
    generator = np.random.default_rng(ones)
    ballots: dict[int, np.ndarray[Any, Any]] = {}
    for phone in range(16):
        chosen = generator.permutation(int(np.prod(shape)))[: phone % (ones + 1)]
        ballots[phone] = np.zeros(shape, dtype=np.int64)
        ballots[phone].reshape(-1)[chosen] = 1
    reports: dict[int, PhoneReport] = {}
    for phone, ballot in ballots.items():
        by = reported if phone % 2 else functools.partial(by_web, web)
        reports[phone] = by(leader, phone, ballot)
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    operators.now += terms().window + 1
    total = closed(leader, operators.helper.answer(listed(leader)), reports.items())
    np.testing.assert_array_equal(total, sum(ballots.values()))


LIES: dict[str, tuple[Counts | Norm, list[int], list[int]]] = {
    # Of each the proof, the entries, and a valid input that the rest of the encoding is of.
    "a vector as long as the grid": (Norm(), [4096, 0, 0, 0, 0, 0], [4095, 90, 9, 3, 0, 0]),
    "a vector a little longer": (Norm(), [1673] * 6, [1672] * 6),
    "a vector of one entry too long": (Norm(), [0, 0, 0, 0, 0, -60_000], [0, 0, 0, 0, 0, -4095]),
    "a ballot with a 2": (Counts(1, 3, 6), [0, 2, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]),
    "a ballot with a −1": (Counts(1, 3, 6), [1, -1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]),
    "a ballot with a one too many": (Counts(1, 3, 6), [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]),
    "two votes on a sample": (Counts(1, 1, 2), [0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0]),
    "a vote of −1": (Counts(2, 3, 2), [0, 0, -1, 1, 0, 0], [0] * 6),
    "a vote of 2 in its lowest bit": (Counts(2, 3, 2), [2, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_of_a_phone_in_typescript_is_refused_by_name_and_all_others_count(
    web: WebPhone, lie: str
) -> None:
    proof, entries, other = LIES[lie]
    operators = Operators()
    leader = operators.offered(terms(bound=GRID, proof=proof))
    generator = np.random.default_rng(len(lie))
    inputs = {phone: drawn_input(generator, leader.parameters) for phone in range(12)}
    reports = {
        phone: reported(leader, phone, values) if phone % 2 else by_web(web, leader, phone, values)
        for phone, values in inputs.items()
    }
    signed = opening(leader).offer
    assert signed is not None
    offer, digest = signed.offer, signed.offer.digest()
    key = X25519PublicKey.from_public_bytes(offer.key)
    inputs[12] = np.array(other).reshape(3, 2)
    for phone, vector in ((12, other), (13, entries)):  # the first tells the truth
        report_id = os.urandom(16)
        made = web.ask(
            *("lied", msgspec.to_builtins(proof), digest, vector, other),
            *(report_id, os.urandom(128)),
        )
        public, share, seed = map(bytes.fromhex, made)
        sealed = seal(seed, key, digest, report_id, public)
        reports[phone] = PhoneReport(
            sum_id=offer.sum_id,
            sender=phone,
            report_id=report_id,
            sealed=sealed,
            share=share,
            public=public,
        )
    for phone, report in reports.items():
        leader.accept(phone, report)
    leader.advance()
    operators.now += WINDOW + 1
    total = total_of(operators.helper.answer(listed(leader)))
    assert total.refused == reports[13].report_id, "the helper names its report"
    leader.accept(HELPER, total)
    named = []
    for phone, report in reports.items():
        try:
            leader.accept(phone, report)
        except RemoteError as error:
            named.append(str(error))
    assert named == ["phone 13: the helper cannot count its report"]
    leader.advance()
    np.testing.assert_array_equal(leader.result(), sum(inputs.values()))


def by_web(web: WebPhone, leader: Leader, phone: int, values: npt.NDArray[np.int64]) -> PhoneReport:
    """The report of a phone in TypeScript."""
    task = CountContacts(phase=PHASE, parameters=STATISTICS, opening=opening(leader, phone))
    answer = decode_answer(bytes.fromhex(web.ask("report", encode(task), values.ravel().tolist())))
    assert isinstance(answer, PhoneReport)
    return answer


def parameters_of(parameters: Parameters) -> bytes:
    return canonical(parameters)


@st.composite
def sums(draw: st.DrawFn) -> tuple[TwoOperatorParameters, np.ndarray[Any, Any]]:
    """Parameters of words of any width, and an input within the bound."""
    fine = draw(st.integers(1, 2**40))
    noise = draw(st.sampled_from([WholeLaplace(fine), WholeGaussian(fine)]))
    shape = draw(st.sampled_from([(1,), (7,), (3, 5), (2, 3, 4), (640,), (16, 41)]))
    parameters = TwoOperatorParameters(
        phones=draw(st.integers(3, 10**6)),
        shape=shape,
        bound=draw(st.integers(0, 38).map(lambda bits: 2**bits)),
        noise=noise,
        least=2,
        window=draw(st.sampled_from([1.0, 0.5, 86_400.0])),
    )
    seed = draw(st.integers(0, 2**32 - 1))
    entries = np.random.default_rng(seed).integers(-parameters.bound, parameters.bound + 1, shape)
    return parameters, entries


@given(case=sums(), seed=st.binary(min_size=32, max_size=32))
def test_shares_are_python_s_at_any_width_and_length(
    web: WebPhone, case: tuple[TwoOperatorParameters, np.ndarray[Any, Any]], seed: bytes
) -> None:
    parameters, values = case
    share = helper_shares((seed,), parameters)
    rest = encoding.encode(values, parameters) - share
    wanted = encoding.pack(rest, parameters.modulus_bits).hex()
    found = web.ask("shares", canonical(parameters), seed, values.reshape(-1).tolist())
    assert found == [[str(word) for word in share.tolist()], wanted]


def test_every_width_of_a_word_is_met(web: WebPhone) -> None:
    generator, seed, widths = np.random.default_rng(5), bytes(range(32)), set()
    for bits in range(57):
        parameters = TwoOperatorParameters(
            phones=3, shape=(21,), bound=2**bits, noise=WholeLaplace(1), least=2, window=1.0
        )
        limit = min(2**bits, 2**53 - 1)
        values = generator.integers(-limit, limit + 1, (21,))
        rest = encoding.encode(values, parameters) - helper_shares((seed,), parameters)
        wanted = encoding.pack(rest, parameters.modulus_bits).hex()
        assert web.ask("shares", canonical(parameters), seed, values.tolist())[1] == wanted
        widths.add(parameters.modulus_bits)
    assert len(widths) > 50


def test_a_defect_is_told_as_one(web: WebPhone) -> None:
    with pytest.raises(WebPhoneError, match="TypeError"):
        web.ask("no such call")
    with pytest.raises(WebPhoneError, match="MalformedMessageError"):
        web.ask("task", b"")
    assert web.ask("repacked", b"\xc0") == ["c0", "c0"]
