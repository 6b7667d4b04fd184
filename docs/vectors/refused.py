"""Vectors of what is refused, and by which rule: bytes that are no message, keys, and phases."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import examples
import msgspec
import numpy as np
import phones
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from curve import ORDER, signature_with
from schema import schema
from scripted import drawn

from earshot_protocol.errors import InvalidParametersError, MalformedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells, SumLabels
from earshot_protocol.phases.labelling import (
    CheckLabels,
    Labelled,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import Pure
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.privacy.sum_noise import WholeGaussian
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.secure_sum.points import LOW_ORDER
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.two_operators.messages import check_signature
from earshot_protocol.wire import Matrix, encode

Vector = dict[str, Any]
pack = msgspec.msgpack.encode
_DECODERS = {"tasks": decode_task, "answers": decode_answer}


def refused_vectors() -> Vector:
    """Return everything that is refused, and beside it what only looks as if it were to be."""
    messages = [
        {"why": why, "rule": rule, "of": group, "messagepack": data.hex()}
        for why, rule, group, data in (*_malformed(), *_beyond_limits())
    ]
    for each in messages:
        try:
            _DECODERS[each["of"]](bytes.fromhex(each["messagepack"]))
        except MalformedMessageError:
            continue
        raise ValueError(f"{each['why']}: it was not refused")
    return {
        "messages": messages,
        "accepted": [_accepted(*each) for each in _unusual()],
        "keys": _keys(),
        "phones": [_judged(*each) for each in _phases()],
    }


# ----------------------------------------------------------------------------------------- bytes

_WAIT, _SECONDS = pack("type") + pack("wait"), pack("seconds")
_FAILED = b"\x83" + pack("type") + pack("failed") + pack("phase") + pack(bytes(16)) + pack("reason")
_UNMASK = {"type": "unmask", "sum_id": bytes(16), "survivors": [1], "dropped": [2]}


def _wait(seconds: bytes, more: bytes = b"", fields: int = 2) -> bytes:
    return bytes([0x80 | fields]) + _WAIT + _SECONDS + seconds + more


def _malformed() -> Iterator[tuple[str, str, str, bytes]]:
    """Yield why, the rule, the group, and the bytes."""
    one = pack(1.0)
    deep = b"\x91" * 2000 + b"\xc0"
    for why, rule, data in (
        ("nothing", "truncated", b""),
        ("the end is missing", "truncated", _wait(one)[:-1]),
        ("more bytes are announced than there are", "truncated", _FAILED + b"\xdb\xff\xff\xff\xff"),
        ("more entries than there are bytes", "truncated", b"\xdf\xff\xff\xff\xff" + _WAIT),
        ("a byte follows", "trailing-bytes", _wait(one) + b"\xc0"),
        ("a second message follows", "trailing-bytes", 2 * _wait(one)),
        ("the byte that stands for nothing", "not-messagepack", _wait(b"\xc1")),
        ("a list", "wrong-type", pack(["wait", 1.0])),
        ("nil", "wrong-type", b"\xc0"),
        ("a name stands twice, with other values", "repeated-name", _wait(one, _SECONDS + one, 3)),
        (
            "a name stands twice, with one value",
            "repeated-name",
            _wait(one, _SECONDS + pack(2.0), 3),
        ),
        ("type stands twice", "repeated-name", _wait(one, _WAIT, 3)),
        (
            "a name stands twice, with two headers",
            "repeated-name",
            _wait(one, b"\xd9\x07seconds" + one, 3),
        ),
        ("an extension in the place of a number", "extension", _wait(b"\xd4\x05\x00")),
        ("a timestamp in the place of a number", "extension", _wait(b"\xd6\xff\x00\x00\x00\x01")),
        ("an extension around everything", "extension", b"\xc7\x02\x01\x81\xc0"),
        ("a name that is an extension", "extension", _wait(one, b"\xd4\x05\x00\xc0", 3)),
        ("2,000 lists in one another", "depth", _wait(deep)),
        ("2,000 lists in a field that there is not", "depth", _wait(one, pack("x") + deep, 3)),
        ("2,000 maps in one another", "depth", b"\x81\xa1x" * 2000 + b"\xc0"),
        ("text that ends within a letter", "broken-utf8", _FAILED + b"\xa1\xc3"),
        ("text with a byte that UTF-8 has not", "broken-utf8", _FAILED + b"\xa2a\xff"),
        ("text with a letter that is too long", "broken-utf8", _FAILED + b"\xa2\xc0\x80"),
        ("text with half a pair of UTF-16", "broken-utf8", _FAILED + b"\xa3\xed\xa0\x80"),
        ("text beyond Unicode", "broken-utf8", _FAILED + b"\xa4\xf4\x90\x80\x80"),
        ("a name that is broken UTF-8", "broken-utf8", _wait(one, b"\xa1\xff\xc0", 3)),
        ("bytes in the place of text", "wrong-type", _FAILED + pack(b"a")),
        ("a name in bytes", "wrong-type", b"\x82" + _WAIT + pack(b"seconds") + one),
        ("a type in bytes", "wrong-type", b"\x82" + pack("type") + pack(b"wait") + _SECONDS + one),
        ("a number as a name", "wrong-type", _wait(one, b"\x01\xc0", 3)),
        ("not a number", "not-finite", _wait(pack(float("nan")))),
        ("infinity", "not-finite", _wait(pack(float("inf")))),
        ("minus infinity, in 32 bits", "not-finite", _wait(b"\xca\xff\x80\x00\x00")),
        ("text in the place of a number", "wrong-type", _wait(pack("1.0"))),
        ("nil in the place of a number", "wrong-type", _wait(b"\xc0")),
        ("1.0 in the place of a whole number", "wrong-type", pack(_UNMASK | {"survivors": [1.0]})),
        ("a list in bytes", "wrong-type", pack(_UNMASK | {"survivors": b"\x01"})),
        ("nil for a field whose default is a list", "wrong-type", _begun(choices=None)),
        ("a day with a time", "wrong-type", _statistics(since="2026-01-08T00:00:00")),
        ("a day without zeros", "wrong-type", _statistics(since="2026-1-8")),
        ("a day that there is not", "wrong-type", _statistics(since="2026-02-30")),
        ("a day as a timestamp", "extension", _statistics(since=msgspec.msgpack.Ext(-1, bytes(4)))),
        ("text of a letter too many", "out-of-range", _FAILED + pack("😀" * 1025)),
        ("text with a line break at its end", "line", _FAILED + pack("why\n")),
        ("text that is turned around", "line", _FAILED + pack("why\u202e")),
        ("text with a byte order mark", "line", _FAILED + pack("\ufeffwhy")),
        ("a field is missing", "missing-field", b"\x81" + _WAIT),
        ("no type", "missing-field", b"\x81" + _SECONDS + one),
        ("a field that there is not", "unknown-field", _wait(one, pack("why") + b"\xc0", 3)),
        ("a type that there is not", "unknown-type", b"\x81" + pack("type") + pack("sleep")),
        ("a type of answers", "unknown-type", encode(examples.ANSWERS[3])),
    ):
        yield why, rule, "tasks", data
    yield "a type of tasks", "unknown-type", "answers", encode(examples.TASKS[8])


def _statistics(**fields: Any) -> bytes:
    bare = {"type": "statistics", "phase": bytes(16), "label_names": ["a"], "contacts": 1}
    counts = {"labelled": [1.5], "named": [-2.5], "unknown": 0.5, "deviation": 1.5, "phones": 500}
    chances = {"labelled_p_values": [0.5], "named_p_values": [1.0], "unknown_p_value": 0.5}
    return pack(bare | counts | chances | {"privacy": []} | fields)


def _labelled(agreement: list[int]) -> bytes:
    samples = next(each for each in examples.TASKS if isinstance(each, Labelled))
    return pack(msgspec.msgpack.decode(encode(samples)) | {"agreement": agreement})


def _begun(**fields: Any) -> bytes:
    """Return the task that begins a discovery phase, with other fields."""
    return pack(msgspec.msgpack.decode(encode(_discovery_task(_DISCOVERY))) | fields)


def _beyond_limits() -> Iterator[tuple[str, str, str, bytes]]:
    """Yield each message with each of its fields, those of maps inside it, too, beyond limits.

    Each field of each map is tried in the first example in which it stands.
    """
    table, tried = schema(), set[tuple[str, str]]()
    for group, sent in (("tasks", examples.TASKS), ("answers", examples.ANSWERS)):
        for message in sent:
            whole = msgspec.msgpack.decode(encode(message))
            for place, field, holder in _fields(table, type(message).__name__, whole):
                key = (place.rpartition(".")[0].rpartition("/")[2], field["name"])
                if key in tried:
                    continue
                tried.add(key)
                kept = holder[field["name"]]
                for why, rule, value in _wrong(field, kept):
                    holder[field["name"]] = value
                    if len(data := pack(whole)) <= 10 * _LONGEST:
                        yield f"{place}: {why}", rule, group, data
                holder[field["name"]] = kept


def _fields(table: Vector, name: str, value: Vector) -> Iterator[tuple[str, Vector, Vector]]:
    """Yield the name, the description and the holder of each field that stands in a map."""
    for field in table["maps"][name]["fields"]:
        inner = value.get(field["name"])
        if inner is None:
            continue
        yield f"{name}.{field['name']}", field, value
        of, each = (field["of"], inner[:1]) if field["type"] == "list" else (field, [inner])
        for one in each:
            for kind in of.get("maps", [of["map"]] if "map" in of else []):
                tag = table["maps"][kind].get("tag")
                if tag is None or one.get(tag["name"]) == tag["value"]:
                    yield from _fields(table, kind, one)


_BOUNDS = {"least", "above", "most", "below"}
_LONGEST = 300
"""Lengths beyond this one, and messages of ten times as many bytes, are not worth a vector."""


def _wrong(field: Vector, kept: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield why, the rule, and a value that the field does not take."""
    if field["type"] == "real" and field.keys() & _BOUNDS:
        yield "not a number", "not-finite", float("nan")
    yield "of another type", "wrong-type", 7 if field["type"] == "yes or no" else True
    below, above = (1, 1) if field["type"] == "whole" else (0.5, 0.5)
    if "least" in field:
        yield "too small", "out-of-range", field["least"] - below
    if "above" in field:
        yield "too small", "out-of-range", field["above"]
    if "most" in field:
        yield "too large", "out-of-range", field["most"] + above
    if "below" in field:
        yield "too large", "out-of-range", field["below"]
    if field["type"] == "choice":
        yield "a choice that there is not", "unknown-choice", "none of these"
    if field["type"] in ("bytes", "text", "list"):
        if field.get("shortest"):
            yield "too short", "out-of-range", kept[: field["shortest"] - 1]
        if field.get("longest", _LONGEST) < _LONGEST:
            one = kept[:1] or {"bytes": b"a", "text": "a", "list": [0]}[field["type"]]
            yield "too long", "out-of-range", one * (field["longest"] + 1)


