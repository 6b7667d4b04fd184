"""The edges of what two operators say: parameters, keys, lists of reports and their parts."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.operators import Operators, request, terms

from earshot_protocol.errors import (
    InvalidInputError,
    InvalidParametersError,
    MalformedMessageError,
)
from earshot_protocol.prio3.shapes import Counts, Norm, ballot
from earshot_protocol.privacy.sum_noise import WholeGaussian, WholeLaplace
from earshot_protocol.two_operators import lists, messages, refusals
from earshot_protocol.two_operators.messages import (
    AddUp,
    HelperTotal,
    PhoneReport,
    read_identity,
)
from earshot_protocol.two_operators.sizes import sizes
from earshot_protocol.two_operators.transport import ListPart, parts_of
from earshot_protocol.wire import Message, encode
from earshot_server.helper.helper import HelperPolicy

PART = 3 * 1024 * 1024


@pytest.mark.parametrize("text", ["", "zz", "00" * 31, "00" * 33])
def test_a_text_that_is_not_a_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="64 hexadecimal digits"):
        read_identity(text)
    key = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    assert read_identity(f" {key.hex()}\n") == key


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"phones": 2}, "phones=2"),
        ({"shape": (0,)}, "dimension"),
        ({"shape": (1,) * 9}, "number of dimensions"),
        ({"shape": (2**13, 2**13)}, "length"),
        ({"bound": 0}, "bound=0"),
        ({"bound": 2**62}, "64-bit sum"),
        ({"least": 1}, "least=1"),
        ({"phones": 10**8 + 1}, "phones=100000001"),
        ({"bound": 2**62 + 1}, "bound=4611686018427387905"),
        ({"least": 21}, "least=21"),
        ({"window": 0.0}, "window"),
        ({"proof": Counts(0, 1, 6)}, "width=0"),
        ({"proof": ballot(6, 0)}, "total=0"),
        ({"proof": ballot(6, 7)}, "total=7"),
        ({"proof": Counts(1, 1, 4)}, "block"),
        ({"shape": (2**20 + 1,), "proof": Norm()}, "length"),
        ({"noise": WholeGaussian(0)}, "fine_variance=0"),
        ({"noise": WholeLaplace(0)}, "fine_scale=0"),
    ],
)
def test_parameters_under_which_no_sum_should_run_are_named(
    changes: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidParametersError, match=says):
        terms(**changes).check()


@pytest.mark.parametrize(
    "changes",
    [
        {"phones": 3, "least": 2},
        {"phones": 10**8, "bound": 1},
        {"shape": ()},
        {"shape": (1,) * 8},
        {"bound": 1},
        {"least": 20},
        {"proof": ballot(6, 1)},
        {"proof": ballot(6, 6)},
    ],
)
def test_the_last_parameters_that_are_accepted(changes: dict[str, object]) -> None:
    terms(**changes).check()


def test_a_word_holds_all_inputs_and_both_noises_to_the_last_bit() -> None:
    reach = terms(shape=(1,)).noise.reach(1)
    for bits in (16, 40, 62, 63):
        bound = (2**bits - 1 - reach) // 3
        agreed = terms(phones=3, shape=(1,), bound=bound, least=2)
        assert 2**bits > 3 * bound + reach > 2**bits - 4
        assert agreed.modulus_bits == bits + 1
    with pytest.raises(InvalidParametersError, match="64-bit sum"):
        _ = terms(phones=3, shape=(1,), bound=bound + 2, least=2).modulus_bits


@pytest.mark.parametrize(("proof", "size"), [(None, 16 + 80), (ballot(6, 2), None), (Norm(), None)])
def test_a_list_that_ends_within_an_entry_is_refused(
    proof: Counts | Norm | None, size: int | None
) -> None:
    agreed = terms(bound=1, proof=proof)
    parts = sizes(agreed).entry
    whole = sum(parts)
    assert size in (None, whole)
    data = bytes(range(256)) * 20
    assert lists.count(b"", agreed) == 0
    assert lists.count(data[: 2 * whole], agreed) == 2
    for wrong in (1, 2 * whole - 1, 2 * whole + 1):
        with pytest.raises(MalformedMessageError, match=rf"with {wrong % whole} bytes of one"):
            lists.count(data[:wrong], agreed)
    read = list(lists.entries(data[: 2 * whole], agreed))
    assert [tuple(map(len, entry)) for entry in read] == [parts, parts]
    assert b"".join(itertools.chain.from_iterable(read)) == data[: 2 * whole]


@pytest.mark.parametrize(
    ("size", "parts"),
    [
        (0, []),
        (PART, []),
        (PART + 1, [PART, 1]),
        (2 * PART, [PART, PART]),
        (2 * PART + 96, [PART, PART, 96]),
    ],
)
def test_a_list_that_is_too_long_for_one_request_travels_in_full_parts(
    size: int, parts: list[int]
) -> None:
    reports = bytes(PART) + b"\1" * PART + b"\2" * 96
    task = AddUp(sum_id=b"s" * 16, offer=bytes(32), reports=reports[:size], signature=bytes(64))
    sent = list(parts_of(task))
    assert [len(part.entries) for part in sent] == parts
    assert [part.number for part in sent] == list(range(len(parts)))
    assert {part.sum_id for part in sent} <= {task.sum_id}
    assert b"".join(part.entries for part in sent) in (b"", task.reports)


OPERATORS = Operators()
ASKED = request(OPERATORS.begin())
MADE = OPERATORS.helper.answer(ASKED)
TASK = AddUp(sum_id=bytes(16), offer=bytes(32), reports=b"", signature=bytes(64))
REPORT = PhoneReport(
    sum_id=bytes(16), sender=0, report_id=bytes(16), sealed=bytes(80), share=b"", public=b""
)
TOTAL = HelperTotal(sum_id=bytes(16), offer=bytes(32), reports=bytes(32), refused=b"", total=b"")


def is_read(message: Message, **changes: object) -> bool:
    said = msgspec.msgpack.decode(encode(message)) | changes
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(said), type=type(message))
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("message", "field", "least", "most"),
    [
        (ASKED, "leader", 32, 32),
        (ASKED, "task", 32, 32),
        (ASKED, "signature", 64, 64),
        (TASK, "offer", 32, 32),
        (TASK, "signature", 64, 64),
        (REPORT, "report_id", 16, 16),
        (REPORT, "sealed", 80, 112),
        (REPORT, "public", 0, 128),
        (TOTAL, "offer", 32, 32),
        (TOTAL, "reports", 32, 32),
        (TOTAL, "signature", 64, 64),
        (MADE, "signature", 64, 64),
        (MADE, "verify_key", 0, 32),
    ],
)
def test_bytes_of_another_length_are_not_read(
    message: Message, field: str, least: int, most: int
) -> None:
    for length in range(most + 2):
        assert is_read(message, **{field: bytes(length)}) == (least <= length <= most)


@pytest.mark.parametrize("field", ["opens", "closes", "answer_until"])
def test_moments_are_since_1970_and_end(field: str) -> None:
    for moment, fits in ((-0.5, False), (0.0, True), (1e12, True), (1e12 + 0.5, False)):
        offer = msgspec.msgpack.decode(encode(MADE))["offer"] | {field: moment}
        assert is_read(MADE, offer=offer) == fits


def test_a_patience_is_positive_and_ends() -> None:
    for seconds, fits in ((0.0, False), (0.5, True), (1e9, True), (1e9 + 0.5, False)):
        assert is_read(ASKED, patience=seconds) == fits


def test_the_largest_message_to_a_helper_has_room_for_the_longest_list() -> None:
    room = messages.LARGEST_HELPER_TASK - messages.LARGEST_LIST
    assert room > max(len(encode(task)) for task in (TASK, ASKED))
    assert messages.LARGEST_LIST + len(encode(TOTAL)) < messages.LARGEST_HELPER_ANSWER


def test_a_helper_adds_up_fifty_reports_unless_its_operator_says_otherwise() -> None:
    assert HelperPolicy().least_reports == 50


def test_the_longest_list_has_as_many_parts_as_one_may_say() -> None:
    longest = 900 * 2**20
    first, last = 0, (longest - 1) // PART
    for number in (first, last, -1, last + 1):
        said = msgspec.msgpack.encode(
            {"type": "list-part", "sum_id": bytes(16), "number": number, "entries": b"1"}
        )
        if first <= number <= last:
            assert msgspec.msgpack.decode(said, type=ListPart).number == number
        else:
            with pytest.raises(msgspec.ValidationError, match="number"):
                msgspec.msgpack.decode(said, type=ListPart)


def test_a_leader_is_told_which_refusals_may_pass_and_when() -> None:
    kinds = refusals.HelperRefusalError.__subclasses__()
    assert {kind.name for kind in kinds if kind.again} == {"too_many_offers", "early"}
    assert len({kind.name for kind in kinds}) == len(kinds)
    assert refusals.EarlyListError("not yet", 12.5).seconds == 12.5
    assert refusals.LateListError("too late").seconds == 0
    assert not refusals.HelperRefusalError.again
