"""Bytes that a sum makes its phones send and its operators keep, from its parameters alone.

Bytes are those of messages in MessagePack, without the overhead of HTTP, TLS and stores.
"""

from __future__ import annotations

import bisect
import math

import msgspec

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.remembering import remembered
from earshot_protocol.secure_sum.encoding import packed_bytes
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.secure_sum.messages import (
    REVEALED_SHARE_BYTES,
    SEALED_SHARES_BYTES,
    TAG_BYTES,
    TRACE_BYTES,
    AdvertisedKeys,
    MaskedInput,
    MaskInput,
    SharedKeys,
    ShareKeys,
    Unmask,
    Unmasked,
)
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.summations import AnySumParameters
from earshot_protocol.two_operators import sizes
from earshot_protocol.two_operators.messages import LARGEST_LIST
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.wire import LARGEST_ANSWER_BYTES, encode, lengthened

_SUM = bytes(16)
_UNPROVED = f"; without proofs, with summation={SummationName.TWO_OPERATORS_UNPROVED},"


class Traffic(msgspec.Struct, frozen=True):
    """Bytes of one sum, the most that there can be.

    Attributes:
        sent: What one phone sends in all rounds.
        largest: Largest of a phone's answers.
        server: What the server keeps at a time: answers of phones, and tasks of each party.
        list: What the helper keeps of a list until it answers; 0 without a helper.
        total: What the helper keeps of its answer; 0 without a helper.
    """

    sent: int
    largest: int
    server: int
    list: int = 0
    total: int = 0


@remembered(64)
def traffic(parameters: AnySumParameters) -> Traffic:
    """Return the bytes of a sum if all phones answer, at the largest dropout."""
    if isinstance(parameters, TwoOperatorParameters):
        report, total = sizes.report_bytes(parameters), sizes.total_bytes(parameters)
        kept = parameters.phones * report + sizes.asked_bytes(parameters) + total
        return Traffic(report, report, kept, sizes.list_bytes(parameters), total)
    rounds = _rounds(parameters)
    kept = max(parameters.phones * (task + answer) for task, answer in rounds)
    answers = [answer for _, answer in rounds]
    return Traffic(sum(answers), max(answers), kept)


@remembered(64)
def check_traffic(parameters: AnySumParameters) -> None:
    """Refuse a sum of which a message would be larger than its recipient accepts.

    Raises:
        InvalidParametersError: A phone's answer or the helper's list would be; the message says how
            many entries or phones there may be.
    """
    found, without = traffic(parameters), _without_proof(parameters)
    if found.largest > LARGEST_ANSWER_BYTES:
        block = _block(parameters)
        lengths = range(block, parameters.length + block, block)
        fitting = bisect.bisect_left(lengths, True, key=lambda each: not _fits(parameters, each))
        unproved = f"{_UNPROVED} each would send {without.largest}" if without else ""
        raise InvalidParametersError(
            f"a sum of {parameters.length} entries: each phone would answer with {found.largest} "
            f"bytes, and a server takes {LARGEST_ANSWER_BYTES}, so at most {fitting * block} "
            f"entries{unproved}"
        )
    if found.list > LARGEST_LIST:
        most = LARGEST_LIST * parameters.phones // found.list
        unproved = ""
        if without:
            unproved = f"{_UNPROVED} at most {LARGEST_LIST * parameters.phones // without.list}"
        raise InvalidParametersError(
            f"phones={parameters.phones}: the helper would get a list of {found.list} bytes of a "
            f"sum of {parameters.length} entries, and takes {LARGEST_LIST}, so at most {most} "
            f"phones{unproved}"
        )


def _without_proof(parameters: AnySumParameters) -> Traffic | None:
    """Return the bytes of the same sum without proofs; None of a sum that has none."""
    if isinstance(parameters, SumParameters) or parameters.proof is None:
        return None
    return traffic(msgspec.structs.replace(parameters, proof=None))


def _block(parameters: AnySumParameters) -> int:
    """Return the entries that are added or left out together."""
    proof = getattr(parameters, "proof", None)
    if isinstance(proof, Counts) and proof.block < parameters.length:
        return proof.block
    return 1


def _fits(parameters: AnySumParameters, length: int) -> bool:
    """Return whether answers are small enough in a sum of this many entries, and else the same."""
    shape = (length,)
    if isinstance(parameters, SumParameters):
        other: AnySumParameters = msgspec.structs.replace(parameters, length=length, shape=shape)
    else:
        proof = parameters.proof
        if isinstance(proof, Counts) and proof.block == parameters.length:
            most = min(proof.total, length * (2**proof.width - 1))
            proof = Counts(proof.width, most, length)
        other = msgspec.structs.replace(parameters, shape=shape, proof=proof)
    return traffic(other).largest <= LARGEST_ANSWER_BYTES


def _rounds(parameters: SumParameters) -> list[tuple[int, int]]:
    """Return the bytes of one phone's task, where each has its own, and answer in each round."""
    key, last, degree = bytes(32), parameters.phones - 1, parameters.degree
    all_of_them, dropped = (last,) * degree, math.floor(parameters.dropout * degree)
    sealed = (bytes(SEALED_SHARES_BYTES),) * degree
    masks = bytes(32 * degree + TAG_BYTES)
    shares, traces = bytes(REVEALED_SHARE_BYTES * degree), bytes(TRACE_BYTES * dropped)
    messages = (
        (None, AdvertisedKeys(sum_id=_SUM, sender=last, public_key=key)),
        (
            ShareKeys(sum_id=_SUM, neighbours=all_of_them, public_keys=key * degree),
            SharedKeys(sum_id=_SUM, sender=last, ciphertexts=sealed, masks=masks, commitment=key),
        ),
        (
            MaskInput(sum_id=_SUM, senders=all_of_them, ciphertexts=sealed),
            MaskedInput(sum_id=_SUM, sender=last, vector=b""),
        ),
        (
            Unmask(sum_id=_SUM, survivors=all_of_them[dropped:], dropped=all_of_them[:dropped]),
            Unmasked(sum_id=_SUM, sender=last, shares=shares, traces=traces),
        ),
    )
    found = [(len(encode(task)) if task else 0, len(encode(each))) for task, each in messages]
    task, without = found[2]
    found[2] = task, lengthened(without, packed_bytes(parameters))
    return found
