"""A `Transport` over HTTP: signed requests, retried while network or server are unavailable.

Every request is idempotent, so one whose response was lost is sent again. The server's messages are
untrusted: sizes are limited, redirects are not followed, and text is sanitized for display.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import ssl
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_client.transport.interface import Transport
from earshot_protocol.api import (
    ANSWER,
    ENROL,
    JSON,
    LARGEST_SMALL_BODY,
    LEAVE,
    MESSAGEPACK,
    NEW_PHONE,
    PROBLEM,
    PROBLEM_PREFIX,
    REFUSAL,
    TASK,
    AskTask,
    Enrol,
    Enrolled,
    Leave,
    Problem,
    Refuse,
    decode_body,
    encode_body,
)
from earshot_protocol.connecting import connection, exchange
from earshot_protocol.errors import (
    MalformedMessageError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.messages import decode_task
from earshot_protocol.one_process import OneProcess
from earshot_protocol.overriding import override
from earshot_protocol.signatures import SignatureError, StaleSignatureError, sign
from earshot_protocol.text import one_line
from earshot_protocol.wire import LARGEST_TASK_BYTES, Answer, Task, encode

TIMEOUT = 30.0
"""Most seconds without progress on the network."""
DEADLINE = 300.0
"""Seconds that one try may take in all, from its request to the end of its response."""
TRIES = 5
LONGEST_PAUSE = 30.0
"""Longest pause between two tries, in seconds; if a server asks for more, the call fails."""
LONGEST_AWAY = 3600.0
"""Most seconds for which a server may make a phone wait."""

_FIRST_PAUSE = 0.5
_LONGEST_TEXT = 300
_BUSY = {408, 429, 502, 503, 504}
_random = random.SystemRandom()


class UnavailableError(RemoteError):
    """A server that cannot be reached or is too busy; try again, after `seconds` if it said so."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        super().__init__(message)
        self.seconds = seconds


class InvitationRefusedError(RemoteError):
    """The server's refusal to admit a phone with this invitation; the message says why."""


class ServerProblemError(RemoteError):
    """The server's refusal for another reason, which the message states."""


class _ClockError(StaleSignatureError):
    """A server's clock that reads `now` and differs from this phone's."""

    def __init__(self, message: str, now: float) -> None:
        super().__init__(message)
        self.now = now


ERRORS: dict[str, type[RemoteError]] = {
    "malformed": MalformedMessageError,
    "too-large": MalformedMessageError,
    "signature": SignatureError,
    "stale-signature": StaleSignatureError,
    "invitation": InvitationRefusedError,
    "invitation-used-up": InvitationRefusedError,
    "repeated": RepeatedMessageError,
    "unexpected": UnexpectedMessageError,
}
"""Kind of problem → the error that it becomes; every other becomes a `ServerProblemError`."""


