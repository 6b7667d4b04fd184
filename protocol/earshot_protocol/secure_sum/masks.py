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
"""Vectors modulo 2^16, 2^32 or 2^64: the word that holds the modulus wraps by itself."""

_AGREED = b"earshot secure sum: keys of a pair"
_SALT = b"earshot secure sum: salt"
_COMMITMENT = b"earshot secure sum: seed commitment"
_LIST = b"earshot secure sum: list of masks"
_TRACE = b"earshot secure sum: trace of a mask"

_HASH = SHA256()
_CTR = modes.CTR(bytes(16))  # a zero nonce: every seed keys one stream only
_PAIR = struct.Struct(">II")
_NO_NONCE = bytes(12)
"""Fixed nonce: a lock seals only one list."""


class PairKeys(NamedTuple):
    """Keys that two phones agree on, 32 bytes each.

    Attributes:
        seal: Key under which shares travel between the two phones.
        mask: Seed of the mask that one phone adds and the other subtracts.
    """

    seal: bytes
    mask: bytes


def salt(opening: AdvertiseKeys, told: bytes) -> bytes:
    """Return the 32 bytes that bind a sum's keys to the description given to all of its phones.

    Args:
        opening: First task of the sum, of any phone: its own number is left out.
        told: Description of the sum, the same bytes for every phone; empty in a sum of no phase.
    """
    alike = msgspec.structs.replace(opening, index=0)
    return hashlib.sha256(_SALT + canonical(alike) + told).digest()


def agree(private: X25519PrivateKey, public: bytes, salt: bytes, us: int, them: int) -> PairKeys:
    """Derive HKDF-SHA256(X25519(private, public)), bound to pair and salt, in two halves.

    The server may learn one half, of a phone that vanished; it then still knows nothing about the
    other half (docs/decisions/0038).

    Raises:
        ValueError: `public` is not a usable X25519 key (a point of low order).
    """
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    pair = _PAIR.pack(us, them) if us < them else _PAIR.pack(them, us)
    keys = HKDF(_HASH, 64, salt, _AGREED + pair).derive(shared)
    return PairKeys(keys[:32], keys[32:])


def seal_list(lock: bytes, masks: Iterable[bytes], salt: bytes, phone: int) -> bytes:
    """Seal the seeds of a phone's pairwise masks under a lock that seals nothing else."""
    return AESGCM(lock).encrypt(_NO_NONCE, b"".join(masks), _bound(salt, phone))


def open_list(lock: bytes, sealed: bytes, salt: bytes, phone: int) -> tuple[bytes, ...] | None:
    """Return what `seal_list` sealed, or None if this is not its lock."""
    try:
        masks = AESGCM(lock).decrypt(_NO_NONCE, sealed, _bound(salt, phone))
    except InvalidTag:
        return None
    return tuple(masks[at : at + 32] for at in range(0, len(masks), 32))


def _bound(salt: bytes, phone: int) -> bytes:
    return _LIST + salt + phone.to_bytes(4)


def trace(mask: bytes) -> bytes:
    """Hash the seed of a pair's mask, which is bound to the pair and the sum's salt; 8 bytes.

    The trace reveals nothing about the seed, which is uniform. If the traces of both ends of a pair
    are equal, so are their seeds: a false seed takes a second preimage, and spoils only one sum.
    """
    return hashlib.sha256(_TRACE + mask).digest()[:TRACE_BYTES]


def commitment(seed: bytes, salt: bytes, index: int) -> bytes:
    """Commit to a self-mask seed, as shown in round 1; hiding, as the seed is uniform."""
    return hashlib.sha256(_COMMITMENT + salt + index.to_bytes(4) + seed).digest()


def word_type(modulus_bits: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned little-endian word that holds the modulus."""
    return np.dtype("<u2" if modulus_bits <= 16 else "<u4" if modulus_bits <= 32 else "<u8")


def expand_sum(seeds: Iterable[bytes], length: int, word: np.dtype[np.unsignedinteger]) -> Words:
    """Return the sum of the masks of all seeds, `length` words.

    A mask is PRG(seed), the AES-256-CTR key stream of the full 256-bit seed.
    """
    zeros = bytes(length * word.itemsize)
    total = np.zeros(length, dtype=word)
    for seed in seeds:
        stream = Cipher(algorithms.AES256(seed), _CTR).encryptor().update(zeros)
        np.add(total, np.frombuffer(stream, dtype=word), out=total)
    return total
