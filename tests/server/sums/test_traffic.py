"""What a sum is said to send and to keep is the size of its messages, to the byte."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import lean
from support.examples import examples
from support.operators import NOW, Operators, listed, request, terms, total_of
from support.parameters import discovery_parameters, labelling_parameters
from support.points import AGREES, HeardPoints

from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.api import StartPhase
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import FAILED, PUBLISHED
from earshot_protocol.prio3.shapes import Counts, Norm, ballot
from earshot_protocol.secure_sum.interface import HELPER, SummationName
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.traffic import check_traffic, traffic
from earshot_protocol.two_operators.messages import LARGEST_LIST, AddUp, PhoneReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.refusals import UnwantedOfferError
from earshot_protocol.two_operators.sizes import sizes, total_bytes
from earshot_protocol.wire import LARGEST_ANSWER_BYTES, Matrix, encode
from earshot_server.campaigns.plan import planned
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.forecast import check_possible, phase_bytes
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore


@st.composite
def proofs(draw: st.DrawFn) -> tuple[int, Counts | Norm | None]:
    """Return how many entries an input has, and what is proved of it."""
    kind = draw(st.sampled_from(["none", "ballot", "counts", "norm"]))
    length = draw(st.integers(1, 300))
    if kind == "ballot":
        return length, ballot(length, draw(st.integers(1, length)))
    if kind == "counts":
        width, block = draw(st.integers(1, 5)), draw(st.integers(1, 20))
        total = draw(st.integers(1, block * (2**width - 1)))
        return block * draw(st.integers(1, 10)), Counts(width, total, block)
    return length, Norm() if kind == "norm" else None


@settings(max_examples=examples(20))
@given(proofs(), st.sampled_from([3, 130, 70_000]), st.integers(1, 2**40))
def test_messages_by_two_operators_have_the_stated_sizes(
    shape: tuple[int, Counts | Norm | None], phones: int, bound: int
) -> None:
    length, proof = shape
    agreed = terms(phones=phones, shape=(length,), bound=bound, proof=proof, least=2)
    operators, zeros = Operators(), np.zeros(length, dtype=np.int64)
    last = phones - 1
    leader, reports = operators.collected({0: zeros, 1: zeros, last: zeros}, parameters=agreed)
    assert len(encode(reports[last])) == traffic(agreed).sent == traffic(agreed).largest
    assert len(encode(reports[0])) <= traffic(agreed).sent
    # Of all messages, with as many phones as have reported.
    few = msgspec.structs.replace(agreed, phones=3)
    each, asked = sizes(agreed), listed(leader)
    assert len(asked.reports) == 3 * sum(each.entry) == traffic(few).list
    answer = total_of(operators.helper.answer(asked))
    assert answer.refused == b""
    if proof is not None:
        assert len(encode(answer)) == total_bytes(few) == traffic(few).total
    stored = 3 * len(encode(reports[0])) + len(encode(asked)) + len(encode(answer))
    refused = 0 if proof else 16  # one of three may be refused, as two are enough
    assert traffic(few).server == stored + refused


@pytest.mark.parametrize("refused", [1, 15, 16, 17])  # 16 names have 256 bytes
def test_a_total_has_its_largest_size_if_all_that_may_be_are_refused(refused: int) -> None:
    agreed = terms(phones=20, least=20 - refused)

    def bend(phone: int, report: PhoneReport) -> PhoneReport:
        if phone >= refused:
            return report
        return msgspec.structs.replace(report, sealed=bytes(len(report.sealed)))

    operators = Operators()
    inputs = dict.fromkeys(range(20), np.zeros((3, 2), dtype=np.int64))
    leader, _ = operators.collected(inputs, parameters=agreed, bend=bend)
    answer = total_of(operators.helper.answer(listed(leader)))
    assert len(answer.refused) == 16 * refused
    assert len(encode(answer)) == total_bytes(agreed)


# --------------------------------------------------------------------------------- what is kept


def kept(database: Database) -> int:
    """Bytes of all answers and all tasks of single parties that PostgreSQL holds now."""
    ((answers, tasks),) = database.query(
        "SELECT (SELECT coalesce(sum(octet_length(answer)), 0) FROM answers),"
        " (SELECT coalesce(sum(octet_length(task)), 0) FROM tasks)"
    )
    return int(answers) + int(tasks)


@pytest.mark.parametrize(
    "summation", [SummationName.BELL, SummationName.TWO_OPERATORS], ids=["bell", "operators"]
)
def test_a_store_keeps_as_much_as_was_foretold(
    summation: SummationName, database: Database
) -> None:
    """In the fullest step, and no store of the operators keeps more in any other."""
    parameters = discovery_parameters(
        phones=12,
        dropout=0.0,
        corrupted=0.0,
        summation=summation,
        cells_noise=1.0,
        labels_noise=1.0,
    )
    operators = Operators()
    store = PostgresPhaseStore(database)
    helpers = (operators.identity.public_key().public_bytes_raw(),)
    policy = dataclasses.replace(AGREES, leaders=(operators.keys.identity,), helpers=helpers)
    phones = {
        each: Phone(MemoryStore(), HeardPoints("points", 2), policy, clock=lambda: NOW)
        for each in range(12)
    }
    coordinator = Coordinator.start(store, Optics(), parameters, NOW, leading=operators.keys)
    most, lists, totals = 0, [0], 0
    while coordinator.step not in (PUBLISHED, FAILED):
        if coordinator.state.parameters.plan().asks_helper(coordinator.step):
            task = coordinator.task_for(HELPER)
            answer = operators.helper.answer(task)
            coordinator.accept(HELPER, answer)
            if isinstance(task, AddUp):
                lists.append(len(task.reports))
                totals += len(encode(answer))
        else:
            for number, phone in phones.items():
                given = phone.answer(coordinator.task_for(number))
                assert given is not None
                coordinator.accept(number, given)
        most = max(most, kept(database))
        assert coordinator.advance(NOW + 1)
    assert coordinator.step == PUBLISHED
    foretold = phase_bytes(parameters)
    assert 0.98 * foretold.server < most <= foretold.server
    assert max(lists) + totals == foretold.helper


# -------------------------------------------------------------------------------- what is too much


def norm(length: int) -> TwoOperatorParameters:
    return terms(shape=(length,), proof=Norm())


def plain(length: int) -> TwoOperatorParameters:
    return terms(shape=(length,), bound=2**40)


def votes(samples: int) -> TwoOperatorParameters:
    return terms(shape=(samples, 256), bound=1, proof=Counts(1, 1, 256))


def masked(length: int) -> SumParameters:
    return choose(100, (length,), 2**20, 0.1, 0.05)


@pytest.mark.parametrize("make", [norm, plain, votes, masked])
def test_a_sum_whose_answers_are_too_large_is_refused_and_says_how_many_entries_fit(
    make: Any,
) -> None:
    """At the edge: as many entries as it says fit, and one more does not."""
    step = 256 if make is votes else 1
    sum_of = {norm: 2**20, plain: 2**23, votes: 4096, masked: 2**23}[make]
    with pytest.raises(InvalidParametersError, match=r"so at most \d+ entries") as refused:
        check_traffic(make(sum_of))
    fitting = int(str(refused.value).split("at most ")[1].split()[0]) // step
    check_traffic(make(fitting))
    assert traffic(make(fitting)).largest <= LARGEST_ANSWER_BYTES
    with pytest.raises(InvalidParametersError, match=rf"at most {fitting * step} entries"):
        check_traffic(make(fitting + 1))
    assert traffic(make(fitting + 1)).largest > LARGEST_ANSWER_BYTES


@pytest.mark.parametrize(
    ("proof", "shape", "entry"),
    [(None, (640,), 96), (Norm(), (640,), 1536), (Norm(), (2560,), 2528)],
)
def test_a_crowd_whose_list_is_too_long_is_refused_and_says_how_many_phones_fit(
    proof: Norm | None, shape: tuple[int, ...], entry: int
) -> None:
    most = LARGEST_LIST // entry
    check_traffic(terms(phones=most, shape=shape, proof=proof))
    with pytest.raises(
        InvalidParametersError, match=rf"phones={most + 1}: .* at most {most} phones"
    ):
        check_traffic(terms(phones=most + 1, shape=shape, proof=proof))


def test_all_that_a_list_brings_about_fits_into_the_operators_databases() -> None:
    """PostgreSQL's values have less than 2^30 bytes, SQLite's rows at most 10^9."""
    with closing(sqlite3.connect(":memory:")) as database:
        most = database.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    room = 2**16  # for the rest of a message, and of a row
    assert LARGEST_LIST + room < 2**30
    # A verifier share is shorter than its entry, and a sum of shares than an answer.
    assert LARGEST_LIST + LARGEST_ANSWER_BYTES + room < min(most, 2**30)
    for proof, length in ((Norm(), 2**20 - 50_000), (ballot(64, 1), 64), (Norm(), 640)):
        agreed = terms(shape=(length,), proof=proof)
        agreed = msgspec.structs.replace(agreed, phones=LARGEST_LIST // sum(sizes(agreed).entry))
        assert traffic(agreed).total < LARGEST_LIST + LARGEST_ANSWER_BYTES + room
        assert traffic(agreed).list <= LARGEST_LIST


def test_a_helper_offers_no_sum_whose_list_it_would_not_take() -> None:
    operators = Operators(policy={"largest_crowd": 10**8})
    fits = LARGEST_LIST // 96
    for phones in (fits, fits + 1):
        asked = request(operators.begin(terms(phones=phones)))
        if phones == fits:
            assert operators.helper.answer(asked)
            continue
        with pytest.raises(UnwantedOfferError, match=f"at most {fits} phones"):
            operators.helper.answer(asked)


def labelled(samples: int, labels: int, **changes: Any) -> Parameters:
    points = np.random.default_rng(5).standard_normal((samples, 8)).astype(np.float32)
    return labelling_parameters(
        labels=tuple(f"label {each}" for each in range(labels)),
        samples=Matrix.of(points),
        phones=1000,
        threshold=500.0,
        votes_noise=50.0,
        **changes,
    )


def started(parameters: Parameters) -> StartPhase:
    return StartPhase(parameters=parameters, anyway=True)


def test_more_entries_than_can_be_proved_are_refused_before_a_phase_starts() -> None:
    rows, kinds = 1024, 16  # times 65 numbers
    labels, start = tuple(map(str, range(256))), CentroidSet.of(np.eye(3, 64))
    parameters = discovery_parameters(labels=labels, start=start, kinds=kinds)
    parameters = msgspec.structs.replace(parameters, rows=rows)
    by_two = (SummationName.TWO_OPERATORS, SummationName.TWO_OPERATORS_UNPROVED)
    proved, unproved = (msgspec.structs.replace(parameters, summation=each) for each in by_two)
    check_possible(started(unproved))
    said = r"of \d{7} entries: inputs of at most 1048576 are proved; .*=two-operators-unproved"
    with pytest.raises(InvalidParametersError, match=said):
        check_possible(started(proved))


def test_answers_that_no_server_takes_are_refused_before_a_phase_starts() -> None:
    split, plain = SummationName.TWO_OPERATORS, SummationName.TWO_OPERATORS_UNPROVED
    check_possible(started(labelled(4000, 256, summation=split)))
    check_possible(started(labelled(4096, 256, summation=plain)))
    said = "a sum of 1048576 entries: each phone .* takes 16777216, .*=two-operators-unproved"
    with pytest.raises(InvalidParametersError, match=said):
        check_possible(started(labelled(4096, 256, summation=split)))


def test_a_campaign_whose_lists_are_too_long_is_refused_by_name() -> None:
    campaign = lean(10**7, SummationName.TWO_OPERATORS)
    said = (
        r"^discovery: phones=10000000: .* of a sum of \d{4} entries, .* so at most \d{6} phones; "
        r"without proofs, .* at most 9830400$"
    )
    with pytest.raises(InvalidParametersError, match=said):
        planned(campaign)