# --------------------------------------------------------------------------------- what is fine


def _unusual() -> Iterator[tuple[str, str, bytes]]:
    """Yield why one might refuse it, the group, and bytes of a message that is accepted."""
    long_names = b"\xd9\x04type" + b"\xda\x00\x04wait" + b"\xdb\x00\x00\x00\x07seconds"
    beyond = msgspec.msgpack.decode(_begun())
    beyond["parameters"]["step_seconds"] = 2**53 + 1
    contacts, long_one = pack("contacts"), b"\xd3" + bytes(7) + b"\x01"
    for why, data in (
        ("a whole number where a real one is asked for", _wait(b"\x01")),
        ("a whole number of 64 bits in the same place", _wait(b"\xcf" + bytes(7) + b"\x01")),
        ("a whole number in the same place that no float holds: it is rounded", pack(beyond)),
        ("a real number in 32 bits", _wait(b"\xca\x3f\xc0\x00\x00")),
        ("-0.0, whose sign is kept", _wait(pack(-0.0))),
        ("type stands last", b"\x82" + _SECONDS + pack(1.0) + _WAIT),
        ("longer headers than needed", b"\xdf\x00\x00\x00\x02" + long_names + b"\x01"),
        ("1,024 letters of four bytes each", _FAILED + pack("😀" * 1024)),
        ("a default that is written down", _statistics(since=None, until=None)),
        ("the largest and the smallest whole number", _labelled([2**64 - 1, -(2**63)])),
        (
            "a small number in the longest form",
            _statistics().replace(contacts + b"\x01", contacts + long_one),
        ),
        ("a field that start centroids do not have", _with_more_in_start()),
    ):
        yield why, "tasks", data


