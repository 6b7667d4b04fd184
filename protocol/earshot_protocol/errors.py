"""Errors of two kinds: the caller's mistakes and the other side's.

A `LocalError` says that the caller of this code did something wrong, a `RemoteError` that a message
from the other side is wrong. Code that talks to untrusted peers catches `RemoteError`, logs the
sender and continues; a `LocalError` is a bug or a bad setting, and its message states what would be
accepted.
"""

from __future__ import annotations

from earshot_protocol.rules import Rule

__all__ = [
    "EarshotError",
    "InvalidInputError",
    "InvalidParametersError",
    "LocalError",
    "MalformedMessageError",
    "RefusedError",
    "RemoteError",
    "RepeatedMessageError",
    "TooManyDropoutsError",
    "UnexpectedMessageError",
    "WrongStateError",
]


class EarshotError(Exception):
    """Base of every error that Earshot raises on purpose."""


class LocalError(EarshotError):
    """The caller's mistake."""


class RemoteError(EarshotError):
    """The other side's mistake; local state is unchanged."""


class InvalidParametersError(LocalError):
    """Parameters that no phase can run under; the message says what would be accepted."""


class InvalidInputError(LocalError):
    """An array, a label or a file of the wrong shape, type or range."""


class WrongStateError(LocalError):
    """A call that is not allowed in the object's present state."""


class MalformedMessageError(RemoteError):
    """A message that does not decode, is too large, or whose fields contradict each other."""


class UnexpectedMessageError(RemoteError):
    """A message of the wrong round, sum, phase or sender: late, early, misdirected or forged."""


class RepeatedMessageError(RemoteError):
    """A second answer where one has been accepted already."""


class TooManyDropoutsError(RemoteError):
    """Fewer phones stayed than the parameters require; nothing was revealed."""


class RefusedError(RemoteError):
    """The phone's refusal of a request; the message says why and what would be accepted.

    Attributes:
        rule: Name of the rule that forbids it.
    """

    def __init__(self, message: str, rule: Rule = Rule.PROTOCOL) -> None:
        super().__init__(message)
        self.rule = rule

    @property
    def reason(self) -> str:
        """The message without the name of the rule, for pages that people read."""
        return str(self).removeprefix(f"{self.rule}: ")
