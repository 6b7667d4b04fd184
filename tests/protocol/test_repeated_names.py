"""A name that stands twice in a map is found, however the rest of the message is written."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_protocol.api import JSON, MESSAGEPACK, AskTask, decode_body
from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.repeated_names import check_names

pack = msgspec.msgpack.encode
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=300)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(), inner, max_size=40),
    max_leaves=25,
)


def longer(value: Any) -> bytes:
    """The same value with headers that are longer than they need be."""
    if isinstance(value, dict):
        entries = b"".join(longer(name) + longer(entry) for name, entry in value.items())
        return b"\xdf" + len(value).to_bytes(4) + entries
    if isinstance(value, list):
        return b"\xdd" + len(value).to_bytes(4) + b"".join(map(longer, value))
    if isinstance(value, str):
        return b"\xdb" + len(value.encode()).to_bytes(4) + value.encode()
    if isinstance(value, bytes):
        return b"\xc6" + len(value).to_bytes(4) + value
    return pack(value)


@given(values)
def test_maps_without_repetitions_pass(value: Any) -> None:
    for data in (pack(value), longer(value)):
        check_names(data, None)


@given(st.dictionaries(st.text(), values, min_size=1), values, st.booleans())
def test_a_repetition_is_found_at_any_depth(given: dict[str, Any], more: Any, deep: bool) -> None:
    again = next(iter(given))
    entries = [pack(name) + longer(entry) for name, entry in given.items()]
    entries.insert(1, longer(again) + pack(more))  # with another header than before
    data = b"\xdf" + len(entries).to_bytes(4) + b"".join(entries)
    if deep:
        data = b"\x92" + pack(more) + b"\x81" + pack("inside") + data
    with pytest.raises(MalformedMessageError, match="repeats"):
        check_names(data, None)


def test_messages_and_bodies_are_looked_through() -> None:
    twice = b"\x83" + pack("type") + pack("wait") + 2 * (pack("seconds") + pack(1.0))
    with pytest.raises(MalformedMessageError, match="repeats"):
        decode_task(twice)
    masked = pack({"type": "masked-input", "sum_id": bytes(16), "sender": 1, "vector": b""})
    with pytest.raises(MalformedMessageError, match="repeats"):
        decode_answer(b"\x85" + masked[1:] + pack("sender") + pack(2))
    with pytest.raises(MalformedMessageError, match="repeats"):
        decode_body(b"\x82" + 2 * (pack("known") + b"\x90"), MESSAGEPACK, AskTask)
    assert decode_body(b'{"known":[],"known":[]}', JSON, AskTask) == AskTask()


def test_a_name_that_stands_in_two_maps_is_no_repetition() -> None:
    check_names(pack({"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}), None)