def _with_more_in_start() -> bytes:
    """Return a task whose start centroids have a field more: as in encoder files, it is ignored."""
    fields = msgspec.msgpack.decode(_begun())
    fields["parameters"]["start"]["why"] = "because"
    return pack(fields)


def _accepted(why: str, group: str, data: bytes) -> Vector:
    message = _DECODERS[group](data)
    return {"why": why, "of": group, "messagepack": data.hex(), "same_as": encode(message).hex()}


# ------------------------------------------------------------------------------------------ keys


def _keys() -> Vector:
    """Return keys that are refused, and signatures that are; one with a random nonce is not."""
    low = {
        number.to_bytes(32, "little")
        for point in LOW_ORDER
        for same in (point, point + 2**255 - 19)
        for number in (same, same | 2**255)
        if same < 2**255
    }
    tag, body = b"earshot two operators: helper's offer", drawn("body that is signed", 32)
    cases = [
        {"why": why, "public_key": key.hex(), "signature": signature.hex()}
        for why, key, signature in _forgeries(tag + hashlib.sha256(body).digest())
    ]
    for each in cases:
        good = each["why"].startswith("nothing")
        key, signature = (bytes.fromhex(each[name]) for name in ("public_key", "signature"))
        try:
            check_signature(key, tag, body, signature)
        except MalformedMessageError:
            if not good:
                continue
            raise
        if not good:
            raise ValueError(f"{each['why']}: it was accepted")
    return {
        "x25519_of_low_order": sorted(key.hex() for key in low),
        "ed25519": {"tag": tag.decode(), "body": body.hex(), "signatures": cases},
    }


