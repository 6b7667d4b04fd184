"""In-memory store, for simulations and tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from earshot_protocol.errors import (
    InvalidInputError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.overriding import override
from earshot_protocol.secure_sum.interface import Saved
from earshot_server.store.interface import Assignment, PhaseStore, PresentStep, StepTakenError


@dataclasses.dataclass
class _Phase:
    snapshot: Saved
    step: PresentStep
    tasks: dict[int, bytes]
    answers: dict[int, bytes] = dataclasses.field(default_factory=dict)
    closed: bool = False
    kept: dict[int, bytes] = dataclasses.field(default_factory=dict)


class MemoryPhaseStore(PhaseStore):
    """In-memory store of phases, for one thread."""

    def __init__(self) -> None:
        self._phases: dict[bytes, _Phase] = {}

    @override
    def create(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        if phase in self._phases:
            raise InvalidInputError(f"phase {phase.hex()} exists already")
        self._phases[phase] = _Phase(snapshot, step, dict(tasks))

    @override
    def phases(self) -> tuple[bytes, ...]:
        return tuple(self._phases)

    @override
    def present_step(self, phase: bytes) -> PresentStep:
        return self._known(phase).step

    @override
    def snapshot(self, phase: bytes) -> tuple[int, Saved]:
        known = self._known(phase)
        return known.step.number, known.snapshot

    @override
    def assignment(self, phase: bytes, phone: int) -> Assignment:
        known = self._known(phase)
        return Assignment(known.step, known.closed, known.tasks.get(phone), phone in known.answers)

    @override
    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
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

    @override
    def answer_count(self, phase: bytes) -> int:
        return len(self._known(phase).answers)

    @override
    def close(self, phase: bytes, number: int) -> None:
        known = self._known(phase)
        if known.step.number == number:
            known.closed = True

    @override
    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        return iter(tuple(self._known(phase).answers.items()))

    @override
    def kept_answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        return iter(tuple(self._known(phase).kept.items()))

    @override
    def replace(
        self,
        phase: bytes,
        snapshot: Saved,
        step: PresentStep,
        tasks: Iterable[tuple[int, bytes]],
        *,
        keep_answers: bool = False,
    ) -> None:
        known = self._known(phase)
        present = known.step.number
        if present != step.number - 1:
            raise StepTakenError(
                f"step {step.number} cannot follow step {present}: another process was faster"
            )
        kept = known.answers if keep_answers else {}
        self._phases[phase] = _Phase(snapshot, step, dict(tasks), kept=kept)

    def _known(self, phase: bytes) -> _Phase:
        try:
            return self._phases[phase]
        except KeyError:
            raise InvalidInputError(f"no phase {phase.hex()}") from None
