"""A store in memory, for simulations and tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from earshot_protocol.errors import (
    InvalidInputError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.secure_sum.interface import Saved
from earshot_server.store.interface import Assignment, PresentStep, StepTakenError


@dataclasses.dataclass
class _Phase:
    snapshot: Saved
    step: PresentStep
    tasks: dict[int, bytes]
    answers: dict[int, bytes] = dataclasses.field(default_factory=dict)
    closed: bool = False


class MemoryPhaseStore:
    """A `PhaseStore` that lasts as long as the process; for one thread."""

    def __init__(self) -> None:
        self._phases: dict[bytes, _Phase] = {}

    def create(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        """See `PhaseStore.create`."""
        if phase in self._phases:
            raise InvalidInputError(f"phase {phase.hex()} exists already")
        self._phases[phase] = _Phase(snapshot, step, dict(tasks))

    def phases(self) -> tuple[bytes, ...]:
        """See `PhaseStore.phases`."""
        return tuple(self._phases)

    def present_step(self, phase: bytes) -> PresentStep:
        """See `PhaseStore.present_step`."""
        return self._known(phase).step

    def snapshot(self, phase: bytes) -> tuple[int, Saved]:
        """See `PhaseStore.snapshot`."""
        known = self._known(phase)
        return known.step.number, known.snapshot

    def assignment(self, phase: bytes, phone: int) -> Assignment:
        """See `PhaseStore.assignment`."""
        known = self._known(phase)
        return Assignment(known.step, known.closed, known.tasks.get(phone), phone in known.answers)

    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
        """See `PhaseStore.add_answer`."""
        known = self._known(phase)
        is_present = known.step.number == number
        given = known.answers.get(phone) if is_present else None
        if given == answer:
            return
        if given is not None:
            raise RepeatedMessageError(f"phone {phone} has answered this step")
        if known.closed or not is_present:
            raise UnexpectedMessageError(f"phone {phone}: an answer to a step that is over")
        known.answers[phone] = answer

    def answer_count(self, phase: bytes) -> int:
        """See `PhaseStore.answer_count`."""
        return len(self._known(phase).answers)

    def close(self, phase: bytes, number: int) -> None:
        """See `PhaseStore.close`."""
        known = self._known(phase)
        if known.step.number == number:
            known.closed = True

    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """See `PhaseStore.answers`."""
        return iter(tuple(self._known(phase).answers.items()))

    def replace(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        """See `PhaseStore.replace`."""
        present = self._known(phase).step.number
        if present != step.number - 1:
            raise StepTakenError(
                f"step {step.number} cannot follow step {present}: somebody else has gone on"
            )
        self._phases[phase] = _Phase(snapshot, step, dict(tasks))

    def _known(self, phase: bytes) -> _Phase:
        try:
            return self._phases[phase]
        except KeyError:
            raise InvalidInputError(f"no phase {phase.hex()}") from None
