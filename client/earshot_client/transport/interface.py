"""How a phone reaches the server; the simulator, tests and HTTP each bring their own."""

from __future__ import annotations

from typing import Protocol

from earshot_protocol.api import Refuse
from earshot_protocol.wire import Answer, Task


class Transport(Protocol):
    """Carries tasks to this phone and its answers back."""

    def task(self) -> Task:
        """What the server wants of this phone now."""

    def send(self, answer: Answer) -> None:
        """Hand in an answer; returns once the server has it."""

    def refuse(self, refusal: Refuse) -> None:
        """Say by which rule this phone refuses; returns once the server has it."""
