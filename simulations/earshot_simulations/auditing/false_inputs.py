"""What phones with programs of their own can get counted where inputs prove themselves.

In real sums, a hundred phones each make one of several attacks on every kind of proof, beside
honest phones; a real leader and a real helper say what counts. No such phone may, and the total has
to be that of the honest ones. The attacks are what a proof is for: a vector that is too long,
squares that wrap around modulo p, and guesses of what a phone must not know when it fixes its
vector or its proof.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import MalformedMessageError, WrongStateError
from earshot_protocol.prio3 import polynomials
from earshot_protocol.prio3.circuit import shortest_chunks
from earshot_protocol.prio3.derivation import Derivation, Party
from earshot_protocol.prio3.field import MODULUS, decode, elements, encode, unpacked
from earshot_protocol.prio3.prio3 import Prio3, Received, Sharded
from earshot_protocol.prio3.shapes import Counts, Norm, Shape
from earshot_protocol.prio3.xof import SEED_BYTES
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.two_operators.leader import Leader
from earshot_protocol.two_operators.messages import PhoneReport, SendReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_simulations.adversary.false_reports import false_shares, plain, reported
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.operators import OperatedSum, sums_of_operators
from earshot_simulations.auditing.watched_operators import AuditedOperators, WatchedOperators
from earshot_simulations.auditing.watching import replaced

LIARS = 100
"""Phones that make an attack in a sum."""
_HONEST = 3
_LENGTH = 104
"""Entries of a sum: more than checks by signs, so that a vector can pass those that it knows."""
LONGER = "more than one phone's weight"
WRAPPED = "squares that wrap around"
GUESSED_SIGNS = "a vector for signs that are guessed"
GUESSED_WEIGHTS = "bits for weights that are guessed"
GUESSED_KEY = "a proof for a key that is guessed"

_SUMS = itertools.count(1)

Making = Callable[[Prio3, bytes], Sharded]
"""Function from the proof system and the identifier of a report to its shares."""


def _as_drawn(system: RandomBytes) -> RandomBytes:
    return system


@dataclass(frozen=True)
class WeakVerification:
    """Planted fault of operators; without arguments there is none.

    Attributes:
        place: Class of the proof system that is changed.
        changes: Its attributes that are.
        source: Makes the source of the key by which operators verify, from that of the operating
            system.
    """

    place: type = Prio3
    changes: Mapping[str, object] = field(default_factory=dict)
    source: Callable[[RandomBytes], RandomBytes] = _as_drawn


SOUND = WeakVerification()


def audit_false_inputs(
    weakness: WeakVerification = SOUND, only: str = "", of: tuple[type[Shape], ...] = (Counts, Norm)
) -> Iterator[Check]:
    """Let phones try every attack on every kind of proof.

    Args:
        weakness: Planted fault.
        only: Name of the one attack to try; all by default.
        of: Shapes of the inputs that are proved.
    """
    kinds = dict[object, OperatedSum]()
    for operated in sums_of_operators():
        if operated.proved:
            proof = operated.agreed(_LENGTH).proof
            if isinstance(proof, of):
                kinds.setdefault((type(proof), getattr(proof, "width", None)), operated)
    for operated in kinds.values():
        agreed = operated.agreed(_LENGTH)
        for name, making in _attacks(agreed.proof):
            if only in ("", name):
                yield _tried(f"{operated.step}: {name}", agreed, making, weakness)


def _attacks(proof: Shape | None) -> Iterator[tuple[str, Making]]:
    """Yield the attacks on a kind of proof, by name."""
    yield LONGER, lambda proof, nonce: false_shares(proof, _longer(proof.shape), nonce)
    if isinstance(proof, Norm):
        yield WRAPPED, lambda proof, nonce: false_shares(proof, _wrapped(), nonce)
        yield GUESSED_SIGNS, lambda proof, nonce: false_shares(proof, _unsigned(proof), nonce)
    yield GUESSED_WEIGHTS, _balanced
    yield GUESSED_KEY, _tuned


def _tried(
    case: str, agreed: TwoOperatorParameters, making: Making, weakness: WeakVerification
) -> Check:
    """Run a sum in which phones make an attack, and check what counts."""
    agreed = msgspec.structs.replace(
        agreed,
        phones=LIARS + _HONEST,
        least=_HONEST,
        # Sizes are remembered by parameters, and a fault changes them.
        window=agreed.window + next(_SUMS),
    )
    with replaced(weakness.place, **weakness.changes):
        shortest_chunks.cache_clear()
        counted, off = _summed(agreed, making, weakness)
    shortest_chunks.cache_clear()
    told = "" if off is None else f", and the total is {'off' if off else 'that of the others'}"
    return Check(
        case,
        f"none of {LIARS} counts, and the total is that of the others",
        f"{counted or 'none'} of {LIARS} counts{told}",
        not counted and not off,
        f"{LIARS} reports of a real sum beside {_HONEST} honest ones",
        power.of_tries(LIARS),
    )


def _summed(
    agreed: TwoOperatorParameters, making: Making, weakness: WeakVerification
) -> tuple[int, bool | None]:
    """Return how many false reports count, and, if none does, whether the total is another one.

    Operators add no noise, so the total is exact.
    """
    silent = AuditedOperators(helper=lambda number: bytes, leader=lambda number: bytes)
    watched = WatchedOperators(silent)
    leader = watched.keys(os.urandom(16), agreed, os.urandom)
    with replaced(os, urandom=weakness.source(os.urandom)):
        leader.accept(HELPER, watched.answer(_task(leader, HELPER)))
    leader.advance()
    honest = _honest(agreed)
    reports = list[PhoneReport]()
    for phone in range(agreed.phones):
        task = _task(leader, phone)
        assert isinstance(task, SendReport)  # noqa: S101
        if phone < LIARS:
            report = reported(task, making)
        else:
            report = ReportingParticipant(task, honest).answer(task)
        leader.accept(phone, report)
        reports.append(report)
    leader.advance()
    leader.accept(HELPER, watched.answer(_task(leader, HELPER)))
    counted = 0
    for phone, report in enumerate(reports):
        with contextlib.suppress(MalformedMessageError):  # for those that the helper refuses
            leader.accept(phone, report)
            counted += phone < LIARS
    if counted:
        return counted, None
    leader.advance()
    return 0, not np.array_equal(leader.result(), _HONEST * honest)


def _task(leader: Leader, party: int) -> SumTask:
    task = leader.task_for(party)
    if task is None:
        raise WrongStateError(f"no task for {party}")
    return task


def _honest(agreed: TwoOperatorParameters) -> npt.NDArray[np.int64]:
    """Return a valid input: the first entry is 1."""
    values = np.zeros(agreed.length, dtype=np.int64)
    values[0] = 1
    return values.reshape(agreed.shape)


def _padded(numbers: Sequence[int]) -> list[int]:
    return [*numbers, *[0] * (_LENGTH - len(numbers))]


def _longer(shape: Shape) -> list[int]:
    """Return a vector of twice the length, or with an entry larger than any valid one."""
    return _padded([2 * GRID - 1 if isinstance(shape, Norm) else 5])


def _wrapped() -> list[int]:
    """Return a vector whose squares add up to 0 modulo p: 1 and a root of −1."""
    root = _square_root(MODULUS - 1)
    assert root is not None  # noqa: S101 - p − 1 is a multiple of 4
    return _padded([1, root])


@functools.lru_cache(maxsize=1)
def _orthogonal(signs: bytes) -> list[int]:
    """Return a vector whose squares add up to 0, and whose products with signs are all 0."""
    rows = unpacked(np.frombuffer(signs, dtype=np.uint8).reshape(-1, 2, -(-_LENGTH // 8)), _LENGTH)
    for one, other in itertools.combinations(_kernel(rows.tolist()), 2):
        # Σ (one + a · other)² = 0
        c, b, a = (_dot(*each) for each in ((one, one), (one, other), (other, other)))
        root = _square_root(b * b - a * c)
        if root is not None and a:
            step = (root - b) * pow(a, -1, MODULUS)
            return [(x + step * y) % MODULUS for x, y in zip(one, other, strict=True)]
    raise ArithmeticError("no two vectors of the kernel have such a sum")


def _unsigned(proof: Prio3) -> list[int]:
    """Return a vector that passes all checks by signs, if these do not depend on its shares."""
    derived = Derivation(proof.circuit, proof.context)
    seed = derived.signs_seed(bytes(SEED_BYTES), bytes(SEED_BYTES))
    return _orthogonal(derived.signs([seed]).tobytes())


def _balanced(proof: Prio3, nonce: bytes) -> Sharded:
    """Return shares with two bits that are none, but pass a test with the weights of no share."""
    shape, derived = proof.shape, Derivation(proof.circuit, proof.context)
    joint = derived.joint_randomness([derived.joint_seed(bytes(SEED_BYTES), bytes(SEED_BYTES))])
    drawn = polynomials.powers(joint, joint, proof.circuit.chunk_length, proof.arithmetic)
    weights = [_number(each) for each in drawn.reshape(-1, 2)[:_LENGTH]]
    vector, first, worths = [-1], 0, (1, 1)
    if isinstance(shape, Norm):
        vector, first = _longer(shape), shape.squared_bits - 2
        worths = (1 << first, 2 << first)
    elif isinstance(shape, Counts) and shape.width > 1:
        worths = (1, 2)
    squared = sum(x * x for x in vector)
    for spare in range(1, _LENGTH - 2):
        # The two bits have to make what `spare` other bits, or ones, leave of a number.
        number = squared - spare if isinstance(shape, Norm) else -spare
        pair = _two_bits(number, worths, weights[first : first + 2])
        if pair is None:
            continue
        if isinstance(shape, Norm):
            lower = plain(spare, [1 << place for place in range(first)])

            def bits(sent: int, of: Sequence[int]) -> list[int]:
                return [*lower, *pair] if sent == squared else plain(sent, of)  # noqa: B023

            return false_shares(proof, vector, nonce, bits)
        if worths == (1, 1):
            return false_shares(proof, _padded([*pair, *[1] * spare]), nonce)

        def two(sent: int, of: Sequence[int]) -> list[int]:
            return list(pair) if sent == number % MODULUS else plain(sent, of)  # noqa: B023

        return false_shares(proof, _padded([number, *[1] * spare]), nonce, two)
    raise ArithmeticError("no number has two such bits")


def _two_bits(
    number: int, worths: tuple[int, int], weights: Sequence[int]
) -> tuple[int, int] | None:
    """Return x and y of these worths with Σ weight · (x² − x) = 0, or None if there are none."""
    (w, v), (r, s) = worths, weights
    d = -w * pow(v, -1, MODULUS)
    c = number * pow(v, -1, MODULUS)  # y = c + d x
    square, linear, rest = r + s * d * d, s * (2 * c * d - d) - r, s * (c * c - c)
    root = _square_root(linear * linear - 4 * square * rest)
    if root is None:
        return None
    x = (root - linear) * pow(2 * square, -1, MODULUS) % MODULUS
    return x, (c + d * x) % MODULUS


def _tuned(proof: Prio3, nonce: bytes) -> Sharded:
    """Return shares whose proof is changed so that it passes a test by the key of zeros.

    Two values of the gadget's polynomial change: one that counts as an output, and one that makes
    up for it at the point of the test.
    """
    key, circuit, arithmetic = bytes(Prio3.verify_key_bytes), proof.circuit, proof.arithmetic
    shared = false_shares(proof, _longer(proof.shape), nonce)
    shown = [
        proof.verifiers(role, key, [Received(nonce, shared.public_share, shared[1 + role])])
        for role in Party
    ]
    output = sum(_number(each.shares[0, :16].view("<u8")) for each in shown)
    drawn = Derivation(circuit, proof.context).query_randomness(key, [nonce])
    basis = circuit._gadget_basis(drawn[:, -1], arithmetic)[0]
    counts = -output * pow(_number(drawn[0, 0]), -1, MODULUS)
    makes_up = -counts * _number(basis[2]) * pow(_number(basis[1]), -1, MODULUS)
    length = circuit.encoded_length + circuit.proof_length
    share = decode(shared.leader_share[:-SEED_BYTES], length).copy()
    at = circuit.encoded_length + circuit.wires + 1
    change = elements([makes_up % MODULUS, counts % MODULUS])
    share[at : at + 2] = arithmetic.add(share[at : at + 2], change)
    return shared._replace(leader_share=encode(share) + shared.leader_share[-SEED_BYTES:])


def _number(element: npt.NDArray[np.uint64]) -> int:
    low, high = element.tolist()
    return int(low) + (int(high) << 64)


def _dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(one, other, strict=True)) % MODULUS


def _kernel(rows: list[list[int]]) -> Iterator[list[int]]:
    """Yield a basis of the vectors that are orthogonal to all rows, modulo p."""
    rows, pivots, length = [list(row) for row in rows], list[int](), len(rows[0])
    for place in range(length):
        done = len(pivots)
        found = next((at for at in range(done, len(rows)) if rows[at][place] % MODULUS), None)
        if found is None:
            continue
        rows[done], rows[found] = rows[found], rows[done]
        inverse = pow(rows[done][place], -1, MODULUS)
        rows[done] = [x * inverse % MODULUS for x in rows[done]]
        for at, row in enumerate(rows):
            if at != done and (factor := row[place]):
                rows[at] = [
                    (x - factor * y) % MODULUS for x, y in zip(row, rows[done], strict=True)
                ]
        pivots.append(place)
    for free in range(length):
        if free not in pivots:
            vector = [int(place == free) for place in range(length)]
            for row, pivot in zip(rows, pivots, strict=False):
                vector[pivot] = -row[free] % MODULUS
            yield vector


def _square_root(number: int) -> int | None:
    """Return a square root modulo p, or None (Tonelli and Shanks)."""
    number %= MODULUS
    odd, twos = MODULUS - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    if number and pow(number, (MODULUS - 1) // 2, MODULUS) != 1:
        return None
    other = next(x for x in itertools.count(2) if pow(x, (MODULUS - 1) // 2, MODULUS) != 1)
    step, rest = pow(other, odd, MODULUS), pow(number, odd, MODULUS)
    root = pow(number, (odd + 1) // 2, MODULUS)
    while rest > 1:
        order = next(k for k in itertools.count(1) if pow(rest, 1 << k, MODULUS) == 1)
        factor = pow(step, 1 << (twos - order - 1), MODULUS)
        root, step, twos = root * factor % MODULUS, factor * factor % MODULUS, order
        rest = rest * step % MODULUS
    return root
