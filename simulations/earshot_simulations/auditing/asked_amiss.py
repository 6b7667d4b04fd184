"""Requests of a hostile server, which phones and helpers must refuse.

A sum reveals its total alone if each phone reports once, under the offer of its own task, and the
helper adds up a single list that holds each report once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_client.phone import Phone
from earshot_client.store.interface import Store
from earshot_protocol.errors import (
    MalformedMessageError,
    RefusedError,
    RemoteError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import PartTask, SumPartTask
from earshot_protocol.privacy.sum_noise import NoiseOfOperators, WholeLaplace
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import HELPER
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.two_operators import messages
from earshot_protocol.two_operators.messages import (
    AddUp,
    Offer,
    SendReport,
    SignedOffer,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.participant import ReportingParticipant
from earshot_protocol.two_operators.refusals import (
    AnsweredError,
    UnknownSumError,
    WrongListError,
)
from earshot_protocol.two_operators.sizes import sizes
from earshot_protocol.wire import Answer, Task
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.watched_operators import (
    PRODUCT,
    AuditedOperators,
    WatchedOperators,
)

_PHONES = 4
_YEAR = 366 * 86_400.0
_HELPERS_OWN = {"answer_until"}
"""Fields of an offer that the helper may choose freely."""


class Tried(NamedTuple):
    """One hostile request, with its outcome.

    Attributes:
        what: Description of the request.
        refused: Whether it was refused.
    """

    what: str
    refused: bool


def refusals_check(case: str, tried: Iterable[Tried], who: str) -> Check:
    """Check that everything was refused.

    Args:
        case: Description of the phase or sum.
        tried: Requests and their outcomes.
        who: Name of the party that received them.
    """
    tries = list(tried)
    taken = sorted({each.what for each in tries if not each.refused})
    return Check(
        f"{case}: what {who} refuses",
        "all that would reveal more than the sum",
        f"not {', '.join(taken)}" if taken else f"{len(tries)} of {len(tries)}",
        bool(tries) and not taken,
        f"{', '.join(sorted({each.what for each in tries}))}",
        f"{power.EXACTLY} of these",
    )


# ------------------------------------------------------------------------------------- phones


def ask_amiss(
    phone: Phone, store: Store, task: Task | None, operators: WatchedOperators
) -> Iterator[Tried]:
    """Send a phone openings of other sums than its task's, before the right one.

    Args:
        phone: The phone.
        store: Its store; every change to it is rolled back.
        task: The task that it will be given.
        operators: Operators of its sums, which sign any offer here.
    """
    if not isinstance(task, SumPartTask):
        return
    for what, opening in _other_openings(task.opening, operators):
        with contextlib.suppress(_PutBackError), store.transaction():
            tried = _tried(what, phone, msgspec.structs.replace(task, opening=opening))
            raise _PutBackError
        yield tried


class _PutBackError(Exception):
    """Signal to roll back the changes of a phone."""


def ask_again(
    phone: Phone,
    parameters: Parameters,
    tasks: Iterable[PartTask],
    operators: WatchedOperators,
) -> Iterator[Tried]:
    """Ask a phone to release every released step again, each in a new sum.

    Args:
        phone: The phone.
        parameters: Parameters of the phase, which is still running.
        tasks: Tasks that it has received in this phase.
        operators: Operators of its sums.
    """
    for task in tasks:
        again: Any = task
        if isinstance(task, SumPartTask):
            again = msgspec.structs.replace(task, opening=_new_sum(task, parameters, operators))
        step = parameters.plan().part_of(task).name
        yield _tried(f"{step} again", phone, again, frozenset({Rule.REPEATED}))


def _tried(what: str, phone: Phone, task: Task, rules: Collection[Rule] = frozenset(Rule)) -> Tried:
    try:
        phone.answer(task)
    except RefusedError as error:
        return Tried(what, error.rule in rules)
    except UnexpectedMessageError:
        return Tried(what, refused=len(rules) == len(Rule))
    return Tried(what, refused=False)


def _new_sum(task: SumPartTask, parameters: Parameters, operators: WatchedOperators) -> Any:
    """Return the opening of a new sum for the same task."""
    opening = task.opening
    if isinstance(opening, AdvertiseKeys):
        return msgspec.structs.replace(opening, sum_id=os.urandom(16))
    assert opening.offer is not None  # noqa: S101
    sum_id, agreed = os.urandom(16), opening.offer.offer.parameters
    leader = operators.keys(sum_id, agreed, os.urandom, task.told(parameters))
    offered = _offered(leader, operators).task_for(task.index)
    del operators.sums[sum_id]  # no phone may report to it
    return offered


def _offered(leader: Any, operators: WatchedOperators) -> Any:
    """Return a leader whose sum its helper has offered."""
    leader.accept(HELPER, operators.answer(leader.task_for(HELPER)))
    leader.advance()
    return leader


def _other_openings(
    opening: AdvertiseKeys | SendReport, operators: WatchedOperators
) -> Iterator[tuple[str, AdvertiseKeys | SendReport]]:
    replace = msgspec.structs.replace
    if isinstance(opening, AdvertiseKeys):
        terms = opening.parameters
        for words, changed in (
            ("a sum with another bound", replace(terms, bound=2 * terms.bound)),
            ("a sum with a lower threshold", replace(terms, threshold=terms.threshold - 1)),
        ):
            yield words, replace(opening, parameters=changed)
        return
    signed = opening.offer
    assert signed is not None  # noqa: S101
    for words, changes in _other_offers(signed.offer):
        yield f"an offer {words}", replace(opening, offer=_signed(signed.offer, changes, operators))
    for operator in ("helper", "leader"):
        unsigned = replace(signed, **{operator: bytes(64)})
        yield f"an offer that its {operator} has not signed", replace(opening, offer=unsigned)
    yield "no offer", replace(opening, offer=None)


def _other_offers(offer: Offer) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an offer with each field changed in turn; keys become low-order or a stranger's.

    Raises:
        WrongStateError: An offer has a field that is not changed here.
    """
    terms, weaker = offer.parameters, msgspec.structs.replace
    stranger = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    changed: dict[str, list[tuple[str, Any]]] = {
        "version": [("of another version", offer.version + 1)],
        "suite": [("of another suite", offer.suite + 1)],
        "sum_id": [("of another sum", os.urandom(len(offer.sum_id)))],
        "leader": [("of an unknown leader", stranger)],
        "helper": [("of an unknown helper", stranger)],
        "key": [("with a key of low order", bytes(len(offer.key)))],
        "task": [("for another task", os.urandom(len(offer.task)))],
        "parameters": [
            ("with half the noise", weaker(terms, noise=_halved(terms.noise))),
            ("of fewer reports", weaker(terms, least=terms.least - 1)),
            ("with another bound", weaker(terms, bound=terms.bound + 1)),
        ],
        "opens": [("that opens in a year", offer.opens + _YEAR)],
        "closes": [("that has another window", offer.closes + _YEAR)],
    }
    unknown = set(Offer.__struct_fields__) - changed.keys() - _HELPERS_OWN
    if unknown:
        raise WrongStateError(f"an offer has {', '.join(sorted(unknown))}: change it here, too")
    for name, values in changed.items():
        for words, value in values:
            yield words, {name: value}


