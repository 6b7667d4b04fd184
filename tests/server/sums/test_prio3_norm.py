"""Vectors of bounded length prove themselves: whole numbers whose squares add up to 2^24 or less.

A textbook in plain integers (`support.textbook_prio3`) says which shares, proofs and verifiers are
right; nothing of it comes from the code that is tested.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.textbook_prio3 import CountsBook, NormBook, Textbook

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.prio3 import field
from earshot_protocol.prio3.circuit import Circuit, shortest_chunks
from earshot_protocol.prio3.derivation import Party
from earshot_protocol.prio3.field import MODULUS, Arithmetic, Elements, Signs
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.prio3.prio3 import InvalidProofError, Prio3, Received, Settled, Sharded
from earshot_protocol.prio3.shapes import Counts, Norm, Shape
from earshot_protocol.privacy.mechanisms import GRID

KEY, CONTEXT = bytes(range(32)), b"a sum"
LENGTH = 12
COUNT = Prio3(Norm(), LENGTH, context=CONTEXT)


def nonce(number: int) -> bytes:
    return number.to_bytes(16)


def settled(count: Prio3, shared: list[Sharded]) -> list[bool]:
    """What both operators count, who have to agree."""
    held = {
        role: [
            Received(nonce(at), one.public_share, one[1 + role]) for at, one in enumerate(shared)
        ]
        for role in Party
    }
    found = {role: count.verifiers(role, KEY, held[role]) for role in Party}
    sent = {role: [share.tobytes() for share in found[role].shares] for role in Party}
    results: dict[Party, Settled] = {
        role: count.settle(found[role], sent[Party(1 - role)]) for role in Party
    }
    leader, helper = (results[role].accepted.tolist() for role in Party)
    assert leader == helper
    return list(leader)


def total(count: Prio3, shared: list[Sharded]) -> list[int]:
    """The vector of the counted reports, as both totals add up to it."""
    totals = []
    found = {}
    for role in Party:
        held = [
            Received(nonce(at), one.public_share, one[1 + role]) for at, one in enumerate(shared)
        ]
        found[role] = count.verifiers(role, KEY, held)
    for role in Party:
        sent = [share.tobytes() for share in found[Party(1 - role)].shares]
        totals.append(field.encode(count.settle(found[role], sent).total))
    return count.unshard(*totals).tolist()


def signs_of(runs: npt.NDArray[np.uint8], length: int) -> list[int]:
    """Numbers −1, 0, 1 of two runs of bits, (2, bytes)."""
    plus, minus = (int.from_bytes(run.tobytes(), "little") for run in runs)
    return [(plus >> at & 1) - (minus >> at & 1) for at in range(length)]


def lie(
    count: Prio3,
    vector: list[int],
    squared: int | None = None,
    products: Callable[[list[int]], list[int]] | None = None,
    bits: Callable[[list[int]], list[int]] = list,
    random_number: int = 0,
) -> Sharded:
    """Shares of whatever a dishonest client encodes, with the proof that is made of it.

    Args:
        count: The sum.
        vector: Entries, modulo p.
        squared: Number that it claims as the sum of squares; by default the sum modulo p.
        products: Function from the products with signs, modulo p, to those that it claims.
        bits: Function that changes all bits.
        random_number: Seed of the report's randomness.
    """
    claimed = sum(x * x for x in vector) % MODULUS if squared is None else squared
    first = [claimed >> place & 1 for place in range(Norm.squared_bits)]

    def signed(signs: Signs) -> Elements:
        found = [
            sum(s * x for s, x in zip(signs_of(row, len(vector)), vector, strict=True)) % MODULUS
            for row in signs
        ]
        told = found if products is None else products(found)
        middle = 2 ** (Norm.product_bits - 1) - 1
        behind = [
            (product + middle) % MODULUS >> place & 1
            for product in told
            for place in range(Norm.product_bits)
        ]
        return field.elements(bits(behind))

    rand = random.Random(random_number).randbytes(count.rand_bytes)
    return count._split(field.elements([*vector, *first]), signed, nonce(0), rand)


def drawn_vector(source: np.random.Generator, length: int, norm: float) -> npt.NDArray[np.int64]:
    """A vector of about this length, in a random direction."""
    direction = source.standard_normal(length)
    return np.trunc(norm * direction / np.linalg.norm(direction)).astype(np.int64)


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32), st.floats(0, GRID - 1))
def test_every_vector_that_is_short_enough_is_counted(length: int, seed: int, norm: float) -> None:
    source = np.random.default_rng(seed)
    count = Prio3(Norm(), length, context=CONTEXT)
    vectors = [drawn_vector(source, length, norm), np.zeros(length, dtype=np.int64)]
    shared = [count.shard(vector, nonce(at)) for at, vector in enumerate(vectors)]
    assert settled(count, shared) == [True, True]
    assert total(count, shared) == sum(vectors).tolist()


def test_the_longest_vectors_are_counted_and_one_step_more_is_not_shared() -> None:
    longest = np.zeros(LENGTH, dtype=np.int64)
    longest[:4] = [4095, -90, 9, 3]  # 2^24 − 1: 4095² = 2^24 − 8191, and 8190 = 90² + 9² + 3²
    assert int((longest**2).sum()) == 2**24 - 1
    assert settled(COUNT, [COUNT.shard(longest, nonce(0))]) == [True]
    for entry in (4, 5):
        longer = longest.copy()
        longer[entry] = 1
        with pytest.raises(InvalidInputError, match=r"less than 2\^24"):
            COUNT.shard(longer, nonce(0))
    for huge in (GRID, -GRID, 2**32, 2**62, -(2**63)):
        with pytest.raises(InvalidInputError, match=r"less than 2\^24"):
            COUNT.shard(np.array([huge] + [0] * (LENGTH - 1)), nonce(0))


@pytest.mark.parametrize(
    ("shape", "book", "chunk"),
    [
        pytest.param(Norm(), NormBook(3), 150, id="norm, thirteen calls"),
        pytest.param(Norm(), NormBook(9), 400, id="norm, more than a byte of signs"),
        pytest.param(Norm(), NormBook(1), 2000, id="norm, one call of each kind"),
        pytest.param(Counts(3, 5, 4), CountsBook(8, 3, 5, 4), 7, id="two blocks of counts"),
        pytest.param(Counts(2, 9, 3), CountsBook(3, 2, 9, 3), 2, id="one block of counts"),
        pytest.param(Counts(1, 2, 3), CountsBook(9, 1, 2, 3), 30, id="three blocks of ones"),
    ],
)
def test_reports_are_those_of_a_textbook(
    shape: Shape, book: CountsBook | NormBook, chunk: int
) -> None:
    """Encodings, parts of the public share, signs, proofs, and both verifier shares."""
    textbook = Textbook(book, chunk, CONTEXT)
    count = Prio3(shape, book.length, chunk, CONTEXT)
    rand = random.Random(chunk).randbytes(count.rand_bytes)
    signed = isinstance(book, NormBook)
    vector = [-at * at if signed else at % 2 for at in range(book.length)]
    shared = count.shard(np.array(vector), nonce(1), rand)
    assert shared == textbook.shard(vector, nonce(1), rand)
    for role in Party:
        held = Received(nonce(1), shared.public_share, shared[1 + role])
        found = count.verifiers(role, KEY, [held]).shares[0].tobytes()
        assert found == textbook.verifier_share(role, KEY, *held)


ZEROS = [0] * (LENGTH - 1)
ROOT = math.isqrt(MODULUS)


@pytest.mark.parametrize(
    "shared",
    [
        pytest.param(lie(COUNT, [GRID, *ZEROS]), id="one step too long"),
        pytest.param(lie(COUNT, [GRID, *ZEROS], squared=5), id="another sum of squares"),
        pytest.param(lie(COUNT, [1, *ZEROS], squared=2), id="a sum of squares that is too large"),
        pytest.param(lie(COUNT, [ROOT + 1, *ZEROS]), id="a square that wraps around"),
        pytest.param(
            lie(COUNT, [ROOT + 1, *ZEROS], squared=(ROOT + 1) ** 2 % MODULUS % 2**24),
            id="and claims what fits",
        ),
        pytest.param(
            lie(COUNT, [1, *ZEROS], products=lambda found: [0] * len(found)),
            id="products that are none",
        ),
        pytest.param(lie(COUNT, [2**40, *ZEROS]), id="a large entry"),
        pytest.param(
            lie(COUNT, [5, *ZEROS], bits=lambda bits: [2, *bits[1:]]), id="a bit that is 2"
        ),
        pytest.param(
            lie(COUNT, [5, *ZEROS], bits=lambda bits: [bits[0] + 2, bits[1] - 1, *bits[2:]]),
            id="bits of the right worth that are none",
        ),
        pytest.param(lie(COUNT, [MODULUS - GRID, *ZEROS]), id="one step too long, negative"),
    ],
)
def test_no_other_vector_is_counted_and_the_honest_one_beside_it_is(shared: Sharded) -> None:
    honest = COUNT.shard(np.arange(LENGTH), nonce(1))
    assert settled(COUNT, [shared, honest]) == [False, True]


def root_of_two_squares() -> list[int]:
    """Two entries whose squares add up to 0 modulo p: 1 and a root of −1."""
    root = next(
        found
        for base in range(2, 99)
        if pow(found := pow(base, (MODULUS - 1) // 4, MODULUS), 2, MODULUS) == MODULUS - 1
    )
    return [1, root]


def test_squares_that_cancel_modulo_p_are_found_by_signs_alone() -> None:
    """1 and a root of −1 have squares that add up to 0; each check finds it with ½ or more."""
    vector = [*root_of_two_squares(), *[0] * (LENGTH - 2)]
    assert sum(x * x for x in vector) % MODULUS == 0
    assert settled(COUNT, [lie(COUNT, vector)]) == [False]


def test_a_product_beyond_its_bits_is_an_error_of_the_phone() -> None:
    """Which no drawn signs give; here a check adds all 400 entries up."""
    signs = np.zeros((100, 2, 50), dtype=np.uint8)
    signs[99, 0] = 255
    for product, fits in ((65536, True), (65537, False), (-65535, True), (-65536, False)):
        vector = np.full(400, product // 400)
        vector[: product % 400] += 1
        assert vector.sum() == product
        Norm().fixed(vector)
        if fits:
            assert len(Norm().signed(vector, signs)) == 1700
        else:
            with pytest.raises(InvalidInputError, match="fails a check"):
                Norm().signed(vector, signs)


class FourChecks(Norm, frozen=True, tag="four"):
    """Norm with four checks, which clients can grind."""

    sign_checks: ClassVar[int] = 4


class EightChecks(Norm, frozen=True, tag="eight"):
    """Norm with eight checks, which takes clients sixteen times as many tries."""

    sign_checks: ClassVar[int] = 8


def drawn_signs(checks: int, vector: list[int], random_number: int) -> list[list[int]]:
    """Signs that a report of `lie` commits to, as its client finds them out before it sends."""
    book = Textbook(NormBook(LENGTH, checks), 1, CONTEXT)
    rand = random.Random(random_number).randbytes(128)
    theirs = book.helper_vector(rand[:32])[:LENGTH]
    ours = [(x - y) % MODULUS for x, y in zip(vector, theirs, strict=True)]
    parts = [
        book.signs_part(role, blind, nonce(0), share)
        for role, (blind, share) in enumerate([(rand[64:96], ours), (rand[32:64], theirs)])
    ]
    return book.signs(b"".join(parts))


@pytest.mark.parametrize("shape", [FourChecks(), EightChecks()])
def test_a_client_that_tries_again_passes_a_few_checks(shape: Norm) -> None:
    """So the number of checks is what stands between a client and any vector.

    It tries alone, and knows when its vector will pass: when the root of −1 has no sign in any
    check, half of the time in each. Then the operators count an entry of 2^63 or more.
    """
    checks = shape.sign_checks
    count = Prio3(shape, LENGTH, context=CONTEXT)
    vector = [*root_of_two_squares(), *[0] * (LENGTH - 2)]
    assert 2**63 < vector[1] < MODULUS - 2**63
    tries = next(
        at
        for at in range(8 * 2**checks)
        if not any(row[1] for row in drawn_signs(checks, vector, at))
    )
    assert 2**checks / 16 < tries
    for at in (0, tries - 1, tries, tries + 1):
        accepted = settled(count, [lie(count, vector, random_number=at)])
        assert accepted == [at == tries]


@pytest.mark.parametrize("part", [0, 1, 2, 3])
def test_every_part_of_the_public_share_is_checked(part: int) -> None:
    """Parts that fix signs, and those that fix randomness, of leader and helper."""
    one, honest = (COUNT.shard(np.arange(LENGTH), nonce(at)) for at in range(2))
    changed = bytearray(one.public_share)
    changed[32 * part + 7] ^= 1
    assert settled(COUNT, [one._replace(public_share=bytes(changed)), honest]) == [False, True]


def test_what_belongs_to_another_report_or_sum_is_not_counted() -> None:
    one, other = (COUNT.shard(np.arange(LENGTH) + at, nonce(at)) for at in range(2))
    assert settled(COUNT, [one, other]) == [True, True]
    assert settled(COUNT, [other, one]) == [False, False], "nonces"
    swapped = one._replace(public_share=other.public_share)
    assert settled(COUNT, [swapped, other]) == [False, True]
    elsewhere = Prio3(Norm(), LENGTH, context=b"another sum")
    assert settled(elsewhere, [one]) == [False]
    longer = Prio3(Norm(), LENGTH, shortest_chunks(Norm(), LENGTH) + 1, CONTEXT)
    assert settled(longer, [one]) == [False], "another chunk length"


@pytest.mark.parametrize("role", Party)
def test_a_changed_share_is_not_counted(role: Party) -> None:
    source = random.Random(role)
    for _ in range(20):
        shared = [COUNT.shard(np.arange(LENGTH), nonce(at)) for at in range(2)]
        share = bytearray(shared[0][1 + role])
        share[source.randrange(len(share))] ^= 1 << source.randrange(8)
        parts: dict[str, Any] = {("leader_share", "helper_share")[role]: bytes(share)}
        assert settled(COUNT, [shared[0]._replace(**parts), shared[1]]) == [False, True]


def test_single_reports_are_refused_by_name() -> None:
    shared = lie(COUNT, [GRID, *ZEROS])
    shares = [
        COUNT.verifier(role, KEY, nonce(0), shared.public_share, shared[1 + role])[1]
        for role in Party
    ]
    with pytest.raises(InvalidProofError, match=r"squares add up to less than 2\^24"):
        COUNT.decide(*shares)


def test_no_other_number_of_verifier_shares_is_recalled() -> None:
    shared = COUNT.shard(np.arange(LENGTH), nonce(0))
    held = [Received(nonce(0), shared.public_share, shared.leader_share)]
    shares = COUNT.verifiers(Party.LEADER, KEY, held).shares[0].tobytes()
    assert COUNT.recalled(Party.LEADER, held, shares).shares.tobytes() == shares
    for wrong in (b"", shares[:-1], shares + bytes(1), 2 * shares):
        with pytest.raises(InvalidInputError, match="verifier shares of"):
            COUNT.recalled(Party.LEADER, held, wrong)


def test_sizes_are_those_of_the_design() -> None:
    """1,724 elements beside the entries, and a proof of about twice the root of that."""
    for length, kilobytes in ((640, 41.1), (2560, 72.8)):
        count = Prio3(Norm(), length)
        assert count.circuit.encoded_length == length + 1724
        assert count.leader_share_bytes / 1000 == pytest.approx(kilobytes, abs=0.05)
        assert count.public_share_bytes == 128
        assert count.helper_share_bytes == 64


@pytest.mark.parametrize("length", [0, 2**20 + 1])
def test_lengths_that_no_sum_has_are_refused(length: int) -> None:
    with pytest.raises(InvalidParametersError, match="length"):
        Prio3(Norm(), length)


@pytest.mark.parametrize("shape", [Norm(), Counts(3, 9, 4), Counts(1, 2, 4)])
@pytest.mark.parametrize("length", [4, 60, 512])
def test_the_chunks_that_are_taken_make_the_shortest_proof(shape: Shape, length: int) -> None:
    longest = Circuit(shape, length, 1).encoded_length
    sizes = [Circuit(shape, length, chunk).proof_length for chunk in range(1, longest + 2)]
    taken = Circuit(shape, length, shortest_chunks(shape, length)).proof_length
    assert taken == min(sizes)


# --------------------------------------------------------------------------- counts of several bits

VOTES = Prio3(Counts(3, 5, 4), 8, context=CONTEXT)
"""Two blocks of four numbers up to 7, which add up to at most 5 each."""


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 7), min_size=8, max_size=8))
def test_counts_are_counted_if_and_only_if_their_blocks_are_small(counts: list[int]) -> None:
    valid = max(sum(counts[:4]), sum(counts[4:])) <= 5
    if not valid:
        with pytest.raises(InvalidInputError, match="at most 5 in 4 entries"):
            VOTES.shard(np.array(counts), nonce(0))
        return
    shared = [VOTES.shard(np.array(counts), nonce(0))]
    assert settled(VOTES, shared) == [True]
    assert total(VOTES, shared) == counts


def claimed(counts: list[int], totals: list[int]) -> list[int]:
    """Bits of counts, and of the totals that a client claims: worth 1, 2, and 2, the rest of 5."""
    bits = [count >> place & 1 for count in counts for place in range(3)]
    for number in totals:
        marked = int(number > 3)
        bits += [number - 2 * marked & 1, number - 2 * marked >> 1 & 1, marked]
    return bits


@pytest.mark.parametrize(
    "encoded",
    [
        claimed([3, 3, 0, 0, 0, 0, 0, 0], [5, 0]),
        claimed([0, 0, 0, 0, 7, 0, 0, 0], [0, 5]),
        claimed([5, 0, 0, 0, 0, 0, 0, 0], [0, 5]),
        claimed([1, 0, 0, 0, 0, 0, 0, 0], [0, 0]),
        [2, *claimed([2, 0, 0, 0, 0, 0, 0, 0], [2, 0])[1:]],
        [MODULUS - 1, 1, *claimed([1, 0, 0, 0, 0, 0, 0, 0], [1, 0])[2:]],
    ],
)
def test_no_other_counts_are_counted(encoded: list[int]) -> None:
    def nothing(_: object) -> Elements:
        return np.empty((0, 2), dtype=np.uint64)

    rand = random.Random(1).randbytes(VOTES.rand_bytes)
    shared = VOTES._split(field.elements(encoded), nothing, nonce(0), rand)
    honest = VOTES.shard(np.array([5, 0, 0, 0, 0, 1, 0, 2]), nonce(1))
    assert settled(VOTES, [shared, honest]) == [False, True]


@pytest.mark.parametrize(
    ("shape", "length", "refused"),
    [
        ((0, 1, 1), 1, "width"),
        ((33, 1, 1), 1, "width"),
        ((1, 1, 0), 1, "block"),
        ((1, 1, 2), 1, "block"),
        ((1, 2, 1), 1, "total"),
        ((2, 4, 1), 3, "total"),
        ((1, 1, 3), 8, "entries beyond the last whole block"),
    ],
)
def test_counts_that_no_sum_has_are_refused(
    shape: tuple[int, int, int], length: int, refused: str
) -> None:
    with pytest.raises(InvalidParametersError, match=f"^{refused}"):
        Prio3(Counts(*shape), length)


def test_a_total_may_be_as_large_as_all_entries_of_a_block_make_it() -> None:
    count = Prio3(Counts(3, 14, 2), 2, context=CONTEXT)
    shared = [count.shard(np.array([7, 7]), nonce(0))]
    assert settled(count, shared) == [True]
    assert total(count, shared) == [7, 7]


# ------------------------------------------------------------------------------------------ engines


def engines() -> tuple[Arithmetic, Arithmetic]:
    from earshot_server.proofs.kernels import CompiledArithmetic

    return CompiledArithmetic(), LimbArithmetic()


@pytest.fixture(scope="module")
def compiled() -> Arithmetic:
    """The engine that takes a second to load."""
    return engines()[0]


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(1, 3), st.integers(0, 5), st.integers(1, 30), st.integers(0, 2**32))
def test_sums_with_signs_are_those_of_python_s_integers(
    reports: int, sums: int, length: int, seed: int
) -> None:
    source = random.Random(seed)
    edges = [0, 1, 2**64 - 1, 2**64, MODULUS - 1, MODULUS - 2**64]
    numbers = [
        [source.choice([source.randrange(MODULUS), *edges]) for _ in range(length)]
        for _ in range(reports)
    ]
    shape = reports, sums, 2, -(-length // 8)
    signs = np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)
    values = np.stack([field.elements(row) for row in numbers])
    expected = [
        [
            sum(s * x for s, x in zip(signs_of(row, length), vector, strict=True)) % MODULUS
            for row in signs[report]
        ]
        for report, vector in enumerate(numbers)
    ]
    for engine in engines():
        found = engine.signed_dot(values, signs)
        assert found.shape == (reports, sums, 2)
        for report in range(reports):
            assert np.array_equal(found[report], field.elements(expected[report]))


def test_the_largest_sums_with_signs_are_exact() -> None:
    """Of 2^20 elements p − 1: all of them, and all subtracted."""
    values = np.broadcast_to(field.elements([MODULUS - 1]), (1, 2**20, 2)).copy()
    signs = np.zeros((1, 2, 2, 2**17), dtype=np.uint8)
    signs[0, 0, 0] = signs[0, 1, 1] = 255
    for engine in engines():
        found = engine.signed_dot(values, signs)
        assert np.array_equal(found[0], field.elements([-(2**20), 2**20]))


def test_both_engines_make_and_verify_the_same() -> None:
    vector, rand = np.arange(LENGTH) - 5, bytes(range(128))
    made = [
        Prio3(Norm(), LENGTH, context=CONTEXT, arithmetic=engine).shard(vector, nonce(0), rand)
        for engine in engines()
    ]
    assert made[0] == made[1]
    for role in Party:
        held = [Received(nonce(0), made[0].public_share, made[0][1 + role])]
        shares = [
            Prio3(Norm(), LENGTH, context=CONTEXT, arithmetic=engine).verifiers(role, KEY, held)
            for engine in engines()
        ]
        assert np.array_equal(shares[0].shares, shares[1].shares)


# ------------------------------------------------------------------------------------------- crowds


def spoiled(count: Prio3, vector: npt.NDArray[np.int64], number: int) -> Sharded:
    """Shares of what a valid vector is encoded as but for one random element, proved as it is."""
    source = random.Random(number)
    place = source.randrange(count.circuit.encoded_length)
    step = source.choice([1, MODULUS - 1, 2, 2**64, source.randrange(1, MODULUS)])

    def changed(encoded: Elements, at: int) -> Elements:
        if 0 <= at < len(encoded):
            encoded = encoded.copy()
            encoded[at] = LimbArithmetic().add(encoded[at][None], field.elements([step]))[0]
        return encoded

    fixed = count.shape.fixed(vector)
    return count._split(
        changed(fixed, place),
        lambda signs: changed(count.shape.signed(vector, signs), place - len(fixed)),
        nonce(number),
        source.randbytes(count.rand_bytes),
    )


@pytest.mark.parametrize(
    "crowd", [100, pytest.param(10_000, marks=pytest.mark.slow)], ids=["hundred", "ten thousand"]
)
@pytest.mark.parametrize("shape", [Norm(), Counts(3, 5, 4)], ids=["norm", "counts"])
def test_of_a_crowd_all_true_vectors_are_counted_and_no_false_one(
    shape: Shape, crowd: int, compiled: Arithmetic
) -> None:
    count = Prio3(shape, LENGTH, context=CONTEXT, arithmetic=compiled)
    source = np.random.default_rng(crowd)
    for first in range(0, 2 * crowd, 200):
        shared = []
        for at in range(first, first + 200, 2):
            if isinstance(shape, Norm):
                vector = drawn_vector(source, LENGTH, source.uniform(0, GRID - 1))
            else:
                vector = source.multinomial(5, np.full(5, 0.2), 3)[:, :4].ravel()
            shared += [
                count.shard(vector, nonce(at - first)),
                spoiled(count, vector, at - first + 1),
            ]
        assert settled(count, shared) == [True, False] * 100
