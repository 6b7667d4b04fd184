from __future__ import annotations

import functools
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import textbook_proof
from support.examples import examples
from support.only import forget
from support.textbook_prio3 import CountsBook
from support.textbook_proof import PRIME

from earshot_protocol.distribution import MissingExtraError
from earshot_protocol.errors import (
    InvalidInputError,
    InvalidParametersError,
    MalformedMessageError,
)
from earshot_protocol.prio3 import field, xof
from earshot_protocol.prio3.circuit import Circuit, shortest_chunks
from earshot_protocol.prio3.derivation import Derivation, Party
from earshot_protocol.prio3.field import Arithmetic, Elements
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.prio3.prio3 import (
    InvalidProofError,
    Prio3,
    Received,
    Settled,
    Sharded,
    Verifiers,
    VerifierState,
)
from earshot_protocol.prio3.shapes import ballot

PUBLISHED = Path(__file__).parents[2] / "protocol/prio3_vectors.json"
VECTORS = json.loads(PUBLISHED.read_text("utf-8"))["multihot"]
OF_TWO = [pytest.param(vector, id=str(at)) for at, vector in enumerate(VECTORS) if at != 1]
OF_FOUR = VECTORS[1]


def compiled() -> Arithmetic:
    """The arithmetic that takes a second to load, which is loaded where it is asked for."""
    from earshot_server.proofs.kernels import CompiledArithmetic

    return CompiledArithmetic()


@pytest.fixture(scope="module", params=["compiled", "limbs"])
def engine(request: pytest.FixtureRequest) -> Arithmetic:
    return compiled() if request.param == "compiled" else LimbArithmetic()


KEY, CONTEXT = bytes(range(32)), b"a sum"


def of_ballots(length: int, max_weight: int, **others: Any) -> Prio3:
    """Sum of vectors of zeros and at most some ones."""
    return Prio3(ballot(length, max_weight), length, **others)


COUNT = of_ballots(length=6, max_weight=3, context=CONTEXT)


def described(vector: dict[str, Any], engine: Arithmetic) -> Prio3:
    return of_ballots(
        length=vector["length"],
        max_weight=vector["max_weight"],
        chunk_length=vector["chunk_length"],
        context=bytes.fromhex(vector["ctx"]),
        arithmetic=engine,
    )


NO_SIGNS = np.empty((1, 0, 2, 0), dtype=np.uint8)


def nonce(number: int) -> bytes:
    return number.to_bytes(16)


def reports(shared: list[Sharded]) -> dict[Party, list[Received]]:
    return {
        role: [
            Received(nonce(at), one.public_share, one[1 + role]) for at, one in enumerate(shared)
        ]
        for role in Party
    }


def settled(count: Prio3, held: dict[Party, list[Received]]) -> dict[Party, Settled]:
    """Both operators' results, of verifier shares as each sends them to the other."""
    found = {role: count.verifiers(role, KEY, held[role]) for role in Party}
    sent = {role: [share.tobytes() for share in found[role].shares] for role in Party}
    return {role: count.settle(found[role], sent[Party(1 - role)]) for role in Party}


def total(count: Prio3, results: dict[Party, Settled]) -> npt.NDArray[np.int64]:
    return count.unshard(*(field.encode(results[role].total) for role in Party))


def accepted(results: dict[Party, Settled]) -> list[bool]:
    """What both operators count, who have to agree."""
    leader, helper = (results[role].accepted.tolist() for role in Party)
    assert leader == helper
    return list(leader)


def shares_of(
    count: Prio3, one: Sharded, number: int = 0
) -> dict[Party, tuple[VerifierState, bytes]]:
    return {
        role: count.verifier(role, KEY, nonce(number), one.public_share, one[1 + role])
        for role in Party
    }


def output(count: Prio3, one: Sharded) -> list[int]:
    """A single report's vector, as both output shares add up to it."""
    held = shares_of(count, one)
    message = count.decide(*(held[role][1] for role in Party))
    assert len(message) == count.message_bytes
    parts = [field.encode(count.finish(held[role][0], message)) for role in Party]
    return count.unshard(*parts).tolist()


