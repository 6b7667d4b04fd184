"""A phone and a server written from docs/protocol.md alone, slowly: nothing of ours is imported.

Primitives (X25519, AES) are the library's; whatever the document says about how they are put
together is here in plain integers and strings.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PRIME = 2**256 - 189
AGREED = b"earshot secure sum: keys of a pair"
LIST = b"earshot secure sum: list of masks"
TRACE = b"earshot secure sum: trace of a mask"
COMMITMENT = b"earshot secure sum: seed commitment"
SALT = b"earshot secure sum: salt"
DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("step_seconds", 86_400.0),
    ("noise_crowd", 10_000),
    ("hierarchy", b""),
    ("summation", "bell"),
    ("choices", []),
    ("centroids", None),
    ("parameters", None),
    ("places", None),
    ("rows", None),
    ("radius", None),
    ("delta", 1e-6),
    ("kinds", 1),
    ("kinds", []),
    ("precision", 0),
    ("statistical_security", 40),
    ("correctness", 30),
    ("proof", None),
    ("verifiers", b""),
)
"""Of the fields of parameters, of tasks that begin a part, and of totals; `kinds` is a number in
parameters, and a list in tasks."""

# -------------------------------------------------------------------------------- MessagePack

_SINGLE = {0xC0: None, 0xC2: False, 0xC3: True}


def packed(value: Any) -> bytes:
    """The shortest MessagePack of a value; floats take 64 bits."""
    for code, single in _SINGLE.items():
        if value is single:
            return bytes([code])
    if isinstance(value, int):
        return _packed_int(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        text = value.encode()
        return _head(len(text), 0xA0, 32, (0xD9, 0xDA, 0xDB)) + text
    if isinstance(value, bytes):
        return _head(len(value), None, 0, (0xC4, 0xC5, 0xC6)) + value
    if isinstance(value, list):
        return _head(len(value), 0x90, 16, (None, 0xDC, 0xDD)) + b"".join(map(packed, value))
    assert isinstance(value, dict)
    entries = b"".join(packed(name) + packed(entry) for name, entry in value.items())
    return _head(len(value), 0x80, 16, (None, 0xDE, 0xDF)) + entries


def canonical(value: Any) -> bytes:
    """The form in which parameters and tasks are hashed."""
    return packed(_canonical(value))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: entry for name, entry in value.items() if (name, entry) not in DEFAULTS}
        return {name: _canonical(kept[name]) for name in sorted(kept)}
    return [_canonical(entry) for entry in value] if isinstance(value, list) else value


def _packed_int(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b", value)
    codes = ((0xCC, "B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q"))
    if value < 0:
        codes = ((0xD0, "b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q"))
    for code, form in codes:
        try:
            return bytes([code]) + struct.pack(form, value)
        except struct.error:
            continue
    raise OverflowError(value)


def _head(size: int, fix: int | None, limit: int, codes: tuple[int | None, int, int]) -> bytes:
    if fix is not None and size < limit:
        return bytes([fix | size])
    for code, form, most in zip(codes, ("B", ">H", ">I"), (2**8, 2**16, 2**32), strict=True):
        if code is not None and size < most:
            return bytes([code]) + struct.pack(form, size)
    raise OverflowError(size)


def unpacked(data: bytes) -> Any:
    value, rest = _unpack(data)
    assert rest == b""
    return value


def _unpack(data: bytes) -> tuple[Any, bytes]:
    code, rest = data[0], data[1:]
    if code < 0x80 or code >= 0xE0:
        return struct.unpack("b", data[:1])[0], rest
    if code < 0x90:
        return _unpack_map(code & 15, rest)
    if code < 0xA0:
        return _unpack_list(code & 15, rest)
    if code < 0xC0:
        return rest[: code & 31].decode(), rest[code & 31 :]
    if code in _SINGLE:
        return _SINGLE[code], rest
    numbers = {0xCB: ">d", 0xCC: "B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
    numbers |= {0xD0: "b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    if code in numbers:
        size = struct.calcsize(numbers[code])
        return struct.unpack(numbers[code], rest[:size])[0], rest[size:]
    kinds = {"bin": (0xC4, 0), "str": (0xD9, 0), "list": (0xDC, 1), "map": (0xDE, 1)}
    kind, form = next(
        (kind, form)
        for kind, (first, smallest) in kinds.items()
        for place, form in enumerate(("B", ">H", ">I")[smallest:])
        if code == first + place
    )
    (size,) = struct.unpack(form, rest[: struct.calcsize(form)])
    rest = rest[struct.calcsize(form) :]
    if kind == "list":
        return _unpack_list(size, rest)
    if kind == "map":
        return _unpack_map(size, rest)
    content = rest[:size]
    return content if kind == "bin" else content.decode(), rest[size:]


def _unpack_list(size: int, rest: bytes) -> tuple[list[Any], bytes]:
    values = []
    for _ in range(size):
        value, rest = _unpack(rest)
        values.append(value)
    return values, rest


def _unpack_map(size: int, rest: bytes) -> tuple[dict[str, Any], bytes]:
    entries, rest = _unpack_list(2 * size, rest)
    return dict(zip(entries[::2], entries[1::2], strict=True)), rest


# --------------------------------------------------------------------- parts of the secure sum


def public_of(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256 and two blocks."""
    extracted = hmac.digest(salt, secret, "sha256")
    first = hmac.digest(extracted, info + b"\x01", "sha256")
    return first + hmac.digest(extracted, first + info + b"\x02", "sha256")


