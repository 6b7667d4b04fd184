"""Phones that are told something, and what they say: cases as plain values, played by our phone.

A case has everything that a refusal may depend on: the phone's limits, the operators that its app
names, its clock, its ledger, how many recordings it holds, and tasks, one after the other.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scripted import drawn

from earshot_client.encoder import Encoder, open_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RefusedError, RemoteError
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.discovery import DiscoveryParameters, SumCells
from earshot_protocol.phases.labelling import CheckLabels, LabellingParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.two_operators import messages
from earshot_protocol.two_operators.messages import Offer, SendReport, SignedOffer
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.wire import encode

Vector = dict[str, Any]

ENCODER = "contrast-3"
NOW = 1_800_000_000.0
"""Moment at which phones are asked: 2027-01-15, 08:00 in UTC."""
LEADER, HELPER, STRANGER = (
    Ed25519PrivateKey.from_private_bytes(drawn(f"{who} of the phones", 32))
    for who in ("leader", "helper", "stranger")
)
SUM_KEY = X25519PrivateKey.from_private_bytes(drawn("key of the phones' sums", 32))
_KEYS = {key.public_key().public_bytes_raw(): key for key in (LEADER, HELPER, STRANGER)}


def identity(key: Ed25519PrivateKey) -> bytes:
    """Return the public key of an operator."""
    return key.public_key().public_bytes_raw()


def case(tasks: Iterable[SumPartTask | bytes], /, **about: Any) -> Vector:
    """Return a case with what our phone says; whatever is not given is as usual."""
    usual: Vector = {
        "limits": {},
        "leaders": [identity(LEADER).hex()],
        "helpers": [identity(HELPER).hex()],
        "now": NOW,
        "recordings": 2,
        "ledger": [],
    }
    sent = [task if isinstance(task, bytes) else encode(task) for task in tasks]
    made = usual | about | {"tasks": [task.hex() for task in sent]}
    return made | {"outcomes": played(made)}


# ---------------------------------------------------------------------------------- our phone


def played(given: Vector) -> list[Vector]:
    """Return what our phone makes of each task of a case: what it books, or why it does not."""
    policy = Policy(
        **given["limits"],
        leaders=tuple(map(bytes.fromhex, given["leaders"])),
        helpers=tuple(map(bytes.fromhex, given["helpers"])),
    )
    store = MemoryStore(np.eye(128, dtype=np.float32)[np.arange(given["recordings"]) % 128])
    for entry in booked(given["ledger"]):
        store.append_ledger(entry)
    phone = Phone(store, _encoder(), policy, clock=lambda: given["now"], uptime=lambda: 0.0)
    outcomes = []
    for task in given["tasks"]:
        before = len(store.ledger())
        try:
            phone.answer(decode_task(bytes.fromhex(task)))
        except RefusedError as refused:
            outcomes.append({"rule": refused.rule.value})
        except RemoteError as error:
            outcomes.append({"error": type(error).__name__})
        else:
            new = phone.ledger.export()[before:]
            outcomes.append({"booked": [_shown(entry) for entry in new]})
    return outcomes


def _shown(entry: Vector) -> Vector:
    named = ("step", "unit", "epsilon", "delta", "mechanism", "event")
    return {name: entry[name] for name in named}


@functools.cache
def _encoder() -> Encoder:
    return open_encoder(ENCODER)


def booked(entries: Sequence[Vector]) -> tuple[bytes, ...]:
    """Return the encoded ledger of a case, whose entries are as a phone exports them."""
    ledger, encoded = Ledger(), []
    for (phase, day), group in groupby(entries, lambda each: (each["phase"], each["day"])):
        expenses = [
            Expense(
                Release(
                    *(entry[name] for name in ("step", "unit", "epsilon", "delta", "mechanism"))
                ),
                msgspec.convert(entry["event"], Event),
            )
            for entry in group
        ]
        when = None if day is None else date.fromisoformat(day)
        encoded += ledger.append(bytes.fromhex(phase), expenses, when)
    return tuple(encoded)


def exported(expenses: Iterable[Expense], phase: bytes, day: date) -> list[Vector]:
    """Return expenses as entries of a case's ledger."""
    ledger = Ledger()
    ledger.append(phase, expenses, day)
    return ledger.export()


# --------------------------------------------------------------------------------------- tasks


def part_of(parameters: Parameters, task: SumPartTask) -> SecureSum:
    """Return the part of a phase that a task begins."""
    part = parameters.plan().part_of(task)
    if not isinstance(part, SecureSum):
        raise TypeError(part)
    return part


def shape_of(parameters: Parameters, task: SumPartTask) -> tuple[int, ...]:
    """Return the shape of a phone's input."""
    if isinstance(parameters, DiscoveryParameters):
        if isinstance(task, SumCells):
            return parameters.most_cells, parameters.dimensions
        return (parameters.rows or 0) * parameters.kinds, parameters.label_entries
    if isinstance(parameters, LabellingParameters):
        voted = 1 if isinstance(task, CheckLabels) else len(parameters.labels)
        return parameters.samples.rows, voted
    return (2 * len(parameters.labels) + 1,)


def opening(sum_id: bytes, index: int = 0) -> SendReport:
    """Return the opening of a sum that is still to be offered."""
    return SendReport(sum_id=sum_id, index=index)


def offered(task: SumPartTask, parameters: Parameters, /, **changes: Any) -> SumPartTask:
    """Return a task with an offer as its phase promises it, but for changes, signed by both."""
    given = task.opening
    if not isinstance(given, SendReport):
        raise TypeError(given)
    terms = parameters.sum_parameters(part_of(parameters, task), shape_of(parameters, task))
    if not isinstance(terms, TwoOperatorParameters):
        raise TypeError(terms)
    offer = Offer(
        version=messages.VERSION,
        suite=messages.X25519_AES128,
        sum_id=given.sum_id,
        leader=identity(LEADER),
        helper=identity(HELPER),
        key=SUM_KEY.public_key().public_bytes_raw(),
        task=hashlib.sha256(task.told(parameters)).digest(),
        parameters=terms,
        opens=NOW,
        closes=NOW + terms.window,
        answer_until=NOW + terms.window + 604_800.0,
    )
    return with_offer(task, changed(offer, **changes))


def terms_of(task: SumPartTask) -> TwoOperatorParameters:
    """Return the parameters of the sum that a task opens, as its offer states them."""
    terms = task.opening.parameters
    if not isinstance(terms, TwoOperatorParameters):
        raise TypeError(terms)
    return terms


def changed(offer: Offer, /, **changes: Any) -> Offer:
    """Return another offer; names of parameters of its sum change these."""
    terms = {name: changes.pop(name) for name in _TERMS if name in changes}
    parameters = msgspec.structs.replace(offer.parameters, **terms)
    return msgspec.structs.replace(offer, **({"parameters": parameters} | changes))


_TERMS = tuple(TwoOperatorParameters.__struct_fields__)


def with_offer(task: SumPartTask, offer: Offer) -> SumPartTask:
    """Return a task with an offer that those whom it names have signed."""
    helper, leader = (
        messages.sign(_KEYS[who], what, offer.digest())
        for who, what in (
            (offer.helper, messages.HELPERS_OFFER),
            (offer.leader, messages.LEADERS_OFFER),
        )
    )
    signed = SignedOffer(offer=offer, helper=helper, leader=leader)
    return msgspec.structs.replace(
        task, opening=msgspec.structs.replace(task.opening, offer=signed)
    )