def forged(count: Prio3, encoded: list[int], number: int = 0) -> Sharded:
    """Shares of whatever a dishonest client encodes, with the proof that is made of it."""
    rand = random.Random(number).randbytes(count.rand_bytes)
    return count._split(field.elements(encoded), _nothing, nonce(number), rand)


def _nothing(_: object) -> Elements:
    return np.empty((0, 2), dtype=np.uint64)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("vector", OF_TWO)
def test_the_draft_s_vectors_are_met_bit_for_bit(
    vector: dict[str, Any], engine: Arithmetic
) -> None:
    count, key = described(vector, engine), bytes.fromhex(vector["verify_key"])
    sums: dict[Party, list[Elements]] = {role: [] for role in Party}
    for report in vector["reports"]:
        number, rand = bytes.fromhex(report["nonce"]), bytes.fromhex(report["rand"])
        shared = count.shard(np.array(report["measurement"]), number, rand)
        assert shared.public_share.hex() == report["public_share"]
        assert [shared.leader_share.hex(), shared.helper_share.hex()] == report["input_shares"]
        states, sent = zip(
            *(
                count.verifier(role, key, number, shared.public_share, shared[1 + role])
                for role in Party
            ),
            strict=True,
        )
        assert [[share.hex() for share in sent]] == report["verifier_shares"]
        message = count.decide(*sent)
        assert [message.hex()] == report["verifier_messages"]
        outputs = [count.finish(state, message) for state in states]
        assert [field.encode(each).hex() for each in outputs] == report["out_shares"]
        for role in Party:
            sums[role].append(outputs[role])
    totals = [field.encode(count.aggregate(sums[role])) for role in Party]
    assert [each.hex() for each in totals] == vector["agg_shares"]
    assert count.unshard(*totals).tolist() == vector["agg_result"]


@pytest.mark.parametrize("vector", OF_TWO)
def test_the_draft_s_vectors_are_met_all_at_once(
    vector: dict[str, Any], engine: Arithmetic
) -> None:
    count, key = described(vector, engine), bytes.fromhex(vector["verify_key"])
    sent = [one["verifier_shares"][0] for one in vector["reports"]]
    for role in Party:
        parts = [
            (one["nonce"], one["public_share"], one["input_shares"][role])
            for one in vector["reports"]
        ]
        found = count.verifiers(role, key, [Received(*map(bytes.fromhex, part)) for part in parts])
        assert [share.tobytes().hex() for share in found.shares] == [pair[role] for pair in sent]
        result = count.settle(found, [bytes.fromhex(pair[1 - role]) for pair in sent])
        assert result.accepted.all()
        assert field.encode(result.total).hex() == vector["agg_shares"][role]


def test_the_draft_s_proof_for_four_aggregators_is_this_one(engine: Arithmetic) -> None:
    """How many shares there are changes neither a proof nor, added up, a verifier."""
    count = described(OF_FOUR, engine)
    circuit, derive = count.circuit, Derivation(count.circuit, count.context)
    (report,) = OF_FOUR["reports"]
    data = bytes.fromhex(report["input_shares"][0])
    whole = field.decode(data[:-32], circuit.encoded_length + circuit.proof_length)[None]
    for number, share in enumerate(report["input_shares"][1:], start=1):
        tags, seed = derive._tags, bytes.fromhex(share)[:32]
        parts = (
            xof.expand([(seed, bytes([number]))], tags[1], circuit.encoded_length),
            xof.expand([(seed, bytes([1, number]))], tags[2], circuit.proof_length),
        )
        whole = engine.add(whole, np.concatenate(parts, axis=1))
    encoded, proof = whole[:, : circuit.encoded_length], whole[:, circuit.encoded_length :]
    assert np.array_equal(encoded[0], circuit.shape.fixed(np.array(report["measurement"])))
    seed = xof.derive_seed(bytes(32), derive._tags[6], bytes.fromhex(report["public_share"]))
    assert [seed.hex()] == report["verifier_messages"]
    joint = derive.joint_randomness([seed])
    seeds = derive.prover_randomness(bytes.fromhex(report["rand"])[-32:])
    assert np.array_equal(circuit.prove(encoded, seeds, joint, engine), proof)
    sent = [bytes.fromhex(share)[:-32] for share in report["verifier_shares"][0]]
    summed = engine.total(
        np.stack([field.decode(share, circuit.verifier_length) for share in sent], axis=1)
    )
    drawn = derive.query_randomness(
        bytes.fromhex(OF_FOUR["verify_key"]), [bytes.fromhex(report["nonce"])]
    )
    halves = (encoded, proof), (np.zeros_like(encoded), np.zeros_like(proof))
    queried = [circuit.query(*half, drawn, joint, NO_SIGNS, engine)[0] for half in halves]
    assert np.array_equal(engine.add(*queried)[0], summed)


