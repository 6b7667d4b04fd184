"""The leader's side of a sum by two operators.

    offer ──▸ report ──▸ total ──▸ done

The leader requests an offer from the helper, signs it, collects reports, and requests the helper's
total over all of them once. Reports stay in the store until then: one that the helper cannot open
is left out of both halves.

The leader's noise is drawn when the sum begins, and the request for an offer commits to it. A
leader that is restored from a backup has the same noise again, and the helper answers only one
list; or it has no such sum, and its next one has another identifier. So a sum has one total,
whatever is restored.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.errors import (
    MalformedMessageError,
    RepeatedMessageError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.prio3.field import Arithmetic
from earshot_protocol.prio3.limbs import LimbArithmetic
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import HELPER, Saved
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.two_operators import lists, messages
from earshot_protocol.two_operators.acceptance import refusals_of_offer
from earshot_protocol.two_operators.halves import (
    PlainHalf,
    ProvedHalf,
    check_report,
    half_of,
)
from earshot_protocol.two_operators.lists import ListEntry
from earshot_protocol.two_operators.messages import (
    ID_BYTES,
    SALT_BYTES,
    VERIFY_KEY_BYTES,
    AddUp,
    HelperTotal,
    MakeOffer,
    Offer,
    OfferMade,
    PhoneReport,
    SendReport,
    SignedOffer,
)
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.rounds import DONE, OFFER, REPORT, TOTAL
from earshot_protocol.wire import Answer, Task

_TOGETHER = 256
"""Reports that are processed together."""
PATIENCE = 7 * 86_400.0
"""Seconds for which a sum waits for its helper, before an offer and before a total."""


class _State(msgspec.Struct):
    """State of a leader's sum between two rounds; the list of reports is in the helper's task."""

    sum_id: bytes
    parameters: TwoOperatorParameters
    round: str
    task: bytes
    noise: bytes
    """Noise of this operator, drawn before the offer was requested: int64, little-endian."""
    salt: bytes
    offer: SignedOffer | None = None
    reports: bytes = b""
    """Digest of the list."""
    listed: int = 0
    verify_key: bytes = b""
    total: bytes = b""


class Leader:
    """An `Aggregator` of one sum, for the operator that phones report to.

    Args:
        keys: Identities, and the source of the leader's noise.
        state: State of the sum.
    """

    def __init__(self, keys: LeaderKeys, state: _State) -> None:
        self._keys = keys
        self._state = state
        self._entries, self._ids = bytearray(), set[bytes]()
        self._waiting: list[PhoneReport] = []
        # In the last round: the helper's total, and what is left of the list.
        self._answer: HelperTotal | None = None
        self._refused = frozenset[bytes]()
        self._recalled = b""
        self._listed: Iterator[ListEntry] = iter(())
        self._following: ListEntry | None = None
        self._ours = bytearray()
        self._counted = self._shown = 0
        self._agreed = True

    @functools.cached_property
    def _half(self) -> PlainHalf | ProvedHalf:
        return half_of(self._offer, self._state.verify_key, self._keys.arithmetic)

    def save(self, behind: bytes = b"") -> Saved:
        """Return the state as one MessagePack object, appended to the bytes of `behind`.

        The list is left out: `tasks` has handed it over, and `recall` takes it back.
        """
        return behind + msgspec.msgpack.encode(self._state)

    @property
    def parameters(self) -> TwoOperatorParameters:
        """Parameters of the sum."""
        return self._state.parameters

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""
        return self._state.round == DONE

    def deadline(self, now: float, step_seconds: float) -> float:
        """Return the end of the present round, on the clock of `now`.

        Phones have the window of the offer; the helper has much longer, `PATIENCE`.
        """
        return now + (self.parameters.window if self._state.round == REPORT else PATIENCE)

    # ------------------------------------------------------------------------------- tasks

    def expected(self) -> Collection[int]:
        """Return the parties with a task in the present round: the helper, or all phones."""
        return range(self.parameters.phones) if self._state.round == REPORT else (HELPER,)

    def tasks(self) -> Iterator[tuple[int, SumTask]]:
        """Yield the helper's task, and hand over the list in it."""
        if self._state.round in (OFFER, TOTAL):
            task = self.task_for(HELPER)
            self._entries = bytearray()
            if task is not None:
                yield HELPER, task

    def task_for(self, phone: int) -> SumTask | None:
        """Return the task of a phone or of the helper; None if it has none in this round.

        Raises:
            WrongStateError: `tasks` has handed the list over.
        """
        state = self._state
        if state.round == REPORT and 0 <= phone < state.parameters.phones:
            return SendReport(sum_id=state.sum_id, index=phone, offer=state.offer)
        if phone != HELPER:
            return None
        if state.round == OFFER:
            return self._signed_request()
        return self._signed_list() if state.round == TOTAL else None

    def _signed_request(self) -> MakeOffer:
        state = self._state
        request = MakeOffer(
            sum_id=state.sum_id,
            leader=self._keys.identity,
            task=state.task,
            parameters=state.parameters,
            patience=PATIENCE,
            commitment=commitment(state.noise, state.salt),
        )
        signed = messages.sign(self._keys.leader, messages.LEADERS_REQUEST, request.body())
        return msgspec.structs.replace(request, signature=signed)

    def _signed_list(self) -> AddUp:
        entries, offer = bytes(self._entries), self._offer.digest()
        if not entries:
            raise WrongStateError("the list of this sum was handed over with its task")
        body = messages.list_body(offer, entries)
        return AddUp(
            sum_id=self._state.sum_id,
            offer=offer,
            reports=entries,
            signature=messages.sign(self._keys.leader, messages.LEADERS_LIST, body),
        )

    def recall(self, task: SumTask) -> None:
        """Take back the list that `tasks` has handed over."""
        if isinstance(task, AddUp):
            self._recalled = task.reports

    @property
    def _offer(self) -> Offer:
        if self._state.offer is None:
            raise WrongStateError("this sum has no offer yet")
        return self._state.offer.offer

    # ----------------------------------------------------------------------------- answers

    def accept(self, phone: int, answer: Answer) -> None:
        """Take the answer of a phone or of the helper.

        Raises:
            RemoteError: The answer does not fit; nothing has changed.
        """
        current = self._state.round
        if current == OFFER and phone == HELPER and isinstance(answer, OfferMade):
            self._take_offer(answer)
        elif current == REPORT and phone != HELPER and isinstance(answer, PhoneReport):
            self._list(phone, answer)
        elif current == TOTAL and phone != HELPER and isinstance(answer, PhoneReport):
            self._count(phone, answer)
        elif current == TOTAL and phone == HELPER and isinstance(answer, HelperTotal):
            self._take_total(answer)
        else:
            raise UnexpectedMessageError(
                f"{type(answer).__name__} is not expected in the round '{current}'"
            )

    def _take_offer(self, answer: OfferMade) -> None:
        # The clock was checked when the answer arrived; the round may be closed much later.
        signed = self._keys.signed_offer(self._signed_request(), answer, answer.offer.opens)
        self._state.offer = signed
        self._state.verify_key = answer.verify_key

    def _list(self, phone: int, answer: PhoneReport) -> None:
        if answer.sender != phone or answer.sum_id != self._state.sum_id:
            raise UnexpectedMessageError(f"phone {phone}: a report of another phone or sum")
        if answer.report_id in self._ids:
            raise RepeatedMessageError(f"phone {phone}: its report has the identifier of another")
        check_report(phone, answer, self._offer)
        self._ids.add(answer.report_id)
        self._waiting.append(answer)
        if len(self._waiting) == _TOGETHER:
            self._write_list()

    def _write_list(self) -> None:
        waiting, self._waiting = self._waiting, []
        entries = self._half.listed(waiting) if waiting else []
        self._state.listed += sum(map(bool, entries))
        self._entries += b"".join(entries)

    def _count(self, phone: int, answer: PhoneReport) -> None:
        """Take a report once more, to add its share if the helper counts it."""
        if self._answer is None:
            return
        entry = self._following
        if entry is None or answer.report_id != entry.report_id:
            raise UnexpectedMessageError(f"phone {phone}: its report is not in the list")
        if (answer.sealed, answer.public) != (entry.sealed, entry.public):
            raise UnexpectedMessageError(f"phone {phone}: its report was listed otherwise")
        self._half.check_share(answer.share)
        self._following = next(self._listed, None)
        if answer.report_id in self._refused:
            raise MalformedMessageError(f"phone {phone}: the helper cannot count its report")
        self._waiting.append(answer)
        self._ours += entry.verifier
        if len(self._waiting) == _TOGETHER:
            self._add()

    def _add(self) -> None:
        waiting, self._waiting = self._waiting, []
        ours, self._ours = bytes(self._ours), bytearray()
        if self._answer is None or not waiting:
            return
        first, self._shown = self._shown, self._shown + len(ours)
        theirs = self._answer.verifiers[first : self._shown]
        self._agreed &= self._half.add(waiting, ours, theirs)
        self._counted += len(waiting)

    def _take_total(self, answer: HelperTotal) -> None:
        reports, self._recalled = self._recalled or bytes(self._entries), b""
        if hashlib.sha256(reports).digest() != self._state.reports:
            raise WrongStateError("the list of this sum was handed over: `recall` takes it back")
        asked = (self._state.sum_id, self._offer.digest(), self._state.reports)
        refused = check_total_given(asked, answer, self._offer.helper)
        listed = (entry.report_id for entry in lists.entries(reports, self.parameters))
        if refused and refused.difference(listed):
            raise UnexpectedMessageError("a total that refuses a report that was not listed")
        self._half.check(answer)
        counted = self._state.listed - len(refused)
        if len(answer.verifiers) != counted * self._half.verifier_bytes:
            raise MalformedMessageError("a total without a verifier share of each report in it")
        self._answer, self._refused = answer, refused
        self._listed = lists.entries(reports, self.parameters)
        self._following = next(self._listed, None)

    def advance(self) -> None:
        """Close the present round and begin the next.

        Raises:
            RemoteError: The sum cannot continue; nothing was revealed.
        """
        state = self._state
        if state.round == OFFER:
            if state.offer is None:
                raise TooManyDropoutsError("the helper has not offered this sum in time")
            state.round = REPORT
        elif state.round == REPORT:
            self._write_list()
            self._ids = set()
            self._check_count(state.listed)
            state.reports = hashlib.sha256(self._entries).digest()
            state.round = TOTAL
        elif state.round == TOTAL:
            self._finish()
            state.round = DONE

    def _finish(self) -> None:
        """Add up both halves and this operator's noise.

        Raises:
            TooManyDropoutsError: There is no total from the helper, or too few reports opened.
            UnexpectedMessageError: The reports are not those that were listed.
        """
        if self._answer is None:
            raise TooManyDropoutsError("the helper has not given its total in time")
        self._add()
        if self._following is not None:
            raise UnexpectedMessageError("the reports are not those that were listed")
        if not self._agreed:
            raise UnexpectedMessageError("the operators do not agree on which inputs are valid")
        self._check_count(self._counted, " with reports that count")
        noise = np.frombuffer(self._state.noise, dtype="<i8").astype(np.int64)
        total = self._half.total(self._answer, noise)
        self._state.total, self._state.noise = total.astype("<i8").tobytes(), b""

    def _check_count(self, count: int, how: str = "") -> None:
        if count < self.parameters.least:
            raise TooManyDropoutsError(
                f"{count} of {self.parameters.phones} phones answered{how}; at least "
                f"{self.parameters.least} are needed"
            )

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """Return the sum of the inputs with both operators' noise, in the sum's shape."""
        if not self.done:
            raise WrongStateError("this sum has no result yet")
        total = np.frombuffer(self._state.total, dtype="<i8")
        return total.astype(np.int64).reshape(self.parameters.shape)


