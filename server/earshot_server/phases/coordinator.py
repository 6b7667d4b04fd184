"""State machine of a phase over a store, without its own I/O or clock.

    step ─▸ step ─▸ … ─▸ published
      └──────┴──────┴──▸ failed

The steps are those of the phase's plan; the snapshot of each kind of phase processes the answers
and makes the next task (`phases/learning.py`, `phases/statistics.py`).

`task_for` returns a phone's task, `accept` stores its answer and changes nothing if it raises,
`advance` closes a step once all have answered or its time is over. A coordinator has no state
besides its store: any number of processes may have one for the same phase, and each may die at any
point. `task_for` and `accept` read the data of one phone; only `advance` reads the whole phase.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Self

import numpy as np

from earshot_protocol.errors import (
    EarshotError,
    MalformedMessageError,
    RemoteError,
    TooManyDropoutsError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.messages import (
    Wait,
    decode_answer,
    decode_helper_answer,
    decode_helper_task,
    decode_task,
)
from earshot_protocol.phases.parameters import Choices, Parameters
from earshot_protocol.phases.plan import (
    PUBLISHED,
    Outcome,
    ReleaseTask,
    SecureSum,
    Step,
)
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import HELPER, Aggregator, Asks, Summation
from earshot_protocol.summations import SUMMATIONS, TWO_OPERATORS, summation_of
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.voting.totals import check_total
from earshot_protocol.wire import Answer, Ending, Task, encode
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.phases.kinds import KINDS, decode_snapshot
from earshot_server.phases.present import Present, sum_task, task_in, written
from earshot_server.phases.snapshot import Snapshot
from earshot_server.store.interface import PhaseStore, PresentStep

_log = logging.getLogger(__name__)


class Coordinator:
    """Coordinator of one phase.

    Args:
        store: Store of the phase.
        discovery: Method that finds global centroids; None in a process that closes no step.
        phase: Identifier of the phase.
        leading: Keys by which this process leads sums by two operators; None if it leads none.
        summation: Summation instead of the one in the phase's parameters; only for simulations.
        random: Source of bytes for the secure sums' graphs.
        left_out: Function that is told whose kept answer does not count as a step closes, and why;
            by default it is logged.
    """

    def __init__(
        self,
        store: PhaseStore,
        discovery: CentroidDiscovery | None,
        phase: bytes,
        *,
        leading: LeaderKeys | None = None,
        summation: Summation | None = None,
        random: RandomBytes = os.urandom,
        left_out: Callable[[int, RemoteError], None] | None = None,
    ) -> None:
        self._store = store
        self._discovery = discovery
        self._phase = phase
        self._leading = leading
        self._replaced = summation
        self._random = random
        self._left_out = left_out or self._log_left_out
        self._present: Present | None = None

    @classmethod
    def start(
        cls,
        store: PhaseStore,
        discovery: CentroidDiscovery,
        parameters: Parameters,
        now: float,
        *,
        phase: bytes | None = None,
        choices: Choices = (),
        leading: LeaderKeys | None = None,
        summation: Summation | None = None,
        random: RandomBytes = os.urandom,
        left_out: Callable[[int, RemoteError], None] | None = None,
    ) -> Self:
        """Start a phase for phones 0 … n − 1, at the time `now` on `advance`'s clock.

        The identifier `phase` is random by default, and `choices` are those of its labels; the
        other arguments are those of the class.

        Raises:
            InvalidParametersError: A parameter is wrong; the error says which and what would be
                accepted.
            InvalidInputError: The phase exists.
        """
        parameters.check_feasible()
        parameters.agreed_hierarchy(choices)
        phase = os.urandom(16) if phase is None else phase
        coordinator = cls(
            store,
            discovery,
            phase,
            leading=leading,
            summation=summation,
            random=random,
            left_out=left_out,
        )
        first = parameters.plan().steps[0]
        state = KINDS[type(parameters)](
            phase=phase, parameters=parameters, step=first.name, deadline=now, choices=choices
        )
        present = Present(0, state, coordinator._sum_of(state, first))
        present.open(now)
        store.create(phase, *written(present))
        return coordinator

    def _summation(self, parameters: Parameters) -> Summation:
        """Return the summation of a phase, with this process's keys."""
        if self._replaced is not None:
            return self._replaced
        known = SUMMATIONS[parameters.summation]
        if known is TWO_OPERATORS and self._leading is not None:
            return replace(known, aggregator=self._leading)
        return known

    # ------------------------------------------------------------------------------- state

    @property
    def phase(self) -> bytes:
        """Identifier of the phase, 16 bytes."""
        return self._phase

    @property
    def step(self) -> str:
        """Name of the present step of the phase's plan, or `PUBLISHED` or `FAILED`."""
        return self._store.present_step(self._phase).name

    @property
    def state(self) -> Snapshot:
        """Snapshot of the present step, not to be changed."""
        return self._read().state

    def missing(self) -> set[int]:
        """Return the phones that have not yet answered the present step."""
        phones = range(self.state.parameters.phones)
        return {phone for phone in phones if not isinstance(self.task_for(phone), Wait | Ending)}

    def result(self) -> Outcome:
        """Return the published result.

        Raises:
            WrongStateError: The phase has no result (yet).
        """
        step = self._store.present_step(self._phase)
        ending = decode_task(step.common) if step.over else None
        if not isinstance(ending, Outcome):
            raise WrongStateError(f"no result: the phase is at '{step.name}'")
        return ending

    def _read(self) -> Present:
        number = self._store.present_step(self._phase).number
        if self._present is None or self._present.number != number:
            number, saved = self._store.snapshot(self._phase)
            state, sum_state = decode_snapshot(saved)
            summation = self._summation(state.parameters)
            running = summation.aggregator.restore(sum_state) if sum_state else None
            self._present = Present(number, state, running)
        return self._present

    # ------------------------------------------------------------------------------- tasks

    def task_for(self, phone: int) -> Task:
        """Return the present task of a phone, or of the helper (by its number).

        Raises:
            UnexpectedMessageError: The phone is not enrolled in this phase.
        """
        assignment = self._store.assignment(self._phase, phone)
        step = assignment.step
        if step.over:
            return decode_task(step.common)
        task = task_in(assignment, phone)
        if task is None or assignment.answered or assignment.closed:
            return Wait(seconds=step.wait)
        return task

    # ----------------------------------------------------------------------------- answers

    def accept(self, phone: int, answer: Answer) -> None:
        """Store one phone's answer; it is durable when this returns.

        Repeating the same answer changes nothing and is not an error, as its acknowledgement may
        have been lost.

        Args:
            phone: Number of the phone that sent it, as authenticated by the caller.
            answer: Answer of the phone.

        Raises:
            UnexpectedMessageError: The answer is late, early, for another phase or sum, in the name
                of another phone, or from a phone that is not enrolled or is no longer in the sum.
            RepeatedMessageError: The phone has already sent another answer to this step.
            MalformedMessageError: Fields contradict the task.
        """
        assignment = self._store.assignment(self._phase, phone)
        step = assignment.step
        task = None if step.over else task_in(assignment, phone)
        if task is None:
            raise UnexpectedMessageError(f"phone {phone} has no task in the step '{step.name}'")
        if isinstance(task, ReleaseTask):
            task.check_answer(phone, answer)
        else:
            begun = sum_task(task)
            summation_of(begun).check(begun, phone, answer, step.sum)
        self._store.add_answer(self._phase, step.number, phone, encode(answer))

    # ------------------------------------------------------------------------------- steps

    def due(self, now: float) -> bool:
        """Return whether `advance` would close the present step."""
        return self._is_due(self._store.present_step(self._phase), now)

    def _is_due(self, step: PresentStep, now: float) -> bool:
        return not step.over and (
            now >= step.deadline or self._store.answer_count(self._phase) >= step.expected
        )

    def advance(self, now: float, clock: Callable[[], float] | None = None) -> bool:
        """Close the present step if all have answered or its time is over.

        If a step fails (too few phones, nothing found), the phase ends as `FAILED`, with the reason
        in `state.failure`.

        Args:
            now: Present time in seconds, on the clock that the phase was started with.
            clock: Clock of `now`, read when the next step opens, so that the time for closing is
                not taken from the phones. By default, the next step opens at `now`.

        Returns:
            Whether the phase moved on.

        Raises:
            WrongStateError: Another process has closed the step in the meantime.
        """
        step = self._store.present_step(self._phase)
        if not self._is_due(step, now):
            return False
        self._store.close(self._phase, step.number)
        present = self._take_over()
        # A failure of the store here does not fail the phase: the next try reads again.
        received: Mapping[int, Answer] = {}
        inputs = 0
        refused: RemoteError | None = None
        closed = present.state.parameters.plan().step(present.state.step)
        if present.sum is None:
            received = dict(self._answers())
        else:
            if closed is not None and closed.asks is Asks.HELPER:
                self._recall(present.sum)
            inputs, refused = self._added_up(present.sum)
        try:
            if refused is not None:
                raise refused
            present.sum = self._close(present, received, inputs)
        except EarshotError as error:
            present.state.fail(str(error))
            present.sum = None
        present.number += 1
        present.open(clock() if clock else now)
        keep = present.sum is not None and closed is not None and closed.keeps_answers
        self._store.replace(self._phase, *written(present), keep_answers=keep)
        return True

    def check(self) -> None:
        """Read the phase, so that an obstacle is detected before its step is due.

        Raises:
            NoOperatorKeysError: Its sum is by two operators, and this process has no helper.
        """
        if not self._store.present_step(self._phase).over:
            self._read()

    def _take_over(self) -> Present:
        """Return the phase to be changed, uncached: an unsaved change is never read again."""
        present, self._present = self._read(), None
        return present

    def _recall(self, running: Aggregator) -> None:
        task = self._store.assignment(self._phase, HELPER).task
        if task is not None:
            running.recall(sum_task(decode_helper_task(task)))

    def _answers(self) -> Iterator[tuple[int, Answer]]:
        """Yield the answers to the present step, then those kept from the step before."""
        for phone, answer in chain(
            self._store.answers(self._phase), self._store.kept_answers(self._phase)
        ):
            decode = decode_helper_answer if phone == HELPER else decode_answer
            try:
                yield phone, decode(answer)
            except MalformedMessageError as error:
                self._left_out(phone, error)

    def _log_left_out(self, phone: int, why: RemoteError) -> None:
        extra = {"phase": self._phase.hex()}
        _log.warning("an answer of phone %d is left out: %s", phone, why, extra=extra)

    def _added_up(self, running: Aggregator) -> tuple[int, RemoteError | None]:
        """Pass answers to a sum.

        Returns:
            The number of phones' answers that it accepted, and why it refused the helper's, which
            has no other one to give.
        """
        taken = 0
        refused: RemoteError | None = None
        for phone, answer in self._answers():
            try:
                running.accept(phone, answer)
            except RemoteError as error:
                # Each fits its own task, but two may be in conflict, such as by using the same key,
                # and some are refused for what they hold.
                self._left_out(phone, error)
                if phone == HELPER:
                    refused = error
            else:
                taken += phone != HELPER
        return taken, refused

    def _close(
        self, present: Present, received: Mapping[int, Answer], inputs: int
    ) -> Aggregator | None:
        """Process the answers, move the phase on, and return the sum then under way.

        Args:
            present: The phase; its sum, if any, has accepted its answers.
            received: Answers to a local release.
            inputs: Number of phones' answers that the sum accepted, including kept ones.
        """
        state, running = present.state, present.sum
        plan = state.parameters.plan()
        step = plan.step(state.step)
        if step is None:
            raise WrongStateError(f"the phase is at '{state.step}', not a step of its plan")
        if running is None:
            if self._discovery is None:
                raise WrongStateError("no step can be closed without a discovery")
            least = state.parameters.least_survivors
            if len(received) < least:
                raise TooManyDropoutsError(
                    f"{len(received)} of {state.parameters.phones} phones answered; "
                    f"at least {least} are needed"
                )
            state.take_answers(step.part, received, self._discovery)
        else:
            if step.releases or (inputs and step.asks is Asks.HELPER):
                state.inputs |= {step.part: inputs}
            running.advance()
            part = plan.part(step.part)
            if running.done and isinstance(part, SecureSum):
                total = running.result().astype(np.int64)
                check_total(total, part.mechanism, state.parameters.phones)
                state.take_total(part.name, total)
        following = plan.after(step)
        state.step = following.name if following else PUBLISHED
        if following is None or following.part == step.part:
            return running if following else None
        return self._sum_of(state, following)

    def _sum_of(self, state: Snapshot, step: Step) -> Aggregator | None:
        """Return the sum that begins with a step; None if the step is a local release."""
        part = state.parameters.plan().part(step.part)
        if not isinstance(part, SecureSum):
            return None
        parameters = state.parameters.sum_parameters(part, state.shape(part.name))
        summation, sum_id = self._summation(state.parameters), os.urandom(16)
        opening = summation.open(sum_id, parameters)
        told = state.sum_task(part.name, opening).told(state.parameters)
        return summation.aggregator(sum_id, parameters, self._random, told)
