"""XofTurboShake128: seeds and field elements from a seed (draft-irtf-cfrg-vdaf-20, section 6.2.1).

TurboSHAKE128 (RFC 9861) is that of pycryptodomex, which the extra `proofs` installs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from earshot_protocol.distribution import MissingExtraError, unusable
from earshot_protocol.prio3.field import ENCODED_BYTES, Elements, in_range

if TYPE_CHECKING:
    from Cryptodome.Hash.TurboSHAKE128 import TurboSHAKE

SEED_BYTES = 32
_DOMAIN = 1
"""Domain separation byte of TurboSHAKE in this XOF."""


def derive_seed(seed: bytes, tag: bytes, binder: bytes) -> bytes:
    """Return a seed of 32 bytes, bound to all three.

    Args:
        seed: At most 255 bytes.
        tag: Domain separation tag, at most 65,535 bytes.
        binder: Further input of any length.

    Raises:
        MissingExtraError: The package pycryptodomex is not installed.
    """
    return _stream(seed, tag, binder).read(SEED_BYTES)


def expand(inputs: Iterable[tuple[bytes, bytes]], tag: bytes, length: int) -> Elements:
    """Return uniform elements, (inputs, length, 2), from pairs of a seed and a binder.

    Numbers of 128 bits that are not below p, one in 2^59, are skipped, as the draft requires.

    Args:
        inputs: Seeds and binders as in `derive_seed`.
        tag: Domain separation tag, as there.
        length: Elements for each.

    Raises:
        MissingExtraError: The package pycryptodomex is not installed.
    """
    streams = [_stream(seed, tag, binder) for seed, binder in inputs]
    size = ENCODED_BYTES * length
    drawn = np.frombuffer(b"".join(stream.read(size) for stream in streams), dtype="<u8")
    values = drawn.reshape(len(streams), length, 2)
    fits = in_range(values)
    if fits.all():
        return values
    values = values.copy()
    for row in np.flatnonzero(~fits.all(axis=1)):
        kept = values[row][fits[row]]
        while len(kept) < length:
            more = np.frombuffer(streams[row].read(ENCODED_BYTES), dtype="<u8").reshape(1, 2)
            kept = np.concatenate((kept, more[in_range(more)]))
        values[row] = kept
    return values


def expand_bytes(
    inputs: Iterable[tuple[bytes, bytes]], tag: bytes, length: int
) -> npt.NDArray[np.uint8]:
    """Return uniform bytes, uint8 (inputs, length), from pairs of a seed and a binder.

    Raises:
        MissingExtraError: The package pycryptodomex is not installed.
    """
    drawn = [_stream(seed, tag, binder).read(length) for seed, binder in inputs]
    return np.frombuffer(b"".join(drawn), dtype=np.uint8).reshape(len(drawn), length)


def _stream(seed: bytes, tag: bytes, binder: bytes) -> TurboSHAKE:
    try:
        from Cryptodome.Hash import TurboSHAKE128  # an optional dependency: an extra
    except ImportError as error:
        raise MissingExtraError(
            unusable("proofs", "pycryptodomex", "Cryptodome", "proofs", error)
        ) from error
    prefix = len(tag).to_bytes(2, "little") + tag + len(seed).to_bytes(1, "little")
    return TurboSHAKE128.new(domain=_DOMAIN, data=prefix + seed + binder)