def salt_of(opening: dict[str, Any], told: bytes) -> bytes:
    return hashlib.sha256(SALT + canonical(opening | {"index": 0}) + told).digest()


def told_in(parameters: dict[str, Any], task: dict[str, Any]) -> bytes:
    """What all phones were told, of a task that begins a part of a phase."""
    opening = task["advertise"] | {"index": 0}
    return canonical(parameters) + canonical(task | {"advertise": opening})


def agreed(private: bytes, public: bytes, salt: bytes, a: int, b: int) -> tuple[bytes, bytes]:
    """The key that seals, and the seed of the mask."""
    shared = X25519PrivateKey.from_private_bytes(private).exchange(
        X25519PublicKey.from_public_bytes(public)
    )
    info = AGREED + min(a, b).to_bytes(4, "big") + max(a, b).to_bytes(4, "big")
    both = hkdf(shared, salt, info)
    return both[:32], both[32:]


def listed(lock: bytes, sealed: bytes, salt: bytes, phone: int) -> list[bytes]:
    """The seeds of a phone's masks."""
    opened = AESGCM(lock).decrypt(bytes(12), sealed, LIST + salt + phone.to_bytes(4, "big"))
    return [opened[i : i + 32] for i in range(0, len(opened), 32)]


def route(sum_id: bytes, sender: int, recipient: int) -> bytes:
    return sum_id + b"\x01" + sender.to_bytes(4, "big") + recipient.to_bytes(4, "big")


def committed(seed: bytes, salt: bytes, phone: int) -> bytes:
    return hashlib.sha256(COMMITMENT + salt + phone.to_bytes(4, "big") + seed).digest()


