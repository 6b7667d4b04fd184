"""Two kinds of mistake: ours, and the other side's.

A `LocalError` says that the caller of this code did something wrong; a `RemoteError` that a
message from the other side is wrong. Whoever talks to strangers catches `RemoteError`, logs the
sender and goes on; a `LocalError` is a bug or a bad setting and names what would be accepted.
"""

from __future__ import annotations

from earshot_protocol.rules import Rule


class EarshotError(Exception):
    """Every error that Earshot raises on purpose."""


class LocalError(EarshotError):
    """The caller's mistake."""


class RemoteError(EarshotError):
    """The other side's mistake: nothing changed here."""


class InvalidParametersError(LocalError):
    """Parameters that no phase can run under; the message says what would be accepted."""


class InvalidInputError(LocalError):
    """An array, a label or a file of the wrong shape, type or range."""


class WrongStateError(LocalError):
    """A call that this object does not answer in its present state."""


class MalformedMessageError(RemoteError):
    """A message that does not decode, is too large, or whose fields contradict each other."""


class UnexpectedMessageError(RemoteError):
    """A message of the wrong round, sum, phase or sender: late, early, misdirected or forged."""


class RepeatedMessageError(RemoteError):
    """A second answer where one was accepted already."""


class TooManyDropoutsError(RemoteError):
    """Fewer phones stayed than the parameters allow; nothing was opened."""


class RefusedError(RemoteError):
    """The phone declines what the server asks for; `str` says why and what would be accepted.

    Attributes:
        rule: the name of the rule that forbids it.
    """

    def __init__(self, message: str, rule: Rule = Rule.PROTOCOL) -> None:
        super().__init__(message)
        self.rule = rule
