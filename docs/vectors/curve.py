"""Ed25519 in plain numbers (RFC 8032), to sign with a nonce that no library would draw.

Signers may draw their nonce at random, so a signature is verified and never compared.
"""

from __future__ import annotations

import hashlib

ORDER = 2**252 + 27742317777372353535851937790883648493
"""Order of the group."""
_PRIME = 2**255 - 19
_D = -121665 * pow(121666, -1, _PRIME) % _PRIME
_BASE_Y = 4 * pow(5, -1, _PRIME) % _PRIME
_BASE = (
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    _BASE_Y,
)
_Point = tuple[int, int]


def signature_with(secret: bytes, message: bytes, nonce: bytes) -> bytes:
    """Return the signature of a message with a nonce of 64 bytes, which RFC 8032 would derive."""
    hashed = hashlib.sha512(secret).digest()
    scalar = int.from_bytes(hashed[:32], "little") & (2**254 - 8) | 2**254
    r = int.from_bytes(nonce, "little") % ORDER
    commitment, public = _encoded(_times(r)), _encoded(_times(scalar))
    challenge = hashlib.sha512(commitment + public + message).digest()
    s = (r + int.from_bytes(challenge, "little") * scalar) % ORDER
    return commitment + s.to_bytes(32, "little")


def _times(scalar: int) -> _Point:
    total, power = (0, 1), _BASE
    while scalar:
        if scalar & 1:
            total = _sum(total, power)
        power, scalar = _sum(power, power), scalar >> 1
    return total


def _sum(a: _Point, b: _Point) -> _Point:
    both = _D * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + both, -1, _PRIME)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - both, -1, _PRIME)
    return x % _PRIME, y % _PRIME


def _encoded(point: _Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")
