from __future__ import annotations

import math
import random
import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)

from earshot_protocol.errors import InvalidInputError, MalformedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import AnyAnswer, AnyTask, Failed, Wait, decode_answer, decode_task
from earshot_protocol.phases.discovery import (
    MOST_KINDS,
    MOST_ROWS,
    Discovered,
    SumCells,
    SumLabels,
)
from earshot_protocol.phases.labelling import CheckLabels, Labelled, LabelSamples
from earshot_protocol.phases.learning import (
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    Result,
    TopCentroids,
)
from earshot_protocol.phases.statistics import CountContacts, Statistics
from earshot_protocol.secure_sum.messages import (
    SEALED_SHARES_BYTES,
    AdvertisedKeys,
    AdvertiseKeys,
    MaskedInput,
    MaskInput,
    SharedKeys,
    ShareKeys,
    Unmask,
    Unmasked,
)
from earshot_protocol.secure_sum.parameters import choose
from earshot_protocol.two_operators.messages import PhoneReport
from earshot_protocol.wire import LARGEST_ROWS, Answer, Matrix, Task, canonical, encode

ID = bytes(range(16))
PARAMETERS = learning_parameters(labels=("bus", "café"))
COUNTING = statistics_parameters(labels=("bus", "café"))
FINDING = discovery_parameters(labels=("bus", "café"))
LABELLING = labelling_parameters(labels=("bus", "café"))
MATRIX = Matrix.of(np.array([[0.5, -1.0], [3.0, 4.0]], dtype=np.float32))
OPENING = AdvertiseKeys(sum_id=ID, index=3, parameters=choose(100, (2, 3), 50, 0.1, 0.05))
SEALED = bytes(SEALED_SHARES_BYTES)
LARGEST = MOST_ROWS * MOST_KINDS
"""Most prototypes: 256 labels and 4,096 choices, of 16 kinds each."""

TASKS: list[Task] = [
    Cluster(phase=ID, index=3, parameters=PARAMETERS),
    GlobalCentroids(phase=ID, centroids=MATRIX, opening=OPENING),
    TopCentroids(phase=ID, centroids=MATRIX, opening=OPENING),
    CountContacts(phase=ID, parameters=COUNTING, opening=OPENING),
    SumCells(phase=ID, repetition=1, parameters=FINDING, opening=OPENING),
    SumLabels(phase=ID, centroids=MATRIX, kinds=(1, 0), opening=OPENING),
    ShareKeys(sum_id=ID, neighbours=(1, 2), public_keys=bytes(64)),
    MaskInput(sum_id=ID, senders=(1, 2), ciphertexts=(SEALED, SEALED)),
    Unmask(sum_id=ID, survivors=(1,), dropped=(2,)),
    Wait(seconds=1.5),
    Result(
        phase=ID,
        geometry=Geometry.SPHERICAL,
        centroids=MATRIX,
        labels=(1, -1),
        label_names=("bus", "café"),
        centroid_votes=(5, -2),
        label_votes=((1, 2), (0, -3)),
        centroid_p_values=(0.01, 1.0),
        name_p_values=(0.04, 1.0),
        encoder="contrast-3",
        privacy=PARAMETERS.plan().releases(),
    ),
    Statistics(
        phase=ID,
        label_names=("bus", "café"),
        labelled=(7.5, -1.0),
        named=(0.0, 2.25),
        unknown=3.0,
        labelled_p_values=(0.2, 1.0),
        named_p_values=(1.0, 1.0),
        unknown_p_value=0.5,
        deviation=4.5,
        contacts=5,
        phones=97,
        privacy=COUNTING.plan().releases(),
    ),
    Discovered(
        phase=ID,
        geometry=Geometry.SPHERICAL,
        centroids=MATRIX,
        labels=(1, 0),
        choices=("", "tram"),
        label_names=("bus", "café"),
        name_p_values=(0.04, 0.0),
        cells=MATRIX,
        moved=(True, False),
        cell_lengths=(12.5, 0.0),
        lengths=(2.5, 3.0),
        cell_prototypes=(0, 1),
        radius=0.5,
        refused=0.25,
        encoder="contrast-3",
        privacy=FINDING.plan().releases(),
    ),
    LabelSamples(phase=ID, parameters=LABELLING, opening=OPENING),
    CheckLabels(phase=ID, proposed=(1, 0), opening=OPENING),
    Labelled(
        phase=ID,
        geometry=Geometry.SPHERICAL,
        centroids=MATRIX,
        labels=(1, -1),
        label_names=("bus", "café"),
        label_votes=((5, 92), (40, -2)),
        agreement=(88, 37),
        threshold=50.0,
        name_p_values=(0.0004, 1.0),
        encoder="contrast-3",
        privacy=LABELLING.plan().releases(),
    ),
    Failed(phase=ID, reason="too few phones"),
]
ANSWERS: list[Answer] = [
    LocalCentroids(phase=ID, sender=3, centroids=MATRIX),
    AdvertisedKeys(sum_id=ID, sender=3, public_key=b"\1" * 32),
    SharedKeys(sum_id=ID, sender=3, ciphertexts=(SEALED,), masks=bytes(48), commitment=bytes(32)),
    MaskedInput(sum_id=ID, sender=3, vector=b"12345"),
    Unmasked(sum_id=ID, sender=3, shares=bytes(66), traces=bytes(8)),
    PhoneReport(sum_id=ID, sender=3, report_id=ID, sealed=bytes(80), share=b"12345"),
]


