"""Interface of a phone's line to the server; the simulator, tests and HTTP each bring their own."""

from __future__ import annotations

from typing import Protocol

from earshot_protocol.api import Refuse
from earshot_protocol.wire import Answer, Task


class Transport(Protocol):
    """Line that carries tasks to this phone and its answers back."""

    def task(self) -> Task:
        """Return the server's present task for this phone."""

    def send(self, answer: Answer) -> None:
        """Send an answer; return once the server has it."""

    def refuse(self, refusal: Refuse) -> None:
        """Report the rule by which this phone refuses; return once the server has it."""
