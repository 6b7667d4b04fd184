"""Prio3's proof as a textbook has it: Python's integers, Lagrange's formula, and nothing shared.

Slow and independent of the product: the oracle for its polynomials, proofs and verifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

PRIME = 2**66 * 4611686018427387897 + 1
GENERATOR = pow(7, 4611686018427387897, PRIME)


def root(order: int) -> int:
    """The draft's root of unity of an order that is a power of two."""
    return pow(GENERATOR, 2**66 // order, PRIME)


def weights(xs: Sequence[int], x: int) -> list[int]:
    """Lagrange's weights: values at these points add up, weighted, to the polynomial's at x."""
    found = []
    for i, own in enumerate(xs):
        above, below = 1, 1
        for j, other in enumerate(xs):
            if j != i:
                above = above * (x - other) % PRIME
                below = below * (own - other) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return found


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    """Sum of products modulo p."""
    return sum(x * y for x, y in zip(a, b, strict=True)) % PRIME


def at_roots(columns: Sequence[Sequence[int]], x: int) -> list[int]:
    """Values at x of polynomials with these values at the powers of the root of their number."""
    order = len(columns[0])
    shares = weights([pow(root(order), k, PRIME) for k in range(order)], x)
    return [dot(shares, column) for column in columns]


def chunks(values: Sequence[int], chunk: int) -> list[list[int]]:
    """Values by calls of the gadget, the last one filled with zeros."""
    padded = [*values, *[0] * (-len(values) % chunk)]
    return [padded[at : at + chunk] for at in range(0, len(padded), chunk)]


def wires(
    bits: Sequence[int],
    squares: Sequence[int],
    seeds: Sequence[int],
    joint: Sequence[int],
    chunk: int,
    one: int,
) -> list[list[int]]:
    """Values of each wire: its seed, what each call puts in, and zeros to a power of two."""
    columns = [[seed] for seed in seeds]
    for r, part in zip(joint, chunks(bits, chunk), strict=True):
        for place, bit in enumerate(part):
            columns[2 * place].append(pow(r, place + 1, PRIME) * bit % PRIME)
            columns[2 * place + 1].append((bit - one) % PRIME)
    for part in chunks(squares, chunk):
        for place, value in enumerate(part):
            columns[2 * place].append(value)
            columns[2 * place + 1].append(value)
    points = 2
    while points < len(columns[0]):
        points *= 2
    return [column + [0] * (points - len(column)) for column in columns]


def proof(
    bits: Sequence[int],
    squares: Sequence[int],
    seeds: Sequence[int],
    joint: Sequence[int],
    chunk: int,
) -> list[int]:
    """Seeds, and the gadget's polynomial at all powers but the last of the doubled root."""
    columns = wires(bits, squares, seeds, joint, chunk, 1)
    order = 2 * len(columns[0])
    gadget = []
    for power in range(order - 1):
        inputs = at_roots(columns, pow(root(order), power, PRIME))
        gadget.append(dot(inputs[::2], inputs[1::2]))
    return [*seeds, *gadget]


def verifier(
    bits: Sequence[int],
    squares: Sequence[int],
    made: Sequence[int],
    drawn: Sequence[int],
    joint: Sequence[int],
    chunk: int,
    linear: Callable[[int], list[int]],
    shares: int,
) -> list[int]:
    """One share of a verifier, or with one share the verifier.

    Args:
        bits: Elements that are bits.
        squares: Elements whose squares are added up.
        made: The proof.
        drawn: The operators' randomness.
        joint: Randomness that both shares fix.
        chunk: Products of a call.
        linear: Function from the sum of squares to the outputs that are linear.
        shares: Number of shares.
    """
    seeds, gadget = made[: 2 * chunk], made[2 * chunk :]
    columns = wires(bits, squares, seeds, joint, chunk, pow(shares, -1, PRIME))
    xs = [pow(root(len(gadget) + 1), power, PRIME) for power in range(len(gadget))]
    called = [gadget[2 * call] for call in range(1, 1 + len(joint) + len(chunks(squares, chunk)))]
    outputs = [sum(called[: len(joint)]), *linear(sum(called[len(joint) :]))]
    *of_outputs, point = drawn
    return [
        dot(of_outputs, outputs),
        *at_roots(columns, point),
        dot(weights(xs, point), gadget),
    ]