def names(union: Any) -> set[str]:
    return {member.__name__ for member in union.__args__}


def test_every_message_is_covered_here() -> None:
    assert {type(task).__name__ for task in TASKS} == names(AnyTask)
    assert {type(answer).__name__ for answer in ANSWERS} == names(AnyAnswer)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_a_task_comes_back_as_it_was_and_is_no_answer(task: Task) -> None:
    encoded = encode(task)
    assert decode_task(encoded) == task
    with pytest.raises(MalformedMessageError, match="not a message"):
        decode_answer(encoded)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_comes_back_as_it_was_and_is_no_task(answer: Answer) -> None:
    encoded = encode(answer)
    assert decode_answer(encoded) == answer
    with pytest.raises(MalformedMessageError, match="not a message"):
        decode_task(encoded)


OF = {type(task): task for task in TASKS}
MAY_LACK = {
    Cluster: {"choices"},
    CountContacts: {"choices"},
    SumCells: {"parameters", "choices", "centroids"},
    SumLabels: {"parameters", "choices", "centroids", "kinds"},
    LabelSamples: {"choices"},
    Statistics: {"confusion", "since", "until"},
    Discovered: {"radius"},
    PhoneReport: {"public"},
}
"""Fields that stand in some messages of a kind only: in the first task of a phase, or in later
ones; where labels have choices, or contacts a window; in sums with a confusion matrix; in reports
of proved inputs."""


def test_cells_have_the_names_of_their_prototypes() -> None:
    found = OF[Discovered]
    assert isinstance(found, Discovered)
    assert found.names == ("café", "bus")
    assert found.cell_labels == (1, 0), "each cell lies at a prototype"
    assert found.cell_owners == (0, 1)
    other = msgspec.structs.replace(found, cell_prototypes=(1, -1))
    assert other.cell_labels == (0, -1)
    assert other.cell_owners == (1, None)
    doubtful = msgspec.structs.replace(found, name_p_values=(0.5, 0.01))
    assert doubtful.cell_labels == (-1, 0), "what may be noise names nothing"


