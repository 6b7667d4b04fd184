"""All randomness of a training, from one secret, so that a repeated step is identical.

JAX's numbers are threefry's, from keys of 64 bits; each key is new, from ChaCha20 under the secret,
so none is used twice.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import jax
import numpy as np

from earshot_protocol.keyed_randomness import KEY_BYTES, keyed
from earshot_protocol.randomness import RandomBytes


def secret_of(seed: int | None) -> bytes:
    """Return 32 bytes, from the operating system or from a seed.

    Seeds are for simulations and public sound.
    """
    if seed is None:
        return os.urandom(KEY_BYTES)
    return hashlib.sha256(f"seed {seed}".encode()).digest()


class Randomness:
    """Independent sources of randomness, one for each list of names.

    Args:
        secret: Secret of 32 bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def source(self, *names: object) -> RandomBytes:
        """Return a source of bytes."""
        return keyed(self._secret, *names)

    def key(self, *names: object) -> Any:
        """Return a key of jax.random."""
        words = np.frombuffer(self.source(*names)(8), dtype="<u4").astype(np.uint32)
        return jax.random.wrap_key_data(jax.numpy.asarray(words), impl="threefry2x32")

    def generator(self, *names: object) -> np.random.Generator:
        """Return NumPy's generator, seeded with 128 bits."""
        return np.random.default_rng(int.from_bytes(self.source(*names)(16), "little"))
