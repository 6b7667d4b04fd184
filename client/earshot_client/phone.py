"""The whole participant: a task in, an answer out, and all state in its store.

Each answer, its changes and its entry in the ledger reach the store in one transaction before the
answer is returned. A phone that is killed at any point continues from its store: a repeated task
gets the same answer, and nothing is spent twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Collection
from datetime import date
from typing import Self

import msgspec

from earshot_client import calendar
from earshot_client.calendar import Calendar
from earshot_client.encoder import Encoder, open_encoder
from earshot_client.expiry import KEEP_DAYS
from earshot_client.labels import LabelHierarchy
from earshot_client.listener import Listener
from earshot_client.phases.kind import Input
from earshot_client.phases.kinds import kind_ending, kind_of
from earshot_client.phases.memory import LABELLED, RESULT
from earshot_client.phases.sums import Sums
from earshot_client.policy import Policy, check_unreleased
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.interface import ENCODER, HEARD, Store
from earshot_client.transport.interface import Transport
from earshot_client.voters import Voter
from earshot_protocol.api import Refuse
from earshot_protocol.errors import (
    InvalidParametersError,
    RefusedError,
    RemoteError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import AnyParameters, Wait, decode_answer
from earshot_protocol.phases.acceptance import refusals_of_change
from earshot_protocol.phases.parameters import Parameters, check_once
from earshot_protocol.phases.plan import PartTask, SecureSum, SumPartTask
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import Participant, Summation
from earshot_protocol.secure_sum.messages import SumAnswer, SumTask
from earshot_protocol.summations import SUMMATIONS
from earshot_protocol.voting.sums import with_noise
from earshot_protocol.wire import Answer, Ending, Task, encode

LEAST_WAIT = 1.0
"""Least pause in seconds, even if a server that has nothing to do asks for less."""

_MEMBERSHIP = "membership"
"""Name of the stored value with the phase under way."""
ANSWERED = "answered"
"""Name of the stored value with the last task and its answer, which it gets again."""
_TOLD = "told of refusal"
"""Name of the stored value with the phase whose refusal was last reported."""


class _Membership(msgspec.Struct, frozen=True):
    """Membership of this phone in the phase that it takes part in."""

    phase: bytes
    index: int
    parameters: AnyParameters
    part: str = msgspec.field(default="", name="vote")
    """Part whose secure sum is under way."""
    weight: int = 1
    """Weight of this phone's part, decided when it joined, from its ledger only."""