@pytest.mark.parametrize("message", TASKS + ANSWERS, ids=lambda message: type(message).__name__)
def test_fields_are_neither_added_nor_left_out(message: Task | Answer) -> None:
    plain = msgspec.msgpack.decode(encode(message))
    decode = decode_task if type(message) in AnyTask.__args__ else decode_answer
    needed = plain.keys() - MAY_LACK.get(type(message), set())
    for changed in (
        *({k: v for k, v in plain.items() if k != name} for name in needed),
        plain | {"extra": 1},
        plain | {"type": "something else"},
    ):
        with pytest.raises(MalformedMessageError):
            decode(msgspec.msgpack.encode(changed))


@pytest.mark.parametrize(
    ("message", "field", "value"),
    [
        (ANSWERS[0], "phase", bytes(15)),
        (ANSWERS[0], "sender", -1),
        (ANSWERS[0], "sender", 2**32),
        (ANSWERS[0], "sender", "3"),
        (ANSWERS[1], "sum_id", bytes(17)),
        (ANSWERS[1], "public_key", bytes(31)),
        (ANSWERS[1], "public_key", bytes(33)),
        (ANSWERS[2], "masks", bytes(32 * 254 + 17)),
        (ANSWERS[2], "ciphertexts", (SEALED[:-1],)),
        (ANSWERS[2], "ciphertexts", (SEALED,) * 255),
        (ANSWERS[2], "commitment", bytes(31)),
        (ANSWERS[4], "shares", bytes(33 * 254 + 1)),
        (ANSWERS[4], "traces", bytes(8 * 254 + 1)),
        (OF[ShareKeys], "neighbours", tuple(range(255))),
        (OF[ShareKeys], "public_keys", bytes(32 * 254 + 1)),
        (OF[Wait], "seconds", -1.0),
        (OF[Wait], "seconds", float("nan")),
        (OF[Wait], "seconds", float("inf")),
        (OF[Result], "labels", (-2,)),
        (OF[Result], "labels", (256,)),
        (OF[Result], "labels", (0,) * 4097),
        (OF[Result], "label_names", ("",)),
        (OF[Result], "label_names", ("bus",) * 257),
        (OF[Result], "centroid_votes", (0,) * 4097),
        (OF[Result], "label_votes", ((),) * 4097),
        (OF[Result], "label_votes", ((0,) * 257,)),
        (OF[Result], "name_p_values", (1.01,)),
        (OF[Result], "name_p_values", (float("nan"),)),
        (OF[Result], "centroid_p_values", (-0.01,)),
        (OF[Result], "centroid_p_values", (0.5,) * 4097),
        (OF[Statistics], "named_p_values", (float("nan"),)),
        (OF[Statistics], "unknown_p_value", 1.01),
        (OF[Statistics], "labelled", (float("inf"),)),
        (OF[Statistics], "deviation", -0.5),
        (OF[Statistics], "labelled_p_values", (0.5,) * 257),
        (OF[SumCells], "repetition", 0),
        (OF[SumCells], "repetition", 4),
        (OF[SumLabels], "kinds", (-1,)),
        (OF[SumLabels], "kinds", (16,)),
        (OF[SumLabels], "kinds", (0,) * 1025),
        (OF[Discovered], "labels", (-1,)),
        (OF[Discovered], "labels", (0,) * (LARGEST + 1)),
        (OF[Discovered], "choices", ("",) * (LARGEST + 1)),
        (OF[Discovered], "choices", ("x" * 65,)),
        (OF[Discovered], "choices", ("a\nb",)),
        (OF[Discovered], "cell_lengths", (-0.1,)),
        (OF[Discovered], "cell_lengths", (float("nan"),)),
        (OF[Discovered], "cell_lengths", (0.0,) * 1025),
        (OF[Discovered], "lengths", (float("inf"),)),
        (OF[Discovered], "lengths", (math.nextafter(1e12, 2e12),)),
        (OF[Discovered], "lengths", (0.0,) * (LARGEST + 1)),
        (OF[Discovered], "name_p_values", (0.5,) * (LARGEST + 1)),
        (OF[Discovered], "cell_prototypes", (-2,)),
        (OF[Discovered], "cell_prototypes", (69_632,)),
        (OF[Discovered], "radius", -0.1),
        (OF[Discovered], "radius", 2.01),
        (OF[Discovered], "radius", float("nan")),
        (OF[Discovered], "refused", -0.01),
        (OF[Discovered], "refused", 1.01),
        (OF[Discovered], "refused", float("nan")),
        (OF[Discovered], "moved", (2,)),
        (OF[Discovered], "moved", (True,) * 1025),
        (OF[Discovered], "name_p_values", (float("nan"),)),
        (OF[Discovered], "encoder", "x" * 1025),
        (OF[Failed], "reason", "x" * 1025),
    ],
)
def test_sizes_and_ranges_are_limited(message: Any, field: str, value: Any) -> None:
    plain = msgspec.msgpack.decode(encode(message)) | {field: value}
    decode = decode_task if type(message) in AnyTask.__args__ else decode_answer
    with pytest.raises(MalformedMessageError, match="not a message"):
        decode(msgspec.msgpack.encode(plain))


