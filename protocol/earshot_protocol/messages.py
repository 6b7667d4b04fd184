"""Every message between phone and server, of all kinds of phase: a `Task` down, an `Answer` up.

An answer names its phase or sum and its sender, and its type gives the round. `encode` and
`decode_task`/`decode_answer` are the wire format: MessagePack maps tagged by `type`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from earshot_protocol.phases.kinds import KINDS
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.secure_sum import messages as sums
from earshot_protocol.text import line, one_line
from earshot_protocol.two_operators import messages as reports
from earshot_protocol.wire import (
    LARGEST_ANSWER_BYTES,
    LARGEST_TASK_BYTES,
    Answer,
    Ending,
    Task,
    decode,
)

LARGEST_REASON = 1024
"""Most characters in the reason for a failure, as sent to phones."""


class Wait(Task, frozen=True, kw_only=True, tag="wait"):
    """A phone has nothing to do now; it asks again after this many seconds."""

    seconds: Annotated[float, Meta(ge=0, le=1e9)]


class Failed(Ending, frozen=True, kw_only=True, tag="failed"):
    """The phase ended without a result."""

    reason: Annotated[str, line(LARGEST_REASON)]

    @classmethod
    def because(cls, phase: bytes, reason: str) -> Failed:
        """Return the failure of a phase, with any text, such as an error's, as its reason."""
        return cls(phase=phase, reason=one_line(reason, LARGEST_REASON))


def _union(types: Iterable[type]) -> Any:
    return functools.reduce(operator.or_, types)


# msgspec needs the union of all types; type checkers see only their common base.
if TYPE_CHECKING:
    AnyParameters = Parameters
    AnyTask = Task
    AnyAnswer = Answer
    AnyEnding = Ending
else:
    AnyParameters = _union(kind.parameters for kind in KINDS)
    _OUTCOMES = [kind.outcome for kind in KINDS]
    _BEGINNINGS = [task for kind in KINDS for task in kind.tasks]
    AnyTask = _union([*_BEGINNINGS, *sums.LATER_TASKS, Wait, *_OUTCOMES, Failed])
    _RELEASES = [answer for kind in KINDS for answer in kind.answers]
    AnyAnswer = _union([*_RELEASES, *sums.ANSWERS, *reports.ANSWERS])
    AnyEnding = _union([*_OUTCOMES, Failed])

_task_decoder: msgspec.msgpack.Decoder[Task] = msgspec.msgpack.Decoder(AnyTask)
_answer_decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(AnyAnswer)
_helper_task_decoder: msgspec.msgpack.Decoder[Task] = msgspec.msgpack.Decoder(
    _union(reports.HELPER_TASKS)
)
_helper_answer_decoder: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(
    _union(reports.HELPER_ANSWERS)
)


def decode_task(data: bytes, limit: int = LARGEST_TASK_BYTES) -> Task:
    """Read a task.

    Raises:
        MalformedMessageError: The data exceed `limit` bytes or are not a task.
    """
    return decode(_task_decoder, data, limit)


def decode_helper_task(data: bytes) -> Task:
    """Read a task of the helper of a sum by two operators.

    Raises:
        MalformedMessageError: The data are not such a task.
    """
    return decode(_helper_task_decoder, data, reports.LARGEST_HELPER_TASK)


def decode_helper_answer(data: bytes) -> Answer:
    """Read an answer of the helper of a sum by two operators.

    Raises:
        MalformedMessageError: The data are not such an answer.
    """
    return decode(_helper_answer_decoder, data, reports.LARGEST_HELPER_ANSWER)


def decode_answer(data: bytes, limit: int = LARGEST_ANSWER_BYTES) -> Answer:
    """Read an answer.

    Raises:
        MalformedMessageError: The data exceed `limit` bytes or are not an answer.
    """
    return decode(_answer_decoder, data, limit)
