"""Public keys as the points that they encode: X25519 reads several byte strings as one point."""

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
"""Points of order 1, 2, 4 and 8, on the curve or its twist: every key agrees with them on zero."""


def points(keys: Iterable[bytes]) -> set[int]:
    """Return the u-coordinates that X25519 uses: little-endian, without the top bit, modulo p."""
    read = int.from_bytes
    return {(read(key, "little") & _USED_BITS) % _PRIME for key in keys}
