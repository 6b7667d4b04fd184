"""Present step of a phase as a store keeps it, and a phone's task in it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from earshot_protocol.errors import UnexpectedMessageError, WrongStateError
from earshot_protocol.messages import decode_task
from earshot_protocol.phases.plan import PartTask, Step, SumPartTask
from earshot_protocol.secure_sum.interface import Aggregator, Asks, Saved
from earshot_protocol.secure_sum.messages import AdvertiseKeys, SumTask
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.wire import Task, encode
from earshot_server.phases.kinds import encode_snapshot
from earshot_server.phases.snapshot import Snapshot
from earshot_server.store.interface import Assignment, PresentStep

VISITS_PER_STEP = 10
"""Times per step that a waiting phone asks whether the next one is open."""


@dataclass
class Present:
    """Phase as it was read: the number of its step, its snapshot, and the sum under way."""

    number: int
    state: Snapshot
    sum: Aggregator | None


def written(present: Present) -> tuple[Saved, PresentStep, Iterable[tuple[int, bytes]]]:
    """Return what a store keeps of a phase: snapshot, present step, and tasks of single phones.

    The sum moves into them and is no longer in `present`, so that a large one is never held twice.
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
    # Tasks are handed over by now, so that their content is not saved once more.
    snapshot = encode_snapshot(state, running)
    present.sum = None
    return snapshot, written, tasks


def _first_task(state: Snapshot, step: Step, running: Aggregator | None) -> PartTask:
    """Return the task that begins a part: the same for all phones except for their number."""
    if running is None:
        return state.release_task(step.part)
    advertise = running.task_for(0)
    if not isinstance(advertise, AdvertiseKeys):
        raise WrongStateError(f"the sum of '{step.part}' does not begin with keys")
    return state.sum_task(step.part, advertise)


def task_in(assignment: Assignment, phone: int) -> Task | None:
    """Return the task of a phone in a step that is not over, answered or not; None without one.

    Raises:
        UnexpectedMessageError: The phone is not enrolled in this phase.
    """
    if assignment.task is not None:
        return decode_task(assignment.task)
    step = assignment.step
    common = _common(step.common) if step.common else None
    phones = sum_parameters(step).phones if step.sum else step.expected
    if not 0 <= phone < phones:
        raise UnexpectedMessageError(f"phone {phone} is not enrolled in this phase")
    return common.for_phone(phone) if isinstance(common, PartTask) else None


def sum_task(task: Task) -> SumTask:
    """Return the task of a secure sum, alone or inside the task that begins its part."""
    if isinstance(task, SumPartTask):
        return task.advertise
    if isinstance(task, SumTask):
        return task
    raise WrongStateError(f"a store holds {type(task).__name__} as a task")


def sum_parameters(step: PresentStep) -> SumParameters:
    """Return the parameters of the sum under way."""
    return _parameters(step.sum)


# All phones of a step are asked the same, so it is decoded once.
@functools.lru_cache(maxsize=4)
def _common(encoded: bytes) -> Task:
    return decode_task(encoded)


@functools.lru_cache(maxsize=4)
def _parameters(encoded: bytes) -> SumParameters:
    return msgspec.msgpack.decode(encoded, type=SumParameters)
