"""Arithmetic of Field128 in numpy alone: words of 32 bits, with carries kept for the end.

No branch or index depends on a value, so the time of a phone's proof does not reveal its ballot.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol.prio3.field import FOLD, TOP, Elements, Signs, unpacked

_Limbs = npt.NDArray[np.int64]
"""Sums of signed limbs, (limbs, …): limb i counts 2^(32 i)."""

_LIMB = np.uint64(2**32 - 1)
_SHIFT = np.uint64(32)
_TOP = np.uint64(TOP)


class LimbArithmetic:
    """Engine of numpy alone; `Arithmetic` describes its operations."""

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b."""
        low = a[..., 0] + b[..., 0]
        high = a[..., 1] + b[..., 1]
        over = high < a[..., 1]
        carry = low < a[..., 0]
        high += carry
        return _reduced(low, high, over | (high < carry))

    def subtract(self, a: Elements, b: Elements) -> Elements:
        """Return a − b."""
        low = a[..., 0] - b[..., 0]
        borrow = a[..., 0] < b[..., 0]
        high = a[..., 1] - b[..., 1] - borrow
        under = (a[..., 1] < b[..., 1]) | ((a[..., 1] == b[..., 1]) & borrow)
        low += under
        high += under * _TOP + (under & (low == 0))
        return np.stack((low, high), axis=-1)

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Return a · b."""
        return _normalised(_folded(_products(a, b)))

    def total(self, a: Elements) -> Elements:
        """Return sums along the last axis of elements: (…, n, 2) becomes (…, 2)."""
        return _normalised(_limbs(a).sum(axis=-1).view(np.int64))

    def dot(self, a: Elements, b: Elements) -> Elements:
        """Return sums of products along the last axis of elements, of at most 2^16 each."""
        # A limb of a product is below 2^35, and `_folded` multiplies it by at most 813 < 2^10.
        return _normalised(_folded(_products(a, b).sum(axis=-1)))

    def butterfly(self, pairs: Elements, roots: Elements) -> Elements:
        """Return even + root · odd and even − root · odd."""
        even, odd = pairs[..., 0, :, :], pairs[..., 1, :, :]
        if len(roots) > 1:  # else the root is 1
            odd = self.multiply(odd, roots)
        return np.stack((self.add(even, odd), self.subtract(even, odd)), axis=-3)

    def signed_dot(self, a: Elements, signs: Signs) -> Elements:
        """Return sums with signs, of at most 2^20 elements each."""
        # Doubles hold sums of 2^20 limbs of 16 bits exactly, so they do not depend on their order.
        limbs = a.view("<u2").astype(np.float64)
        sums = (unpacked(signs, a.shape[1]).astype(np.float64) @ limbs).astype(np.int64)
        return _normalised(np.moveaxis(sums[..., 0::2] + (sums[..., 1::2] << 16), -1, 0).copy())


def _limbs(a: Elements) -> npt.NDArray[np.uint64]:
    return np.moveaxis(a.view("<u4"), -1, 0).astype(np.uint64)


def _products(a: Elements, b: Elements) -> _Limbs:
    """Return the eight limbs of products, below 2^35 each."""
    a, b = np.broadcast_arrays(a, b)
    x, y = _limbs(a), _limbs(b)
    limbs = np.zeros((8, *x.shape[1:]), dtype=np.uint64)
    for place in range(4):
        products = x[place] * y
        limbs[place : place + 4] += products & _LIMB
        products >>= _SHIFT
        limbs[place + 1 : place + 5] += products
    return limbs.view(np.int64)


def _folded(limbs: _Limbs) -> _Limbs:
    """Reduce eight limbs to four modulo p, using 2^128 = FOLD · 2^64 − 1 twice."""
    folded: _Limbs = limbs[:4] - limbs[4:]
    folded[2:] += FOLD * limbs[4:6]
    beyond = FOLD * limbs[6:]
    folded[:2] -= beyond
    folded[2:] += FOLD * beyond
    return folded


def _normalised(limbs: _Limbs) -> Elements:
    """Normalize four signed limbs to elements; overwrites the limbs.

    The first round of carries leaves less than 2^32 above 2^128, in magnitude, the second −1, 0 or
    1, and the third nothing.
    """
    for _ in range(3):
        carry: int | npt.NDArray[np.int64] = 0
        for place in range(4):
            limbs[place] += carry
            carry = limbs[place] >> 32
            limbs[place] &= 2**32 - 1
        limbs[0] -= carry
        limbs[2] += FOLD * carry
    words = limbs.view(np.uint64)
    low, high = words[0::2] | words[1::2] << _SHIFT
    return _reduced(low, high, np.zeros(low.shape, dtype=np.bool_))


def _reduced(
    low: npt.NDArray[np.uint64], high: npt.NDArray[np.uint64], over: npt.NDArray[np.bool_]
) -> Elements:
    """Return elements from numbers below 2p, `over` where they are 2^128 more than their words."""
    over = over | (high > _TOP) | ((high == _TOP) & (low > 0))
    borrow = over & (low == 0)
    return np.stack((low - over, high - over * _TOP - borrow), axis=-1)