@pytest.mark.parametrize(
    ("length", "max_weight", "chunk"), [(1, 1, 1), (5, 2, 3), (7, 4, 2), (9, 9, 20)]
)
def test_proofs_and_verifiers_are_those_of_a_textbook(
    engine: Arithmetic, length: int, max_weight: int, chunk: int
) -> None:
    source = random.Random(length)
    circuit = Circuit(ballot(length, max_weight), length, chunk)
    bits = [1] * max_weight + [0] * (length - max_weight)
    source.shuffle(bits)
    shape = CountsBook(length, 1, max_weight, length)
    encoded = shape.encoded(bits, [])
    assert np.array_equal(circuit.shape.fixed(np.array(bits)), field.elements(encoded))
    seeds, joint, drawn = (
        [source.randrange(PRIME) for _ in range(many)] for many in (2 * chunk, circuit.calls, 3)
    )
    proof = textbook_proof.proof(encoded, [], seeds, joint, chunk)
    made = circuit.prove(*(field.elements(part)[None] for part in (encoded, seeds, joint)), engine)
    assert np.array_equal(made[0], field.elements(proof))
    # Whatever a client sends has a verifier: this share is of nothing at all.
    share = [source.randrange(PRIME) for _ in encoded], [source.randrange(PRIME) for _ in proof]
    for shares, (vector, claimed) in ((2, share), (2, (encoded, proof))):
        held = (field.elements(part)[None] for part in (vector, claimed, drawn, joint))
        found, shown = circuit.query(*held, NO_SIGNS, engine)
        linear = functools.partial(shape.linear, vector, signs=[], shares=shares)
        expected = textbook_proof.verifier(vector, [], claimed, drawn, joint, chunk, linear, shares)
        assert np.array_equal(found[0], field.elements(expected))
        assert shown.all()


@settings(max_examples=examples(30))
@given(
    length=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    crowd=st.integers(0, 6),
    chunk=st.one_of(st.none(), st.integers(1, 50)),
    data=st.data(),
)
def test_honest_vectors_are_counted_and_their_sum_is_plain_addition(
    length: int, seed: int, crowd: int, chunk: int | None, data: st.DataObject
) -> None:
    most = data.draw(st.integers(1, length))
    source = np.random.default_rng(seed)
    rows = np.zeros((crowd, length), dtype=np.int64)
    for row in rows:
        row[source.choice(length, source.integers(most + 1), replace=False)] = 1
    totals = []
    for engine in (compiled(), LimbArithmetic()):
        count = of_ballots(
            length=length, max_weight=most, chunk_length=chunk, context=CONTEXT, arithmetic=engine
        )
        shared = [
            count.shard(row, nonce(at), random.Random(at).randbytes(count.rand_bytes))
            for at, row in enumerate(rows)
        ]
        results = settled(count, reports(shared))
        assert accepted(results) == [True] * crowd
        assert np.array_equal(total(count, results), rows.sum(axis=0))
        totals.append((shared, [field.encode(results[role].total) for role in Party]))
    assert totals[0] == totals[1]


