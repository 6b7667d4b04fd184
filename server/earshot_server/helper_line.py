"""The leader's HTTP client for its helper: signed requests, and refusals by name.

The helper belongs to another organization: sizes and times are limited, redirects are not followed,
and its texts go only to the log, sanitized. Its clock is used only for the times of signatures.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.api import (
    JSON,
    LARGEST_SMALL_BODY,
    MESSAGEPACK,
    PROBLEM,
    PROBLEM_PREFIX,
    Problem,
    decode_body,
)
from earshot_protocol.connecting import connect, connection, exchange
from earshot_protocol.errors import MalformedMessageError, RemoteError, UnexpectedMessageError
from earshot_protocol.messages import decode_helper_answer
from earshot_protocol.signatures import sign
from earshot_protocol.text import one_line
from earshot_protocol.two_operators.messages import AddUp, MakeOffer
from earshot_protocol.two_operators.refusals import (
    AnsweredError,
    HelperRefusalError,
    LateListError,
    SmallListError,
    UnknownSumError,
    WrongListError,
)
from earshot_protocol.two_operators.transport import OFFER_PATH, PART_PATH, TOTAL_PATH, parts_of
from earshot_protocol.wire import LARGEST_ANSWER_BYTES, Answer, Task, encode

TIMEOUT = 30.0
"""Seconds without network progress after which a request fails."""
LONGEST_AWAY = 3600.0
"""Largest `Retry-After` that is honoured, in seconds."""

_FIRST, _EACH = 60.0, 1e-5
"""Seconds for a task, and for each byte of a list: ten times a helper's need."""
_LONGEST_TEXT = 300
_BAD_SIGNATURE = "bad_signature"
_NAMES = {each.name for each in HelperRefusalError.__subclasses__()} | {
    _BAD_SIGNATURE,
    "malformed",
    "too_large",
}
_FINAL = {
    each.name
    for each in (AnsweredError, LateListError, SmallListError, UnknownSumError, WrongListError)
}

_log = logging.getLogger(__name__)


class HelperTroubleError(RemoteError):
    """The helper did not answer, or refused to.

    Args:
        message: Text for the log.
        name: Name of the refusal, or of the connection's failure.
        final: Whether the same task will never be answered.
        seconds: Seconds in the helper's `Retry-After`; 0 without one.
    """

    def __init__(
        self, message: str, name: str, *, final: bool = False, seconds: float = 0.0
    ) -> None:
        super().__init__(message)
        self.name = name
        self.final = final
        self.seconds = seconds


class _ClockError(HelperTroubleError):
    """The helper refused a signature's time, by its clock."""

    def __init__(self, message: str, now: float) -> None:
        super().__init__(message, _BAD_SIGNATURE)
        self.now = now


def patience(task: Task) -> float:
    """Return the seconds to wait for a helper's answer to a task."""
    return _FIRST + (_EACH * len(task.reports) if isinstance(task, AddUp) else 0.0)