def key_stream(seed: bytes, size: int, first: int = 0) -> bytes:
    """AES-256 of the block numbers 0, 1, 2, … and on, each a big-endian number of 16 bytes."""
    block = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor()  # noqa: S305
    numbers = ((first + i) % 2**128 for i in range(-(-size // 16)))
    blocks = (block.update(number.to_bytes(16, "big")) for number in numbers)
    return b"".join(blocks)[:size]


def word_bytes(bits: int) -> int:
    return 2 if bits <= 16 else 4 if bits <= 32 else 8


def mask_of(seed: bytes, length: int, bits: int, first: int = 0) -> list[int]:
    size = word_bytes(bits)
    stream = key_stream(seed, length * size, first)
    return [int.from_bytes(stream[i : i + size], "little") for i in range(0, len(stream), size)]


def shares_of(secret: bytes, coefficients: list[int], count: int) -> list[bytes]:
    polynomial = [int.from_bytes(secret, "big"), *coefficients]
    values = (sum(c * x**i for i, c in enumerate(polynomial)) for x in range(1, count + 1))
    return [(value % PRIME).to_bytes(32, "big") for value in values]


def recovered(shares: dict[int, bytes]) -> bytes:
    """Lagrange's interpolation at zero."""
    total = 0
    for x, share in shares.items():
        weight = int.from_bytes(share, "big")
        for other in shares:
            if other != x:
                weight = weight * other * pow(other - x, -1, PRIME) % PRIME
        total += weight
    return (total % PRIME).to_bytes(32, "big")


def vector_packed(entries: list[int], bits: int) -> bytes:
    """Entry i is the bits i·b to (i+1)·b − 1 of one little-endian number."""
    number = sum((entry % 2**bits) << (bits * i) for i, entry in enumerate(entries))
    return number.to_bytes(-(-len(entries) * bits // 8), "little")


def vector_unpacked(data: bytes, length: int, bits: int) -> list[int]:
    number = int.from_bytes(data, "little")
    assert number < 2 ** (length * bits)
    return [(number >> (bits * i)) % 2**bits for i in range(length)]


def signed(entry: int, bits: int) -> int:
    entry %= 2**bits
    return entry - 2**bits if entry >= 2 ** (bits - 1) else entry


# ----------------------------------------------------------------------------------- the phone


@dataclass
class TextbookPhone:
    """One phone in one sum; `drawn` is all its randomness, `values` its input, `told` the rest."""

    values: list[int]
    bits: int
    drawn: dict[str, Any]
    told: bytes
    sum_id: bytes = b""
    salt: bytes = b""
    us: int = 0
    neighbours: list[int] = field(default_factory=list)
    seals: dict[int, bytes] = field(default_factory=dict)
    masks: dict[int, bytes] = field(default_factory=dict)
    held: dict[int, bytes] = field(default_factory=dict)

    def _secret(self, name: str) -> bytes:
        return bytes.fromhex(str(self.drawn[name]))

    def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        acts = {
            "advertise-keys": self.advertise,
            "share-keys": self.share,
            "mask-input": self.mask,
            "unmask": self.unmask,
        }
        kind, fields = acts[task["type"]](task)
        return {"type": kind, "sum_id": self.sum_id, "sender": self.us, **fields}

    def advertise(self, task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self.sum_id, self.us = task["sum_id"], task["index"]
        self.salt = salt_of(task, self.told)
        return "advertised-keys", {"public_key": public_of(self._secret("private"))}

    def share(self, task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self.neighbours = task["neighbours"]
        for place, them in enumerate(self.neighbours):
            key = task["public_keys"][32 * place : 32 * place + 32]
            self.seals[them], self.masks[them] = agreed(
                self._secret("private"), key, self.salt, self.us, them
            )
        both = [
            shares_of(
                self._secret(name),
                [int(coefficient, 16) for coefficient in self.drawn[coefficients]],
                len(self.neighbours),
            )
            for name, coefficients in (
                ("seed", "seed_coefficients"),
                ("lock", "lock_coefficients"),
            )
        ]
        ciphertexts = []
        for place, them in enumerate(self.neighbours):
            nonce = bytes.fromhex(self.drawn["nonces"][place])
            plaintext = bytes([place + 1]) + both[0][place] + both[1][place]
            sealed = AESGCM(self.seals[them]).encrypt(
                nonce, plaintext, route(self.sum_id, self.us, them)
            )
            ciphertexts.append(nonce + sealed)
        sealed = AESGCM(self._secret("lock")).encrypt(
            bytes(12),
            b"".join(self.masks[them] for them in self.neighbours),
            LIST + self.salt + self.us.to_bytes(4, "big"),
        )
        commitment = committed(self._secret("seed"), self.salt, self.us)
        fields = {"ciphertexts": ciphertexts, "masks": sealed, "commitment": commitment}
        return "shared-keys", fields

    def mask(self, task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        total = list(self.values)
        self._add(total, self._secret("seed"), 1)
        for them, ciphertext in zip(task["senders"], task["ciphertexts"], strict=True):
            try:
                self.held[them] = AESGCM(self.seals[them]).decrypt(
                    ciphertext[:12], ciphertext[12:], route(self.sum_id, them, self.us)
                )
            except InvalidTag:
                self.held[them] = bytes(65)
            self._add(total, self.masks[them], 1 if them > self.us else -1)
        return "masked-input", {"vector": vector_packed(total, self.bits)}

    def _add(self, total: list[int], seed: bytes, sign: int) -> None:
        for i, word in enumerate(mask_of(seed, len(total), self.bits)):
            total[i] += sign * word

    def unmask(self, task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        shares = [self.held[them][:33] for them in task["survivors"]]
        shares += [self.held[them][:1] + self.held[them][33:] for them in task["dropped"]]
        traces = [hashlib.sha256(TRACE + self.masks[them]).digest()[:8] for them in task["dropped"]]
        return "unmasked", {"shares": b"".join(shares), "traces": b"".join(traces)}
