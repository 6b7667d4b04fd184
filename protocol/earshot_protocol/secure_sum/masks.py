"""Keys that two phones agree on, and the masks that are expanded from them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from earshot_protocol.secure_sum.messages import TRACE_BYTES, AdvertiseKeys
from earshot_protocol.wire import canonical

Words = npt.NDArray[np.unsignedinteger]
"""Vectors modulo 2^16, 2^32 or 2^64: the word that holds the modulus, which wraps by itself."""

_AGREED = b"earshot secure sum: keys of a pair"
_SALT = b"earshot secure sum: salt"
_COMMITMENT = b"earshot secure sum: seed commitment"
_LIST = b"earshot secure sum: list of masks"
_TRACE = b"earshot secure sum: trace of a mask"

_HASH = SHA256()
_CTR = modes.CTR(bytes(16))  # a zero nonce: every seed keys one stream only
_PAIR = struct.Struct(">II")
_NO_NONCE = bytes(12)
"""A lock seals one list."""


class PairKeys(NamedTuple):
    """What two phones agree on, 32 bytes each.

    Attributes:
        seal: under which shares travel between them.
        mask: seed of the mask that one adds and the other takes off.
    """

    seal: bytes
    mask: bytes


def salt(opening: AdvertiseKeys, told: bytes) -> bytes:
    """What binds every key of a sum to all that its phones must have been told alike; 32 bytes.

    Args:
        opening: the first task of the sum, of whatever phone: its own number is left out.
        told: what the sum is about, in the same bytes to every phone; nothing in a bare sum.
    """
    alike = msgspec.structs.replace(opening, index=0)
    return hashlib.sha256(_SALT + canonical(alike) + told).digest()


def agree(private: X25519PrivateKey, public: bytes, salt: bytes, us: int, them: int) -> PairKeys:
    """HKDF-SHA256(X25519(private, public)), bound to the pair and the sum's salt, in two halves.

    The server may come to know one half, of a phone that vanished; of the other it knows as little
    then as before (docs/decisions/0038).

    Raises:
        ValueError: `public` is not a usable X25519 key (a point of low order).
    """
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    pair = _PAIR.pack(us, them) if us < them else _PAIR.pack(them, us)
    keys = HKDF(_HASH, 64, salt, _AGREED + pair).derive(shared)
    return PairKeys(keys[:32], keys[32:])


def seal_list(lock: bytes, masks: Iterable[bytes], salt: bytes, phone: int) -> bytes:
    """The seeds of a phone's pairwise masks, sealed under a lock that seals nothing else."""
    return AESGCM(lock).encrypt(_NO_NONCE, b"".join(masks), _bound(salt, phone))


def open_list(lock: bytes, sealed: bytes, salt: bytes, phone: int) -> tuple[bytes, ...] | None:
    """What `seal_list` sealed, or None where this is not its lock."""
    try:
        masks = AESGCM(lock).decrypt(_NO_NONCE, sealed, _bound(salt, phone))
    except InvalidTag:
        return None
    return tuple(masks[at : at + 32] for at in range(0, len(masks), 32))


def _bound(salt: bytes, phone: int) -> bytes:
    return _LIST + salt + phone.to_bytes(4)


def trace(mask: bytes) -> bytes:
    """Hash the seed of a pair's mask, which is bound to the pair and the sum's salt; 8 bytes.

    It tells nothing of the seed, which is uniform, and two ends of a pair whose traces are equal
    have the same one: whoever seals another has to find a second preimage, to spoil one sum.
    """
    return hashlib.sha256(_TRACE + mask).digest()[:TRACE_BYTES]


def commitment(seed: bytes, salt: bytes, index: int) -> bytes:
    """What a phone shows of its self-mask seed in round 1; hiding, as the seed is uniform."""
    return hashlib.sha256(_COMMITMENT + salt + index.to_bytes(4) + seed).digest()


def word_type(modulus_bits: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned little-endian word that holds the modulus."""
    return np.dtype("<u2" if modulus_bits <= 16 else "<u4" if modulus_bits <= 32 else "<u8")


def expand_sum(seeds: Iterable[bytes], length: int, word: np.dtype[np.unsignedinteger]) -> Words:
    """The sum of the masks of all seeds, `length` words.

    A mask is PRG(seed), the AES-256-CTR key stream of the full 256-bit seed.
    """
    zeros = bytes(length * word.itemsize)
    total = np.zeros(length, dtype=word)
    for seed in seeds:
        stream = Cipher(algorithms.AES256(seed), _CTR).encryptor().update(zeros)
        np.add(total, np.frombuffer(stream, dtype=word), out=total)
    return total