def dishonest() -> dict[str, list[int]]:
    """Encodings of what is no vector of at most three ones of six, by what is wrong with them."""
    found = {
        "a 2": [2, 0, 0, 0, 0, 0, 0, 1],
        "a -1": [-1, 1, 1, 0, 0, 0, 1, 0],
        "a 1 and a -1": [1, -1, 0, 0, 0, 0, 0, 0],
        "a half and a half": [(PRIME + 1) // 2, (PRIME + 1) // 2, 0, 0, 0, 0, 1, 0],
        "a wrong weight": [1, 1, 0, 0, 0, 0, 1, 0],
        "a weight of bits that are none": [1, 1, 1, 1, 0, 0, 0, 2],
        "a negative bit": [0, 0, 0, 0, 0, 0, 2, -1],
    }
    for low, last in itertools.product((0, 1), repeat=2):
        found[f"four ones, claimed as {low} and {last}"] = [1, 1, 1, 1, 0, 0, low, last]
    return found


def test_no_dishonest_vector_is_counted_and_the_honest_ones_beside_it_are(
    engine: Arithmetic,
) -> None:
    count = of_ballots(length=6, max_weight=3, context=CONTEXT, arithmetic=engine)
    rows = np.eye(6, dtype=np.int64)
    cases = dishonest().values()
    shared, honest = [], []
    for at, encoded in enumerate(cases):
        honest.append(rows[at % 6])
        shared += [forged(count, encoded, 2 * at), count.shard(honest[-1], nonce(2 * at + 1))]
    results = settled(count, reports(shared))
    assert accepted(results) == [False, True] * len(cases)
    assert np.array_equal(total(count, results), np.sum(honest, axis=0))


@pytest.mark.parametrize(
    "encoded", [pytest.param(each, id=name) for name, each in dishonest().items()]
)
def test_a_dishonest_vector_is_refused_by_name(encoded: list[int]) -> None:
    held = shares_of(COUNT, forged(COUNT, encoded))
    with pytest.raises(InvalidProofError, match="at most 3 ones"):
        COUNT.decide(*(held[role][1] for role in Party))


def test_the_encodings_that_are_refused_are_so_for_what_they_hold_alone() -> None:
    assert output(COUNT, forged(COUNT, CountsBook(6, 1, 3, 6).encoded([1, 0, 1, 1, 0, 0], []))) == [
        1, 0, 1, 1, 0, 0,
    ]  # fmt: skip


@settings(max_examples=examples(40))
@given(data=st.data(), role=st.sampled_from(Party))
def test_a_changed_input_share_is_not_counted_and_the_others_are(
    data: st.DataObject, role: Party
) -> None:
    rows = np.eye(6, dtype=np.int64)[:3]
    shared = [COUNT.shard(row, nonce(at)) for at, row in enumerate(rows)]
    held = reports(shared)
    spoilt = held[role][1]
    bit = data.draw(st.integers(0, 8 * len(spoilt.input_share) - 1))
    held[role][1] = spoilt._replace(input_share=flipped(spoilt.input_share, bit))
    results = settled(COUNT, held)
    assert accepted(results) == [True, False, True]
    assert total(COUNT, results).tolist() == [1, 0, 1, 0, 0, 0]


@settings(max_examples=examples(40))
@given(bit=st.integers(0, 8 * COUNT.public_share_bytes - 1))
def test_a_changed_public_share_is_not_counted(bit: int) -> None:
    shared = [COUNT.shard(np.ones(6, dtype=np.int64) * (np.arange(6) < 2), nonce(0))]
    changed = [shared[0]._replace(public_share=flipped(shared[0].public_share, bit))]
    assert accepted(settled(COUNT, reports(shared))) == [True]
    held = reports(changed)
    assert accepted(settled(COUNT, held)) == [False]
    # Whose part it is finds it wrong before anything is exchanged; the other cannot.
    theirs = Party(bit // 8 // 32)
    sound = {role: COUNT.verifiers(role, KEY, held[role]).sound.tolist() for role in Party}
    assert sound == {theirs: [False], Party(1 - theirs): [True]}
    with pytest.raises(InvalidProofError, match="does not fit the input share"):
        COUNT.verifier(theirs, KEY, *held[theirs][0])


@pytest.mark.parametrize("at", [0, COUNT.leader_share_bytes // 16 - 3])
def test_an_element_beyond_the_prime_is_not_counted_though_its_part_fits(at: int) -> None:
    """A client may compute the public share of whatever it sends."""
    shared = COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(0))
    share = bytearray(shared.leader_share)
    share[16 * at : 16 * at + 16] = b"\xff" * 16
    (held,) = reports([shared._replace(leader_share=bytes(share))])[Party.LEADER]
    encoded = np.frombuffer(share[:-32], dtype="<u8").reshape(1, -1, 2)
    ours = COUNT._parts(Party.LEADER, [held], encoded[:, : COUNT.circuit.encoded_length])[0]
    held = held._replace(public_share=ours + held.public_share[32:])
    assert COUNT.verifiers(Party.LEADER, KEY, [held]).sound.tolist() == [False]
    with pytest.raises(MalformedMessageError, match="not below the field's prime"):
        COUNT.check(Party.LEADER, held)


@settings(max_examples=examples(40))
@given(data=st.data(), role=st.sampled_from(Party))
def test_a_changed_verifier_share_is_not_counted(data: st.DataObject, role: Party) -> None:
    one = COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(0))
    held = shares_of(COUNT, one)
    sent = [held[each][1] for each in Party]
    bit = data.draw(st.integers(0, 8 * COUNT.verifier_share_bytes - 1))
    sent[role] = flipped(sent[role], bit)
    with pytest.raises((InvalidProofError, MalformedMessageError)):
        COUNT.finish(held[Party(1 - role)][0], COUNT.decide(*sent))
    ours = COUNT.verifiers(Party(1 - role), KEY, reports([one])[Party(1 - role)])
    assert COUNT.settle(ours, [sent[role]]).accepted.tolist() == [False]


def test_another_nonce_context_or_key_is_not_counted() -> None:
    row = np.array([0, 1, 0, 0, 0, 1])
    shared = [COUNT.shard(row, nonce(0))]
    held = reports(shared)
    assert accepted(settled(COUNT, held)) == [True]
    renamed = {role: [each._replace(nonce=nonce(1)) for each in held[role]] for role in Party}
    assert accepted(settled(COUNT, renamed)) == [False]
    elsewhere = of_ballots(length=6, max_weight=3, context=b"another sum")
    assert accepted(settled(elsewhere, held)) == [False]
    found = [COUNT.verifiers(role, bytes([role]) * 32, held[role]) for role in Party]
    assert not COUNT.settle(found[0], [found[1].shares[0].tobytes()]).accepted.any()
    assert not COUNT.settle(found[1], [found[0].shares[0].tobytes()]).accepted.any()


def test_a_verifier_share_of_another_report_is_not_counted() -> None:
    held = reports([COUNT.shard(np.eye(6, dtype=np.int64)[at], nonce(at)) for at in range(2)])
    found = {role: COUNT.verifiers(role, KEY, held[role]) for role in Party}
    swapped = [share.tobytes() for share in found[Party.HELPER].shares[::-1]]
    result = COUNT.settle(found[Party.LEADER], swapped)
    assert not result.accepted.any()
    assert not result.total.any()


def test_a_proof_of_another_bound_proves_nothing_here() -> None:
    """Bounds 2 and 3 have as many bits of weight, so that shares are as long."""
    loose, strict = (of_ballots(length=6, max_weight=most) for most in (3, 2))
    held = reports([loose.shard(np.array([1, 1, 1, 0, 0, 0]), nonce(0))])
    assert loose.leader_share_bytes == strict.leader_share_bytes
    assert accepted(settled(loose, held)) == [True]
    assert accepted(settled(strict, held)) == [False]


def test_whatever_is_malformed_is_not_counted_and_the_others_are(engine: Arithmetic) -> None:
    count = of_ballots(length=6, max_weight=3, context=CONTEXT, arithmetic=engine)
    shared = [count.shard(np.eye(6, dtype=np.int64)[at % 6], nonce(at)) for at in range(9)]
    held = reports(shared)
    leader, helper = held[Party.LEADER], held[Party.HELPER]
    beyond = PRIME.to_bytes(16, "little")
    share = leader[0].input_share
    leader[0] = leader[0]._replace(input_share=share[:-1])
    leader[1] = leader[1]._replace(input_share=b"")
    leader[2] = leader[2]._replace(input_share=beyond + share[16:])
    leader[3] = leader[3]._replace(input_share=share[:-48] + b"\xff" * 16 + share[-32:])
    leader[4] = leader[4]._replace(nonce=bytes(15))
    helper[5] = helper[5]._replace(public_share=bytes(65))
    helper[6] = helper[6]._replace(input_share=bytes(63))
    found = {role: count.verifiers(role, KEY, held[role]) for role in Party}
    assert found[Party.LEADER].sound.tolist() == [False] * 5 + [True] * 4
    assert found[Party.HELPER].sound.tolist() == [True] * 5 + [False] * 2 + [True] * 2
    assert not found[Party.LEADER].shares[:5].any()
    results = settled(count, held)
    assert accepted(results) == [False] * 7 + [True] * 2
    assert total(count, results).tolist() == [0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("spoil", [lambda s: s[:-1], lambda s: s + b"\0", lambda s: b""])
def test_a_verifier_share_of_another_size_is_refused(spoil: Any) -> None:
    one = COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(0))
    held = shares_of(COUNT, one)
    sent = [held[role][1] for role in Party]
    for place in Party:
        changed = [spoil(share) if role == place else share for role, share in enumerate(sent)]
        with pytest.raises(MalformedMessageError, match=r"verifier share of \d+ bytes"):
            COUNT.decide(*changed)
    ours = COUNT.verifiers(Party.LEADER, KEY, reports([one])[Party.LEADER])
    assert not COUNT.settle(ours, [spoil(sent[1])]).accepted.any()
    beyond = PRIME.to_bytes(16, "little") + sent[1][16:]
    with pytest.raises(MalformedMessageError, match="prime"):
        COUNT.decide(sent[0], beyond)
    assert not COUNT.settle(ours, [beyond]).accepted.any()


def test_zeros_do_not_stand_for_what_is_missing() -> None:
    """A verifier of zeros is that of a valid vector, and who sends it may know the rest."""
    size = COUNT.verifier_share_bytes
    zeros = Verifiers(
        shares=np.zeros((1, size), dtype=np.uint8),
        sound=np.array([True]),
        expected=np.zeros((1, 32), dtype=np.uint8),
        output_shares=np.zeros((1, 6, 2), dtype=np.uint64),
    )
    assert COUNT.settle(zeros, [bytes(size)]).accepted.all()
    prime = PRIME.to_bytes(16, "little")  # zero, in other bytes
    for share in (bytes(size - 1), b"", prime + bytes(size - 16)):
        assert not COUNT.settle(zeros, [share]).accepted.any()
    unsound = zeros._replace(sound=np.array([False]))
    assert not COUNT.settle(unsound, [bytes(size)]).accepted.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nonce": bytes(15)}, "nonce of 15 bytes; 16"),
        ({"nonce": bytes(17)}, "nonce of 17 bytes; 16"),
        ({"public_share": bytes(63)}, "public share of 63 bytes; 64"),
        ({"public_share": bytes(65)}, "public share of 65 bytes; 64"),
        ({"input_share": bytes(63)}, "share of 63 bytes"),
        ({"input_share": b""}, "share of 0 bytes"),
    ],
)
@pytest.mark.parametrize("role", Party)
def test_a_part_of_a_report_of_another_size_is_refused(
    role: Party, changes: dict[str, bytes], words: str
) -> None:
    one = COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(0))
    report = reports([one])[role][0]._replace(**changes)
    with pytest.raises(MalformedMessageError, match=words):
        COUNT.verifier(role, KEY, *report)