@pytest.mark.parametrize(
    ("message", "field", "value"),
    [
        (ANSWERS[0], "sender", 2**32 - 1),
        (ANSWERS[2], "masks", bytes(32 * 254 + 16)),
        (ANSWERS[2], "ciphertexts", (SEALED,) * 254),
        (ANSWERS[4], "shares", bytes(33 * 254)),
        (ANSWERS[4], "traces", bytes(8 * 254)),
        (OF[ShareKeys], "neighbours", tuple(range(254))),
        (OF[ShareKeys], "public_keys", bytes(32 * 254)),
        (OF[Wait], "seconds", 0.0),
        (OF[Result], "labels", (-1, 255)),
        (OF[Result], "labels", (0,) * 4096),
        (OF[Result], "label_names", ("bus",) * 256),
        (OF[Result], "centroid_votes", (0,) * 4096),
        (OF[Result], "label_votes", ((0,) * 256,)),
        (OF[Result], "name_p_values", (0.0, 1.0)),
        (OF[Result], "centroid_p_values", (0.5,) * 4096),
        (OF[Statistics], "named_p_values", (0.5,) * 256),
        (OF[SumCells], "repetition", 3),
        (OF[SumLabels], "kinds", (0, 15) * 512),
        (OF[Discovered], "labels", (0, 255)),
        (OF[Discovered], "labels", (0,) * LARGEST),
        (OF[Discovered], "choices", ("x" * 64,) * LARGEST),
        (OF[Discovered], "cell_lengths", (1e12,) * 1024),
        (OF[Discovered], "lengths", (1e12,) * LARGEST),
        (OF[Discovered], "name_p_values", (1.0,) * LARGEST),
        (OF[Discovered], "radius", 2.0),
        (OF[Discovered], "radius", None),
        (OF[Discovered], "refused", 1.0),
        (OF[Discovered], "moved", (True,) * 1024),
        (OF[Failed], "reason", "x" * 1024),
    ],
)
def test_the_largest_that_fits_is_taken(message: Any, field: str, value: Any) -> None:
    plain = msgspec.msgpack.decode(encode(message)) | {field: value}
    decode = decode_task if type(message) in AnyTask.__args__ else decode_answer
    taken = getattr(decode(msgspec.msgpack.encode(plain)), field)
    assert taken == value


def test_a_message_over_the_limit_is_not_read() -> None:
    encoded = encode(ANSWERS[3])
    assert decode_answer(encoded, limit=len(encoded)) == ANSWERS[3]
    with pytest.raises(MalformedMessageError, match="at most"):
        decode_answer(encoded, limit=len(encoded) - 1)


@settings(max_examples=200)
@given(junk=st.binary(max_size=200))
def test_junk_is_malformed(junk: bytes) -> None:
    for decode in (decode_task, decode_answer):
        with pytest.raises(MalformedMessageError):
            decode(junk)


