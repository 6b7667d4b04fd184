"""Errors as problem details (RFC 9457), and the mapping of errors to problems.

A problem's `type` is a fixed name; its `detail` says what was wrong and what would be accepted. An
unforeseen error is a 500 whose detail contains only the id of its log entry.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException

from earshot_protocol.api import (
    LARGEST_ENROLMENT,
    LARGEST_REFUSAL,
    LARGEST_SMALL_BODY,
    LARGEST_START,
    PROBLEM,
    PROBLEM_PREFIX,
    Problem,
)
from earshot_protocol.errors import (
    EarshotError,
    InvalidParametersError,
    LocalError,
    MalformedMessageError,
    RemoteError,
    RepeatedMessageError,
    UnexpectedMessageError,
)
from earshot_protocol.signatures import SignatureError, StaleSignatureError
from earshot_protocol.wire import LARGEST_ANSWER_BYTES
from earshot_server.api.metrics import PATH as METRICS
from earshot_server.attestation import InvitationError
from earshot_server.campaigns.conduct import DamagedCampaignError
from earshot_server.dashboard.languages import LazyText, noted
from earshot_server.dashboard.rendering import render, secure
from earshot_server.store.campaigns import UnknownCampaignError
from earshot_server.store.database import (
    SECONDS_UNTIL_DATABASE,
    DatabaseUnavailableError,
    NewerSchemaError,
)
from earshot_server.store.invitations import (
    InvitationNameError,
    InvitationOverError,
    UnknownInvitationError,
)
from earshot_server.store.operators import OperatorNameError, UnknownOperatorError
from earshot_server.store.registry import InvitationUsedUpError

_log = logging.getLogger("earshot.api")
_NO_PAGES = ("/v1/", "/health/", METRICS)
"""Prefixes of paths that are for programs: their problems are never HTML pages."""
_SECONDS_UNTIL_LESS_BUSY = 10


Detail = str | LazyText


class OperatorError(RemoteError):
    """The operator's token is missing or wrong."""

    def __init__(self, scheme: str) -> None:
        super().__init__(
            LazyText(
                noted(
                    "send an operator's token as `Authorization: Bearer …`, in a browser its name "
                    "and token as user and password of HTTP Basic"
                )
            )
        )
        self.scheme = scheme


class SignedOutError(RemoteError):
    """A form was sent without a valid session."""

    def __init__(self) -> None:
        super().__init__(
            LazyText(
                noted(
                    "nothing was changed: sign in in another tab, then reload this page, and what "
                    "you typed is there again"
                )
            )
        )


class ForgedRequestError(RemoteError):
    """A form was not sent from the dashboard itself."""


class InsecureSignInError(RemoteError):
    """An operator tried to sign in over a connection that others can read."""

    def __init__(self) -> None:
        super().__init__(
            LazyText(
                noted(
                    "others could read the token on this connection: use https (a proxy that sends "
                    "X-Forwarded-Proto, and --proxies), or a tunnel to http://localhost"
                )
            )
        )


class RoleError(RemoteError):
    """The operator's role does not permit the request."""


class UnknownPhoneError(RemoteError):
    """No phone has this number."""


class UnknownPhaseError(RemoteError):
    """The phase does not exist, or has no result."""


class UnsupportedMediaError(RemoteError):
    """A body has a media type or encoding that is not accepted."""


class NotAcceptableError(RemoteError):
    """A request accepts none of the formats offered."""


class RateLimitError(RemoteError):
    """A phone or an address has sent too many requests or wrong tokens."""

    def __init__(self, said: str, seconds: int) -> None:
        super().__init__(LazyText(said, seconds=seconds))
        self.seconds = seconds


class DiskError(LocalError):
    """The data folder's disk is gone or nearly full."""


class StuckError(LocalError):
    """This process is overloaded: no thread has become free."""

    def __init__(self) -> None:
        super().__init__("every thread that answers requests has been held for seconds")


class BusyError(RemoteError):
    """A long body arrived while too many others were being sent."""

    def __init__(self) -> None:
        super().__init__(LazyText(noted("too many long bodies are being sent: wait a few seconds")))
        self.seconds = _SECONDS_UNTIL_LESS_BUSY