def test_an_element_beyond_the_prime_is_refused() -> None:
    one = COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(0))
    share = PRIME.to_bytes(16, "little") + one.leader_share[16:]
    with pytest.raises(MalformedMessageError, match="prime"):
        COUNT.verifier(Party.LEADER, KEY, nonce(0), one.public_share, share)


def test_a_message_that_is_not_the_one_decided_is_refused() -> None:
    held = shares_of(COUNT, COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(0)))
    message = COUNT.decide(*(held[role][1] for role in Party))
    for role in Party:
        with pytest.raises(InvalidProofError, match="do not fix"):
            COUNT.finish(held[role][0], flipped(message, 7))
        with pytest.raises(MalformedMessageError, match="message of 31 bytes; 32"):
            COUNT.finish(held[role][0], message[:-1])


def test_a_test_at_a_root_of_unity_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """At such a point the verifier would be an input of the gadget: an entry of the vector."""
    held = reports([COUNT.shard(np.array([1, 0, 0, 0, 1, 0]), nonce(at)) for at in range(3)])
    honest = COUNT.verifiers(Party.LEADER, KEY, held[Party.LEADER])
    draw = Derivation.query_randomness

    def drawn(self: Derivation, key: bytes, nonces: Any) -> Elements:
        found = draw(self, key, nonces).copy()
        found[-1, 2] = field.elements([textbook_proof.root(self.circuit.points)])
        return found

    monkeypatch.setattr(Derivation, "query_randomness", drawn)
    found = COUNT.verifiers(Party.LEADER, KEY, held[Party.LEADER])
    assert found.sound.tolist() == [True, True, False]
    assert np.array_equal(found.shares[:2], honest.shares[:2])
    assert not found.shares[2].any()
    with pytest.raises(InvalidProofError, match="root of unity"):
        COUNT.verifier(Party.LEADER, KEY, *held[Party.LEADER][0])


