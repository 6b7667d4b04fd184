"""Bytes, keys, phases and offers that are refused, each by its rule, and by a second reader."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256, Hash
from support import random_offers

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.points import LOW_ORDER, points
from earshot_protocol.two_operators.messages import check_signature
from earshot_protocol.wire import encode

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "vectors"
VECTORS = json.loads((FOLDER / "refused.json").read_text(encoding="utf-8"))
DECODERS = {"tasks": decode_task, "answers": decode_answer}
DEEPEST = 6
"""Maps and lists that lie in one another in a message; the document says so."""

Case = dict[str, Any]


def of(text: str) -> bytes:
    return bytes.fromhex(text)


# ------------------------------------------------------------------------------------------ bytes


class Broken(Exception):  # noqa: N818 - the name of a rule
    """Bytes that are no MessagePack of ours, by the name of the rule that they break."""


class Reader:
    """MessagePack as section 3 of the document restricts it; it knows nothing of messages."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def whole(self) -> Any:
        value = self.value(0)
        if self.at < len(self.data):
            raise Broken("trailing-bytes")
        return value

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise Broken("truncated")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode("utf-8", "strict")
        except UnicodeDecodeError:
            raise Broken("broken-utf8") from None

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise Broken("depth")
        code = self.number(1)
        if code < 0x80 or code >= 0xE0:
            return code - 256 if code >= 0xE0 else code
        if code < 0x90 or code in (0xDE, 0xDF):
            return self.entries(code & 15 if code < 0x90 else self.number(2 << code - 0xDE), depth)
        if code < 0xA0 or code in (0xDC, 0xDD):
            count = code & 15 if code < 0xA0 else self.number(2 << code - 0xDC)
            return [self.value(depth + 1) for _ in range(count)]
        if code < 0xC0 or 0xD9 <= code <= 0xDB:
            return self.text(code & 31 if code < 0xC0 else self.number(1 << code - 0xD9))
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if 0xC4 <= code <= 0xC6:
            return self.take(self.number(1 << code - 0xC4))
        if code in (0xCA, 0xCB) or 0xCC <= code <= 0xD3:
            size = 1 << code - 0xC8 if code < 0xCC else 1 << (code - 0xCC) % 4
            start = self.at - 1
            self.take(size)
            return msgspec.msgpack.decode(self.data[start : self.at])
        raise Broken("not-messagepack" if code == 0xC1 else "extension")

    def entries(self, count: int, depth: int) -> Case:
        made: Case = {}
        for _ in range(count):
            name = self.value(depth + 1)
            if not isinstance(name, str):
                raise Broken("wrong-type")
            if name in made:
                raise Broken("repeated-name")
            made[name] = self.value(depth + 1)
        return made


BY_FORM = {"truncated", "trailing-bytes", "not-messagepack", "repeated-name", "extension"}
BY_FORM |= {"broken-utf8", "depth"}


@pytest.mark.parametrize("case", VECTORS["messages"], ids=lambda case: case["why"])
def test_a_message_is_refused(case: Case) -> None:
    with pytest.raises(MalformedMessageError):
        DECODERS[case["of"]](of(case["messagepack"]))
    if case["rule"] in BY_FORM:
        with pytest.raises(Broken, match=rf"^{case['rule']}$"):
            Reader(of(case["messagepack"])).whole()


def test_messages_of_every_rule_are_refused_and_none_for_another_reason() -> None:
    assert {case["rule"] for case in VECTORS["messages"]} == BY_FORM | {
        *("wrong-type", "out-of-range", "not-finite", "line", "missing-field", "unknown-field"),
        *("unknown-type", "unknown-choice"),
    }


def test_no_message_is_refused_for_its_form() -> None:
    messages = json.loads((FOLDER / "messages.json").read_text(encoding="utf-8"))
    for group in ("tasks", "answers", "bodies"):
        for case in messages[group]:
            Reader(of(case["messagepack"])).whole()


@pytest.mark.parametrize("case", VECTORS["accepted"], ids=lambda case: case["why"])
def test_an_unusual_message_is_accepted(case: Case) -> None:
    message = DECODERS[case["of"]](of(case["messagepack"]))
    assert encode(message).hex() == case["same_as"]
    Reader(of(case["messagepack"])).whole()


# ------------------------------------------------------------------------------------------- keys

KEYS = VECTORS["keys"]


@pytest.mark.parametrize("key", KEYS["x25519_of_low_order"])
def test_nothing_is_agreed_on_with_a_key_of_low_order(key: str) -> None:
    assert points([of(key)]) <= LOW_ORDER
    with pytest.raises(ValueError, match="shared key"):
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(of(key)))


@pytest.mark.parametrize("case", KEYS["ed25519"]["signatures"], ids=lambda case: case["why"])
def test_a_signature_is_verified_and_not_compared(case: Case) -> None:
    about = KEYS["ed25519"]
    tag, body = about["tag"].encode(), of(about["body"])
    digest = Hash(SHA256())
    digest.update(body)
    key, signature = of(case["public_key"]), of(case["signature"])
    if case["why"].startswith("nothing"):
        check_signature(key, tag, body, signature)
        Ed25519PublicKey.from_public_bytes(key).verify(signature, tag + digest.finalize())
        return
    with pytest.raises(MalformedMessageError):
        check_signature(key, tag, body, signature)
    with pytest.raises((InvalidSignature, ValueError)):
        Ed25519PublicKey.from_public_bytes(key).verify(signature, tag + digest.finalize())


# ----------------------------------------------------------------------------- phases and offers


@pytest.mark.parametrize("case", VECTORS["phones"], ids=lambda case: case["why"])
def test_our_phone_says_so(case: Case) -> None:
    assert random_offers.phones.played(case) == case["outcomes"]


def test_every_rule_of_a_phone_has_a_vector() -> None:
    said = {outcome.get("rule") for case in VECTORS["phones"] for outcome in case["outcomes"]}
    assert said >= {rule.value for rule in Rule} - {Rule.PROOFS}  # which two_operators.json has


def lines(seed: int, count: int) -> list[str]:
    command = [sys.executable, "-m", "support.random_offers", str(seed), str(count)]
    # S603: the program is ours.
    run = subprocess.run(  # noqa: S603
        command, capture_output=True, check=True, timeout=300, cwd=FOLDER.parents[1] / "tests"
    )
    return run.stdout.decode().splitlines()


def test_random_offers_are_the_same_again_and_say_what_our_phone_says() -> None:
    printed = lines(5, 60)
    cases = list(map(json.loads, printed))
    assert list(random_offers.cases(5, 3)) == cases[:3]
    assert [case["case"] for case in cases] == list(range(60))
    for case in cases[:20]:  # from what is printed alone
        assert random_offers.phones.played(case) == case["outcomes"]
    said = {name for case in cases for each in case["outcomes"] for name in each}
    assert said == {"rule", "error", "booked"}
    rules = {each["rule"] for case in cases for each in case["outcomes"] if "rule" in each}
    assert len(rules) >= 12


def test_another_seed_gives_other_offers() -> None:
    (one,), (other,) = (list(random_offers.cases(seed, 1)) for seed in (1, 2))
    assert one["tasks"] != other["tasks"]
