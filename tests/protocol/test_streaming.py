"""A sum in batches: whatever their size, the same tasks, state and total, and never all at once."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterable
from unittest import mock

import msgspec
import numpy as np
import pytest
from support.driven_sum import COMPLETE, Sum, make_sum

from earshot_protocol.errors import MalformedMessageError, WrongStateError
from earshot_protocol.secure_sum import aggregator as aggregating
from earshot_protocol.secure_sum import mail, tasks, unmasking
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.encoding import add_packed, pack, packed_bytes, unpack
from earshot_protocol.secure_sum.masks import word_type
from earshot_protocol.secure_sum.messages import (
    SEALED_SHARES_BYTES,
    TAG_BYTES,
    AdvertisedKeys,
    MaskedInput,
    MaskInput,
    SharedKeys,
    ShareKeys,
    SumTask,
    Unmask,
)
from earshot_protocol.secure_sum.neighbourhoods import Neighbourhoods
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.secure_sum.rounds import Round

SPARSE = choose(60, (7,), 50, 0.1, 0.0, neighbours=20, statistical_security=10, correctness=10)
GONE = ((3,), (8,), (5,), ())
"""Phones that vanish before they answer a round."""


class Recorded:
    """One real sum: its first state, and all answers of each round in the order of arrival."""

    def __init__(self, current: Sum) -> None:
        self.first = bytes(current.aggregator.save())
        self.answers: list[list[tuple[int, object]]] = []
        present = set(range(current.parameters.phones))
        order = np.random.default_rng(1)
        for vanished in GONE:
            present -= set(vanished)
            arrived = order.permutation(sorted(present)).tolist()
            self.answers.append([(phone, current.answer(phone)) for phone in arrived])
            for phone, answer in self.answers[-1]:
                current.aggregator.accept(phone, answer)  # type: ignore[arg-type]
            current.close()
        self.stayed = sorted(set(range(current.parameters.phones)) - {3, 8, 5})
        self.expected = current.expected(self.stayed)

    def replayed(self) -> tuple[list[object], np.ndarray]:
        """All tasks and saved states on the way, and the total."""
        server, seen = Aggregator.restore(self.first), list[object]()
        for answers in self.answers:
            seen.append([(phone, task) for phone, task in server.tasks()])
            server = Aggregator.restore(server.save())
            for phone, answer in answers:
                server.accept(phone, answer)  # type: ignore[arg-type]
            server.advance()
            seen.append(bytes(server.save()))
        return seen, server.result()


@pytest.fixture(params=[COMPLETE, SPARSE], ids=["complete", "sparse"])
def recorded(
    request: pytest.FixtureRequest,
) -> Recorded:
    return Recorded(make_sum(request.param))


@pytest.mark.parametrize("together", [1, 7, 10**6])
def test_whatever_the_batches_tasks_states_and_total_are_the_same(
    recorded: Recorded, together: int
) -> None:
    whole, total = recorded.replayed()
    assert np.array_equal(total, recorded.expected)
    with (
        mock.patch.object(aggregating, "_BATCH_BYTES", 100 * together),
        mock.patch.object(mail, "_BLOCK_BYTES", 2000 * together),
        mock.patch.object(tasks, "_MADE_TOGETHER", together),
        mock.patch.object(unmasking, "_TOGETHER", together),
    ):
        parts, part_total = recorded.replayed()
    # Blocks of mail are of another size; what is in them, the tasks after them show.
    assert [without_mail(each) for each in parts] == [without_mail(each) for each in whole]
    assert np.array_equal(part_total, total)


def without_mail(seen: object) -> object:
    if not isinstance(seen, bytes):
        return seen
    return {**msgspec.msgpack.decode(seen, strict=False), "mail": None}


def test_tasks_are_those_that_the_answers_make_by_the_book(recorded: Recorded) -> None:
    """By plain dictionaries over the graph, as the protocol is written down."""
    server = Aggregator.restore(recorded.first)
    around_all = server._graph.table().tolist()
    told: list[dict[int, SumTask]] = [dict(after(recorded, n).tasks()) for n in range(4)]
    keys, shared, masked, _ = (dict(answers) for answers in recorded.answers)
    around = {phone: [other for other in around_all[phone] if other in keys] for phone in keys}
    assert told[1].keys() == keys.keys()
    assert told[2].keys() == shared.keys()
    assert told[3].keys() == masked.keys()
    for phone, task in told[1].items():
        assert isinstance(task, ShareKeys)
        assert task.neighbours == tuple(around[phone])
        assert task.public_keys == b"".join(keys[other].public_key for other in around[phone])  # type: ignore[attr-defined]
    for phone, task in told[2].items():
        senders = [other for other in around[phone] if other in shared]
        assert isinstance(task, MaskInput)
        assert task.senders == tuple(senders)
        assert task.ciphertexts == tuple(
            shared[other].ciphertexts[around[other].index(phone)]  # type: ignore[attr-defined]
            for other in senders
        )
    for phone, task in told[3].items():
        senders = [other for other in around[phone] if other in shared]
        assert isinstance(task, Unmask)
        assert task.survivors == tuple(other for other in senders if other in masked)
        assert task.dropped == tuple(other for other in senders if other not in masked)


def after(recorded: Recorded, rounds: int) -> Aggregator:
    """The server's side when so many rounds are closed."""
    server = Aggregator.restore(recorded.first)
    for answers in recorded.answers[:rounds]:
        for phone, answer in answers:
            server.accept(phone, answer)  # type: ignore[arg-type]
        server.advance()
    return server


