"""Totals of a helper that does not follow the protocol, each signed by it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.two_operators import lists, messages
from earshot_protocol.two_operators.messages import ID_BYTES, AddUp, HelperTotal
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.sizes import sizes
from earshot_server.helper.helper import Helper, _proved_and_added_up
from support.liars import flipped

Bend = Callable[[AddUp, HelperTotal, TwoOperatorParameters], dict[str, Any]]
"""What a helper states otherwise in a total of proved inputs."""


def first_id(task: AddUp) -> bytes:
    return task.reports[:ID_BYTES]


def shares(total: HelperTotal, terms: TwoOperatorParameters) -> int:
    """Size of a verifier share."""
    return sizes(terms).entry[-1]


SPOILED: dict[str, tuple[Bend, str]] = {
    "another verifier share": (
        lambda task, total, terms: {"verifiers": flipped(total.verifiers, 0)},
        "the operators do not agree on which inputs are valid",
    ),
    "another part in a verifier share": (
        lambda task, total, terms: {"verifiers": flipped(total.verifiers, -1)},
        "the operators do not agree on which inputs are valid",
    ),
    "verifier shares exchanged": (
        lambda task, total, terms: {
            "verifiers": total.verifiers[shares(total, terms) :]
            + total.verifiers[: shares(total, terms)]
        },
        "the operators do not agree on which inputs are valid",
    ),
    "a verifier share too few": (
        lambda task, total, terms: {"verifiers": total.verifiers[: -shares(total, terms)]},
        "without a verifier share of each report",
    ),
    "a verifier share too many": (
        lambda task, total, terms: {"verifiers": total.verifiers + bytes(shares(total, terms))},
        "without a verifier share of each report",
    ),
    "no verifier shares": (
        lambda task, total, terms: {"verifiers": b""},
        "without a verifier share of each report",
    ),
    "an honest report refused, whose share is in the total": (
        lambda task, total, terms: {"refused": first_id(task)},
        "without a verifier share of each report",
    ),
    "a report refused that nobody listed": (
        lambda task, total, terms: {
            "refused": bytes(ID_BYTES),
            "verifiers": total.verifiers[: -shares(total, terms)],
        },
        "refuses a report that was not listed",
    ),
    "a report refused twice": (
        lambda task, total, terms: {"refused": first_id(task) * 2},
        "refuses a report twice",
    ),
    "nearly all refused": (
        lambda task, total, terms: {
            "refused": b"".join(
                entry.report_id for entry in list(lists.entries(task.reports, terms))[1:]
            ),
            "verifiers": total.verifiers[: shares(total, terms)],
        },
        "with reports that count; at least",
    ),
    "a total of another length": (
        lambda task, total, terms: {"total": total.total[:-16]},
        "bytes of field elements",
    ),
    "a total beyond the field": (
        lambda task, total, terms: {"total": b"\xff" * len(total.total)},
        "not below the field's prime",
    ),
}
"""Totals that end a sum, and what its phase says then."""


def signed(identity: Ed25519PrivateKey, total: HelperTotal, changes: dict[str, Any]) -> HelperTotal:
    """The total with these changes."""
    bent = msgspec.structs.replace(total, **changes)
    signature = messages.sign(identity, messages.HELPERS_TOTAL, bent.body())
    return msgspec.structs.replace(bent, signature=signature)


def without_the_first(helper: Helper, task: AddUp) -> HelperTotal:
    """The total as if the first report did not open, whatever is in it."""
    record, secret = helper._book.record(task.sum_id), helper._book.secret(task.sum_id)
    assert record is not None
    assert secret is not None
    spoiled = msgspec.structs.replace(task, reports=flipped(task.reports, ID_BYTES + 40))
    found = _proved_and_added_up(spoiled, record.made, secret)
    total = HelperTotal(
        sum_id=task.sum_id,
        offer=task.offer,
        reports=hashlib.sha256(task.reports).digest(),
        refused=found.refused,
        total=found.sum,
        verifiers=found.verifiers,
    )
    return signed(helper._identity, total, {})