@pytest.mark.parametrize(
    "measurement",
    [
        np.array([2, 0, 0, 0, 0, 0]),
        np.array([-1, 0, 0, 0, 0, 0]),
        np.array([1, 1, 1, 1, 0, 0]),
        np.array([1, 0, 0, 0, 0]),
        np.array([[1, 0, 0, 0, 0, 0]]),
        np.array([1.0, 0, 0, 0, 0, 0]),
    ],
)
def test_a_client_shares_nothing_that_would_be_refused(measurement: npt.NDArray[Any]) -> None:
    with pytest.raises(InvalidInputError, match="a vector"):
        COUNT.shard(measurement, nonce(0))


def test_our_own_callers_are_told_which_sizes_are_taken() -> None:
    row = np.array([1, 0, 0, 0, 0, 0])
    with pytest.raises(InvalidInputError, match="nonce of 15 bytes; give 16"):
        COUNT.shard(row, bytes(15))
    with pytest.raises(InvalidInputError, match="randomness of 127 bytes; give 128"):
        COUNT.shard(row, nonce(0), bytes(127))
    with pytest.raises(InvalidInputError, match="verify key of 31 bytes; give 32"):
        COUNT.verifiers(Party.LEADER, bytes(31), [])
    ours = COUNT.verifiers(Party.HELPER, KEY, [])
    assert COUNT.settle(ours, []).accepted.shape == (0,)
    with pytest.raises(InvalidInputError, match="1 verifier shares of 0 reports"):
        COUNT.settle(ours, [b""])


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 0},
        {"length": 2**20 + 1},
        {"max_weight": 0},
        {"max_weight": 7},
        {"chunk_length": 0},
        {"context": bytes(2**15 + 1)},
    ],
)
def test_parameters_that_describe_no_sum_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidParametersError):
        of_ballots(**{"length": 6, "max_weight": 3, **changes})


