"""Bodies beside tasks and answers, in both media types."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parameters import learning_parameters, statistics_parameters
from support.refusals import refused

from earshot_protocol.api import (
    JSON,
    MESSAGEPACK,
    AskTask,
    Enrol,
    Enrolled,
    Invitation,
    Invite,
    Problem,
    Refuse,
    StartPhase,
    decode_body,
    encode_body,
)
from earshot_protocol.errors import InvalidParametersError, MalformedMessageError
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.rules import Rule

LEARNING = learning_parameters(phones=100)
STATISTICS = statistics_parameters(phones=100)
PARAMETERS = [LEARNING, STATISTICS]
BODIES = [
    Enrol(public_key=bytes(range(32)), attestation="code"),
    Enrolled(phone="12"),
    AskTask(),
    AskTask(known=(bytes(range(16)), b"\xff" * 16)),
    Refuse(phase=bytes(16), rule=Rule.ENCODER),
    Problem(type="urn:earshot:problem:x", title="x", status=401, detail="ü", now=1.5),
    Invite(uses=50, days=0.5, cohort="north-1", name="class-7b"),
    Invitation(code="c", uses=1, expires=1.8e9, name="class-7b"),
    *(StartPhase(parameters=parameters, least_phones=50) for parameters in PARAMETERS),
]
MEDIA = [MESSAGEPACK, JSON]


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_what_is_encoded_comes_back(body: Any, media: str) -> None:
    assert decode_body(encode_body(body, media), media, type(body)) == body


def test_the_wire_is_what_another_language_would_write() -> None:
    key = bytes(range(32))
    written = {"public_key": base64.b64encode(key).decode(), "attestation": "code"}
    assert json.loads(encode_body(BODIES[0], JSON)) == written
    assert decode_body(json.dumps(written).encode(), JSON, Enrol) == BODIES[0]
    packed = encode_body(BODIES[0], MESSAGEPACK)
    assert msgspec.msgpack.decode(packed) == {"public_key": key, "attestation": "code"}
    assert decode_body(b"\x80", MESSAGEPACK, AskTask) == AskTask()
    assert json.loads(encode_body(Problem(type="t", title="x", status=404), JSON)) == {
        "type": "t",
        "title": "x",
        "status": 404,
    }


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_type_of_phase_is_told_by_its_parameters(
    parameters: PhaseParameters | StatisticsParameters,
) -> None:
    body = json.loads(encode_body(StartPhase(parameters=parameters), JSON))
    assert body["parameters"]["type"] in ("learning", "statistics")
    found = decode_body(json.dumps(body).encode(), JSON, StartPhase)
    assert type(found.parameters) is type(parameters)
    body["parameters"]["type"] = "census"
    with pytest.raises(MalformedMessageError, match="census"):
        decode_body(json.dumps(body).encode(), JSON, StartPhase)


def read(kind: type[Any], fields: dict[str, Any]) -> None:
    decode_body(json.dumps(fields).encode(), JSON, kind)


def base_64(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


test_a_body_out_of_bounds_is_refused_where_it_is_wrong = refused(
    MalformedMessageError,
    ("public_key", read, Enrol, {"public_key": "AAAA", "attestation": ""}),
    ("32", read, Enrol, {"public_key": base_64(33), "attestation": ""}),
    ("attestation", read, Enrol, {"public_key": base_64(32)}),
    ("public_key", read, Enrol, {"public_key": "?", "attestation": ""}),
    ("attestation", read, Enrol, {"public_key": base_64(32), "attestation": "x" * 16_385}),
    ("phone", read, Enrolled, {"phone": ""}),
    ("known", read, AskTask, {"known": ["AAAA"]}),
    ("known", read, AskTask, {"known": [base_64(16)] * 9}),
    ("who", read, AskTask, {"who": 1}),
    *[("uses", read, Invite, {"uses": uses}) for uses in (0, 10**8 + 1, 1.5)],
    *[("days", read, Invite, {"days": days}) for days in (0, 3651)],
    ("parameters", read, StartPhase, {}),
    *[
        (None, decode_body, data, media, AskTask)
        for data, media in (
            (b"[" * 100_000, JSON),
            (b"\x91" * 100_000, MESSAGEPACK),
            (b'"\xff"', JSON),
            (b"", JSON),
        )
    ],
)


@given(data=st.binary(max_size=100), media=st.sampled_from(MEDIA))
def test_no_bytes_make_decoding_fail_otherwise(data: bytes, media: str) -> None:
    for kind in (Enrol, StartPhase, Problem):
        with pytest.raises(MalformedMessageError):
            decode_body(data, media, kind)


def test_a_phase_wants_all_its_phones_unless_fewer_will_do() -> None:
    assert StartPhase(parameters=LEARNING).least() == 100
    assert StartPhase(parameters=LEARNING, least_phones=60).least() == 60
    assert StartPhase(parameters=STATISTICS, least_phones=100).least() == 100
    with pytest.raises(InvalidParametersError, match="at most phones=100"):
        StartPhase(parameters=LEARNING, least_phones=101).least()
