"""A phone, a leader and a helper written from docs/protocol.md alone: nothing of ours is imported.

X25519, Ed25519 and AES are the library's. Signatures, HPKE, and how all of it is put together are
here in plain integers and strings.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Collection, Iterator
from typing import Any

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from support.textbook_phone import (
    canonical,
    mask_of,
    public_of,
    signed,
    vector_packed,
    vector_unpacked,
)

Offer = dict[str, Any]
Terms = dict[str, Any]

SHARE = b"earshot two operators: helper's share"
TAG = b"earshot two operators: "
"""What a signature begins with, before whose it is and of what."""
ENTRY = 96
HOUR = 3600


# --------------------------------------------------------------------------- parameters of a sum


def length(terms: Terms) -> int:
    return math.prod(terms["shape"])


def reach(noise: dict[str, Any], entries: int) -> int:
    bits = 80 + entries.bit_length()
    if noise["law"] == "discrete-laplace":
        return 2 * (7 * int(noise["fine_scale"]) * (bits + 2) // 655_360 + 1)
    return math.isqrt(28 * int(noise["fine_variance"]) * (bits + 1) // 655_360) + 1


def width(terms: Terms) -> int:
    largest = terms["phones"] * terms["bound"] + reach(terms["noise"], length(terms))
    return int(largest).bit_length() + 1


def derived(phase: dict[str, Any], part: str, shape: list[int]) -> Terms:
    """The parameters of a sum that a phone works out from those of its phase."""
    phones = phase["phones"]
    bound, noise = _mechanism(phase, part)
    terms = {
        "phones": phones,
        "shape": shape,
        "bound": bound,
        "noise": noise,
        "least": max(2, phones - math.floor(round(phase["dropout"] * phones, 6))),
        "window": phase.get("step_seconds", 86_400.0),
    }
    if phase["summation"] == "two-operators":
        terms["proof"] = _proof(phase["type"], bound, shape)
    return terms


def _proof(kind: str, bound: int, shape: list[int]) -> dict[str, Any]:
    if kind in ("discovery", "statistics"):
        return {"proof": "norm"}
    if kind == "labelling":
        block = shape[-1]
        return {"proof": "counts", "width": bound.bit_length(), "total": bound, "block": block}
    entries = math.prod(shape)
    return {"proof": "counts", "width": 1, "total": min(bound, entries), "block": entries}


def _mechanism(phase: dict[str, Any], part: str) -> tuple[int, dict[str, Any]]:
    if phase["type"] == "discovery":
        steps = phase["labels_noise" if part == "labels" else "cells_noise"] * 4096
        return 4096, _gaussian(steps)
    if phase["type"] == "labelling":
        votes = phase["votes_noise" if part == "votes" else "check_noise"]
        weight = phase.get("largest_weight", 1)
        return weight, _gaussian(votes)
    if phase["type"] == "statistics":
        return 4096, _gaussian(phase["noise"] * 4096)
    name = part.replace(" ", "_")
    most, epsilon = phase[f"{name}s"], phase["budget"][name]
    return most, {"law": "discrete-laplace", "fine_scale": math.ceil(2 / epsilon * 65_536)}


def _gaussian(deviation: float) -> dict[str, Any]:
    fine = math.ceil(deviation * deviation * 65_536)
    return {"law": "discrete-gaussian", "fine_variance": fine}


# ------------------------------------------------------------------------------- hashing, sealing


def expanded(key: bytes, info: bytes, size: int) -> bytes:
    """RFC 5869's second half with SHA-256."""
    out = block = b""
    while len(out) < size:
        block = hmac.digest(key, block + info + bytes([len(out) // 32 + 1]), "sha256")
        out += block
    return out[:size]


def helpers_share(seed: bytes, entries: int, bits: int) -> list[int]:
    """Words of the key stream, each without the bits above its width."""
    keys = expanded(hmac.digest(bytes(32), seed, "sha256"), SHARE, 48)
    words = mask_of(keys[:32], entries, bits, int.from_bytes(keys[32:], "big"))
    return [word % 2**bits for word in words]


def labelled_extract(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + secret, "sha256")


def labelled_expand(suite: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    return expanded(secret, size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, size)


def hpke_keys(shared: bytes, enc: bytes, recipient: bytes, info: bytes) -> tuple[bytes, bytes]:
    """Key and nonce of the first message in base mode, of RFC 9180's suite 0x0020, 1, 1."""
    kem, suite = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x01"
    agreed = labelled_extract(kem, b"", b"eae_prk", shared)
    secret = labelled_expand(kem, agreed, b"shared_secret", enc + recipient, 32)
    context = b"\x00" + labelled_extract(suite, b"", b"psk_id_hash", b"")
    context += labelled_extract(suite, b"", b"info_hash", info)
    scheduled = labelled_extract(suite, secret, b"secret", b"")
    key = labelled_expand(suite, scheduled, b"key", context, 16)
    return key, labelled_expand(suite, scheduled, b"base_nonce", context, 12)


def bound_to(offer_digest: bytes, report_id: bytes, share: bytes = b"") -> bytes:
    return offer_digest + report_id + hashlib.sha256(share).digest()


def sealed_seed(seed: bytes, key: bytes, ephemeral: bytes, info: bytes) -> bytes:
    pair, enc = X25519PrivateKey.from_private_bytes(ephemeral), public_of(ephemeral)
    shared = pair.exchange(X25519PublicKey.from_public_bytes(key))
    cipher, nonce = hpke_keys(shared, enc, key, info)
    return enc + AESGCM(cipher).encrypt(nonce, seed, None)


def opened_seed(sealed: bytes, private: bytes, info: bytes) -> bytes | None:
    pair = X25519PrivateKey.from_private_bytes(private)
    try:
        shared = pair.exchange(X25519PublicKey.from_public_bytes(sealed[:32]))
        cipher, nonce = hpke_keys(shared, sealed[:32], public_of(private), info)
        return AESGCM(cipher).decrypt(nonce, sealed[32:], None)
    except (InvalidTag, ValueError):
        return None


# -------------------------------------------------------------------------------------- signatures


def digest_of(offer: Offer) -> bytes:
    return hashlib.sha256(canonical(offer)).digest()


def body_of(message: dict[str, Any]) -> bytes:
    """What is signed of a request for an offer, and of a total."""
    return canonical({name: entry for name, entry in message.items() if name != "signature"})


def list_body(offer_digest: bytes, reports: bytes) -> bytes:
    return offer_digest + len(reports).to_bytes(8, "big") + hashlib.sha256(reports).digest()


def signature(private: bytes, whose: bytes, body: bytes) -> bytes:
    message = TAG + whose + hashlib.sha256(body).digest()
    return Ed25519PrivateKey.from_private_bytes(private).sign(message)


def is_signed(public: bytes, whose: bytes, body: bytes, given: bytes) -> bool:
    message = TAG + whose + hashlib.sha256(body).digest()
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(given, message)
    except (InvalidSignature, ValueError):
        return False
    return True


# --------------------------------------------------------------------------------------- the phone


def told_in(phase: dict[str, Any], task: dict[str, Any]) -> bytes:
    """What all phones are told alike, which has no offer in it."""
    opening = {name: entry for name, entry in task["advertise"].items() if name != "offer"}
    return canonical(phase) + canonical(task | {"advertise": opening | {"index": 0}})


def refusals(
    opening: dict[str, Any],
    expected: Terms,
    told: bytes,
    leaders: Collection[bytes],
    helpers: Collection[bytes],
    now: float,
    proves: bool = True,
) -> Iterator[str]:
    """The rules by which a phone sends no report, in their order."""
    if opening.get("offer") is None:
        yield "wrong_offer"
        return
    offer, both = opening["offer"]["offer"], opening["offer"]
    terms, digest = offer["parameters"], digest_of(offer)
    if "proof" in expected and not proves:
        yield "proofs"
    if offer["leader"] not in leaders or offer["helper"] not in helpers:
        yield "unknown_helper"
    if offer["leader"] == offer["helper"]:
        yield "unknown_helper"
    both_signed = all(
        is_signed(offer[who], f"{who}'s offer".encode(), digest, both[who])
        for who in ("helper", "leader")
    )
    if not both_signed:
        yield "wrong_offer"
    size = "fine_scale" if expected["noise"]["law"] == "discrete-laplace" else "fine_variance"
    same_law = terms["noise"]["law"] == expected["noise"]["law"]
    if not same_law or terms["noise"][size] < expected["noise"][size]:
        yield "weak_noise"
    if terms["least"] < expected["least"]:
        yield "too_few"
    stated = (offer["version"], offer["suite"], offer["sum_id"], offer["task"], terms)
    if stated != (1, 1, opening["sum_id"], hashlib.sha256(told).digest(), expected):
        yield "wrong_offer"
    if not is_key(offer["key"]):
        yield "wrong_offer"
    in_time = offer["opens"] - HOUR <= now <= offer["closes"] + HOUR
    if not in_time or abs(offer["closes"] - offer["opens"] - terms["window"]) > 1e-3:
        yield "closed"


def is_key(key: bytes) -> bool:
    """Whether anything secret can be agreed on with a key: for one of low order it is zeros."""
    try:
        X25519PrivateKey.from_private_bytes(bytes(31) + b"\x40").exchange(
            X25519PublicKey.from_public_bytes(key)
        )
    except ValueError:
        return False
    return True


def report(
    opening: dict[str, Any], values: list[int], seed: bytes, report_id: bytes, sealed: bytes
) -> dict[str, Any]:
    terms = opening["offer"]["offer"]["parameters"]
    bits = width(terms)
    theirs = helpers_share(seed, len(values), bits)
    share = [value - word for value, word in zip(values, theirs, strict=True)]
    return {
        "type": "report",
        "sum_id": opening["sum_id"],
        "sender": opening["index"],
        "report_id": report_id,
        "sealed": sealed,
        "share": vector_packed(share, bits),
        "public": b"",
    }


# --------------------------------------------------------------------------------- both operators


def entries(reports: bytes) -> list[tuple[bytes, bytes]]:
    """Identifier and sealed seed of each report."""
    places = range(0, len(reports), ENTRY)
    return [(reports[at : at + 16], reports[at + 16 : at + ENTRY]) for at in places]


def helpers_total(
    offer: Offer, reports: bytes, private: bytes, noise: list[int]
) -> tuple[bytes, bytes]:
    """The identifiers that are refused, and the packed total."""
    terms, digest = offer["parameters"], digest_of(offer)
    bits, refused, total = width(terms), b"", list(noise)
    for report_id, sealed in entries(reports):
        seed = opened_seed(sealed, private, bound_to(digest, report_id))
        if seed is None:
            refused += report_id
            continue
        theirs = helpers_share(seed, len(total), bits)
        total = [have + word for have, word in zip(total, theirs, strict=True)]
    return refused, vector_packed(total, bits)


def result(
    offer: Offer, counted: list[dict[str, Any]], total: bytes, noise: list[int]
) -> list[int]:
    """What the leader publishes of the reports that opened, row by row."""
    terms = offer["parameters"]
    size, bits = length(terms), width(terms)
    halves = [vector_unpacked(data, size, bits) for data in (total, *(r["share"] for r in counted))]
    return [signed(sum(entry), bits) for entry in zip(noise, *halves, strict=True)]


# ------------------------------------------------------------------------------- sizes of proofs


def squared(terms: Terms) -> int:
    """Elements of an encoded input whose squares are added up."""
    return length(terms) if terms["proof"]["proof"] == "norm" else 0


def bits(terms: Terms) -> int:
    """Elements of an encoded input that are bits."""
    proof = terms["proof"]
    if proof["proof"] == "norm":
        return 24 + 100 * 17
    blocks = length(terms) // proof["block"]
    return length(terms) * int(proof["width"]) + blocks * int(proof["total"]).bit_length()


def proof_length(terms: Terms, chunk: int) -> int:
    calls = math.ceil(bits(terms) / chunk) + math.ceil(squared(terms) / chunk)
    points = 2
    while points < calls + 1:
        points *= 2
    return 2 * chunk + 2 * points - 1


def chunk_length(terms: Terms) -> int:
    """Of all, that of the shortest proof; of several, the smallest."""
    chunks = range(1, squared(terms) + bits(terms) + 1)
    return min(chunks, key=lambda chunk: (proof_length(terms, chunk), chunk))


def sizes(terms: Terms) -> dict[str, int]:
    """Bytes of what a phone and both operators send of a proved input."""
    chunk = chunk_length(terms)
    return {
        "share": 16 * (squared(terms) + bits(terms) + proof_length(terms, chunk)) + 32,
        "public": 128 if squared(terms) else 64,
        "sealed": 112,
        "verifier": 16 * (2 * chunk + 2) + 32,
    }