@dataclass(frozen=True)
class ProblemKind:
    """Kind of problem.

    Attributes:
        name: Last part of the problem's `type`.
        title: Title, the same for all problems of the kind.
        status: HTTP status of the response.
    """

    name: str
    title: str
    status: int


_DATABASE = ProblemKind("database", noted("The database is not available"), 503)
KINDS: dict[type[Exception], ProblemKind] = {
    MalformedMessageError: ProblemKind(
        "malformed", noted("The body is not what this endpoint takes"), 400
    ),
    StaleSignatureError: ProblemKind(
        "stale-signature", noted("The signature is too old, or too new"), 401
    ),
    SignatureError: ProblemKind("signature", noted("The signature is missing or wrong"), 401),
    OperatorError: ProblemKind("operator", noted("Operators only"), 401),
    InvitationError: ProblemKind("invitation", noted("The invitation is not valid"), 403),
    InvitationUsedUpError: ProblemKind(
        "invitation-used-up", noted("The invitation is used up"), 403
    ),
    SignedOutError: ProblemKind("signed-out", noted("You are not signed in"), 403),
    ForgedRequestError: ProblemKind("forged", noted("This form comes from elsewhere"), 403),
    InsecureSignInError: ProblemKind("insecure", noted("Signing in needs https"), 403),
    RoleError: ProblemKind("role", noted("This operator's role does not include it"), 403),
    UnknownOperatorError: ProblemKind("unknown-operator", noted("There is no such operator"), 404),
    UnknownPhoneError: ProblemKind("unknown-phone", noted("There is no such phone"), 404),
    UnknownPhaseError: ProblemKind("unknown-phase", noted("There is no such phase"), 404),
    UnknownCampaignError: ProblemKind("unknown-campaign", noted("There is no such campaign"), 404),
    UnknownInvitationError: ProblemKind(
        "unknown-invitation", noted("There is no such invitation"), 404
    ),
    NotAcceptableError: ProblemKind(
        "not-acceptable", noted("None of the accepted formats exists"), 406
    ),
    RepeatedMessageError: ProblemKind(
        "repeated", noted("Another answer was accepted already"), 409
    ),
    OperatorNameError: ProblemKind("operator-name", noted("No operator can have this name"), 409),
    InvitationNameError: ProblemKind(
        "invitation-name", noted("Another invitation has this name"), 409
    ),
    InvitationOverError: ProblemKind(
        "invitation-over", noted("The invitation admits no phone already"), 409
    ),
    DamagedCampaignError: ProblemKind("damaged-campaign", noted("This campaign is damaged"), 409),
    UnexpectedMessageError: ProblemKind(
        "unexpected", noted("The message does not fit the present step"), 409
    ),
    UnsupportedMediaError: ProblemKind(
        "unsupported-media", noted("The body's format is not taken"), 415
    ),
    InvalidParametersError: ProblemKind(
        "invalid-parameters", noted("No phase can run like this"), 422
    ),
    RateLimitError: ProblemKind("rate-limit", noted("Too many requests"), 429),
    BusyError: ProblemKind("busy", noted("The server is busy"), 503),
    StuckError: ProblemKind("stuck", noted("Requests are not answered"), 503),
    DiskError: ProblemKind("disk", noted("There is no room on the disk"), 503),
    DatabaseUnavailableError: _DATABASE,
    NewerSchemaError: _DATABASE,
}
"""Problem of each error; a subclass that is not listed has that of its nearest base."""

BAD_REQUEST = ProblemKind("bad-request", noted("The request is not valid HTTP"), 400)
FIELDS_TOO_LARGE = ProblemKind("fields-too-large", noted("The header fields are too large"), 431)
VERSION = ProblemKind("version", noted("This version of HTTP is not spoken"), 505)
"""Like the two above, detected before a request reaches the application."""

HTTP_KINDS: dict[int, ProblemKind] = {
    400: BAD_REQUEST,
    404: ProblemKind("unknown-path", noted("There is nothing at this path"), 404),
    405: ProblemKind("method", noted("This path does not take this method"), 405),
    408: ProblemKind("too-slow", noted("The body did not come in time"), 408),
    413: ProblemKind("too-large", noted("The body is too large"), 413),
}
"""Problems that the framework detects."""

INTERNAL = ProblemKind("internal", noted("The server made a mistake"), 500)


