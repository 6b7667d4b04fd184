"""Present step of a phase in the form that stores keep, and a phone's task in it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from earshot_protocol.errors import UnexpectedMessageError, WrongStateError
from earshot_protocol.messages import decode_helper_task, decode_task
from earshot_protocol.phases.plan import PartTask, Step, SumPartTask
from earshot_protocol.secure_sum.interface import HELPER, Aggregator, Asks, Saved
from earshot_protocol.secure_sum.messages import SumTask
from earshot_protocol.summations import Opening
from earshot_protocol.wire import Task, encode
from earshot_server.phases.kinds import encode_snapshot
from earshot_server.phases.snapshot import Snapshot
from earshot_server.store.interface import Assignment, PresentStep

VISITS_PER_STEP = 10
"""Number of times per step that a waiting phone asks for a task."""


@dataclass
class Present:
    """Phase as it was read: the number of its step, its snapshot, and the sum under way."""

    number: int
    state: Snapshot
    sum: Aggregator | None

    def open(self, now: float) -> None:
        """Set the deadline of the present step, which opens now."""
        seconds = self.state.parameters.step_seconds
        self.state.deadline = self.sum.deadline(now, seconds) if self.sum else now + seconds


def written(present: Present) -> tuple[Saved, PresentStep, Iterable[tuple[int, bytes]]]:
    """Return the stored form of a phase: snapshot, present step, and tasks of single phones.

    The sum is moved into them and removed from `present`, so that a large one is never in memory
    twice.
    """
    state, running = present.state, present.sum
    step = state.parameters.plan().step(state.step)
    expected, common = 0, b""
    tasks: Iterable[tuple[int, bytes]] = ()
    if step is None:
        common = encode(state.ending())
    elif step.asks is Asks.EVERYONE:
        expected = state.parameters.phones
        common = encode(_first_task(state, step, running))
    elif running is not None:
        expected = len(running.expected())
        tasks = ((phone, encode(task)) for phone, task in running.tasks())
    written = PresentStep(
        number=present.number,
        name=state.step,
        deadline=state.deadline,
        expected=expected,
        common=common,
        sum=msgspec.msgpack.encode(running.parameters) if running else b"",
        over=step is None,
        wait=state.parameters.step_seconds / VISITS_PER_STEP,
    )
    # After `tasks`, which moves their content out of the sum, so that it is not saved twice.
    snapshot = encode_snapshot(state, running)
    present.sum = None
    return snapshot, written, tasks


def _first_task(state: Snapshot, step: Step, running: Aggregator | None) -> PartTask:
    """Return the task that begins a part; it is the same for all phones except their number."""
    if running is None:
        return state.release_task(step.part)
    opening = running.task_for(0)
    if not isinstance(opening, Opening):
        raise WrongStateError(f"no task opens the sum of '{step.part}' for phones")
    return state.sum_task(step.part, opening)


def task_in(assignment: Assignment, phone: int) -> Task | None:
    """Return the task of a phone or the helper in an open step, answered or not; None without one.

    Raises:
        UnexpectedMessageError: The phone is not enrolled in this phase.
    """
    if assignment.task is not None:
        decode = decode_helper_task if phone == HELPER else decode_task
        return decode(assignment.task)
    step = assignment.step
    common = _common(step.common) if step.common else None
    phones = _crowd(step.sum).phones if step.sum else step.expected
    if not 0 <= phone < phones:
        raise UnexpectedMessageError(f"phone {phone} is not enrolled in this phase")
    return common.for_phone(phone) if isinstance(common, PartTask) else None


def sum_task(task: Task) -> SumTask:
    """Return the task of a secure sum, alone or inside the task that begins its part."""
    if isinstance(task, SumPartTask):
        return task.opening
    if isinstance(task, SumTask):
        return task
    raise WrongStateError(f"a store holds {type(task).__name__} as a task")


# All phones of a step have the same task, which is decoded once.
@functools.lru_cache(maxsize=4)
def _common(encoded: bytes) -> Task:
    return decode_task(encoded)


class _Crowd(msgspec.Struct):
    """Number of phones of a sum, which the parameters of every summation contain."""

    phones: int


@functools.lru_cache(maxsize=4)
def _crowd(encoded: bytes) -> _Crowd:
    return msgspec.msgpack.decode(encoded, type=_Crowd)
