"""Signatures against a second implementation of RFC 9421, and against tampering."""

from __future__ import annotations

import base64
import hashlib
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    InvalidSignature,
    algorithms,
)
from hypothesis import given
from hypothesis import strategies as st
from support.signed import verify

from earshot_protocol.signatures import (
    LARGEST_SKEW,
    SignatureError,
    StaleSignatureError,
    content_digest,
    key_id_of,
    sign,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
NOW = 1_800_000_000
PATH, MEDIA, BODY = "/v1/answer", "application/msgpack", b"\x81\xa1a\x01"
COVERED = ("@method", "@path", "content-type", "content-digest")

NAMES = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=64)
PATHS = st.text(string.ascii_lowercase + string.digits + "/-", max_size=40).map(lambda p: "/" + p)
BODIES = st.binary(max_size=200)


@dataclass
class Request:
    """What the other implementation takes for a request."""

    headers: dict[str, str]
    path: str = PATH
    method: str = "POST"
    url: str = field(init=False)

    def __post_init__(self) -> None:
        self.url = f"https://earshot.example{self.path}"


class Keys(HTTPSignatureKeyResolver):
    def __init__(self, names: Mapping[str, Ed25519PrivateKey]) -> None:
        self.names = names

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        return self.names[key_id].public_key()

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        return self.names[key_id]


def other(kind: type, name: str) -> HTTPMessageSigner | HTTPMessageVerifier:
    made: HTTPMessageSigner | HTTPMessageVerifier = kind(
        signature_algorithm=algorithms.ED25519, key_resolver=Keys({name: KEY})
    )
    return made


# --------------------------------------------------------------------------- two implementations


@given(name=NAMES, path=PATHS, body=BODIES, created=st.integers(0, NOW - 10**8))
def test_the_other_implementation_verifies_ours(
    name: str, path: str, body: bytes, created: int
) -> None:
    fields = sign(KEY, name, created, path, MEDIA, body)
    verifier = other(HTTPMessageVerifier, name)
    request = Request({"Content-Type": MEDIA} | fields, path)
    (found,) = verifier.verify(request, max_age=None, require_components=COVERED, body=body)  # type: ignore[union-attr]
    assert found.label == "earshot"
    assert dict(found.parameters) == {"created": created, "keyid": name, "alg": "ed25519"}
    changed = Request({"Content-Type": MEDIA} | fields, path + "x")
    with pytest.raises(InvalidSignature):
        verifier.verify(changed, max_age=None)  # type: ignore[union-attr]


@given(name=NAMES, path=PATHS, body=BODIES, created=st.integers(0, 10**11))
def test_we_verify_what_the_other_implementation_signed(
    name: str, path: str, body: bytes, created: int
) -> None:
    request = Request({"Content-Type": MEDIA}, path)
    other(HTTPMessageSigner, name).sign(  # type: ignore[union-attr]
        request,
        key_id=name,
        created=datetime.fromtimestamp(created, UTC),
        label="earshot",
        covered_component_ids=COVERED,
        body=body,
    )
    assert key_id_of(request.headers) == name
    verify(PUBLIC, request.headers, created, path, MEDIA, body)
    # Ed25519 is deterministic: the two agree to the last bit.
    ours = sign(KEY, name, created, path, MEDIA, body)
    assert ours["Signature"] == request.headers["Signature"]
    assert ours["Signature-Input"] == request.headers["Signature-Input"]


def test_the_signature_base_is_that_of_the_standard() -> None:
    fields = sign(KEY, "7", NOW, PATH, MEDIA, BODY)
    digest = base64.b64encode(hashlib.sha256(BODY).digest()).decode()
    base = (
        '"@method": POST\n'
        '"@path": /v1/answer\n'
        '"content-type": application/msgpack\n'
        f'"content-digest": sha-256=:{digest}:\n'
        '"@signature-params": ("@method" "@path" "content-type" "content-digest")'
        ';created=1800000000;keyid="7";alg="ed25519"'
    )
    signature = base64.b64encode(KEY.sign(base.encode())).decode()
    assert fields["Signature"] == f"earshot=:{signature}:"


# -------------------------------------------------------------------------------------- tampering


@given(
    what=st.sampled_from(["key", "path", "media", "body", "created", "keyid"]),
    place=st.integers(0, 10**6),
    bit=st.integers(0, 7),
)
def test_whatever_is_covered_cannot_be_changed(what: str, place: int, bit: int) -> None:
    fields = sign(KEY, "7", NOW, PATH, MEDIA, BODY)
    key, path, media, body = PUBLIC, PATH, MEDIA, BODY
    if what == "key":
        key = flipped(PUBLIC, place, bit)
    elif what == "path":
        path = PATH[: place % len(PATH)] + "x" + PATH[place % len(PATH) :]
    elif what == "media":
        media = MEDIA[: place % len(MEDIA)] + MEDIA[place % len(MEDIA) + 1 :]
    elif what == "body":
        body = flipped(BODY, place, bit)
        if bit % 2:  # an attacker can make the digest fit
            fields["Content-Digest"] = content_digest(body)
    elif what == "created":
        fields["Signature-Input"] = fields["Signature-Input"].replace(str(NOW), str(NOW + 1 + bit))
    else:
        fields["Signature-Input"] = fields["Signature-Input"].replace('"7"', f'"{8 + bit}"')
    with pytest.raises(SignatureError):
        verify(key, fields, NOW, path, media, body)


