"""Arithmetic of Field128 compiled by numba, for verifying many proofs.

numba takes seconds to load, and these functions to compile: only `engine.fastest` imports this
file. They are not cached on disk, as processes that concurrently compile one gufunc into the same
cache crash.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.extending import intrinsic

from earshot_protocol.prio3.field import FOLD, TOP, Elements, Signs

_FOLD = np.uint64(FOLD)
_TOP = np.uint64(TOP)
_ZERO = np.uint64(0)
_FOLD_LOW, _FOLD_HIGH = np.uint64(2**64 - 1), np.uint64(FOLD - 1)
"""Halves of 2^128 = FOLD · 2^64 − 1 modulo p."""

_LIMB, _SHIFT = np.uint64(2**32 - 1), np.uint64(32)
_MOST = 2**20
"""Most elements of a sum with signs."""

_PAIR = ["void(uint64[:], uint64[:], uint64[:])"]


class CompiledArithmetic:
    """Compiled implementation of `Arithmetic`."""

    def add(self, a: Elements, b: Elements) -> Elements:
        """Return a + b."""
        return _run(_add, a, b)

    def subtract(self, a: Elements, b: Elements) -> Elements:
        """Return a − b."""
        return _run(_subtract, a, b)

    def multiply(self, a: Elements, b: Elements) -> Elements:
        """Return a · b."""
        return _run(_multiply, a, b)

    def total(self, a: Elements) -> Elements:
        """Return sums along the last axis of elements: (…, n, 2) becomes (…, 2)."""
        return _run(_total, a)

    def dot(self, a: Elements, b: Elements) -> Elements:
        """Return sums of at most 2^16 products along the last axis of elements."""
        return _run(_dot, a, b)

    def butterfly(self, pairs: Elements, roots: Elements) -> Elements:
        """Return even + root · odd and even − root · odd."""
        return _run(_butterfly, pairs, roots)

    def signed_dot(self, a: Elements, signs: Signs) -> Elements:
        """Return sums with signs, of at most 2^20 elements each."""
        return _run(_signed_dot, a, signs)


def _run(kernel: Any, *operands: npt.NDArray[Any]) -> Elements:
    result: Elements = kernel(*operands)
    return result


@intrinsic
def _upper(typing_context, a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of the 128-bit product a · b."""

    def generated(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.IntType(128)
        x, y = (builder.zext(argument, wide) for argument in arguments)
        high = builder.lshr(builder.mul(x, y), ir.Constant(wide, 64))
        return builder.trunc(high, ir.IntType(64))

    return numba.uint64(numba.uint64, numba.uint64), generated


@numba.njit
def _carried(low, high, over):  # type: ignore[no-untyped-def]
    """Return a number below 2p, over · 2^128 + high · 2^64 + low, modulo p."""
    subtracted = numba.uint64((over != _ZERO) | (high > _TOP) | ((high == _TOP) & (low > _ZERO)))
    borrow = numba.uint64(low < subtracted)
    return low - subtracted, high - subtracted * _TOP - borrow


@numba.njit
def _sum(a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    low = a0 + b0
    carry = numba.uint64(low < a0)
    high = a1 + b1
    over = numba.uint64(high < a1)
    high += carry
    return _carried(low, high, over + numba.uint64(high < carry))


@numba.njit
def _difference(a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    low = a0 - b0
    borrow = numba.uint64(a0 < b0)
    high = a1 - b1
    under = numba.uint64(a1 < b1) + numba.uint64(high < borrow)
    high -= borrow
    low += under
    return low, high + under * _TOP + numba.uint64(low < under)


@numba.njit
def _product(a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    """Return the four 64-bit words of a · b, lowest first."""
    p0, q0 = a0 * b0, _upper(a0, b0)
    p1, q1 = a0 * b1, _upper(a0, b1)
    p2, q2 = a1 * b0, _upper(a1, b0)
    p3, q3 = a1 * b1, _upper(a1, b1)
    t1 = q0 + p1
    carry = numba.uint64(t1 < p1)
    t1 += p2
    carry += numba.uint64(t1 < p2)
    t2 = p3 + carry
    over = numba.uint64(t2 < carry)
    t2 += q1
    over += numba.uint64(t2 < q1)
    t2 += q2
    over += numba.uint64(t2 < q2)
    return p0, t1, t2, q3 + over


@numba.njit
def _remainder(t0, t1, t2, t3):  # type: ignore[no-untyped-def]
    """Return a number t of four words modulo p.

    With H its upper half, q = H + ⌊28 H / 2^64⌋ is at most its quotient by p, and less than 2^10
    below it. So t − q p has a third word below 2^10, and one more fold leaves less than 2p.
    """
    u1 = _upper(t2, _FOLD)
    s = t3 * _FOLD
    u1 += s
    u2 = _upper(t3, _FOLD) + numba.uint64(u1 < s)
    q0 = t2 + u1
    q1 = t3 + u2 + numba.uint64(q0 < u1)
    # t − q p = t − q 2^128 + 28 q 2^64 − q, whose fourth word is zero
    r0 = t0 - q0
    borrow = numba.uint64(t0 < q0)
    r1 = t1 - q1
    borrows = numba.uint64(t1 < q1) + numba.uint64(r1 < borrow)
    r1 -= borrow
    s = q0 * _FOLD
    r1 += s
    r2 = t2 - q0 - borrows + _upper(q0, _FOLD) + q1 * _FOLD + numba.uint64(r1 < s)
    return _narrow(r0, r1, r2)


@numba.njit
def _narrow(low, high, over):  # type: ignore[no-untyped-def]
    """Return over · 2^128 + high · 2^64 + low modulo p, for an `over` below 2^32."""
    folded = low - over
    borrow = numba.uint64(low < over)
    s = over * _FOLD
    upper = high + s
    carry = numba.uint64(upper < s)
    carry -= numba.uint64(upper < borrow)
    return _carried(folded, upper - borrow, carry)


@numba.njit
def _accumulated(low, high, over, more_low, more_high):  # type: ignore[no-untyped-def]
    """Add a number of two words to a sum of three words."""
    low += more_low
    carry = numba.uint64(low < more_low)
    high += more_high
    over += numba.uint64(high < more_high)
    high += carry
    return low, high, over + numba.uint64(high < carry)


@numba.guvectorize(_PAIR, "(k),(k)->(k)")
def _add(a, b, result):  # type: ignore[no-untyped-def]
    result[0], result[1] = _sum(a[0], a[1], b[0], b[1])


@numba.guvectorize(_PAIR, "(k),(k)->(k)")
def _subtract(a, b, result):  # type: ignore[no-untyped-def]
    result[0], result[1] = _difference(a[0], a[1], b[0], b[1])


@numba.guvectorize(_PAIR, "(k),(k)->(k)")
def _multiply(a, b, result):  # type: ignore[no-untyped-def]
    t0, t1, t2, t3 = _product(a[0], a[1], b[0], b[1])
    result[0], result[1] = _remainder(t0, t1, t2, t3)


@numba.guvectorize(["void(uint64[:, :], uint64[:])"], "(n,k)->(k)")
def _total(a, result):  # type: ignore[no-untyped-def]
    low, high, over = _ZERO, _ZERO, _ZERO
    for i in range(a.shape[0]):
        low, high, over = _accumulated(low, high, over, a[i, 0], a[i, 1])
    result[0], result[1] = _narrow(low, high, over)


@numba.guvectorize(["void(uint64[:, :], uint64[:, :], uint64[:])"], "(n,k),(n,k)->(k)")
def _dot(a, b, result):  # type: ignore[no-untyped-def]
    """Sum lower and upper halves of the products separately, and reduce once."""
    low, high, over = _ZERO, _ZERO, _ZERO
    upper_low, upper_high, upper_over = _ZERO, _ZERO, _ZERO
    for i in range(a.shape[0]):
        t0, t1, t2, t3 = _product(a[i, 0], a[i, 1], b[i, 0], b[i, 1])
        low, high, over = _accumulated(low, high, over, t0, t1)
        upper_low, upper_high, upper_over = _accumulated(upper_low, upper_high, upper_over, t2, t3)
    low, high = _narrow(low, high, over)
    upper_low, upper_high = _narrow(upper_low, upper_high, upper_over)
    t0, t1, t2, t3 = _product(upper_low, upper_high, _FOLD_LOW, _FOLD_HIGH)
    upper_low, upper_high = _remainder(t0, t1, t2, t3)
    result[0], result[1] = _sum(low, high, upper_low, upper_high)


@numba.guvectorize(
    ["void(uint64[:, :, :], uint64[:, :], uint64[:, :, :])"], "(p,n,k),(n,k)->(p,n,k)"
)
def _butterfly(pairs, roots, result):  # type: ignore[no-untyped-def]
    for i in range(roots.shape[0]):
        t0, t1, t2, t3 = _product(pairs[1, i, 0], pairs[1, i, 1], roots[i, 0], roots[i, 1])
        low, high = _remainder(t0, t1, t2, t3)
        even_low, even_high = pairs[0, i, 0], pairs[0, i, 1]
        result[0, i, 0], result[0, i, 1] = _sum(even_low, even_high, low, high)
        result[1, i, 0], result[1, i, 1] = _difference(even_low, even_high, low, high)


@numba.guvectorize(["void(uint64[:, :], uint8[:, :, :], uint64[:, :])"], "(n,k),(s,t,b)->(s,k)")
def _signed_dot(a, signs, result):  # type: ignore[no-untyped-def]
    """Look up the sum of each subset of eight elements by a byte of bits.

    Limbs of 32 bits leave room for 2^20 of them, so carries are kept for the end.
    """
    subsets = np.zeros((256, 4), dtype=np.int64)
    sums = np.zeros((signs.shape[0], 4), dtype=np.int64)
    for byte in range(signs.shape[2]):
        for place in range(8):
            i, size = 8 * byte + place, 1 << place
            low, high = (a[i, 0], a[i, 1]) if i < a.shape[0] else (_ZERO, _ZERO)
            for subset in range(size):
                subsets[size + subset, 0] = subsets[subset, 0] + numba.int64(low & _LIMB)
                subsets[size + subset, 1] = subsets[subset, 1] + numba.int64(low >> _SHIFT)
                subsets[size + subset, 2] = subsets[subset, 2] + numba.int64(high & _LIMB)
                subsets[size + subset, 3] = subsets[subset, 3] + numba.int64(high >> _SHIFT)
        for row in range(signs.shape[0]):
            plus, minus = signs[row, 0, byte], signs[row, 1, byte]
            for limb in range(4):
                sums[row, limb] += subsets[plus, limb] - subsets[minus, limb]
    for row in range(signs.shape[0]):
        for limb in range(3):
            sums[row, limb + 1] += sums[row, limb] >> 32
        words = sums[row].view(np.uint64)
        low = (words[0] & _LIMB) | words[1] << _SHIFT
        high = (words[2] & _LIMB) | words[3] << _SHIFT
        # What is above 2^128 is −2^20 or more: add 2^20 to it, and subtract 2^20 · 2^128 modulo p.
        low, high = _narrow(low, high, numba.uint64((sums[row, 3] >> 32) + _MOST))
        result[row, 0], result[row, 1] = _difference(
            low, high, numba.uint64(-_MOST), numba.uint64(FOLD * _MOST - 1)
        )
