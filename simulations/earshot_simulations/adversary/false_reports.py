"""Reports of a phone with a program of its own, to sums by two operators that prove their inputs.

Nothing keeps such a phone from encoding a vector that is not valid, and from proving it as well as
it can be proved. The operators have to refuse it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.prio3.field import MODULUS, Elements, Signs, elements, unpacked
from earshot_protocol.prio3.prio3 import Prio3, Sharded
from earshot_protocol.prio3.shapes import Counts, Norm
from earshot_protocol.two_operators.messages import ID_BYTES, PhoneReport, SendReport
from earshot_protocol.two_operators.proofs import proof_of
from earshot_protocol.two_operators.shares import seal
from earshot_server.proofs.engine import fastest

Bits = Callable[[int, Sequence[int]], list[int]]
"""Function from a number, modulo p, and what bits are worth to what is sent as bits."""


def plain(number: int, worths: Sequence[int]) -> list[int]:
    """Return the bits of a number; if it has none, all is in the last place, which is then no bit.

    Either way, every output of the circuit that is linear fits.
    """
    bits, rest = [0] * len(worths), number
    for place in reversed(range(len(worths))):
        bits[place] = int(rest >= worths[place])
        rest -= bits[place] * worths[place]
    if rest:
        return [*[0] * (len(worths) - 1), number * pow(worths[-1], -1, MODULUS) % MODULUS]
    return bits


def false_shares(proof: Prio3, numbers: Sequence[int], nonce: bytes, bits: Bits = plain) -> Sharded:
    """Return shares of a vector, valid or not, and the proof that an honest program makes of it.

    Args:
        proof: Proof system of the sum.
        numbers: Entries, modulo p.
        nonce: Public number of the report.
        bits: Function that makes the bits of every number that the circuit checks.
    """
    shape = proof.shape
    if isinstance(shape, Norm):
        squared = sum(x * x for x in numbers) % MODULUS
        fixed = [*numbers, *bits(squared, _powers(shape.squared_bits))]
    elif isinstance(shape, Counts):
        blocks = [sum(numbers[at : at + shape.block]) for at in range(0, proof.length, shape.block)]
        of_entries = (bits(number % MODULUS, _powers(shape.width)) for number in numbers)
        of_totals = (bits(total % MODULUS, shape.total_bits) for total in blocks)
        fixed = list(chain.from_iterable(chain(of_entries, of_totals)))
    else:
        raise TypeError(f"nobody knows how to forge {shape}")

    def signed(signs: Signs) -> Elements:
        if not isinstance(shape, Norm):
            return np.empty((0, 2), dtype=np.uint64)
        middle, worths = 2 ** (shape.product_bits - 1) - 1, _powers(shape.product_bits)
        rows = unpacked(signs, len(numbers)).tolist()
        products = (sum(s * x for s, x in zip(row, numbers, strict=True)) for row in rows)
        shifted = (bits((each + middle) % MODULUS, worths) for each in products)
        return elements(chain.from_iterable(shifted))

    return proof._split(elements(fixed), signed, nonce, os.urandom(proof.rand_bytes))


def reported(task: SendReport, shares: Callable[[Prio3, bytes], Sharded]) -> PhoneReport:
    """Return a report with shares of a phone's own making.

    Args:
        task: Task that asks for the report.
        shares: Function from the proof system and the identifier of the report to its shares.

    Raises:
        UnexpectedMessageError: The task has no offer.
    """
    if task.offer is None:
        raise UnexpectedMessageError("a sum by two operators without an offer")
    offer, report_id = task.offer.offer, os.urandom(ID_BYTES)
    made = shares(proof_of(offer, fastest()), report_id)
    key = X25519PublicKey.from_public_bytes(offer.key)
    return PhoneReport(
        sum_id=offer.sum_id,
        sender=task.index,
        report_id=report_id,
        sealed=seal(made.helper_share, key, offer.digest(), report_id, made.public_share),
        share=made.leader_share,
        public=made.public_share,
    )


def _powers(count: int) -> list[int]:
    return [1 << place for place in range(count)]