@dataclass(frozen=True)
class LeaderKeys:
    """Keys with which a process leads sums by two operators; it begins and restores them.

    Attributes:
        leader: Signing key of the leader, for these sums alone.
        helper: Identity of the helper, an Ed25519 public key.
        random: Source of the leader's noise; anything but the operating system's is for
            simulations.
        arithmetic: Function that returns the engine that verifies proved inputs, called where there
            are any; by default the one that phones have.
    """

    leader: Ed25519PrivateKey
    helper: bytes
    random: RandomBytes = os.urandom
    arithmetic: Callable[[], Arithmetic] = LimbArithmetic

    @property
    def identity(self) -> bytes:
        """Identity of the leader, an Ed25519 public key."""
        return self.leader.public_key().public_bytes_raw()

    def __call__(
        self,
        sum_id: bytes,
        parameters: TwoOperatorParameters,
        random: RandomBytes,
        told: bytes = b"",
    ) -> Leader:
        """Begin a sum; the arguments are those of `Aggregators`."""
        task = hashlib.sha256(told).digest()
        noise = parameters.noise.drawn(parameters.length, self.random).astype("<i8").tobytes()
        salt = self.random(SALT_BYTES)
        return Leader(self, _State(sum_id, parameters, OFFER, task, noise, salt))

    def restore(self, saved: Saved) -> Leader:
        """Return the leader of a sum that `Leader.save` wrote."""
        return Leader(self, msgspec.msgpack.decode(saved, type=_State))

    def check(self, task: Task, answer: Answer, now: float) -> None:
        """Refuse an answer to a helper's task that is not this helper's, before it is kept.

        A step keeps one answer, so one that its sum or phones would refuse must not be kept.

        Args:
            task: Task of the helper.
            answer: Answer of the helper.
            now: Present time in seconds since 1970.

        Raises:
            RemoteError: The answer is to another task, not signed by the helper, or an offer that
                phones refuse.
        """
        if isinstance(task, MakeOffer) and isinstance(answer, OfferMade):
            self.signed_offer(task, answer, now)
        elif isinstance(task, AddUp) and isinstance(answer, HelperTotal):
            asked = (task.sum_id, task.offer, hashlib.sha256(task.reports).digest())
            check_total_given(asked, answer, self.helper)
        else:
            raise UnexpectedMessageError(
                f"{type(answer).__name__} does not answer {type(task).__name__}"
            )

    def signed_offer(self, request: MakeOffer, answer: OfferMade, now: float) -> SignedOffer:
        """Return an offer with both signatures, which phones would accept at the time `now`.

        Raises:
            MalformedMessageError: It is not the requested one, or phones would refuse it; the
                message says by which rule.
        """
        offer = answer.offer
        if answer.sum_id != request.sum_id:
            raise MalformedMessageError("an offer of another sum than the requested one")
        if len(answer.verify_key) != (0 if request.parameters.proof is None else VERIFY_KEY_BYTES):
            raise MalformedMessageError("an offer with a key for proofs of another size")
        if not abs(offer.answer_until - offer.closes - request.patience) <= 1e-3:
            raise MalformedMessageError("an offer with another patience than the requested one")
        signature = messages.sign(self.leader, messages.LEADERS_OFFER, offer.digest())
        signed = SignedOffer(offer=offer, helper=answer.signature, leader=signature)
        for refused in refusals_of_offer(
            SendReport(sum_id=request.sum_id, index=0, offer=signed),
            request.parameters,
            request.task,
            (self.identity,),
            (self.helper,),
            now,
        ):
            raise MalformedMessageError(f"an offer that phones would refuse: {refused}")
        return signed


