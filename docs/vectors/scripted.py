"""Randomness of the vectors: bytes that follow from a label, and our code drawing them.

All randomness is SHAKE-256 of a label and reaches our code through what it calls anyway: while a
vector is made, `os.urandom` and key generation return scripted bytes, and must be called exactly as
often and for as many bytes as scripted. The product has no seam for this.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from earshot_protocol.secure_sum import participant


def drawn(label: str, size: int) -> bytes:
    """Return bytes that look random and are the same every time."""
    return hashlib.shake_256(f"earshot vectors: {label}".encode()).digest(size)


@contextlib.contextmanager
def scripted(
    chunks: list[bytes], keys: tuple[bytes, ...] = (), drawer: ModuleType = participant
) -> Iterator[None]:
    """Let our code draw these bytes, and the module these X25519 keys, in order, and no others."""
    left, keys_left = list(chunks), list(keys)

    def urandom(size: int) -> bytes:
        chunk = left.pop(0)
        if len(chunk) != size:
            raise ValueError(f"{size} bytes were drawn where {len(chunk)} were scripted")
        return chunk

    generator = SimpleNamespace(
        generate=lambda: X25519PrivateKey.from_private_bytes(keys_left.pop(0)),
        from_private_bytes=X25519PrivateKey.from_private_bytes,
    )
    with (
        mock.patch("os.urandom", urandom),
        mock.patch.object(drawer, "X25519PrivateKey", generator),
    ):
        yield
    if left or keys_left:
        raise ValueError("less was drawn than scripted")
