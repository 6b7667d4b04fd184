"""The state machine of a phase, over a store; no I/O of its own, no clock.

    local centroids ─▸ centroid vote (4 rounds) ─▸ label vote (4 rounds) ─▸ published
           └───────────────────┴────────────────────────┴─▸ failed

A statistics phase is one histogram (4 rounds) in the place of the first three.

`task_for` says what a phone is to do, `accept` takes its answer and changes nothing if it raises,
`advance` closes a step once all have answered or its time is over. A coordinator holds nothing
that its store does not: any number of processes may have one for the same phase, and each may die
at any point. `task_for` and `accept` read what concerns one phone; only `advance` reads the phase.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import NamedTuple, Self

import msgspec
import numpy as np

from earshot_protocol.errors import (
    EarshotError,
    MalformedMessageError,
    RemoteError,
    UnexpectedMessageError,
    WrongStateError,
)
from earshot_protocol.messages import (
    AdvertiseKeys,
    Answer,
    Cluster,
    CountContacts,
    GlobalCentroids,
    LocalCentroids,
    Matrix,
    Result,
    Statistics,
    SumTask,
    Task,
    TopCentroids,
    Wait,
    decode_answer,
    decode_task,
    encode,
)
from earshot_protocol.phase import NEXT, Parameters, PhaseParameters, Step
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum import answers as sum_answers
from earshot_protocol.secure_sum.aggregator import Aggregator
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_server.discovery.interface import Discovery
from earshot_server.phases import stages
from earshot_server.phases.snapshot import Snapshot
from earshot_server.store.interface import Assignment, Opening, PhaseStore

_LARGEST_REASON = 1024
_log = logging.getLogger(__name__)


class _Held(NamedTuple):
    """A phase as it was read: the number of its step, its snapshot, the sum under way."""

    number: int
    state: Snapshot
    sum: Aggregator | None


class Coordinator:
    """One phase.

    Args:
        store: keeps the phase.
        discovery: finds global centroids.
        phase: which one.
        aggregator: the server's side of a secure sum; replaced in simulations only.
        random: draws the secure sums' graphs.
    """

    def __init__(
        self,
        store: PhaseStore,
        discovery: Discovery,
        phase: bytes,
        *,
        aggregator: type[Aggregator] = Aggregator,
        random: RandomBytes = os.urandom,
    ) -> None:
        self._store = store
        self._discovery = discovery
        self._phase = phase
        self._aggregator = aggregator
        self._random = random
        self._held: _Held | None = None

    @classmethod
    def start(
        cls,
        store: PhaseStore,
        discovery: Discovery,
        parameters: Parameters,
        now: float,
        *,
        phase: bytes | None = None,
        aggregator: type[Aggregator] = Aggregator,
        random: RandomBytes = os.urandom,
    ) -> Self:
        """Start a phase for phones 0 … n − 1.

        Args:
            store: keeps the phase.
            discovery: finds global centroids.
            parameters: of the phase.
            now: seconds, on the clock that `advance` is told.
            phase: its identifier, 16 bytes; drawn at random by default.
            aggregator: the server's side of a secure sum; replaced in simulations only.
            random: draws the secure sums' graphs.

        Raises:
            InvalidParametersError: says which parameter is wrong and what would be accepted.
            InvalidInputError: the phase exists.
        """
        stages.check_feasible(parameters)
        phase = os.urandom(16) if phase is None else phase
        coordinator = cls(store, discovery, phase, aggregator=aggregator, random=random)
        opens = stages.first(parameters)
        step = Step.LOCAL_CENTROIDS if opens is None else Step.HISTOGRAM_ADVERTISE
        held = _Held(
            0,
            Snapshot(phase, parameters, step, now + parameters.step_seconds),
            coordinator._new_sum(parameters, opens),
        )
        store.create(phase, *_written(held))
        coordinator._held = held
        return coordinator

    # ------------------------------------------------------------------------------- state

    @property
    def phase(self) -> bytes:
        """Identifier of the phase, 16 bytes."""
        return self._phase

    @property
    def step(self) -> Step:
        """Where the phase stands."""
        return Step(self._store.opening(self._phase).step)

    @property
    def state(self) -> Snapshot:
        """Everything that is known so far; for reading."""
        return self._read().state

    def missing(self) -> set[int]:
        """The phones whose answer to the present step is still awaited."""
        held = self._read()
        if held.state.step is Step.LOCAL_CENTROIDS:
            expected = set(range(held.state.parameters.phones))
        else:
            expected = held.sum.expected() if held.sum else set()
        return expected - {phone for phone, _ in self._store.answers(self._phase)}

    def result(self) -> Result | Statistics:
        """What is published at the end.

        Raises:
            WrongStateError: the phase has no result, or not yet.
        """
        opening = self._store.opening(self._phase)
        ending = decode_task(opening.common) if opening.over else None
        if not isinstance(ending, Result | Statistics):
            raise WrongStateError(f"no result: the phase is at '{opening.step}'")
        return ending

    def _read(self) -> _Held:
        number = self._store.opening(self._phase).number
        if self._held is None or self._held.number != number:
            number, snapshot = self._store.snapshot(self._phase)
            state = msgspec.msgpack.decode(snapshot, type=Snapshot)
            running = self._aggregator.restore(state.sum) if state.sum else None
            self._held = _Held(number, state, running)
        return self._held

    # ------------------------------------------------------------------------------- tasks

    def task_for(self, phone: int) -> Task:
        """What the phone is to do now.

        Raises:
            UnexpectedMessageError: the phone is not enrolled in this phase.
        """
        held = self._store.assignment(self._phase, phone)
        if held.opening.over:
            return decode_task(held.opening.common)
        task = _task_in(held, phone)
        if task is None or held.answered or held.closed:
            return Wait(seconds=held.opening.wait)
        return task

    # ----------------------------------------------------------------------------- answers

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer and keep it; it is durable when this returns.

        The same answer once more changes nothing and is no mistake: its acknowledgement may have
        been lost.

        Args:
            phone: who sent it, as authenticated by the caller.
            answer: its answer.

        Raises:
            UnexpectedMessageError: late, early, of another phase or sum, in another's name, or
                from a phone that is not enrolled, or is out of the sum.
            RepeatedMessageError: the phone has given another answer to this step.
            MalformedMessageError: fields that contradict the task.
        """
        held = self._store.assignment(self._phase, phone)
        opening = held.opening
        task = None if opening.over else _task_in(held, phone)
        if task is None:
            raise UnexpectedMessageError(
                f"phone {phone}: nothing is asked of it in the step '{opening.step}'"
            )
        if isinstance(task, Cluster):
            _check_centroids(task, phone, answer)
        else:
            sum_answers.check(_sum_task(task), phone, answer, _sum_parameters(opening))
        self._store.add_answer(self._phase, opening.number, phone, encode(answer))

    # ------------------------------------------------------------------------------- steps

    def due(self, now: float) -> bool:
        """Whether `advance` would close the present step."""
        return self._is_due(self._store.opening(self._phase), now)

    def _is_due(self, opening: Opening, now: float) -> bool:
        return not opening.over and (
            now >= opening.deadline or self._store.answer_count(self._phase) >= opening.expected
        )

    def advance(self, now: float) -> bool:
        """Close the present step if all have answered or its time is over.

        A step that cannot be closed well (too few phones, nothing found) ends the phase as
        `Step.FAILED`, with the reason in `state.failure`.

        Args:
            now: seconds, on the clock that the phase was started with.

        Returns:
            Whether the phase moved on.

        Raises:
            WrongStateError: another process has closed the step in the meantime.
        """
        opening = self._store.opening(self._phase)
        if not self._is_due(opening, now):
            return False
        self._store.close(self._phase, opening.number)
        held = self._take_over()
        received = [
            (phone, decode_answer(answer)) for phone, answer in self._store.answers(self._phase)
        ]
        state = held.state
        try:
            running = self._close(held, received)
            state.step = NEXT[state.step]
        except EarshotError as error:
            running = None
            state.step, state.failure = Step.FAILED, str(error)[:_LARGEST_REASON]
        self._go_on(_Held(held.number + 1, state, running), now)
        return True

    def stop(self, reason: str, now: float) -> bool:
        """End the phase as `Step.FAILED`, for a reason that phones are told.

        Returns:
            Whether the phase was still under way.

        Raises:
            WrongStateError: another process has closed the step in the meantime.
        """
        opening = self._store.opening(self._phase)
        if opening.over:
            return False
        held = self._take_over()
        held.state.step, held.state.failure = Step.FAILED, reason[:_LARGEST_REASON]
        self._go_on(_Held(held.number + 1, held.state, None), now)
        return True

    def _take_over(self) -> _Held:
        """The phase, to be changed: if the change is not kept, it has to be read again."""
        held, self._held = self._read(), None
        return held

    def _go_on(self, held: _Held, now: float) -> None:
        held.state.deadline = now + held.state.parameters.step_seconds
        self._store.replace(self._phase, *_written(held))
        self._held = held

    def _close(self, held: _Held, received: list[tuple[int, Answer]]) -> Aggregator | None:
        """Let the answers go into the phase.

        Returns:
            The sum that is under way from now on.
        """
        state, running = held.state, held.sum
        if running is None:
            published: dict[int, Matrix] = {
                phone: answer.centroids
                for phone, answer in received
                if isinstance(answer, LocalCentroids)
            }
            return self._new_sum(
                state.parameters, stages.discover(state, published, self._discovery)
            )
        for phone, answer in received:
            try:
                running.accept(phone, answer)  # type: ignore[arg-type]
            except RemoteError as error:
                # Each fits its own task; together two may not, as with a key that is not unique.
                _log.warning("an answer is left out: %s", error)
        running.advance()
        made = stages.AFTER_SUM.get(state.step)
        if made is None:
            return running
        return self._new_sum(state.parameters, made(state, running.result().astype(np.int64)))

    def _new_sum(self, parameters: Parameters, opens: stages.Opens | None) -> Aggregator | None:
        if opens is None:
            return None
        return self._aggregator(os.urandom(16), opens.parameters(parameters), self._random)


