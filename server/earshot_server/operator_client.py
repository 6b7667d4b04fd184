"""Operator's client of the API, for `earshot phase`, `invite`, `operator` and `phones`.

The token is sent only to the server that the user named, by https or within this machine.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar
from urllib import parse

from earshot_protocol.api import (
    AUDIT,
    CAMPAIGNS,
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
from earshot_protocol.connecting import connection, exchange
from earshot_protocol.errors import InvalidInputError, LocalError, MalformedMessageError
from earshot_protocol.text import bare, one_line
from earshot_server.api.views import (
    Audit,
    CampaignExport,
    CampaignView,
    CampaignViews,
    Cohorts,
    Invitations,
    NewOperator,
    Operators,
    OperatorToken,
    OperatorView,
    PhaseExport,
    Phases,
    PhaseView,
    PhoneCounts,
    PrivacySpent,
    StartCampaign,
    Started,
    Stopped,
    TwoOperators,
)
from earshot_server.credentials import TOKEN, TOKEN_FILE
from earshot_server.records import AuditEntry, CohortRecord, InvitationRecord

TOKEN_VARIABLE = "EARSHOT_OPERATOR_TOKEN"  # noqa: S105 - the name of a variable
_TIMEOUT = 60.0
"""Seconds without network progress after which a request fails."""
_DEADLINE = 600.0
"""Seconds after which a request fails in any case."""
_LARGEST = 2**28
"""Largest response in bytes: many times the export of a phase of 100,000 phones."""
_LONGEST_TEXT = 300
_LONGEST_REFUSAL = 3000
"""Most characters shown of untrusted text, and of a server's reasons."""
_PREFIX = re.compile(r"[0-9a-f]{1,32}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{1,64}", re.ASCII)
_T = TypeVar("_T")


class ServerError(LocalError):
    """The server refused, or could not be reached; the message says why."""


