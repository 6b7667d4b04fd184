"""The two shares of an input: the helper's follows from a seed, and the leader's is the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from earshot_protocol.secure_sum.masks import Words, word_type
from earshot_protocol.two_operators.parameters import TwoOperatorParameters

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_SHARE = b"earshot two operators: helper's share"
_HASH = SHA256()


def helper_shares(seeds: Iterable[bytes], parameters: TwoOperatorParameters) -> Words:
    """Return the sum of the helper's shares of inputs: the key streams of these seeds.

    HKDF-SHA256 without salt makes an AES-256 key and the first counter block from a seed. Each
    entry takes the low bits of the next word of 2, 4 or 8 bytes, little-endian.
    """
    word = word_type(parameters.modulus_bits)
    zeros = bytes(parameters.length * word.itemsize)
    total = np.zeros(parameters.length, dtype=word)
    for seed in seeds:
        keys = HKDF(_HASH, 48, None, _SHARE).derive(seed)
        stream = Cipher(algorithms.AES256(keys[:32]), modes.CTR(keys[32:])).encryptor()
        np.add(total, np.frombuffer(stream.update(zeros), dtype=word), out=total)
    return total


def seal(
    seed: bytes, key: X25519PublicKey, offer: bytes, report_id: bytes, public: bytes = b""
) -> bytes:
    """Seal a seed to the helper, for this report under this offer alone.

    Args:
        seed: Seed of the helper's share, 32 bytes; of a proved input with its blind.
        key: Key of the offer.
        offer: Digest of the offer.
        report_id: Identifier of the report.
        public: Public share of a proved input.
    """
    return _SUITE.encrypt(seed, key, _bound(offer, report_id, public))


def unseal(
    sealed: bytes, key: X25519PrivateKey, offer: bytes, report_id: bytes, public: bytes = b""
) -> bytes | None:
    """Return the seed that `seal` sealed, or None if this is not such a seed."""
    try:
        return _SUITE.decrypt(sealed, key, _bound(offer, report_id, public))
    except (InvalidTag, ValueError):
        return None


def _bound(offer: bytes, report_id: bytes, public: bytes) -> bytes:
    return offer + report_id + hashlib.sha256(public).digest()
