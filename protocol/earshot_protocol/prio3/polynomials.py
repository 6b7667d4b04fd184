"""Polynomials over Field128, given by their values at the n powers of an n-th root of unity.

This is the draft's Lagrange basis (draft-irtf-cfrg-vdaf-20, section 6.1.3). n is a power of two,
and every function works along the last axis of elements, for all leading axes.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from earshot_protocol.prio3.field import LOG_ORDER, MODULUS, Arithmetic, Elements, elements

_GENERATOR = pow(7, MODULUS >> LOG_ORDER, MODULUS)
"""A root of unity of order 2^66."""


@functools.cache
def roots(order: int) -> Elements:
    """Return all powers, (order, 2), of the draft's root of unity of this order."""
    root = _root(order)
    return elements(pow(root, power, MODULUS) for power in range(order))


def powers(first: Elements, ratio: Elements, count: int, field: Arithmetic) -> Elements:
    """Return first · ratio^k for k < count: (…, 2) becomes (…, count, 2)."""
    found = first[..., None, :]
    step = ratio[..., None, :]
    while found.shape[-2] < count:
        more = field.multiply(found, step)
        found = np.concatenate((found, more[..., : count - found.shape[-2], :]), axis=-2)
        step = field.multiply(step, step)
    return found


def doubled(values: Elements, field: Arithmetic) -> Elements:
    """Return the polynomials' values at the odd powers of the root of twice the order.

    The even powers are those at which the values are given.
    """
    shifted = field.multiply(_coefficients(values, field), _shifts(values.shape[-2]))
    return _values(shifted, field)


def basis(point: Elements, order: int, field: Arithmetic) -> Elements:
    """Return the weights, (…, order, 2), of a polynomial's values in its value at a point.

    The value is Σ c_k x^k, and coefficients c come from the values by a symmetric matrix; so the
    same matrix makes the weights from the powers of x.
    """
    ones = np.broadcast_to(elements([1]), point.shape)
    found = powers(ones, point, order, field)
    return field.multiply(_coefficients(found, field), _inverse(order))


def _coefficients(values: Elements, field: Arithmetic) -> Elements:
    """Return `order` times the coefficients of the polynomials."""
    order = values.shape[-2]
    return _values(values, field)[..., -np.arange(order) % order, :]


def _values(coefficients: Elements, field: Arithmetic) -> Elements:
    """Return values of polynomials from their coefficients (Cooley and Tukey 1965)."""
    *lead, order, _ = coefficients.shape
    values = coefficients[..., _reversed_bits(order), :]
    half = 1
    while half < order:
        pairs = values.reshape(*lead, order // (2 * half), 2, half, 2)
        values = field.butterfly(pairs, roots(2 * half)[:half]).reshape(coefficients.shape)
        half *= 2
    return values


def _root(order: int) -> int:
    return pow(_GENERATOR, 2**LOG_ORDER // order, MODULUS)


@functools.cache
def _shifts(order: int) -> Elements:
    """Return s^k / order for k < order, where s² is the root of this order."""
    root, inverse = _root(2 * order), pow(order, -1, MODULUS)
    return elements(inverse * pow(root, power, MODULUS) for power in range(order))


@functools.cache
def _inverse(order: int) -> Elements:
    return elements([pow(order, -1, MODULUS)])


@functools.cache
def _reversed_bits(order: int) -> npt.NDArray[np.int64]:
    places = np.zeros(1, dtype=np.int64)
    while len(places) < order:
        places = np.concatenate((2 * places, 2 * places + 1))
    return places