_OPENINGS = (GlobalCentroids, TopCentroids, CountContacts)
"""Tasks that open a secure sum."""


def _written(held: _Held) -> tuple[bytes, Opening, Iterable[tuple[int, bytes]]]:
    """What a store keeps of a phase: snapshot, opening, and the tasks of single phones."""
    state, running = held.state, held.sum
    state.sum = running.save() if running else b""
    over = state.step not in NEXT
    common: Task | None = None
    tasks: Iterable[tuple[int, bytes]] = ()
    expected = 0
    if over:
        common = state.ending()
    elif running is None:
        common = Cluster(phase=state.phase, index=0, parameters=state.learning)
        expected = state.parameters.phones
    else:
        expected = len(running.expected())
        opens = running.task_for(0)
        if isinstance(opens, AdvertiseKeys):
            common = _opening_task(state, opens)
        else:
            tasks = (
                (phone, encode(task))
                for phone in sorted(running.expected())
                if (task := running.task_for(phone)) is not None
            )
    opening = Opening(
        number=held.number,
        step=state.step,
        deadline=state.deadline,
        expected=expected,
        common=encode(common) if common else b"",
        sum=msgspec.msgpack.encode(running.parameters) if running and not over else b"",
        over=over,
        wait=state.parameters.step_seconds / 10,
    )
    return msgspec.msgpack.encode(state), opening, tasks