def _halved(noise: NoiseOfOperators) -> NoiseOfOperators:
    if isinstance(noise, WholeLaplace):
        return WholeLaplace(noise.fine_scale // 2)
    return type(noise)(noise.fine_variance // 4)


def _signed(offer: Offer, changes: dict[str, Any], operators: WatchedOperators) -> SignedOffer:
    """Return a changed offer, signed by both operators whatever keys it names."""
    other = msgspec.structs.replace(offer, **changes)
    digest = other.digest()
    return SignedOffer(
        offer=other,
        helper=messages.sign(operators.helper, messages.HELPERS_OFFER, digest),
        leader=messages.sign(operators.keys.leader, messages.LEADERS_OFFER, digest),
    )


# ------------------------------------------------------------------------------------- helper

Answering = Callable[[Task], Answer]


def list_refusals(
    case: str,
    parameters: TwoOperatorParameters,
    operators: AuditedOperators = PRODUCT,
    tolerant: Callable[[WatchedOperators], Answering] = lambda watched: watched.answer,
) -> Check:
    """Check that a helper adds up only one list, and no report twice.

    Args:
        case: Description of the sum.
        parameters: Parameters of the sum.
        operators: Operators, with a fault where one is planted.
        tolerant: Returns the helper of these operators, or a faulty one.
    """
    watched = WatchedOperators(operators)
    agreed = msgspec.structs.replace(parameters, phones=_PHONES, least=2)
    leader = _offered(watched.keys(os.urandom(16), agreed, os.urandom), watched)
    for phone in range(_PHONES):
        task = leader.task_for(phone)
        ballot = np.zeros(agreed.shape, dtype=np.int64)
        leader.accept(phone, ReportingParticipant(task, ballot).answer(task))
    leader.advance()
    task = leader.task_for(HELPER)
    size = sum(sizes(agreed).entry)
    entries = [task.reports[at : at + size] for at in range(0, len(task.reports), size)]
    answer = tolerant(watched)

    def tried(what: str, error: type[RemoteError], reports: list[bytes], **changes: Any) -> Tried:
        signed = _listed(task, b"".join(reports), watched, **changes)
        try:
            answer(signed)
        except RemoteError as refused:
            return Tried(what, isinstance(refused, error))
        return Tried(what, refused=False)

    before = [
        tried("a report twice", WrongListError, [*entries[:-1], entries[0]]),
        tried("an identifier twice", WrongListError, [*entries[:-1], _resealed(entries[0])]),
        tried("more reports than phones", WrongListError, [*entries, os.urandom(size)]),
        tried("a list for another offer", UnknownSumError, entries, offer=os.urandom(32)),
        tried("a list without a signature", MalformedMessageError, entries, signature=bytes(64)),
    ]
    with contextlib.suppress(AnsweredError):  # if a faulty helper answered one of those lists
        answer(task)
    after = [
        tried("a second list of one report less", AnsweredError, entries[:-1]),
        tried("a second list in another order", AnsweredError, entries[::-1]),
    ]
    return refusals_check(case, before + after, "the helper")


def _resealed(entry: bytes) -> bytes:
    """Return an entry with the same identifier, and another last byte."""
    return entry[:-1] + bytes([entry[-1] ^ 1])


def _listed(task: AddUp, reports: bytes, watched: WatchedOperators, **changes: Any) -> AddUp:
    """Return a list of these reports as the leader signs it."""
    offer = changes.get("offer", task.offer)
    body = messages.list_body(offer, reports)
    signature = messages.sign(watched.keys.leader, messages.LEADERS_LIST, body)
    signed = {"reports": reports, "signature": signature} | changes
    return msgspec.structs.replace(task, **signed)
