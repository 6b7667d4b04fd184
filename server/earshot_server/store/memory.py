"""In-memory store, for simulations and tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, MutableMapping

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
    answers: MutableMapping[int, bytes]
    kept: MutableMapping[int, bytes]
    closed: bool = False


class MemoryPhaseStore(PhaseStore):
    """In-memory store of phases, for one thread.

    Args:
        answers: Maker of empty mappings of a step's answers by the phone's number; simulations of
            large crowds have them elsewhere than in memory.
    """

    def __init__(self, answers: Callable[[], MutableMapping[int, bytes]] = dict) -> None:
        self._answers = answers
        self._phases: dict[bytes, _Phase] = {}

    @override
    def create(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        if phase in self._phases:
            raise InvalidInputError(f"phase {phase.hex()} exists already")
        self._phases[phase] = _Phase(snapshot, step, dict(tasks), self._answers(), {})

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
        return _lazily(self._known(phase).answers)

    @override
    def kept_answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        return _lazily(self._known(phase).kept)

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
        self._phases[phase] = _Phase(snapshot, step, dict(tasks), self._answers(), kept)

    def _known(self, phase: bytes) -> _Phase:
        try:
            return self._phases[phase]
        except KeyError:
            raise InvalidInputError(f"no phase {phase.hex()}") from None


def _lazily(answers: MutableMapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Return the answers that are there now, each read when it is wanted."""
    return ((phone, answers[phone]) for phone in tuple(answers))