class Phone(Listener):
    """A phone that hears, keeps embeddings, names scenes, and takes part in phases.

    Args:
        store: Store that keeps everything; closed with the phone.
        encoder: Encoder from sound to embeddings.
        policy: Limits of what this phone agrees to.
        hierarchy: Poll choices and their equivalence classes; by default those of the newest phase,
            and before the first those of everyday life. Within a phase, the phase's own decide the
            class of a choice.
        random: Source of the noise; anything but the operating system's is for simulations.
        summation: Summation to use instead of the one in a phase's parameters; for simulations
            only.
        clock: Clock of the seconds since 1970; replaced in simulations and tests.
        uptime: Clock of the seconds since the system started; replaced in simulations and tests.
        keep_days: Days after which recordings are forgotten; None keeps them.
        voter: Model that votes in labelling phases; by default the labelled recordings do.
    """

    def __init__(
        self,
        store: Store,
        encoder: Encoder,
        policy: Policy | None = None,
        *,
        hierarchy: LabelHierarchy | None = None,
        random: RandomBytes = os.urandom,
        summation: Summation | None = None,
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = calendar.uptime,
        keep_days: int | None = None,
        voter: Voter | None = None,
    ) -> None:
        self._calendar = Calendar(store, clock, uptime)
        self._sums = Sums(store, self._calendar)
        super().__init__(
            store, encoder, hierarchy, random, clock=clock, keep_days=keep_days, voter=voter
        )
        self._policy = policy or Policy()
        self._replaced = summation
        self._clock = clock
        self._adopt_encoder()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        key: bytes,
        encoder: Encoder | str | os.PathLike[str] | None = None,
        policy: Policy | None = None,
        hierarchy: LabelHierarchy | None = None,
        keep_days: int | None = KEEP_DAYS,
        voter: Voter | None = None,
    ) -> Self:
        """Open or create the phone in an encrypted file.

        Args:
            path: Path of the file.
            key: 32 secret bytes, from the platform's key store.
            encoder: Encoder from sound to embeddings, the name of a shipped encoder such as
                "contrast-3", or the path of an encoder file; the default encoder if omitted. If the
                encoder has changed, the phone forgets its recordings.
            policy: Limits of what this phone agrees to.
            hierarchy: Poll choices and their equivalence classes; by default those of the newest
                phase, and before the first those of everyday life.
            keep_days: Days after which recordings are forgotten; None keeps them.
            voter: Model that votes in labelling phases; by default the labelled recordings do.

        Raises:
            InvalidInputError: The key or the number of days is invalid.
            WrongKeyError: The file was made under another key.
            DamagedStoreError: The file is damaged, or not a phone's.
            NewerStoreError: A newer version of this software wrote the file.
            StoreUnavailableError: Another process has the file open, or the disk is full.
            DamagedEncoderError: The encoder file is damaged.
            MissingRuntimeError: An encoder file needs LiteRT, which is not installed.
        """
        return cls(
            EncryptedStore(path, key),
            open_encoder(encoder),
            policy,
            hierarchy=hierarchy,
            keep_days=keep_days,
            voter=voter,
        )

    # ------------------------------------------------------------------------- taking part

    @property
    def shortfall(self) -> str:
        """Description of data missing for the phase under way; empty if there is none."""
        member = self._membership()
        return "" if member is None else kind_of(member.parameters).shortfall(self._memory)

    @property
    def phase(self) -> bytes | None:
        """Phase under way in which this phone has answered, 16 bytes; None if there is none."""
        member = self._membership()
        return None if member is None else member.phase

    def answer(self, task: Task) -> Answer | None:
        """Answer a task; return None if it needs no answer.

        A task that was answered before gets the same answer, and costs nothing.

        Raises:
            RefusedError: The task asks for something that this phone's policy forbids.
            UnexpectedMessageError: The task does not fit what this phone is doing.
            MalformedMessageError: The data of a matrix do not fill it, or are not finite.
            TooManyDropoutsError: Too few neighbours remain.
        """
        self.expire()
        if isinstance(task, Wait):
            return None
        digest = hashlib.sha256(encode(task)).digest()
        last = self._store.get(ANSWERED)
        if last is not None and last[: len(digest)] == digest:
            return decode_answer(last[len(digest) :])
        with self._store.transaction():
            try:
                answer = self._do(task)
            except InvalidParametersError as error:
                said = f"the task's parameters are not valid: {error}"
                raise RefusedError(said, Rule.PARAMETERS) from error
            if answer is not None:
                self._store.put(ANSWERED, digest + encode(answer))
        return answer

    def tell_refusal(self, task: Task, refused: RefusedError, transport: Transport) -> None:
        """Report the rule by which this phone refuses a task, once per phase, if its policy allows.

        If the server cannot be reached, nothing is lost: the next refusal is reported.
        """
        if not self._policy.tell_refusals:
            return
        if isinstance(task, PartTask):
            phase = task.phase
        elif (member := self._membership()) is not None:
            phase = member.phase
        else:
            return
        if phase == self._store.get(_TOLD):
            return
        with contextlib.suppress(RemoteError):
            transport.refuse(Refuse(phase=phase, rule=refused.rule))
            self._store.put(_TOLD, phase)

    def _do(self, task: Task) -> Answer | None:
        if isinstance(task, PartTask):
            return self._begin(task)
        if isinstance(task, SumTask):
            return self._continue_sum(task)
        if isinstance(task, Ending):
            self._finish(task)
            return None
        raise UnexpectedMessageError(f"{type(task).__name__} asks nothing of a phone")

    def _begin(self, task: PartTask) -> Answer:
        """Begin a part of a phase; join the phase first if this is its first part."""
        parameters: Parameters | None = getattr(task, "parameters", None)
        member = self._member_of(task.phase) if parameters is None else self._join(task, parameters)
        part = member.parameters.plan().part_of(task)
        contribute = kind_of(member.parameters).contribute[type(task)]
        contribution = contribute(self._memory, member.parameters, task)
        if isinstance(contribution, Answer):
            self._record(member, part.mechanisms)
            return contribution
        if not (isinstance(part, SecureSum) and isinstance(task, SumPartTask)):
            raise UnexpectedMessageError(f"'{part.name}' is not a secure sum")
        return self._begin_sum(member, part, member.weight * contribution, task)

    def _join(self, task: PartTask, parameters: Parameters) -> _Membership:
        """Take part in a phase, if this phone agrees to it."""
        check_once(parameters)
        if task.index >= parameters.phones:
            raise RefusedError(f"phone {task.index} in a phase of {parameters.phones} phones")
        ledger, present = self.ledger, self._membership()
        check_unreleased(ledger, task.phase, {each.step for each in ledger.releases_in(task.phase)})
        if present is not None and present.phase == task.phase:
            _check_unchanged(present, task.index, parameters)
        hierarchy = parameters.agreed_hierarchy(getattr(task, "choices", ()))
        kind_of(parameters).check(self._memory, parameters)
        today = self.today
        self._policy.check_phase(parameters, ledger, today, self._store.count())
        weight = self._policy.weight(parameters, ledger, today)
        member = _Membership(task.phase, task.index, parameters, weight=weight)
        self._store.put(_MEMBERSHIP, msgspec.msgpack.encode(member))
        self._sums.forget()
        self._memory.agree_on(hierarchy)
        return member

    def _begin_sum(
        self, member: _Membership, part: SecureSum, values: Input, begins: SumPartTask
    ) -> Answer:
        parameters, task = member.parameters, begins.opening
        check_unreleased(self.ledger, member.phase, part.mechanisms)
        _check_unchanged(member, task.index, parameters)
        expected, told = parameters.sum_parameters(part, values.shape), begins.told(parameters)
        now = self._clock()
        self._policy.check_opening(parameters, part.name, task, expected, told, now)
        self._sums.begin(task.sum_id)
        noisy = with_noise(values, part.mechanism, expected.bound, self._memory.random)
        member = msgspec.structs.replace(member, part=part.name)
        self._store.put(_MEMBERSHIP, msgspec.msgpack.encode(member))
        summation = self._summation(parameters)
        return self._answer_sum(member, summation.participant(task, noisy, told), task)

    def _summation(self, parameters: Parameters) -> Summation:
        return self._replaced or SUMMATIONS[parameters.summation]

    def _continue_sum(self, task: SumTask) -> Answer:
        saved, member = self._sums.secrets, self._membership()
        if saved is None or member is None:
            raise UnexpectedMessageError("a task of a secure sum that this phone is not in")
        participant = self._summation(member.parameters).participant
        return self._answer_sum(member, participant.restore(saved), task)

    def _answer_sum(
        self, member: _Membership, participant: Participant, task: SumTask
    ) -> SumAnswer:
        """Answer one round; record what it releases in the ledger first."""
        part, current = member.parameters.plan().part(member.part), participant.round
        answer = participant.answer(task)
        if isinstance(part, SecureSum) and part.carries_input(current):
            self._record(member, part.mechanisms)
        if participant.done:
            self._sums.forget()
        else:
            self._sums.keep(participant.save())
        return answer

    def _finish(self, ending: Ending) -> None:
        """Keep a phase's result and leave the phase; another one under way continues."""
        kind = kind_ending(ending)
        if kind is not None:
            kind.finish(self._memory, ending)
        member = self._membership()
        if member is not None and member.phase == ending.phase:
            self._forget_phase()

    def leave_phase(self) -> None:
        """Forget the phase under way, secrets of its sums included; the ledger stays."""
        with self._store.transaction():
            self._forget_phase()

    def _forget_phase(self) -> None:
        self._sums.forget()
        for name in (_MEMBERSHIP, ANSWERED):
            self._store.delete(name)

    # ------------------------------------------------------------------------------ memory

    def expire(self) -> None:
        """Forget expired recordings, and a phase whose secure sum has expired."""
        super().expire()
        if self._sums.expired:
            self.leave_phase()

    def _adopt_encoder(self) -> None:
        """Remove everything that was made with another encoder.

        Embeddings of two encoders are not comparable, so the old ones, the centroids published for
        them and a phase under way are useless. Sources that still have the sound may be heard
        again. Entries of the ledger stay.
        """
        name = self._encoder.name.encode()
        before = self._store.get(ENCODER)
        if before == name:
            return
        with self._store.transaction():
            if before is not None:
                self._store.forget_all()
                self._forget_phase()
                for value in (RESULT, LABELLED, HEARD):
                    self._store.delete(value)
            self._store.put(ENCODER, name)

    def _membership(self) -> _Membership | None:
        """Return the membership; None if there is none."""
        saved = self._store.get(_MEMBERSHIP)
        return None if saved is None else msgspec.msgpack.decode(saved, type=_Membership)

    def _member_of(self, phase: bytes) -> _Membership:
        membership = self._membership()
        if membership is None or membership.phase != phase:
            raise UnexpectedMessageError("a vote of a phase that this phone is not in")
        return membership

    @property
    def today(self) -> date:
        """Day on which the phone's budgets are charged, in UTC; see `Calendar`."""
        return self._calendar.today()

    def _record(self, member: _Membership, steps: Collection[str]) -> None:
        """Write releases to the ledger, in a transaction that ends before the answer is sent."""
        expenses = tuple(
            expense
            for expense in member.parameters.expenses(member.weight, self._store.count())
            if expense.release.step in steps
        )
        ledger, today = self.ledger, self.today
        check_unreleased(ledger, member.phase, steps)
        self._policy.check_release(member.phase, expenses, ledger, today)
        for entry in ledger.append(member.phase, expenses, today):
            self._store.append_ledger(entry)
        kind_of(member.parameters).released(self._memory)


def _check_unchanged(member: _Membership, index: int, parameters: Parameters) -> None:
    if index != member.index:
        raise RefusedError(
            f"changed: this phone's number was {member.index} and is {index} now; it stays the "
            "same within a phase",
            Rule.CHANGED,
        )
    for refusal in refusals_of_change(member.parameters, parameters):
        raise refusal