class HelperLine:
    """A leader's client for one helper, for one thread, within a `with` block.

    The system must trust the helper's certificate.

    Args:
        helper: URL of the helper, https; http is accepted for this machine's own addresses only.
        key: Signing key of the leader.
        timeout: Seconds without network progress after which a request fails.
        clock: Clock in seconds since 1970.

    Raises:
        InvalidInputError: `helper` is not the URL of a helper.
    """

    def __init__(
        self,
        helper: str,
        key: Ed25519PrivateKey,
        *,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._helper = helper
        self._key = key
        self._key_id = key.public_key().public_bytes_raw().hex()
        self._timeout = timeout
        self._clock = clock
        self._ahead = 0.0
        """Seconds by which the helper's clock is ahead of ours, once known."""
        self._connection = connection(helper, None, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def answer(self, task: Task) -> Answer:
        """Send the helper a task and return its answer; only its format is checked.

        Raises:
            HelperTroubleError: The helper did not answer, or refused; `name` is the reason.
            UnexpectedMessageError: It is not a task of a helper.
        """
        until = time.monotonic() + patience(task)
        if isinstance(task, MakeOffer):
            content = self._call(OFFER_PATH, encode(task), LARGEST_SMALL_BODY, until)
        elif isinstance(task, AddUp):
            last = task
            for part in parts_of(task):
                self._call(PART_PATH, encode(part), 0, until)
                last = msgspec.structs.replace(task, reports=b"")
            largest = LARGEST_ANSWER_BYTES + len(task.reports)
            content = self._call(TOTAL_PATH, encode(last), largest, until)
        else:
            raise UnexpectedMessageError(f"{type(task).__name__} is not a task of a helper")
        try:
            return decode_helper_answer(content)
        except MalformedMessageError as error:
            raise self._garbage(str(error)) from error

    def _call(self, path: str, body: bytes, limit: int, until: float) -> bytes:
        try:
            return self._request(path, body, limit, until)
        except _ClockError as error:
            self._ahead = error.now - self._clock()
            _log.warning(
                "the helper's clock is %.0f seconds ahead of ours: one of them is wrong",
                self._ahead,
            )
            return self._request(path, body, limit, until)

    def _request(self, path: str, body: bytes, limit: int, until: float) -> bytes:
        """Return the content of the response, at most `limit` bytes; 0 expects no content."""
        try:
            response, content = self._exchange(path, body, limit, until)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            reason = one_line(str(error), _LONGEST_TEXT) or type(error).__name__
            raise HelperTroubleError(
                f"the helper {self._helper} cannot be reached: {reason}", "unreachable"
            ) from error
        media = response.headers.get_content_type()
        if response.status != (200 if limit else 204):
            raise self._refusal(response, media, content)
        if limit and media != MESSAGEPACK:
            raise self._garbage(f"a response of type {media}, not {MESSAGEPACK}")
        if len(content) > limit:
            raise self._garbage(f"a response of more than {limit} bytes")
        return content

    def _exchange(
        self, path: str, body: bytes, limit: int, until: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        created = max(0, int(self._clock() + self._ahead))
        fields = sign(self._key, self._key_id, created, path, MESSAGEPACK, body)
        fields |= {"Content-Type": MESSAGEPACK, "Accept": f"{MESSAGEPACK}, {PROBLEM}"}
        connected = connect(self._connection, until)
        # A long list may take minutes before the first byte of an answer.
        left = max(0.001, until - time.monotonic())
        connected.settimeout(left if path == TOTAL_PATH else min(left, self._timeout))
        return exchange(self._connection, "POST", path, body, fields, limit, until)

    def _refusal(
        self, response: http.client.HTTPResponse, media: str, content: bytes
    ) -> HelperTroubleError:
        """Return the error for an unsuccessful response."""
        problem = Problem(type="", title=f"{response.status} {response.reason}", status=0)
        if media == PROBLEM:
            with contextlib.suppress(MalformedMessageError):
                problem = decode_body(content, JSON, Problem)
        named = problem.type.removeprefix(PROBLEM_PREFIX).replace("-", "_")
        name = named if named in _NAMES else "unavailable"
        said = one_line(f"{problem.title}: {problem.detail}", _LONGEST_TEXT)
        message = f"the helper {self._helper} refuses, {name}: {said}"
        if name == _BAD_SIGNATURE and problem.now is not None:
            return _ClockError(message, problem.now)
        return HelperTroubleError(
            message,
            name,
            final=response.status == 409 and name in _FINAL,
            seconds=_retry_after(response),
        )

    def _garbage(self, said: str) -> HelperTroubleError:
        return HelperTroubleError(
            f"the helper {self._helper} sent an invalid answer: {one_line(said, _LONGEST_TEXT)}",
            "wrong_answer",
        )


def _retry_after(response: http.client.HTTPResponse) -> float:
    """Return the seconds of `Retry-After`; 0 if it is missing or a date."""
    value = response.headers.get("Retry-After", "")
    return min(float(value), LONGEST_AWAY) if value.isascii() and value.isdigit() else 0.0