def commitment(noise: bytes, salt: bytes) -> bytes:
    """Return a commitment to the leader's noise, which cannot be changed later."""
    return hashlib.sha256(messages.LEADERS_NOISE + salt + noise).digest()


def check_total_given(
    asked: tuple[bytes, bytes, bytes], answer: HelperTotal, helper: bytes
) -> frozenset[bytes]:
    """Refuse a total that is not the requested one, or not signed by the helper.

    Args:
        asked: Identifier of the sum, digest of its offer, and digest of the list.
        answer: Total that the helper gave.
        helper: Identity of the helper.

    Returns:
        The identifiers that the helper refuses.

    Raises:
        RemoteError: A field differs, the signature is wrong, or a report is refused twice.
    """
    if answer.sum_id != asked[0]:
        raise UnexpectedMessageError("a total of another sum")
    if (answer.offer, answer.reports) != asked[1:]:
        raise UnexpectedMessageError("a total of another offer or list")
    messages.check_signature(helper, messages.HELPERS_TOTAL, answer.body(), answer.signature)
    refused = _identifiers(answer.refused)
    if len(set(refused)) != len(refused):
        raise MalformedMessageError("a total that refuses a report twice")
    return frozenset(refused)


def _identifiers(joined: bytes) -> list[bytes]:
    """Return the identifiers of reports that a helper's total lists one after another.

    Raises:
        MalformedMessageError: The last one is cut.
    """
    if len(joined) % ID_BYTES:
        raise MalformedMessageError("a list of identifiers ends within one")
    return [joined[at : at + ID_BYTES] for at in range(0, len(joined), ID_BYTES)]
