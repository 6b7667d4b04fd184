"""A phone's line to a server that is written down: what it asks, and what it heard."""

from __future__ import annotations

from earshot_protocol.api import Refuse
from earshot_protocol.errors import EarshotError
from earshot_protocol.wire import Answer, Task


class Line:
    """A transport that hands out these tasks or errors, and goes on with the last."""

    def __init__(
        self,
        *tasks: Task | EarshotError,
        to_answers: EarshotError | None = None,
        to_refusals: EarshotError | None = None,
    ) -> None:
        self.tasks, self.to_answers, self.to_refusals = list(tasks), to_answers, to_refusals
        self.sent: list[Answer] = []
        self.refused: list[Refuse] = []

    def task(self) -> Task:
        task = self.tasks.pop(0) if len(self.tasks) > 1 else self.tasks[0]
        if isinstance(task, EarshotError):
            raise task
        return task

    def send(self, answer: Answer) -> None:
        if self.to_answers is not None:
            raise self.to_answers
        self.sent.append(answer)

    def refuse(self, refusal: Refuse) -> None:
        if self.to_refusals is not None:
            raise self.to_refusals
        self.refused.append(refusal)