@given(place=st.integers(0, 63), bit=st.integers(0, 7))
def test_every_bit_of_the_signature_counts(place: int, bit: int) -> None:
    fields = sign(KEY, "7", NOW, PATH, MEDIA, BODY)
    signature = base64.b64decode(fields["Signature"].removeprefix("earshot=:").removesuffix(":"))
    changed = base64.b64encode(flipped(signature, place, bit)).decode()
    fields["Signature"] = f"earshot=:{changed}:"
    with pytest.raises(SignatureError, match="does not fit"):
        verify(PUBLIC, fields, NOW, PATH, MEDIA, BODY)


def flipped(data: bytes, place: int, bit: int) -> bytes:
    place %= len(data)
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Signature-Input", None),
        ("Signature", None),
        ("Content-Digest", None),
        ("Signature-Input", ""),
        ("Signature", ""),
        ("Content-Digest", "sha-256=::"),
        ("Content-Digest", "ü"),
        ("Signature-Input", 'earshot=("@method" "@path");created=1;keyid="7";alg="ed25519"'),
        ("Signature-Input", 'other={covered};created={now};keyid="7";alg="ed25519"'),
        ("Signature-Input", 'earshot={covered};created={now};keyid="7";alg="hmac-sha256"'),
        ("Signature-Input", 'earshot={covered};created={now};keyid="7"'),
        ("Signature-Input", 'earshot={covered};created=-1;keyid="7";alg="ed25519"'),
        ("Signature-Input", 'earshot={covered};created=1e9;keyid="7";alg="ed25519"'),
        ("Signature-Input", "earshot={covered};created=" + "9" * 13 + ';keyid="7";alg="ed25519"'),
        ("Signature-Input", 'earshot={covered};created={now};keyid="";alg="ed25519"'),
        ("Signature-Input", 'earshot={covered};created={now};keyid="a b";alg="ed25519"'),
        (
            "Signature-Input",
            'earshot={covered};created={now};keyid="' + "7" * 65 + '";alg="ed25519"',
        ),
        ("Signature-Input", 'earshot={covered};created={now};keyid="7";alg="ed25519"\n'),
        ("Signature-Input", 'earshot={covered};created=١;keyid="7";alg="ed25519"'),
        ("Signature", "earshot=:" + "A" * 86 + "==:, other=:AAAA:"),
        ("Signature", "earshot=:" + "A" * 88 + ":"),
        ("Signature", "earshot=:" + "A" * 85 + "B==:"),
        ("Signature", "earshot=:" + "-" * 86 + "==:"),
    ],
)
def test_a_field_of_another_form_is_refused_by_name(name: str, value: str | None) -> None:
    fields = sign(KEY, "7", NOW, PATH, MEDIA, BODY)
    if value is None:
        del fields[name]
    else:
        covered = '("@method" "@path" "content-type" "content-digest")'
        fields[name] = value.replace("{covered}", covered).replace("{now}", str(NOW))
    with pytest.raises(SignatureError):
        verify(PUBLIC, fields, NOW, PATH, MEDIA, BODY)


@given(
    fields=st.dictionaries(
        st.sampled_from(["Content-Digest", "Signature-Input", "Signature"]), st.text(max_size=200)
    )
)
def test_nobody_makes_the_verifier_fail_otherwise(fields: dict[str, str]) -> None:
    with pytest.raises(SignatureError):
        verify(PUBLIC, fields, NOW, PATH, MEDIA, BODY)
    with pytest.raises(SignatureError):
        key_id_of(fields)


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), bytes(32), b"\xff" * 32])
def test_a_key_that_is_none_verifies_nothing(key: bytes) -> None:
    with pytest.raises(SignatureError):
        verify(key, sign(KEY, "7", NOW, PATH, MEDIA, BODY), NOW, PATH, MEDIA, BODY)


# ------------------------------------------------------------------------------------------- time


@given(apart=st.integers(-10_000, 10_000))
def test_a_signature_is_good_for_five_minutes_in_both_directions(apart: int) -> None:
    fields = sign(KEY, "7", NOW, PATH, MEDIA, BODY)
    if abs(apart) <= LARGEST_SKEW == 300:
        verify(PUBLIC, fields, NOW + apart, PATH, MEDIA, BODY)
    else:
        with pytest.raises(StaleSignatureError, match="at most 300 seconds"):
            verify(PUBLIC, fields, NOW + apart, PATH, MEDIA, BODY)


def test_only_the_holder_of_the_key_is_told_the_time() -> None:
    fields = sign(Ed25519PrivateKey.generate(), "7", NOW - 10**6, PATH, MEDIA, BODY)
    with pytest.raises(SignatureError) as raised:
        verify(PUBLIC, fields, NOW, PATH, MEDIA, BODY)
    assert type(raised.value) is SignatureError
    assert str(NOW) not in str(raised.value)