@pytest.mark.parametrize("length", [1, 2, 5, 30, 100, 643])
def test_the_chunks_that_are_taken_make_the_shortest_proof(length: int) -> None:
    for most in {1, min(5, length), length}:
        sizes = {
            chunk: Circuit(ballot(length, most), length, chunk).proof_length
            for chunk in range(1, 2 * length + 3)
        }
        assert sizes[shortest_chunks(ballot(length, most), length)] == min(sizes.values())


@pytest.mark.parametrize(("length", "leader"), [(100, 2400), (640, 12000), (2000, 35136)])
def test_messages_have_the_sizes_that_they_are_said_to_have(length: int, leader: int) -> None:
    count = of_ballots(length=length, max_weight=5)
    one = count.shard(np.zeros(length, dtype=np.int64), nonce(0))
    assert len(one.leader_share) == count.leader_share_bytes == leader
    assert len(one.helper_share) == count.helper_share_bytes == 64
    assert len(one.public_share) == count.public_share_bytes == 64
    found = count.verifiers(Party.HELPER, KEY, reports([one])[Party.HELPER])
    assert found.shares.shape == (1, count.verifier_share_bytes)
    assert len(field.encode(found.output_shares[0])) == 16 * length


def test_shares_are_new_every_time_and_fresh_randomness_is_the_system_s() -> None:
    row = np.array([1, 0, 0, 0, 0, 0])
    one, other = (COUNT.shard(row, nonce(0)) for _ in range(2))
    assert all(a != b for a, b in zip(one, other, strict=True))
    assert output(COUNT, one) == output(COUNT, other) == row.tolist()