def register(app: Flask, details: Mapping[int, Detail] | None = None) -> None:
    """Let the application answer every error with problem details.

    Args:
        app: Application; its own handlers of more specific errors take precedence.
        details: Details of the framework's problems, by status; by default `DETAILS`.
    """
    app.register_error_handler(EarshotError, _of_ours)
    app.register_error_handler(HTTPException, partial(_of_http, details or DETAILS))
    app.register_error_handler(Exception, _internal)


def encode_problem(kind: ProblemKind, detail: str, now: float | None = None) -> bytes:
    """Return the body of a response, of media type `PROBLEM`."""
    problem = Problem(
        type=PROBLEM_PREFIX + kind.name,
        title=kind.title,
        status=kind.status,
        detail=detail,
        now=now,
    )
    return msgspec.json.encode(problem)


def asks_for_a_page() -> bool:
    """Return whether the present request is for an HTML page rather than for the API."""
    if "dashboard" not in current_app.blueprints or request.path.startswith(_NO_PAGES):
        return False
    return "text/html" in request.accept_mimetypes.values()


def respond(kind: ProblemKind, detail: Detail, now: float | None = None) -> Response:
    """Return the response to the present request for a problem, as JSON or as a page.

    Args:
        kind: Kind of problem.
        detail: What was wrong, and what would be accepted. A page shows texts of ours in its
            language, others as they are.
        now: Time on the server's clock, if a signature was stale.
    """
    g.problem = kind.name
    if asks_for_a_page():
        said = render("message.html", title=kind.title, kind=kind.name, detail=detail)
        return secure(Response(said, kind.status))
    return Response(encode_problem(kind, str(detail), now), kind.status, content_type=PROBLEM)


def _of_ours(error: EarshotError) -> Response:
    kind = next((KINDS[base] for base in type(error).__mro__ if base in KINDS), None)
    if kind is None:
        return _internal(error)
    if kind is _DATABASE:
        _log.error("the database is not available", extra={"reason": str(error)})
        advice = error.advice if isinstance(error, DatabaseUnavailableError) else ""
        why = f"{advice}; " if advice else ""
        again = f"nothing was changed: try again in {SECONDS_UNTIL_DATABASE} s"
        response = respond(kind, why + again)
        response.headers["Retry-After"] = str(SECONDS_UNTIL_DATABASE)
        return response
    now = time.time() if isinstance(error, StaleSignatureError) else None
    response = respond(kind, _detail(error), now)
    if isinstance(error, (RateLimitError, BusyError)):
        response.headers["Retry-After"] = str(error.seconds)
    if kind.status == 401:
        scheme = error.scheme if isinstance(error, OperatorError) else "Signature"
        response.headers["WWW-Authenticate"] = f'{scheme} realm="earshot"'
    return response


def _detail(error: EarshotError) -> Detail:
    said = error.args[0] if error.args else ""
    return said if isinstance(said, LazyText) else str(error)


def _of_http(details: Mapping[int, Detail], error: HTTPException) -> Response:
    kind = HTTP_KINDS.get(error.code or 500)
    if kind is None:
        return _internal(error)
    response = respond(kind, details[kind.status])
    for name, value in error.get_headers():
        if name == "Allow":
            response.headers[name] = value
    return response


DETAILS: dict[int, Detail] = {
    400: LazyText(noted("the request could not be read")),
    404: "/v1/openapi.json lists the paths that exist",
    405: LazyText(noted("the field `Allow` lists the methods that it takes")),
    408: LazyText(noted("send it faster, or later")),
    413: LazyText(
        noted(
            "an answer may have %(answer)s MiB, an enrolment %(enrolment)s KiB, a refusal "
            "%(refusal)s bytes, the start of a phase %(start)s MiB, every other body %(other)s KiB"
        ),
        answer=LARGEST_ANSWER_BYTES >> 20,
        enrolment=LARGEST_ENROLMENT >> 10,
        refusal=LARGEST_REFUSAL,
        start=LARGEST_START >> 20,
        other=LARGEST_SMALL_BODY >> 10,
    ),
}
"""Details of the framework's problems on the server, by status."""


def _internal(error: Exception) -> Response:
    _log.error("internal error", exc_info=error, extra={"request": g.get("request_id")})
    where = LazyText(
        noted("the server's log has the details under %(request)s"), request=g.get("request_id")
    )
    return respond(INTERNAL, where)