def test_mutated_messages_decode_or_are_malformed() -> None:
    chance = random.Random(3)
    malformed = 0
    for _ in range(4000):
        raw = bytearray(encode(chance.choice(TASKS + ANSWERS)))
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        for decode in (decode_task, decode_answer):
            try:
                decode(bytes(raw))
            except MalformedMessageError:
                malformed += 1
    assert malformed > 4000  # each is malformed as the other kind at least


def test_an_array_that_claims_four_billion_entries_is_not_made_room_for() -> None:
    for message, field in (
        (ANSWERS[2], "ciphertexts"),
        (TASKS[4], "senders"),
        (TASKS[7], "labels"),
    ):
        plain = msgspec.msgpack.decode(encode(message)) | {field: None}
        encoded = msgspec.msgpack.encode(plain)
        at = encoded.index(field.encode()) + len(field)
        bomb = encoded[:at] + b"\xdd\xff\xff\xff\xff" + encoded[at + 1 :]
        decode = decode_task if type(message) in AnyTask.__args__ else decode_answer
        tracemalloc.start()
        with pytest.raises(MalformedMessageError):
            decode(bomb)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**20


def test_deep_nesting_is_malformed_and_no_crash() -> None:
    for deep in (b"\x91" * 100_000, b"\x81\xa1a" * 100_000):
        with pytest.raises(MalformedMessageError):
            decode_answer(deep)


def test_a_matrix_has_no_more_rows_than_a_message_takes() -> None:
    most = Matrix.of(np.zeros((LARGEST_ROWS, 1)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(most), type=Matrix) == most
    with pytest.raises(InvalidInputError, match="65537 rows"):
        Matrix.of(np.zeros((LARGEST_ROWS + 1, 1)))


def test_a_matrix_is_finite_and_fills_its_shape() -> None:
    array = np.arange(6, dtype=np.float64).reshape(3, 2)
    assert np.array_equal(Matrix.of(array).array(), array)
    assert Matrix.of(np.empty((0, 4), np.float32)).array().shape == (0, 4)
    # 1e39 is finite, but not as float32.
    for bad in (np.zeros(3), *(np.array([[x]]) for x in (np.nan, np.inf, 1e39, -1e300))):
        with pytest.raises(InvalidInputError, match="finite matrix"):
            Matrix.of(bad)
    for wrong in (
        Matrix(2, 2, bytes(15)),
        Matrix(2, 2, bytes(20)),
        Matrix(1, 1, np.float32(np.nan).tobytes()),
    ):
        with pytest.raises(MalformedMessageError):
            wrong.array()


# ------------------------------------------------------------------------------- canonical form


@pytest.mark.parametrize("message", TASKS, ids=lambda message: type(message).__name__)
def test_the_canonical_form_does_not_depend_on_how_a_message_came(message: Task) -> None:
    form = canonical(message)
    assert canonical(decode_task(encode(message))) == form
    assert canonical(msgspec.json.decode(msgspec.json.encode(message), type=AnyTask)) == form
    fields = msgspec.msgpack.decode(encode(message))
    backwards = msgspec.msgpack.encode(dict(reversed(fields.items())))
    assert canonical(decode_task(backwards)) == form
    # It is a message itself, with its names in order.
    assert decode_task(form) == message
    assert list(msgspec.msgpack.decode(form)) == sorted(msgspec.msgpack.decode(form))


def test_the_canonical_form_leaves_out_what_has_its_default_and_nothing_else() -> None:
    read = msgspec.msgpack.decode(canonical(PARAMETERS))
    assert "noise_crowd" not in read
    assert "step_seconds" not in read
    changed = msgspec.structs.replace(PARAMETERS, noise_crowd=9_999)
    assert msgspec.msgpack.decode(canonical(changed)) == read | {"noise_crowd": 9_999}
    secure = msgspec.msgpack.decode(canonical(OPENING))["parameters"]
    assert {"precision", "statistical_security", "correctness"}.isdisjoint(secure)
    assert secure["shape"] == [2, 3]