class HttpTransport(OneProcess, Transport):
    """One phone's line to one server; for one thread of one process.

    Each request raises UnavailableError if the server cannot be reached now, SignatureError if it
    does not know this phone by this name and key, and another RemoteError for any other refusal.

    Args:
        server: URL of the server, https; http is accepted for this machine's own addresses only.
        key: Key with which the phone signs.
        phone: Name under which the server knows the key; `new` until the phone is enrolled.
        known: Function that returns the newest phases, at most 8, whose ending has arrived.
        tls: Settings by which the server is authenticated; by default the certificates that the
            system trusts.
        timeout: Most seconds without progress on the network.
        deadline: Seconds that one try may take in all, however steadily bytes arrive.
        tries: Number of times that a request is sent before `UnavailableError`.
        clock: Clock of the seconds since 1970; replaced in tests.
        pause: Function that waits for a number of seconds between two tries.

    Raises:
        InvalidInputError: `server` is not the URL of a server.
    """

    def __init__(
        self,
        server: str,
        key: Ed25519PrivateKey,
        phone: str = NEW_PHONE,
        *,
        known: Callable[[], tuple[bytes, ...]] = tuple,
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        tries: int = TRIES,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.phone = phone
        self._server = server
        self._key = key
        self._known = known
        self._deadline = deadline
        self._tries = tries
        self._clock = clock
        self._pause = pause
        self._ahead = 0.0
        """Seconds by which the server's clock is ahead of this phone's, once known."""
        self._connection = connection(server, tls, timeout)

    def enrol(self, attestation: str) -> str:
        """Register the phone's key with the server.

        Args:
            attestation: Proof that the server requires, by default an invitation code.

        Returns:
            The name under which the server knows this phone from now on; the same one if it was
            enrolled already.

        Raises:
            InvitationRefusedError: The server does not admit a phone with this proof.
        """
        self.phone = NEW_PHONE
        body = Enrol(public_key=self._key.public_key().public_bytes_raw(), attestation=attestation)
        content = self._call(ENROL, encode_body(body, MESSAGEPACK), LARGEST_SMALL_BODY)
        self.phone = decode_body(content, MESSAGEPACK, Enrolled).phone
        return self.phone

    @override
    def task(self) -> Task:
        """Request a task from the server.

        Raises:
            MalformedMessageError: The response is not a task.
        """
        body = encode_body(AskTask(known=self._known()), MESSAGEPACK)
        return decode_task(self._call(TASK, body, LARGEST_TASK_BYTES))

    @override
    def send(self, answer: Answer) -> None:
        """Send an answer; return once the server has it.

        Raises:
            UnexpectedMessageError: The step is over, or the answer belongs to another one.
            RepeatedMessageError: The server has another answer of this phone to this step.
        """
        self._call(ANSWER, encode(answer), 0)

    @override
    def refuse(self, refusal: Refuse) -> None:
        """Report the rule by which this phone refuses; return once the server has it.

        Raises:
            UnexpectedMessageError: The phase is over, or this phone is not in it.
        """
        self._call(REFUSAL, encode_body(refusal, MESSAGEPACK), 0)

    def leave(self) -> None:
        """Ask the server to forget this phone: its key, its number, its places in phases.

        Raises:
            SignatureError: The server does not know the phone, for example because it has left
                already.
        """
        self._call(LEAVE, encode_body(Leave(), MESSAGEPACK), 0)

    def close(self) -> None:
        """Close the connection; the next request makes a new one."""
        self.check_process()
        self._connection.close()

    def _call(self, path: str, body: bytes, limit: int) -> bytes:
        self.check_process()
        try:
            return self._persist(path, body, limit)
        except _ClockError as error:
            self._ahead = error.now - self._clock()
            return self._persist(path, body, limit)

    def _persist(self, path: str, body: bytes, limit: int) -> bytes:
        """Try again, after ever longer pauses, for as long as the server is unavailable."""
        for tried in range(1, self._tries):
            try:
                return self._request(path, body, limit)
            except UnavailableError as error:
                if error.seconds > LONGEST_PAUSE:
                    raise
                # Random, so that phones that lost the same server do not all return together.
                longest = min(_FIRST_PAUSE * 2**tried, LONGEST_PAUSE)
                self._pause(max(error.seconds, _random.uniform(longest / 2, longest)))
        return self._request(path, body, limit)

    def _request(self, path: str, body: bytes, limit: int) -> bytes:
        """Return the content of the response, at most `limit` bytes; none if that is 0."""
        reused, until = self._connection.sock is not None, time.monotonic() + self._deadline
        try:
            try:
                response, content = self._exchange(path, body, limit, until)
            except (OSError, http.client.HTTPException):
                self.close()
                if not reused or time.monotonic() >= until:
                    raise
                # A server ends connections that were idle for a while.
                response, content = self._exchange(path, body, limit, until)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            reason = _cleaned(str(error)) or type(error).__name__
            raise UnavailableError(
                f"{self._server} cannot be reached: {reason}; is a server running there?"
            ) from error
        media = response.headers.get_content_type()
        if response.status != (200 if limit else 204):
            raise _error(response, media, content)
        if limit and media != MESSAGEPACK:
            raise MalformedMessageError(f"a response of type {_cleaned(media)}, not {MESSAGEPACK}")
        if len(content) > limit:
            raise MalformedMessageError(f"a response of more than {limit} bytes")
        return content

    def _exchange(
        self, path: str, body: bytes, limit: int, until: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        created = max(0, int(self._clock() + self._ahead))
        fields = sign(self._key, self.phone, created, path, MESSAGEPACK, body)
        fields |= {"Content-Type": MESSAGEPACK, "Accept": f"{MESSAGEPACK}, {PROBLEM}"}
        return exchange(self._connection, "POST", path, body, fields, limit, until)


def _error(response: http.client.HTTPResponse, media: str, content: bytes) -> RemoteError:
    """Return the error for an unsuccessful response."""
    title = f"the server answered {response.status} {response.reason}"
    problem = Problem(type="", title=title, status=response.status)
    if media == PROBLEM:
        with contextlib.suppress(MalformedMessageError):
            problem = decode_body(content, JSON, Problem)
    said = _cleaned(f"{problem.title}: {problem.detail}" if problem.detail else problem.title)
    if response.status in _BUSY:
        return UnavailableError(said, _retry_after(response))
    kind = problem.type.removeprefix(PROBLEM_PREFIX)
    if kind == "stale-signature" and problem.now is not None:
        return _ClockError(said, problem.now)
    return ERRORS.get(kind, ServerProblemError)(said)


def _retry_after(response: http.client.HTTPResponse) -> float:
    """Return the seconds asked for; 0 if none, or if given as a date, which needs a right clock."""
    value = response.headers.get("Retry-After", "")
    return min(float(value), LONGEST_AWAY) if value.isascii() and value.isdigit() else 0.0


def _cleaned(text: str) -> str:
    """Sanitize untrusted text for display."""
    return one_line(text, _LONGEST_TEXT)
