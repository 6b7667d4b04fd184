"""Keys that two phones agree on, and the masks that are expanded from them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.wire import canonical

Words = npt.NDArray[np.unsignedinteger]
"""Vectors modulo 2^16, 2^32 or 2^64: the word that holds the modulus, which wraps by itself."""

CIPHER = b"earshot secure sum: cipher key"
MASK = b"earshot secure sum: pairwise mask"
_SALT = b"earshot secure sum: salt"
_COMMITMENT = b"earshot secure sum: seed commitment"

_HASH = SHA256()
_CTR = modes.CTR(bytes(16))  # a zero nonce: every seed keys one stream only
_PAIR = struct.Struct(">II")


def salt(opening: AdvertiseKeys, told: bytes) -> bytes:
    """What binds every key of a sum to all that its phones must have been told alike; 32 bytes.

    Args:
        opening: the first task of the sum, of whatever phone: its own number is left out.
        told: what the sum is about, in the same bytes to every phone; nothing in a bare sum.
    """
    alike = msgspec.structs.replace(opening, index=0)
    return hashlib.sha256(_SALT + canonical(alike) + told).digest()


def agree(
    private: X25519PrivateKey, public: bytes, purpose: bytes, salt: bytes, us: int, them: int
) -> bytes:
    """HKDF-SHA256(X25519(private, public)), bound to purpose, pair and the sum's salt; 32 bytes.

    Raises:
        ValueError: `public` is not a usable X25519 key (a point of low order).
    """
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    pair = _PAIR.pack(us, them) if us < them else _PAIR.pack(them, us)
    return HKDF(_HASH, 32, salt, purpose + pair).derive(shared)


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
