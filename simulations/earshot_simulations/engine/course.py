"""The course of one phase of any kind over an engine's phones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from earshot_protocol.errors import RemoteError
from earshot_protocol.messages import Wait, decode_answer
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import FAILED, LocalRelease, Step
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.progress import Progress, silent
from earshot_protocol.secure_sum.interface import HELPER, Asks, Summation
from earshot_protocol.two_operators.leader import PATIENCE
from earshot_protocol.wire import Answer, Ending, Task, encode
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.answers import AnswersOnDisk
from earshot_simulations.engine.dropouts import draw_dropouts
from earshot_simulations.engine.interface import Engine, PhoneOutcome
from earshot_simulations.shapes import shapes

DISCOVER = "discover"
"""Name of the server's own step, in which it clusters the phones' publications."""
_MOST_NOTES = 100
_TASKS_AT_ONCE = 128
"""Tasks timed together: reading the clock for each would distort the measurement."""
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True, repr=False)
class SimulatedStep:
    """One step of the phase: the phones that answered, and its cost.

    Attributes:
        step: Name of the step in the phase's plan, or `DISCOVER` for the server's own.
        asked: Phones that were asked.
        answered: Phones whose answer was accepted.
        dropped: Numbers of the phones that vanished in this step.
        refused: Answers of phones that the server refused, or that it left out as the step closed,
            such as reports that the helper of two operators cannot count.
        seconds: Wall-clock time of the step, in seconds.
        phone_cpu_seconds: CPU time in seconds, summed over phones.
        server_cpu_seconds: CPU time of the server, in seconds, including the helper's in its steps.
        bytes_up: Bytes from phones to server, summed over phones.
        bytes_down: Bytes from server to phones, summed over phones.
        helper_bytes: Bytes to and from the helper.
    """

    step: str
    asked: int = 0
    answered: int = 0
    dropped: tuple[int, ...] = ()
    refused: int = 0
    seconds: float = 0.0
    phone_cpu_seconds: float = 0.0
    server_cpu_seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    helper_bytes: int = 0

    def __repr__(self) -> str:
        return shapes("SimulatedStep", vars(self))

    def per_phone(self, amount: float) -> float:
        """Return a sum over phones as a mean over the phones that answered; 0 if none did."""
        return amount / self.answered if self.answered else 0.0


class Course:
    """One phase from its start to its end.

    Attributes:
        coordinator: Coordinator of the phase.
        steps: Records of the steps so far.
        at: Name of the step under way; empty before the first.
        failure: Reason why the phase failed; None if it did not.
        refused: Number of answers of each phone that the server refused or left out.
        declined: Reason of each phone that refused a task, by its number.
    """

    def __init__(
        self,
        parameters: Parameters,
        engine: Engine,
        summation: Summation,
        discovery: CentroidDiscovery,
        seed: int,
        progress: Progress = silent,
        dropouts: Mapping[str, tuple[int, ...]] | None = None,
        after_step: Callable[[SimulatedStep], None] | None = None,
        helper: Callable[[Task], Answer] | None = None,
        phase: bytes | None = None,
        began: float = 0.0,
    ) -> None:
        """Start the phase.

        Args:
            parameters: Parameters of the phase.
            engine: Engine that runs the phones.
            summation: Summation by which the server adds up ballots.
            discovery: Method that computes global centroids.
            seed: Seed of the dropouts, ⌊ρn⌋ phones, each in a random step, and of the sums' graphs.
            progress: Callback for progress.
            dropouts: Phones that vanish before each step; drawn at random by default.
            after_step: Callback that receives the record of each step once it is over.
            helper: Helper of sums by two operators; None where there are none.
            phase: Identifier of the phase, 16 bytes; random by default.
            began: Moment at which it begins, in seconds since 1970.

        Raises:
            InvalidParametersError: No phase can run under these parameters.
        """
        self.coordinator = Coordinator.start(
            MemoryPhaseStore(AnswersOnDisk),
            discovery,
            parameters,
            now=began,
            phase=phase,
            summation=summation,
            random=np.random.default_rng([seed, 0x6]).bytes,
            left_out=self._left_out,
        )
        self.steps: list[SimulatedStep] = []
        self._notes: list[str] = []
        self._said: list[tuple[int, str]] = []
        self.failure: str | None = None
        self.at = ""
        self._parameters = parameters
        self._engine = engine
        self._dropouts = draw_dropouts(parameters, seed) if dropouts is None else dropouts
        self.refused: Counter[int] = Counter()
        self.declined: dict[int, str] = {}
        self._began = began
        self._progress = progress
        self._after_step = after_step
        self._helper = helper
        self._server_cpu = 0.0
        self._bytes_down = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Refusals by phones and by operators, in sentences: by step, then by phone."""
        return (*self._notes, *(note for _, note in sorted(self._said)))[:_MOST_NOTES]

    def run(self) -> None:
        """Run all steps, until the phase is over."""
        for number, step in enumerate(self._parameters.plan().steps):
            self.at = step.name
            self._notes, self._said = list(self.notes), []
            self._engine.drop(self._dropouts[step.name])
            self._step(number, step)
            if self.coordinator.step == FAILED:
                self.failure = self.coordinator.state.failure
                return

    def spent(self) -> tuple[Release, ...]:
        """Return the releases that have left the phones so far."""
        # A step that was interrupted counts in full: some phones may have answered.
        done = {record.step for record in self.steps if record.answered} | {self.at}
        plan = self._parameters.plan()
        left = {name for step in plan.steps if step.name in done for name in step.releases}
        return tuple(release for release in plan.releases() if release.step in left)

    def _step(self, number: int, step: Step) -> None:
        """Let all remaining phones answer, and close the step."""
        asked, refused = len(self._engine.present), self.refused.total()
        began, self._server_cpu = time.perf_counter(), 0.0
        phone_cpu, bytes_up, answered, helper_bytes = 0.0, 0, 0, 0
        self._bytes_down = 0
        if step.asks is Asks.HELPER:
            asked, helper_bytes = 1, self._timed(self._ask_helper)
            answered = int(helper_bytes > 0)
        self._progress(step.name, answered, asked)
        tasks = iter(()) if step.asks is Asks.HELPER else self._tasks()
        for batch in self._engine.answer(number, tasks):
            accepted = self._timed(lambda: [self._accept(step, each) for each in batch])  # noqa: B023
            phone_cpu += sum(outcome.cpu_seconds for outcome in batch)
            bytes_up += sum(accepted)
            answered += sum(map(bool, accepted))
            self._progress(step.name, answered, asked)
        answering, server_cpu = time.perf_counter() - began, self._server_cpu
        # Advance past the deadline: who has not answered by now is gone.
        late = self._began + (number + 1) * 2 * self._parameters.step_seconds
        if step.asks is Asks.HELPER and not answered:
            late += PATIENCE
        self._timed(lambda: self.coordinator.advance(late))
        closing = time.perf_counter() - began - answering, self._server_cpu - server_cpu
        discovers = isinstance(self._parameters.plan().part(step.part), LocalRelease)
        own = (0.0, 0.0) if discovers else closing
        self._ended(
            SimulatedStep(
                step=step.name,
                asked=asked + len(self._dropouts[step.name]) * (step.asks is not Asks.HELPER),
                answered=answered,
                dropped=self._dropouts[step.name],
                refused=self.refused.total() - refused,
                seconds=answering + own[0],
                phone_cpu_seconds=phone_cpu,
                server_cpu_seconds=server_cpu + own[1],
                bytes_up=bytes_up,
                bytes_down=self._bytes_down,
                helper_bytes=helper_bytes,
            )
        )
        if discovers:
            self._ended(
                SimulatedStep(step=DISCOVER, seconds=closing[0], server_cpu_seconds=closing[1])
            )

    def _ask_helper(self) -> int:
        """Let the helper answer, and return the bytes of both messages, or 0 without an answer."""
        task = self.coordinator.task_for(HELPER)
        if self._helper is None or isinstance(task, Wait | Ending):
            return 0
        try:
            answer = self._helper(task)
        except RemoteError as error:
            self._notes.append(f"helper, {self.at}: {error}")
            return 0
        self.coordinator.accept(HELPER, answer)
        return len(encode(task)) + len(encode(answer))

    def _ended(self, record: SimulatedStep) -> None:
        self.steps.append(record)
        if self._after_step is not None:
            self._after_step(record)

    def _tasks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the tasks of all remaining phones, made on demand, some at a time."""
        left = sorted(self._engine.present)
        for first in range(0, len(left), _TASKS_AT_ONCE):
            some = left[first : first + _TASKS_AT_ONCE]
            tasks = self._timed(lambda: [encode(self.coordinator.task_for(each)) for each in some])  # noqa: B023
            self._bytes_down += sum(map(len, tasks))
            yield from zip(some, tasks, strict=True)

    def _accept(self, step: Step, outcome: PhoneOutcome) -> int:
        """Submit an answer; return its size in bytes, or 0 if it is missing or refused."""
        if outcome.refusal:
            self.declined.setdefault(outcome.phone, outcome.refusal)
            self._note(outcome.phone, f"phone {outcome.phone}, {step.name}: {outcome.refusal}")
            return 0
        try:
            self.coordinator.accept(outcome.phone, decode_answer(outcome.answer))
        except RemoteError as error:
            self._left_out(outcome.phone, error)
            return 0
        return len(outcome.answer)

    def _left_out(self, phone: int, why: RemoteError) -> None:
        """Count and note an answer that the server refuses, at once or as the step closes."""
        self._note(phone, f"server, {self.at}: {why}")
        if phone != HELPER:
            self.refused[phone] += 1

    def _note(self, phone: int, note: str) -> None:
        """Keep a note; which notes are kept does not depend on the order of arrival."""
        self._said.append((phone, note))
        if len(self._said) > 2 * _MOST_NOTES:
            self._said = sorted(self._said)[:_MOST_NOTES]

    def _timed(self, work: Callable[[], _T]) -> _T:
        """Run server work and count its CPU time."""
        began = time.process_time()
        try:
            return work()
        finally:
            self._server_cpu += time.process_time() - began
