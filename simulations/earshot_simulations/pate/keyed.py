"""Random bytes from a secret key, the same each time: how phones that were killed go on.

A phone keeps its state on its own disk, so a sum that was cut short goes on with the noise that it
had. Phones that are simulated in one process have the key of a run instead, which the operating
system made. Whoever learns the key can take the noise away: it is a secret of the phones, lies in a
file that its owner alone can read, and is gone when the run is done.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.randomness import RandomBytes

KEY_BYTES = 32
_OWNER_ONLY = 0o600


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


def key_of(path: Path) -> bytes:
    """The key in a file; a new one, on the disk when this returns, if the file is not there.

    Raises:
        InvalidInputError: the file holds something else.
    """
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = os.urandom(KEY_BYTES)
        new = path.with_suffix(".new")
        with open(new, "wb", opener=lambda name, flags: os.open(name, flags, _OWNER_ONLY)) as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    if len(key) != KEY_BYTES:
        raise InvalidInputError(f"{path}: holds {len(key)} bytes, and no key of {KEY_BYTES}")
    return key
