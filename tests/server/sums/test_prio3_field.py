from __future__ import annotations

import importlib.util
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import textbook_proof
from support.textbook_proof import PRIME

from earshot_protocol.errors import MalformedMessageError
from earshot_protocol.prio3 import field, polynomials
from earshot_protocol.prio3.field import Arithmetic, Elements
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_server.proofs import engine as engines


def compiled() -> Arithmetic:
    """The arithmetic that takes a second to load, which is loaded where it is asked for."""
    from earshot_server.proofs.kernels import CompiledArithmetic

    return CompiledArithmetic()


@pytest.fixture(scope="module", params=["compiled", "limbs"])
def engine(request: pytest.FixtureRequest) -> Arithmetic:
    return compiled() if request.param == "compiled" else LimbArithmetic()


EDGES = [
    *(2**power + off for power in (0, 32, 64, 66, 96, 127) for off in (-1, 0, 1)),
    *(
        PRIME - 2**power + off
        for power in (0, 32, 64, 66, 96, 127)
        for off in (-1, 0)
        if power + off
    ),
    *(2**128 - 28 * 2**64 - 2**power for power in (0, 32, 63)),
    PRIME // 2,
    PRIME // 2 + 1,
    (2**64 - 1) << 32,
]
"""Numbers beside which a carry or a borrow goes one way or the other."""
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(0, PRIME - 1))
SIGNED = st.one_of(
    st.sampled_from([0, 1, -1, -2, 2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1)
)


def integers(values: Elements) -> list[int]:
    return [int(low) | int(high) << 64 for low, high in values.reshape(-1, 2).tolist()]


def drawn(count: int, seed: int) -> list[int]:
    source = random.Random(seed)
    return [source.randrange(PRIME) for _ in range(count)]


def test_the_prime_is_the_draft_s_and_its_root_has_the_order_it_says() -> None:
    assert field.MODULUS == PRIME == 2**128 - 28 * 2**64 + 1 == field.TOP * 2**64 + 1
    assert pow(textbook_proof.GENERATOR, 2**65, PRIME) == PRIME - 1
    assert integers(polynomials.roots(8)) == [
        pow(textbook_proof.root(8), power, PRIME) for power in range(8)
    ]


def test_every_pair_of_edges_is_added_subtracted_and_multiplied(engine: Arithmetic) -> None:
    pairs = [(a % PRIME, b % PRIME) for a in EDGES for b in EDGES]
    a, b = (field.elements(side) for side in zip(*pairs, strict=True))
    assert integers(engine.add(a, b)) == [(x + y) % PRIME for x, y in pairs]
    assert integers(engine.subtract(a, b)) == [(x - y) % PRIME for x, y in pairs]
    assert integers(engine.multiply(a, b)) == [x * y % PRIME for x, y in pairs]


@given(pairs=st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40))
def test_operations_are_those_of_python_s_integers(
    engine: Arithmetic, pairs: list[tuple[int, int]]
) -> None:
    a, b = (field.elements(side) for side in zip(*pairs, strict=True))
    assert integers(engine.add(a, b)) == [(x + y) % PRIME for x, y in pairs]
    assert integers(engine.subtract(a, b)) == [(x - y) % PRIME for x, y in pairs]
    assert integers(engine.multiply(a, b)) == [x * y % PRIME for x, y in pairs]
    assert integers(engine.total(a[None])) == [sum(x for x, _ in pairs) % PRIME]
    assert integers(engine.dot(a[None], b[None])) == [sum(x * y for x, y in pairs) % PRIME]


def test_the_longest_sums_of_the_largest_numbers_do_not_overflow(engine: Arithmetic) -> None:
    largest = np.broadcast_to(field.elements([PRIME - 1]), (1, 2**16, 2))
    assert integers(engine.total(largest)) == [2**16 * (PRIME - 1) % PRIME]
    assert integers(engine.dot(largest, largest)) == [2**16]
    below = np.broadcast_to(field.elements([2**128 - 28 * 2**64 - 1]), (1, 2**16, 2))
    assert integers(engine.dot(below, below)) == [2**16 * pow(PRIME - 2, 2, PRIME) % PRIME]


