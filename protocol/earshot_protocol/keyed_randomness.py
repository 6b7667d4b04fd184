"""Random bytes from a secret key, the same each time: how work that was killed goes on.

Whoever learns the key can take the noise away that was drawn from it.
"""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from earshot_protocol.randomness import RandomBytes

KEY_BYTES = 32


def keyed(key: bytes, *names: object) -> RandomBytes:
    """A source of bytes for each list of names: independent of each other, and always the same.

    ChaCha20 under a key that HMAC-SHA256 derives from the names.

    Args:
        key: 32 secret bytes.
        names: what the bytes are for.
    """
    # Names are quoted, so that no two lists of names are one text.
    own = hmac.digest(key, repr(tuple(str(name) for name in names)).encode(), hashlib.sha256)
    stream = Cipher(ChaCha20(own, bytes(16)), mode=None).encryptor()
    return lambda size: stream.update(bytes(size))
