"""Public keys as the points that they are: X25519 reads several strings of bytes as one."""

from __future__ import annotations

from collections.abc import Iterable

KEY_BYTES = 32
"""Length of an X25519 public key (RFC 7748)."""

_PRIME = 2**255 - 19
_USED_BITS = 2**255 - 1

LOW_ORDER = frozenset(
    {
        0,
        1,
        _PRIME - 1,
        0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
        0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
    }
)
"""The points of order 1, 2, 4 and 8, on the curve or its twist: all agree with them on zero."""


def points(keys: Iterable[bytes]) -> set[int]:
    """The u-coordinates that X25519 computes with: little-endian, without the top bit, modulo p."""
    read = int.from_bytes
    return {(read(key, "little") & _USED_BITS) % _PRIME for key in keys}