def test_operands_are_broadcast_and_may_be_strided_views(engine: Arithmetic) -> None:
    a = field.elements(drawn(24, 1)).reshape(4, 6, 2)
    b = field.elements(drawn(6, 2)).reshape(1, 6, 2)
    x, y = np.array(integers(a), dtype=object).reshape(4, 6), np.array(integers(b), dtype=object)
    assert integers(engine.multiply(a, b)) == list((x * y % PRIME).ravel())
    assert integers(engine.subtract(b, a)) == list(((y - x) % PRIME).ravel())
    assert integers(engine.total(a.swapaxes(0, 1))) == list(x.sum(axis=0) % PRIME)
    assert integers(engine.dot(a[:, ::2], b[:, ::2])) == list(
        (x[:, ::2] * y[::2]).sum(axis=1) % PRIME
    )


def test_engines_agree_on_numbers_that_nobody_chose() -> None:
    one, other = compiled(), LimbArithmetic()
    a, b = (field.elements(drawn(3000, seed)).reshape(30, 100, 2) for seed in (3, 4))
    for name in ("add", "subtract", "multiply", "dot"):
        assert np.array_equal(getattr(one, name)(a, b), getattr(other, name)(a, b)), name
    assert np.array_equal(one.total(a), other.total(a))


def test_the_compiled_engine_is_taken_where_numba_is(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = engines.fastest.__wrapped__
    assert isinstance(chosen(), type(compiled()))
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "numba" else find(name)
    )
    assert isinstance(chosen(), LimbArithmetic)


@given(numbers=st.lists(NUMBERS, max_size=20))
def test_bytes_are_the_numbers_lowest_byte_first(numbers: list[int]) -> None:
    data = b"".join((number % PRIME).to_bytes(16, "little") for number in numbers)
    assert field.encode(field.elements(numbers)) == data
    assert np.array_equal(field.decode(data, len(numbers)), field.elements(numbers))


@pytest.mark.parametrize("number", [PRIME, PRIME + 1, 2**128 - 2**64, 2**128 - 1])
def test_bytes_of_a_number_that_is_no_element_are_refused(number: int) -> None:
    with pytest.raises(MalformedMessageError, match="prime"):
        field.decode(bytes(16) + number.to_bytes(16, "little"), 2)


@pytest.mark.parametrize("size", [0, 15, 16, 31, 33, 48])
def test_bytes_of_another_number_of_elements_are_refused(size: int) -> None:
    with pytest.raises(MalformedMessageError, match=f"{size} bytes .* 32 are expected"):
        field.decode(bytes(size), 2)


@given(numbers=st.lists(SIGNED, min_size=1, max_size=20))
def test_signed_numbers_are_elements_and_come_back(numbers: list[int]) -> None:
    values = field.from_signed(np.array(numbers, dtype=np.int64))
    assert integers(values) == [number % PRIME for number in numbers]
    assert field.to_signed(values).tolist() == numbers


@pytest.mark.parametrize("number", [2**63, 2**64, PRIME - 2**63 - 1, PRIME - 2**64, PRIME // 2])
def test_a_number_beyond_64_bits_is_refused(number: int) -> None:
    with pytest.raises(MalformedMessageError, match="64 bits"):
        field.to_signed(field.elements([1, number]))


@pytest.mark.parametrize("order", [2, 4, 8, 16])
def test_doubled_values_are_those_of_lagrange_s_polynomial(engine: Arithmetic, order: int) -> None:
    rows = [drawn(order, seed) for seed in (5, 6)]
    values = np.stack([field.elements(row) for row in rows])
    odd = [pow(textbook_proof.root(2 * order), 2 * k + 1, PRIME) for k in range(order)]
    expected = [textbook_proof.at_roots([row], x)[0] for row in rows for x in odd]
    assert integers(polynomials.doubled(values, engine)) == expected


@pytest.mark.parametrize("order", [2, 8, 16])
def test_a_basis_gives_the_value_at_a_point(engine: Arithmetic, order: int) -> None:
    values, points = drawn(order, 7), [0, 1, PRIME - 1, *drawn(2, 8)]
    basis = polynomials.basis(field.elements(points), order, engine)
    found = engine.dot(basis, field.elements(values)[None])
    assert integers(found) == [textbook_proof.at_roots([values], x)[0] for x in points]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_powers_begin_with_the_first(engine: Arithmetic, count: int) -> None:
    first, ratio = drawn(2, 9), drawn(2, 10)
    found = polynomials.powers(field.elements(first), field.elements(ratio), count, engine)
    assert integers(found) == powers(first, ratio, count)


def powers(first: Sequence[int], ratio: Sequence[int], count: int) -> list[int]:
    pairs = zip(first, ratio, strict=True)
    return [a * pow(q, power, PRIME) % PRIME for a, q in pairs for power in range(count)]