class OperatorClient:
    """Client that calls one server's API as its operator.

    Every method raises `ServerError` if the server refuses or cannot be reached.

    Args:
        server: URL of the server, https; http is accepted for this machine's own addresses only.
        token: Token of the operator.

    Raises:
        ServerError: The URL is not that of a server, or the token cannot be one.
    """

    def __init__(self, server: str, token: str) -> None:
        try:
            connection(server, None, _TIMEOUT)
        except InvalidInputError as error:
            raise ServerError(str(error)) from error
        if not TOKEN.fullmatch(token):
            raise ServerError(
                f"this cannot be an operator's token, which has 43 letters, digits, - and _: look "
                f"at {TOKEN_VARIABLE}, or at {TOKEN_FILE} in the server's data folder"
            )
        self._server = server.rstrip("/")
        self._token = token

    def invite(self, invite: Invite) -> Invitation:
        """Return a new code with which phones may enrol."""
        return self._call(INVITATIONS, Invitation, invite)

    def invitations(self) -> tuple[InvitationRecord, ...]:
        """Return the newest invitations, newest first."""
        return self._call(INVITATIONS, Invitations).invitations

    def revoke(self, name: str) -> None:
        """Revoke an invitation."""
        self._send(f"{INVITATIONS}/{parse.quote(name, safe='')}", method="DELETE")

    def start(self, start: StartPhase) -> str:
        """Start a phase; return its identifier, in hexadecimal."""
        return self._call(PHASES, Started, start).phase

    def phases(self) -> tuple[PhaseView, ...]:
        """Return the newest phases, newest first; at most 100."""
        return self._call(PHASES, Phases).phases

    def cohorts(self) -> tuple[CohortRecord, ...]:
        """Return all cohorts that have phones."""
        return self._call(COHORTS, Cohorts).cohorts

    def phase(self, phase: str) -> PhaseView:
        """Return one phase."""
        return self._call(_path(phase), PhaseView)

    def find(self, written: str) -> str:
        """Return the full identifier of the only phase that begins with the given digits.

        Raises:
            ServerError: No phase begins with them, or several do; the message lists them.
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
        """Begin a phase with the phones that have joined."""
        return self._call(_path(phase) + "/begin", PhaseView, {})

    def stop(self, phase: str) -> Stopped:
        """Stop a phase without a result, unless it is already over."""
        return self._call(_path(phase) + "/stop", Stopped, {})

    def export(self, phase: str) -> PhaseExport:
        """Return everything stored about a phase."""
        return self._call(_path(phase) + "/export", PhaseExport)

    def start_campaign(self, start: StartCampaign) -> CampaignView:
        """Start a campaign."""
        return self._call(CAMPAIGNS, CampaignView, start)

    def campaigns(self) -> CampaignViews:
        """Return all campaigns, newest first."""
        return self._call(CAMPAIGNS, CampaignViews)

    def find_campaign(self, written: str) -> str:
        """Return the digest of the only campaign of a name, or whose digest begins so.

        Raises:
            ServerError: There is no such campaign, or several; the message lists them.
        """
        listed = self.campaigns()
        known = {each.campaign: each.name for each in listed.campaigns}
        known |= {each.campaign: "damaged" for each in listed.damaged}
        begins = written.strip().rstrip("….").lower()
        found = [each.campaign for each in listed.campaigns if each.name == written] or [
            each for each in known if _DIGEST.fullmatch(begins) and each.startswith(begins)
        ]
        if len(found) == 1:
            return found[0]
        named = ", ".join(f"{each[:12]} ({known[each]})" for each in found or known)
        if found:
            raise ServerError(f"{len(found)} campaigns are called so, give a digest: {named}")
        there = f"there are {named}" if named else "none was started here"
        raise ServerError(one_line(f"no campaign is called {written!r}: {there}", _LONGEST_REFUSAL))

    def campaign(self, digest: str) -> CampaignExport:
        """Return a campaign, its plan, and what became of its phases."""
        return self._call(_campaign(digest), CampaignExport)

    def stop_campaign(self, digest: str) -> CampaignView:
        """Stop a campaign for good."""
        return self._call(_campaign(digest) + "/stop", CampaignView, {})

    def resume_campaign(self, digest: str) -> CampaignView:
        """Let a campaign go on that is paused."""
        return self._call(_campaign(digest) + "/resume", CampaignView, {})

    def privacy(self) -> PrivacySpent:
        """Return the privacy that phones have spent in all phases."""
        return self._call(PRIVACY, PrivacySpent)

    def two_operators(self) -> TwoOperators:
        """Return the public keys of the two operators of sums; empty without a helper."""
        return self._call(TWO_OPERATORS, TwoOperators)

    def operators(self) -> tuple[OperatorView, ...]:
        """Return all operators."""
        return self._call(OPERATORS, Operators).operators

    def add_operator(self, new: NewOperator) -> OperatorToken:
        """Add an operator; return the new token, which cannot be read again."""
        return self._call(OPERATORS, OperatorToken, new)

    def remove_operator(self, name: str) -> None:
        """Remove an operator."""
        self._send(_operator(name), method="DELETE")

    def rotate(self, name: str) -> OperatorToken:
        """Replace an operator's token, and return the new one."""
        return self._call(_operator(name) + "/token", OperatorToken, {})

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
        """Send a POST with a body, or a GET without one, and decode the response."""
        content = self._send(path, body, "GET" if body is None else "POST")
        try:
            return decode_body(content, JSON, kind)
        except MalformedMessageError as error:
            raise self._stranger(str(error)) from error

    def _send(self, path: str, body: object = None, method: str = "DELETE") -> bytes:
        fields = {"Authorization": f"Bearer {self._token}", "Accept": JSON, "Content-Type": JSON}
        data = None if body is None else encode_body(body, JSON)
        until = time.monotonic() + _DEADLINE
        try:
            with contextlib.closing(connection(self._server, None, _TIMEOUT)) as line:
                response, content = exchange(line, method, path, data, fields, _LARGEST, until)
        except (OSError, http.client.HTTPException) as error:
            reason = one_line(str(error), _LONGEST_TEXT) or type(error).__name__
            raise ServerError(
                f"{self._server} does not answer: {reason}; is `earshot serve` running there?"
            ) from error
        if 300 <= response.status < 400:
            there = one_line(response.headers.get("Location", "elsewhere"), _LONGEST_TEXT)
            raise ServerError(
                f"{self._server} leads to {there}, where the token was not sent: name the server "
                "itself by --server"
            )
        if response.status >= 400:
            raise ServerError(_said(response, content))
        # Otherwise any server that responds 200 to everything would seem to have erased a phone.
        if (response.status == 204) != (method == "DELETE"):
            raise self._stranger(f"{response.status} {response.reason}")
        if len(content) > _LARGEST:
            raise self._stranger(f"a response of more than {_LARGEST} bytes")
        return content

    def _stranger(self, said: str) -> ServerError:
        return ServerError(
            f"{self._server} sent an invalid response: {one_line(said, _LONGEST_TEXT)}; is "
            "`earshot serve` of this version running there?"
        )


def _path(phase: str) -> str:
    return f"{PHASES}/{parse.quote(phase, safe='')}"


def _campaign(digest: str) -> str:
    return f"{CAMPAIGNS}/{parse.quote(digest, safe='')}"


def _operator(name: str) -> str:
    return f"{OPERATORS}/{parse.quote(name, safe='')}"


def _said(response: http.client.HTTPResponse, content: bytes) -> str:
    """Return the reason in an error response, sanitized."""
    said = f"the server answered {response.status} {response.reason}"
    with contextlib.suppress(MalformedMessageError):
        problem = decode_body(content, JSON, Problem)
        said = f"{problem.title}: {problem.detail}" if problem.detail else problem.title
    return one_line(said, _LONGEST_REFUSAL)


def read_token(folder: Path) -> str:
    """Return the operator's token, from the environment or from the server's data folder.

    Raises:
        ServerError: The token is in neither place.
    """
    token = bare(os.environ.get(TOKEN_VARIABLE, ""))
    if token:
        return token
    try:
        return bare((folder / TOKEN_FILE).read_text(encoding="utf-8", errors="replace"))
    except OSError as missing:
        raise ServerError(
            f"no operator token in {folder / TOKEN_FILE}: give the server's --data folder, or set "
            f"{TOKEN_VARIABLE}"
        ) from missing
