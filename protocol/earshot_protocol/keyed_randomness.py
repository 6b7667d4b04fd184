"""Deterministic random bytes from a secret key, so that killed work can resume.

Whoever learns the key can remove the noise that was drawn from it.
"""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from earshot_protocol.randomness import RandomBytes

KEY_BYTES = 32


def keyed(key: bytes, *names: object) -> RandomBytes:
    """Return a source of bytes for these names: always the same, and independent of other names'.

    The source is ChaCha20 under a key that HMAC-SHA256 derives from the names.

    Args:
        key: 32 secret bytes.
        names: Purpose of the bytes.
    """
    # Names are quoted, so that no two lists of names give the same text.
    own = hmac.digest(key, repr(tuple(str(name) for name in names)).encode(), hashlib.sha256)
    stream = Cipher(ChaCha20(own, bytes(16)), mode=None).encryptor()
    return lambda size: stream.update(bytes(size))
