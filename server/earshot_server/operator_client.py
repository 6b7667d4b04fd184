"""Operator's side of the API, used by `earshot phase` and `earshot invite`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar
from urllib import error, parse, request

import msgspec

from earshot_protocol.api import (
    AUDIT,
    COHORTS,
    ENROL,
    INVITATIONS,
    JSON,
    OPERATORS,
    PHASES,
    PRIVACY,
    TWO_OPERATORS,
    Invitation,
    Invite,
    Problem,
    StartPhase,
    decode_body,
    encode_body,
)
from earshot_protocol.errors import LocalError
from earshot_server.api.views import (
    Audit,
    Cohorts,
    NewOperator,
    Operators,
    OperatorToken,
    OperatorView,
    PhaseExport,
    Phases,
    PhaseView,
    PhoneCounts,
    PrivacySpent,
    Started,
    Stopped,
    TwoOperators,
)
from earshot_server.credentials import TOKEN_FILE
from earshot_server.records import AuditEntry, CohortRecord

TOKEN_VARIABLE = "EARSHOT_OPERATOR_TOKEN"  # noqa: S105 - the name of a variable
_TIMEOUT = 60.0
_PREFIX = re.compile(r"[0-9a-f]{1,32}", re.ASCII)
_T = TypeVar("_T")


class ServerError(LocalError):
    """The server refused, or could not be reached; the message says why."""


class OperatorClient:
    """Client that calls one server's API as its operator.

    Every method raises `ServerError` if the server refuses or cannot be reached.

    Args:
        server: URL of the server.
        token: Token of the operator.

    Raises:
        ServerError: The URL is neither http nor https.
    """

    def __init__(self, server: str, token: str) -> None:
        if parse.urlsplit(server).scheme not in {"http", "https"}:
            raise ServerError(
                f"{server!r} is not a server's URL: give one such as http://127.0.0.1:8000"
            )
        self._server = server.rstrip("/")
        self._token = token

    def invite(self, invite: Invite) -> Invitation:
        """Return a new code with which phones may enrol."""
        return self._call(INVITATIONS, Invitation, invite)

    def start(self, start: StartPhase) -> str:
        """Start a phase; return its identifier, in hexadecimal."""
        return self._call(PHASES, Started, start).phase

    def phases(self) -> tuple[PhaseView, ...]:
        """Return all phases, newest first."""
        return self._call(PHASES, Phases).phases

    def cohorts(self) -> tuple[CohortRecord, ...]:
        """Return all cohorts that have phones."""
        return self._call(COHORTS, Cohorts).cohorts

    def phase(self, phase: str) -> PhaseView:
        """Return one phase."""
        return self._call(_path(phase), PhaseView)

    def find(self, written: str) -> str:
        """Return the whole identifier of the phase that begins with the digits given.

        Raises:
            ServerError: No phase begins with them, or several do; the error says which.
        """
        prefix = written.strip().rstrip("….").lower()
        if not _PREFIX.fullmatch(prefix):
            raise ServerError(
                f"{written!r} is not a phase: give its first hexadecimal digits, as "
                "`earshot phase list` and the dashboard show them"
            )
        found = self._call(f"{PHASES}?prefix={prefix}", Phases).phases
        if not found:
            raise ServerError(f"there is no such phase: none begins with {prefix}")
        if len(found) > 1:
            named = ", ".join(f"{each.phase} ({each.status})" for each in found)
            raise ServerError(f"{len(found)} phases begin with {prefix}, give more digits: {named}")
        return found[0].phase

    def begin(self, phase: str) -> PhaseView:
        """Let a phase begin with the phones that have joined."""
        return decode_body(self._send(_path(phase) + "/begin", {}), JSON, PhaseView)

    def stop(self, phase: str) -> Stopped:
        """Stop a phase without a result, unless it is already over."""
        return decode_body(self._send(_path(phase) + "/stop", {}), JSON, Stopped)

    def export(self, phase: str) -> PhaseExport:
        """Return everything that is kept of a phase."""
        return self._call(_path(phase) + "/export", PhaseExport)

    def privacy(self) -> PrivacySpent:
        """Return what phones have spent in all phases."""
        return self._call(PRIVACY, PrivacySpent)

    def two_operators(self) -> TwoOperators:
        """Return the keys of the two operators of sums; empty ones without a helper."""
        return self._call(TWO_OPERATORS, TwoOperators)

    def operators(self) -> tuple[OperatorView, ...]:
        """Return all operators."""
        return self._call(OPERATORS, Operators).operators

    def add_operator(self, new: NewOperator) -> OperatorToken:
        """Add an operator; return the new token, which is shown only this once."""
        return self._call(OPERATORS, OperatorToken, new)

    def remove_operator(self, name: str) -> None:
        """Remove an operator."""
        self._send(_operator(name), method="DELETE")

    def rotate(self, name: str) -> OperatorToken:
        """Give an operator a new token, and return it."""
        return decode_body(self._send(_operator(name) + "/token", {}), JSON, OperatorToken)

    def phones(self) -> PhoneCounts:
        """Return how many phones there are."""
        return self._call(ENROL, PhoneCounts)

    def erase(self, phone: int) -> None:
        """Delete everything about a phone."""
        self._send(f"{ENROL}/{phone}", method="DELETE")

    def audit(self) -> Iterator[AuditEntry]:
        """Yield the entries of the audit log, newest first."""
        path = AUDIT
        while entries := self._call(path, Audit).entries:
            yield from entries
            path = f"{AUDIT}?before={entries[-1].entry}"

    def _call(self, path: str, kind: type[_T], body: object = None) -> _T:
        return decode_body(self._send(path, body), JSON, kind)

    def _send(self, path: str, body: object = None, method: str | None = None) -> bytes:
        """Post a body, or get without one, unless another method is given."""
        # S310: the constructor admits http and https only.
        asked = request.Request(  # noqa: S310
            self._server + path,
            data=None if body is None else encode_body(body, JSON),
            method=method,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": JSON,
                "Content-Type": JSON,
            },
        )
        try:
            with request.urlopen(asked, timeout=_TIMEOUT) as answer:  # noqa: S310
                content: bytes = answer.read()
        except error.HTTPError as refused:
            raise ServerError(_said(refused)) from refused
        except OSError as unreachable:
            reason = getattr(unreachable, "reason", unreachable)
            raise ServerError(
                f"{self._server} does not answer: {reason}; is `earshot serve` running there?"
            ) from unreachable
        return content


def _path(phase: str) -> str:
    return f"{PHASES}/{parse.quote(phase, safe='')}"


def _operator(name: str) -> str:
    return f"{OPERATORS}/{parse.quote(name, safe='')}"


def _said(refused: error.HTTPError) -> str:
    try:
        problem = msgspec.json.decode(refused.read(), type=Problem)
    except msgspec.DecodeError:
        return f"the server answered {refused.code} {refused.reason}"
    return f"{problem.title}: {problem.detail}" if problem.detail else problem.title


def read_token(folder: Path) -> str:
    """Return the operator's token, from the environment or from the server's data folder.

    Raises:
        ServerError: The token is in neither place.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token:
        return token
    try:
        return (folder / TOKEN_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as missing:
        raise ServerError(
            f"no operator token in {folder / TOKEN_FILE}: give the server's --data folder, or set "
            f"{TOKEN_VARIABLE}"
        ) from missing