def _opening_task(
    state: Snapshot, advertise: AdvertiseKeys
) -> GlobalCentroids | TopCentroids | CountContacts:
    if not isinstance(state.parameters, PhaseParameters):
        return CountContacts(phase=state.phase, parameters=state.parameters, advertise=advertise)
    kind = GlobalCentroids if state.step is Step.CENTROID_VOTE_ADVERTISE else TopCentroids
    return kind(phase=state.phase, centroids=state.candidates(), advertise=advertise)


def _task_in(held: Assignment, phone: int) -> Task | None:
    """The task of a phone in a step that is not over, answered or not; None if it has none.

    Raises:
        UnexpectedMessageError: the phone is not enrolled in this phase.
    """
    if held.task is not None:
        return decode_task(held.task)
    common = decode_task(held.opening.common) if held.opening.common else None
    phones = (
        common.parameters.phones
        if isinstance(common, Cluster)
        else _sum_parameters(held.opening).phones
    )
    if not 0 <= phone < phones:
        raise UnexpectedMessageError(f"phone {phone} is not enrolled in this phase")
    if isinstance(common, Cluster):
        return msgspec.structs.replace(common, index=phone)
    if isinstance(common, _OPENINGS):
        return msgspec.structs.replace(
            common, advertise=msgspec.structs.replace(common.advertise, index=phone)
        )
    return None


def _sum_task(task: Task) -> SumTask:
    if isinstance(task, _OPENINGS):
        return task.advertise
    if isinstance(task, SumTask):
        return task
    raise WrongStateError(f"a store holds {type(task).__name__} as a task")


def _sum_parameters(opening: Opening) -> SumParameters:
    return msgspec.msgpack.decode(opening.sum, type=SumParameters)


def _check_centroids(task: Cluster, phone: int, answer: Answer) -> None:
    if not isinstance(answer, LocalCentroids):
        raise UnexpectedMessageError(
            f"phone {phone}: {type(answer).__name__} where LocalCentroids is due"
        )
    if answer.phase != task.phase:
        raise UnexpectedMessageError(f"phone {phone}: an answer to another phase")
    if answer.sender != phone:
        raise UnexpectedMessageError(f"phone {phone}: an answer in the name of {answer.sender}")
    shape = (task.parameters.top_local_centroids, task.parameters.dimensions)
    if (answer.centroids.rows, answer.centroids.columns) != shape:
        raise MalformedMessageError(
            f"phone {phone}: {answer.centroids.rows} × {answer.centroids.columns} centroids; "
            f"this phase takes {shape[0]} × {shape[1]}"
        )
    answer.centroids.array()