def _forgeries(signed: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield why, the public key, and a signature of these bytes."""
    secret = drawn("key of forgeries", 32)
    key = Ed25519PrivateKey.from_private_bytes(secret)
    public, genuine = key.public_key().public_bytes_raw(), key.sign(signed)
    other = signature_with(secret, signed, drawn("nonce", 64))
    if other == genuine:
        raise ValueError("the nonce was not another one")
    most, s = ORDER - 1, int.from_bytes(genuine[32:], "little")
    yield "nothing: as RFC 8032 draws its nonce", public, genuine
    yield "nothing: with a random nonce, as some systems sign", public, other
    yield "of other bytes", public, key.sign(signed + b"\0")
    yield "a bit of R is another", public, bytes([genuine[0] ^ 1]) + genuine[1:]
    yield "a bit of S is another", public, genuine[:32] + bytes([genuine[32] ^ 1]) + genuine[33:]
    yield "S and the order of the group", public, genuine[:32] + (s + ORDER).to_bytes(32, "little")
    yield "S is the largest that there is", public, genuine[:32] + most.to_bytes(32, "little")
    yield "R is no point", public, (2).to_bytes(32, "little") + genuine[32:]
    yield "the key is no point", (2).to_bytes(32, "little"), genuine
    yield "the key is not below the prime", b"\xff" * 31 + b"\x7f", genuine
    yield "another key", bytes(phones.identity(phones.STRANGER)), genuine


# ----------------------------------------------------------------------------------------- phases

_STATISTICS = StatisticsParameters(
    phones=500,
    labels=("a", "b"),
    dropout=0.1,
    corrupted=0.05,
    contacts=2,
    noise=10.0,
    summation=SummationName.TWO_OPERATORS,
)
_DISCOVERY = DiscoveryParameters(
    phones=500,
    labels=("a", "b"),
    dropout=0.1,
    corrupted=0.05,
    encoder=phones.ENCODER,
    start=CentroidSet.of(np.array([[1.0, 0.0], [0.0, 1.0]])),
    most_cells=3,
    sums=1,
    cells_noise=10.0,
    labels_noise=10.0,
    rows=2,
    summation=SummationName.TWO_OPERATORS,
)
_LABELLING = LabellingParameters(
    phones=500,
    labels=("a", "b"),
    dropout=0.1,
    corrupted=0.05,
    encoder=phones.ENCODER,
    samples=Matrix.of(np.array([[0.8, 0.6], [0.0, 1.0]])),
    votes_noise=20.0,
    check_noise=20.0,
    threshold=50.0,
    summation=SummationName.TWO_OPERATORS,
)
_EACH = {"statistics": _STATISTICS, "discovery": _DISCOVERY, "labelling": _LABELLING}
_PHASE = drawn("phase that is refused", 16)
_YESTERDAY = date(2027, 1, 14)

Refusal = tuple[str, Rule, list[SumPartTask], dict[str, Any]]


def _sum(name: str) -> bytes:
    return drawn(f"sum of {name}", 16)


def _first(parameters: Parameters, /, index: int = 7, **told: Any) -> SumPartTask:
    """Return the task that begins a phase, without an offer."""
    about: Vector = {"phase": _PHASE, "parameters": parameters} | told
    about.setdefault("opening", phones.opening(_sum("the first part"), index))
    if isinstance(parameters, StatisticsParameters):
        return CountContacts(**about)
    if isinstance(parameters, LabellingParameters):
        return LabelSamples(**about)
    if isinstance(parameters, DiscoveryParameters) and parameters.sums:
        return SumCells(repetition=1, **about)
    return SumLabels(**about)


def _discovery_task(parameters: DiscoveryParameters) -> SumPartTask:
    return phones.offered(_first(parameters), parameters)


def _offered(parameters: Parameters, /, offer: Vector | None = None, **told: Any) -> SumPartTask:
    """Return the task that begins a phase, with an offer as far as one can be made."""
    task = _first(parameters, **told)
    if parameters.summation is SummationName.BELL:
        return task
    try:
        return phones.offered(task, parameters, **(offer or {}))
    except (InvalidParametersError, ValueError, OverflowError):
        return task


def _judged(why: str, rule: Rule | str | None, tasks: list[SumPartTask], about: Vector) -> Vector:
    """Return a case; our phone must refuse the last of its tasks by this rule."""
    made = phones.case(tasks, **about)
    said = made["outcomes"][-1]
    if said.get("rule", said.get("error")) != rule:
        raise ValueError(f"{why}: {said} where {rule} was meant")
    return {"why": why, **made}


def _phases() -> Iterator[tuple[str, Rule | str | None, list[SumPartTask], Vector]]:
    for kind, usual in _EACH.items():
        yield f"{kind}: nothing, it takes part", None, [_offered(usual)], {}
        unproved = msgspec.structs.replace(usual, summation=SummationName.TWO_OPERATORS_UNPROVED)
        yield f"{kind}: nothing, nor is anything proved", None, [_offered(unproved)], {}
        for what, rule, changes, about in _refused_phases(kind):
            changed = msgspec.structs.replace(usual, **changes)
            yield f"{kind}: {what}", rule, [_offered(changed)], about
    yield from _refused_offers()
    yield from _refused_steps()
    yield from _refused_secure_sums()


def _refused_phases(kind: str) -> Iterator[tuple[str, Rule, Vector, Vector]]:
    """Yield what is wrong, the rule, other parameters, and what else is told of the phone."""
    yield "too few phones", Rule.LEAST_PHONES, {"phones": 99}, {}
    yield "too many phones", Rule.LARGEST_PHONES, {"phones": 10**7 + 1}, {}
    yield "too many may vanish", Rule.LARGEST_DROPOUT, {"dropout": 0.31}, {}
    bell = {"summation": SummationName.BELL}
    crowd = {"phones": 10**5, "noise_crowd": 10_001} | bell
    yield "noise of too large a crowd", Rule.LARGEST_NOISE_CROWD, crowd, {}
    yield (
        "too few are thought to be corrupted",
        Rule.LEAST_CORRUPTED,
        {"corrupted": 0.04} | bell,
        {},
    )
    for what, changes in (
        ("no honest phone is left", {"dropout": 0.3, "corrupted": 0.7}),
        ("a fraction is not a number", {"corrupted": float("nan")}),
        ("a label stands twice", {"labels": ("a", "a")}),
        ("a digest of 31 bytes", {"hierarchy": bytes(31)}),
        ("choices of another digest", {"hierarchy": bytes(32)}),
        ("steps without time", {"step_seconds": 0.0}),
        *_INVALID[kind],
    ):
        yield what, Rule.PARAMETERS, changes, {}
    yield "too much for a recording", Rule.LARGEST_EPSILON, _LOUD[kind], _WITHOUT_PHONES
    little = {"limits": {"largest_phone_epsilon": 0.1}}
    yield "too much for a phone", Rule.LARGEST_PHONE_EPSILON, {}, little
    if kind != "labelling":  # a phone that has spent its budget takes part with zeros
        yield from _refused_by_ledger()
    for what, name in (("a recording", "largest_delta"), ("a phone", "largest_phone_delta")):
        small = {"limits": {name: 1e-7}}
        yield f"a larger δ than for {what}", Rule(name), {}, small
    if kind == "discovery":
        for span in ("yearly", "yearly_phone", "lifetime", "lifetime_phone"):
            rule = Rule(f"largest_{span}_delta")
            tight = {"limits": {rule.value: 1e-15, f"largest_{span}_epsilon": 0.6}}
            yield f"δ of all phases ({span})", rule, {"sums": 0}, tight
    exposed = {"phones": 10**6, "threshold": 250.0} if kind == "labelling" else {"phones": 10**6}
    yield "one of the phones may be exposed", Rule.DELTA, exposed, {}
    if kind != "statistics":  # which has the encoder of its places
        yield "another encoder", Rule.ENCODER, {"encoder": "contrast-1"}, {}
    wide = np.eye(129)[:2]
    yield from {
        "statistics": [],
        "discovery": [("129 dimensions", Rule.DIMENSIONS, {"start": CentroidSet.of(wide)}, {})],
        "labelling": [("129 dimensions", Rule.DIMENSIONS, {"samples": Matrix.of(wide)}, {})],
    }[kind]
    if kind == "statistics":
        yield "places of another encoder", Rule.ENCODER, {"places": _places(np.eye(2), "other")}, {}
        yield "places of 129 dimensions", Rule.DIMENSIONS, {"places": _places(wide)}, {}


def _places(
    rows: np.ndarray[Any, np.dtype[np.float64]], encoder: str = phones.ENCODER
) -> AgreedPlaces:
    return AgreedPlaces(
        encoder=encoder, geometry=Geometry.SPHERICAL, centroids=Matrix.of(rows), labels=(0, -1)
    )


_INVALID: dict[str, list[tuple[str, Vector]]] = {
    "statistics": [
        ("no contacts", {"contacts": 0}),
        ("too little noise", {"noise": 9e-10}),
        ("noise is not a number", {"noise": float("nan")}),
        ("δ of 0", {"delta": 0.0}),
        ("a window of no day", {"since": date(2026, 1, 8), "until": date(2026, 1, 8)}),
        ("a window of 367 days", {"since": date(2026, 1, 1), "until": date(2027, 1, 3)}),
        ("a window without an end", {"since": date(2026, 1, 8)}),
        ("no place", {"places": _places(np.empty((0, 2)))}),
        ("a confusion matrix without places", {"confusion": True}),
    ],
    "discovery": [
        ("four sums", {"sums": 4}),
        ("less room than start centroids", {"most_cells": 1}),
        ("too little noise", {"cells_noise": 9e-10}),
        ("noise is not a number", {"labels_noise": float("nan")}),
        ("δ of 1", {"delta": 1.0}),
        ("rows of nothing", {"rows": 3}),
        ("17 kinds", {"kinds": 17}),
        (
            "start centroids that are too short",
            {"start": CentroidSet(dimensions=2, count=2, rows=bytes(8))},
        ),
        (
            "start centroids that lack a byte",
            {"start": CentroidSet(dimensions=2, count=2, rows=bytes(7))},
        ),
    ],
    "labelling": [
        ("one label", {"labels": ("a",)}),
        ("no sample", {"samples": Matrix.of(np.empty((0, 2)))}),
        ("a sample of zeros", {"samples": Matrix.of(np.array([[1.0, 0.0], [0.0, 0.0]]))}),
        ("a sample that is infinite", {"samples": Matrix(1, 1, struct.pack("<f", float("inf")))}),
        ("samples that lack a byte", {"samples": Matrix(1, 1, bytes(3))}),
        ("too little noise", {"votes_noise": 9e-7}),
        ("too much noise", {"check_noise": 1.1e9}),
        ("a threshold above all votes", {"threshold": 501.0}),
        ("a weight of 17", {"largest_weight": 17}),
    ],
}
_LOUD: dict[str, Vector] = {
    "statistics": {"noise": 0.5},
    "discovery": {"cells_noise": 1.0},
    "labelling": {"votes_noise": 2.0},
}
"""Changes by which a phase costs a recording too much."""
_WHOLE = ("phone", "yearly_phone", "lifetime_phone")
_WITHOUT_PHONES: Vector = {"limits": {f"largest_{name}_epsilon": 1e6 for name in _WHOLE}}


def _refused_by_ledger() -> Iterator[tuple[str, Rule, Vector, Vector]]:
    """Yield what a phone refuses for what it has spent before, and in which span."""
    for span, days in (("yearly", 365), ("lifetime", 367)):
        for unit, name in (("recording", ""), ("phone", "phone_")):
            rule = Rule(f"largest_{span}_{name}epsilon")
            limits = {rule.value: 1.0}
            spent = _spent(1.1, unit, _days_ago(days))
            yield f"ε of a {unit} is spent ({span})", rule, {}, {"limits": limits, "ledger": spent}
    rule = Rule.LARGEST_YEARLY_EPSILON
    about = {"limits": {rule.value: 1.0}, "ledger": _spent(1.1, "recording", date(2027, 2, 1))}
    yield "ε is spent, by an entry of a day to come", rule, {}, about


def _days_ago(days: int) -> date:
    return date(2027, 1, 15) - timedelta(days=days)


def _spent(epsilon: float, unit: str, day: date) -> list[Vector]:
    expense = Expense(Release("histogram", Unit(unit), epsilon, 0.0, "ballot sum"), Pure(epsilon))
    return phones.exported([expense], drawn("phase of old", 16), day)


def _refused_offers() -> Iterator[tuple[str, Rule, list[SumPartTask], Vector]]:
    """Yield offers that differ from what their phase asks for; two_operators.json has more."""
    more = WholeGaussian(phones.terms_of(_offered(_DISCOVERY)).noise.fine_variance - 1)
    for what, rule, offer, about in (
        ("no leader is named", Rule.UNKNOWN_HELPER, {}, {"leaders": []}),
        ("no helper is named", Rule.UNKNOWN_HELPER, {}, {"helpers": []}),
        ("less noise", Rule.WEAK_NOISE, {"noise": more}, {}),
        ("fewer reports", Rule.TOO_FEW, {"least": 449}, {}),
        ("another shape", Rule.WRONG_OFFER, {"shape": (6,)}, {}),
        ("another task", Rule.WRONG_OFFER, {"task": bytes(32)}, {}),
        ("a key of low order", Rule.WRONG_OFFER, {"key": bytes(32)}, {}),
        ("the window is over", Rule.CLOSED, {}, {"now": phones.NOW + 86_400.0 + 3601.0}),
    ):
        yield f"offer: {what}", rule, [_offered(_DISCOVERY, offer)], about
    yield "offer: there is none", Rule.WRONG_OFFER, [_first(_DISCOVERY)], {}


def _refused_steps() -> Iterator[tuple[str, Rule | str, list[SumPartTask], Vector]]:
    """Yield what does not follow from what a phone has done."""
    first = _offered(_DISCOVERY)
    again = {"opening": phones.opening(_sum("another part"), 7)}
    cells = Matrix.of(np.eye(2))
    labels = SumLabels(phase=_PHASE, centroids=cells, opening=phones.opening(_sum("labels"), 7))
    late = phones.offered(labels, _DISCOVERY)
    other = msgspec.structs.replace(late, phase=bytes(16))
    moved = SumLabels(phase=_PHASE, centroids=cells, opening=phones.opening(_sum("labels"), 8))
    same = SumLabels(phase=_PHASE, opening=phones.opening(_sum("the first part"), 7))
    unexpected = "UnexpectedMessageError"
    yield "nothing: the same task again", None, [first, first], {}
    yield "nothing: the next part", None, [first, late], {}
    yield "the phase begins again", Rule.REPEATED, [first, _offered(_DISCOVERY, **again)], {}
    yield (
        "the part is in the ledger",
        Rule.REPEATED,
        [
            first,
            late,
            phones.offered(
                SumLabels(phase=_PHASE, opening=phones.opening(_sum("once more"), 7)), _DISCOVERY
            ),
        ],
        {},
    )
    yield "a sum that was begun", Rule.REPEATED, [first, phones.offered(same, _DISCOVERY)], {}
    yield "another number", Rule.CHANGED, [first, phones.offered(moved, _DISCOVERY)], {}
    yield "a number beyond the phones", Rule.PROTOCOL, [_offered(_DISCOVERY, index=500)], {}
    yield "a part of another phase", unexpected, [first, other], {}
    yield "a later part alone", unexpected, [late], {}
    yield (
        "a part that the plan has not",
        unexpected,
        [
            first,
            SumCells(
                phase=_PHASE,
                repetition=2,
                centroids=cells,
                opening=phones.opening(_sum("cells 2"), 7),
            ),
        ],
        {},
    )
    two = msgspec.structs.replace(_DISCOVERY, sums=2)
    second = SumCells(phase=_PHASE, repetition=2, opening=phones.opening(_sum("cells 2"), 7))
    begun = [_offered(two)]
    yield "cells without centroids", Rule.PROTOCOL, [*begun, phones.offered(second, two)], {}
    for what, matrix in (
        ("four cells", np.ones((4, 2))),
        ("cells of 3 dimensions", np.ones((1, 3))),
    ):
        told = msgspec.structs.replace(second, centroids=Matrix.of(matrix))
        yield what, Rule.PROTOCOL, [*begun, phones.offered(told, two)], {}
    split = msgspec.structs.replace(_DISCOVERY, sums=0, kinds=2)
    for what, kinds in (("a kind too few", (0,)), ("a kind that there is not", (0, 2))):
        yield what, Rule.PROTOCOL, [_offered(split, kinds=kinds)], {}
    for what, proposed in (("a label too few", (0,)), ("a label that there is not", (0, 2))):
        check = CheckLabels(
            phase=_PHASE, proposed=proposed, opening=phones.opening(_sum("check"), 7)
        )
        tasks = [_offered(_LABELLING), phones.offered(check, _LABELLING)]
        yield what, Rule.PROTOCOL, tasks, {}
    begins = msgspec.structs.replace(_DISCOVERY, phones=501)
    yield "parameters that change", Rule.REPEATED, [first, _offered(begins, **again)], {}


def _refused_secure_sums() -> Iterator[tuple[str, Rule, list[SumPartTask], Vector]]:
    """Yield sums of phones alone, which a phone that has none of them refuses in any case."""
    bell = msgspec.structs.replace(_STATISTICS, summation=SummationName.BELL)
    task = _first(bell)
    right = bell.sum_parameters(phones.part_of(bell, task), (bell.entries,))
    if not isinstance(right, SumParameters):
        raise TypeError(right)

    def opened(**changes: Any) -> list[SumPartTask]:
        terms = msgspec.structs.replace(right, **changes)
        opening = AdvertiseKeys(sum_id=_sum("the first part"), index=7, parameters=terms)
        return [msgspec.structs.replace(task, opening=opening)]

    yield "secure sum: of other phones", Rule.SUM, opened(phones=501), {}
    yield "secure sum: of another bound", Rule.SUM, opened(bound=right.bound + 1), {}
    few = {"statistical_security": 39}
    yield "secure sum: less security", Rule.LEAST_STATISTICAL_SECURITY, opened(**few), {}
    yield "secure sum: less correctness", Rule.LEAST_CORRECTNESS, opened(correctness=19), {}
    yield "secure sum: one share is enough", Rule.LEAST_THRESHOLD, opened(threshold=1), {}
    yield (
        "secure sum: with an offer in it",
        Rule.SUM,
        [msgspec.structs.replace(task, opening=_offered(_STATISTICS).opening)],
        {},
    )
    keys = opened()[0].opening
    yield (
        "by two operators: keys in place of an offer",
        Rule.SUM,
        [msgspec.structs.replace(_first(_STATISTICS), opening=keys)],
        {},
    )
