"""Shamir's sharing by the textbook, and the shares that the product deals."""

from __future__ import annotations

from hypothesis import strategies as st

from earshot_protocol.secure_sum import shamir
from earshot_protocol.secure_sum.shamir import PRIME

SECRETS = st.integers(0, PRIME - 1).map(lambda number: number.to_bytes(32))


def lagrange(shares: dict[int, int], at: int) -> int:
    """Return f(at) = Σ y_i ∏ (at − x_j) / (x_i − x_j) mod p."""
    total = 0
    for i, y in shares.items():
        term = y
        for j in shares:
            if j != i:
                term = term * (at - j) * pow(i - j, -1, PRIME) % PRIME
        total += term
    return total % PRIME


def shares_of(secret: bytes, threshold: int, count: int) -> dict[int, int]:
    """Return the shares by their points."""
    shares = shamir.split([secret], threshold, count)
    assert shares.shape == (1, count, 32)
    return {x: int.from_bytes(share.tobytes()) for x, share in enumerate(shares[0], start=1)}
