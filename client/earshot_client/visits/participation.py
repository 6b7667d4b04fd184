"""Visits to the server, one after the other, and how failures postpone the next one.

It has no clock and never sleeps: `visit` is given the time, and returns when to call again.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from earshot_client.phone import LEAST_WAIT, Phone
from earshot_client.store.interface import Store
from earshot_client.transport.http import UnavailableError
from earshot_client.transport.interface import Transport
from earshot_client.visits.conditions import Condition
from earshot_client.visits.endings import Endings
from earshot_client.visits.outcome import LONGEST_PAUSE, Event, Visit
from earshot_protocol.errors import (
    MalformedMessageError,
    RefusedError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import Wait
from earshot_protocol.signatures import SignatureError
from earshot_protocol.wire import Answer, Ending, Task

SECONDS_AFTER_REFUSAL = 3600.0
"""Pause after a refusal, in seconds: the server's request rarely changes sooner."""
_FIRST_PAUSE = 1.0


@dataclass
class Participation:
    """A phone's part in its server's phases.

    Attributes:
        phone: Phone that decides and answers.
        store: Store of the phone.
        transport: Line to the server.
        condition: Condition under which the phone takes part; by default at any time.
        poll: Longest pause between visits, in seconds, except where the condition or a server that
            is too busy asks for a longer one.
    """

    phone: Phone
    store: Store
    transport: Transport
    _: KW_ONLY
    condition: Condition | None = None
    poll: float = LONGEST_PAUSE

    def __post_init__(self) -> None:
        self._endings = Endings(self.store)
        self._failures = 0

    def visit(self, now: datetime) -> Visit:
        """Request a task and do it, if the condition holds.

        Args:
            now: Local time of the phone.

        Raises:
            LocalError: Something is wrong on this phone; trouble with the network or the server is
                a `Visit`.
        """
        self.phone.expire()  # even if the server cannot be visited
        postponed = self.condition.check(now) if self.condition is not None else None
        if postponed is not None:
            return Visit(Event.POSTPONED, postponed.reason, postponed.seconds)
        try:
            visit = self._take_part()
        except RefusedError as error:
            return Visit(Event.REFUSED, str(error), min(self.poll, SECONDS_AFTER_REFUSAL))
        except RemoteError as error:
            least = error.seconds if isinstance(error, UnavailableError) else 0.0
            visit = Visit(Event.TROUBLE, str(error), max(least, self._pause()))
        failed = visit.event in (Event.LATE, Event.TROUBLE)
        self._failures = self._failures + 1 if failed else 0
        return visit

    def _take_part(self) -> Visit:
        task = self.transport.task()
        try:
            with self.store.transaction():
                answer = self.phone.answer(task)
                news = self._endings.note(task)
        except RemoteError as error:
            if isinstance(error, RefusedError):
                self.phone.tell_refusal(task, error, self.transport)
            # An ending that is inconsistent now will not become valid.
            self._endings.note(task)
            raise
        if answer is not None:
            return self._send(answer, self._remark(task))
        if isinstance(task, Wait):
            seconds = min(max(task.seconds, LEAST_WAIT), self.poll)
            return Visit(Event.WAITING, self._waiting(), seconds)
        if not news:
            raise UnexpectedMessageError("the server reports the end of a phase a second time")
        # The next phase may be gathering phones already.
        return Visit(Event.ENDED, f"{_name(task)}{self._absence(task)}", 0.0)

    def _waiting(self) -> str:
        """Describe what is waited for. The server tells no phone that it has joined a gathering."""
        phase = self.phone.phase
        where = "no phase has begun for this phone" if phase is None else f"in phase {phase.hex()}"
        return f"nothing to do now; {where}"

    def _absence(self, ending: Task) -> str:
        """Say if this phone had no part in a phase: all phones are told the newest result."""
        had_part = isinstance(ending, Ending) and self.phone.ledger.releases_in(ending.phase)
        return "" if had_part else "; this phone had no part in it"

    def _remark(self, task: Task) -> str:
        """Describe missing data once per phase, with the first answer."""
        shortfall = self.phone.shortfall if hasattr(task, "parameters") else ""
        return f"; this phone {shortfall}" if shortfall else ""

    def _send(self, answer: Answer, remark: str) -> Visit:
        try:
            self.transport.send(answer)
        except SignatureError:
            raise
        except (UnexpectedMessageError, RepeatedMessageError, MalformedMessageError) as error:
            return Visit(Event.LATE, str(error), self._pause())
        return Visit(Event.ANSWERED, f"{_name(answer)}{remark}", 0.0)

    def _pause(self) -> float:
        """Return a pause in seconds that grows with the number of failed visits in a row."""
        return min(_FIRST_PAUSE * 2.0 ** min(self._failures, 12), self.poll, LONGEST_PAUSE)


def _name(message: Task | Answer) -> str:
    return str(message.__struct_config__.tag).replace("-", " ")