def test_noise_of_both_operators_is_in_the_total() -> None:
    rows = np.eye(6, dtype=np.int64)[:2]
    held = reports([COUNT.shard(row, nonce(at)) for at, row in enumerate(rows)])
    results = settled(COUNT, held)
    noise = {
        Party.LEADER: np.arange(6) - 5,
        Party.HELPER: np.array([0, -7, 2**40, 0, 0, 1]),
    }
    noised = [
        field.encode(COUNT.arithmetic.add(results[role].total, field.from_signed(noise[role])))
        for role in Party
    ]
    expected = rows.sum(axis=0) + noise[Party.LEADER] + noise[Party.HELPER]
    assert np.array_equal(COUNT.unshard(*noised), expected)


def test_totals_that_do_not_belong_together_are_refused() -> None:
    results = settled(COUNT, reports([COUNT.shard(np.array([1, 0, 0, 0, 0, 0]), nonce(0))]))
    leader, helper = (field.encode(results[role].total) for role in Party)
    with pytest.raises(MalformedMessageError, match="64 bits"):
        COUNT.unshard(leader, bytes(len(helper)))
    with pytest.raises(MalformedMessageError, match="bytes"):
        COUNT.unshard(leader, helper[:-1])
    with pytest.raises(MalformedMessageError, match="prime"):
        COUNT.unshard(leader, b"\xff" * len(helper))


def test_batches_of_any_number_of_tiles_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = [COUNT.shard(np.eye(6, dtype=np.int64)[at % 6], nonce(at)) for at in range(7)]
    held = reports(shared)
    whole = COUNT.verifiers(Party.HELPER, KEY, held[Party.HELPER])
    monkeypatch.setattr("earshot_protocol.prio3.prio3._TILE", 3 * COUNT.circuit.encoded_length)
    parted = COUNT.verifiers(Party.HELPER, KEY, held[Party.HELPER])
    for one, other in zip(whole, parted, strict=True):
        assert np.array_equal(one, other)


def test_a_description_is_a_value() -> None:
    same = of_ballots(length=6, max_weight=3, context=CONTEXT, arithmetic=LimbArithmetic())
    assert same == COUNT
    assert hash(same) == hash(COUNT)
    assert same != of_ballots(length=6, max_weight=3)


def test_without_pycryptodomex_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    forget("Cryptodome", monkeypatch)
    with pytest.raises(MissingExtraError, match=r"earshot-sensing\[proofs\]"):
        COUNT.shard(np.array([1, 0, 0, 0, 0, 0]), nonce(0))
