"""Prio3's proof as a textbook has it: Python's integers, Lagrange's formula, and nothing shared.

Slow and independent of the product: the oracle for its polynomials, proofs and verifiers.
"""

from __future__ import annotations

from collections.abc import Sequence

PRIME = 2**66 * 4611686018427387897 + 1
GENERATOR = pow(7, 4611686018427387897, PRIME)


def root(order: int) -> int:
    """The draft's root of unity of an order that is a power of two."""
    return pow(GENERATOR, 2**66 // order, PRIME)


def interpolated(xs: Sequence[int], ys: Sequence[int], x: int) -> int:
    """Value at x of the polynomial of least degree through all points, by Lagrange's formula."""
    total = 0
    for i, y in enumerate(ys):
        above, below = y, 1
        for j, other in enumerate(xs):
            if j != i:
                above = above * (x - other) % PRIME
                below = below * (xs[i] - other) % PRIME
        total += above * pow(below, -1, PRIME)
    return total % PRIME


def at_roots(values: Sequence[int], x: int) -> int:
    """Value at x of the polynomial with these values at the powers of the root of their number."""
    order = len(values)
    return interpolated([pow(root(order), k, PRIME) for k in range(order)], values, x)


def encoded(bits: Sequence[int], max_weight: int) -> list[int]:
    """A vector with its weight: bits of 1, 2, 4, …, and one for what is missing to the most."""
    count = max_weight.bit_length() - 1
    whole, weight = 2**count - 1, sum(bits)
    last = weight > whole
    rest = weight - last * (max_weight - whole)
    return [*bits, *(rest >> place & 1 for place in range(count)), int(last)]


def wires(
    vector: Sequence[int], seeds: Sequence[int], joint: Sequence[int], chunk: int, one: int
) -> list[list[int]]:
    """Values of each wire: its seed, what each call puts in, and zeros to a power of two."""
    points = 2
    while points < 1 + len(joint):
        points *= 2
    padded = [*vector, *[0] * (chunk * len(joint) - len(vector))]
    columns = [[seed] for seed in seeds]
    for call, r in enumerate(joint):
        for place in range(chunk):
            entry = padded[call * chunk + place]
            columns[2 * place].append(pow(r, place + 1, PRIME) * entry % PRIME)
            columns[2 * place + 1].append((entry - one) % PRIME)
    return [column + [0] * (points - len(column)) for column in columns]


def proof(
    vector: Sequence[int], seeds: Sequence[int], joint: Sequence[int], chunk: int
) -> list[int]:
    """Seeds, and the gadget's polynomial at all powers but the last of the doubled root."""
    columns = wires(vector, seeds, joint, chunk, 1)
    order = 2 * len(columns[0])
    gadget = []
    for power in range(order - 1):
        inputs = [at_roots(column, pow(root(order), power, PRIME)) for column in columns]
        gadget.append(sum(a * b for a, b in zip(inputs[::2], inputs[1::2], strict=True)) % PRIME)
    return [*seeds, *gadget]


def verifier(
    vector: Sequence[int],
    made: Sequence[int],
    drawn: Sequence[int],
    joint: Sequence[int],
    chunk: int,
    length: int,
    max_weight: int,
    shares: int,
) -> list[int]:
    """One share of a verifier, or with one share the verifier."""
    seeds, gadget = made[: 2 * chunk], made[2 * chunk :]
    columns = wires(vector, seeds, joint, chunk, pow(shares, -1, PRIME))
    xs = [pow(root(len(gadget) + 1), power, PRIME) for power in range(len(gadget))]
    called = [gadget[2 * call + 2] for call in range(len(joint))]
    weights = [2**place for place in range(len(vector) - length - 1)]
    weights.append(max_weight - sum(weights))
    claimed = sum(w * bit for w, bit in zip(weights, vector[length:], strict=True))
    checks = drawn[0] * sum(called) + drawn[1] * (sum(vector[:length]) - claimed)
    tests = [at_roots(column, drawn[2]) for column in columns]
    return [checks % PRIME, *tests, interpolated(xs, gadget, drawn[2])]