def test_ciphertexts_that_were_handed_over_are_with_nobody_else(recorded: Recorded) -> None:
    server = after(recorded, 2)
    assert server.round is Round.MASKED_INPUT
    answers = dict(recorded.answers[1])
    around = server._graph.table()[0].tolist()
    one = next(other for other in around if other in answers and 0 in answers)
    ciphertext = next(
        each
        for each in answers[one].ciphertexts  # type: ignore[attr-defined]
        if each in server.task_for(0).ciphertexts  # type: ignore[union-attr]
    )
    assert ciphertext in server.save()
    handed = server.tasks()
    saved = server.save()
    assert ciphertext not in saved
    for holder in (server, Aggregator.restore(saved)):
        with pytest.raises(WrongStateError, match="handed over"):
            holder.task_for(recorded.stayed[0])
    delivered = {each for _, task in handed for each in task.ciphertexts}  # type: ignore[union-attr]
    assert ciphertext in delivered


@pytest.mark.parametrize("parameters", [COMPLETE, SPARSE], ids=["complete", "sparse"])
def test_tables_of_neighbours_are_the_graph_s(parameters: SumParameters) -> None:
    graph = Aggregator(bytes(16), parameters)._graph
    around = Neighbourhoods(graph)
    rows = graph.table().tolist()
    assert around.table.tolist() == rows
    for phone, row in enumerate(rows):
        assert [rows[other].index(phone) for other in row] == around.back[phone].tolist()
    members = np.random.default_rng(2).random(parameters.phones) < 0.7
    for phone, row in enumerate(rows):
        kept = [other for other in row if members[other]]
        assert around.counts(members)[phone] == len(kept)
        places = dict(zip(row, around.places(members)[phone].tolist(), strict=True))
        assert [places[other] for other in kept] == list(range(1, len(kept) + 1))


@pytest.mark.parametrize(
    ("length", "bound"),
    [(1, 1), (5, 100), (1000, 2**20), (33, 2**52), (17, 2**51), (40, 2**58), (70_001, 100)],
)
def test_packed_vectors_are_added_as_unpacked_ones(length: int, bound: int) -> None:
    parameters = choose(20, (length,), bound, 0.05, 0.0)
    bits, word = parameters.modulus_bits, word_type(parameters.modulus_bits)
    random = np.random.default_rng(length)
    vectors = [
        pack(random.integers(0, 2**bits - 1, length, np.uint64, endpoint=True).astype(word), bits)
        for _ in range(9)
    ]
    expected, total = np.full(length, 3, dtype=word), np.full(length, 3, dtype=word)
    for vector in vectors:
        expected += unpack(vector, parameters)
    add_packed(total, vectors, parameters)
    assert np.array_equal(total, expected)


def shared_keys(server: Aggregator, phone: int, neighbours: int) -> SharedKeys:
    """Of the right size; the server cannot tell it from an honest phone's."""
    return SharedKeys(
        sum_id=server.sum_id,
        sender=phone,
        ciphertexts=(bytes(SEALED_SHARES_BYTES),) * neighbours,
        masks=bytes(32 * neighbours + TAG_BYTES),
        commitment=bytes(32),
    )


def at_masked_input(parameters: SumParameters) -> Aggregator:
    server = Aggregator(bytes(16), parameters)
    phones = range(parameters.phones)
    for phone in phones:
        keys = AdvertisedKeys(sum_id=server.sum_id, sender=phone, public_key=os.urandom(32))
        server.accept(phone, keys)
    server.advance()
    for phone in phones:
        server.accept(phone, shared_keys(server, phone, parameters.degree))
    server.advance()
    return server


def inputs(server: Aggregator, vectors: Iterable[bytes]) -> Iterable[tuple[int, MaskedInput]]:
    for phone, vector in enumerate(vectors):
        yield phone, MaskedInput(sum_id=server.sum_id, sender=phone, vector=vector)


def test_memory_does_not_grow_with_the_number_of_masked_vectors() -> None:
    parameters = choose(40, (2**19,), 1000, 0.1, 0.1)
    server = at_masked_input(parameters)
    size = packed_bytes(parameters)
    own = (os.urandom(size - 1) + b"\0" for _ in range(40))
    tracemalloc.start()
    try:
        for phone, answer in inputs(server, own):
            server.accept(phone, answer)
        server.save()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Vector, total, its saved copy, and eight bytes for an eighth of the entries at a time.
    assert 40 * size > 40e6
    assert peak < 12 * size


def test_what_is_refused_within_a_batch_leaves_the_others_as_they_are() -> None:
    parameters = choose(12, (3,), 100, 0.25, 0.1)
    server, size = at_masked_input(parameters), packed_bytes(parameters)
    for phone, answer in inputs(server, [b"\1" + bytes(size - 1)] * 6):
        server.accept(phone, answer)
        late = MaskedInput(sum_id=server.sum_id, sender=phone + 6, vector=bytes(size + 1))
        with pytest.raises(MalformedMessageError, match="bytes"):
            server.accept(phone + 6, late)
    assert server.survivors() == set(range(6))
    total = np.frombuffer(msgspec.msgpack.decode(server.save())["total"], "<u2")
    assert total.tolist() == [6, 0, 0]
