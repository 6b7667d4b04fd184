"""Operators' browsers: sessions, and protection against forged requests (CSRF).

An operator enters the token once, in a form, and the browser keeps the secret of a session in a
cookie. A change needs three things: that session; a header field of the browser that the form was
sent from this site (`Sec-Fetch-Site`, or `Origin` from browsers without it); and the session's form
key, which every form carries and no other site can read.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from flask import Response, g, request, url_for

from earshot_protocol.connecting import is_this_machine
from earshot_server.api.authentication import OperatorAuthentication
from earshot_server.api.problems import (
    ForgedRequestError,
    InsecureSignInError,
    SignedOutError,
    asks_for_a_page,
)
from earshot_server.dashboard.languages import LazyText, noted
from earshot_server.store.sessions import HOURS

COOKIE = "earshot-session"
KEY_FIELD = "form_key"
"""Name of the field of a form that holds the session's form key."""


class Browsers:
    """Sessions of the browsers that show the dashboard.

    Args:
        operators: Authentication of operators.
    """

    def __init__(self, operators: OperatorAuthentication) -> None:
        self._operators = operators

    def authenticate(self) -> Response | None:
        """Authenticate the operator of the present request: by session, or else by token.

        Returns:
            None, or a redirect to the sign-in form if a signed-out browser requests a page.

        Raises:
            OperatorError: A client that is not a browser sent no token, or a wrong one.
            SignedOutError: A form was sent without a valid session.
            ForgedRequestError: A form was sent by another site.
        """
        if request.endpoint == "dashboard.static":  # the sign-in form needs its style sheet
            return None
        changes = request.method not in ("GET", "HEAD")
        if changes:
            check_origin()
        if self._operators.by_session(request.cookies.get(_cookie(), "")):
            g.form_key = _form_key(g.session)
            return None
        if changes:
            raise SignedOutError
        if "Authorization" not in request.headers and asks_for_a_page():
            there = request.full_path.removesuffix("?")
            return _to(url_for("desk.sign_in", to=None if there == "/" else there))
        self._operators.by_token("Basic")
        return None

    def check_may_sign_in(self) -> None:
        """Check that the connection is secure, and that the address may send another token.

        Raises:
            InsecureSignInError: The browser is on another machine and the connection is not https.
            RateLimitError: Too many wrong tokens came from its address.
        """
        if not _is_private():
            raise InsecureSignInError
        self._operators.check_failures()

    def sign_in(self, token: str, to: str) -> Response:
        """Begin a session for the token's holder, and redirect the browser to a path.

        Raises:
            OperatorError: The token is wrong.
        """
        secret = self._operators.sign_in(token)
        self._operators.sessions.end(request.cookies.get(_cookie(), ""))
        response = _to(to if _is_path(to) else "/")
        response.set_cookie(
            _cookie(),
            secret,
            max_age=HOURS * 3600,
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
        return response

    def sign_out(self) -> Response:
        """End the present session."""
        self._operators.sessions.end(g.session)
        response = _to(url_for("desk.sign_in"))
        response.delete_cookie(
            _cookie(), secure=request.is_secure, httponly=True, samesite="Strict"
        )
        return response


def check_origin() -> None:
    """Check by the browser's header fields that a form was sent from this site.

    Raises:
        ForgedRequestError: It was sent from another site, or the fields are missing.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site != "same-origin" if site is not None else request.headers.get("Origin") != own_origin():
        raise ForgedRequestError(
            LazyText(noted("the browser does not say that it was sent from this site"))
        )


def own_origin() -> str:
    """Return the origin of this site, as the browser that sent the present request knows it."""
    return f"{request.scheme}://{request.host}"


def is_asked_here() -> bool:
    """Return whether the browser reaches this server under a name for its own machine."""
    try:
        return is_this_machine(urlsplit(own_origin()).hostname or "")
    except ValueError:
        return False


def has_key(form: Mapping[str, str]) -> bool:
    """Return whether a form carries the form key of the present session."""
    given = form.get(KEY_FIELD, "").encode("utf-8", "replace")
    return hmac.compare_digest(given, g.form_key.encode())


def derived(purpose: str, text: str = "") -> bytes:
    """Return 32 bytes derived from the present session's secret."""
    return _derived(g.session, purpose, text)


def _form_key(secret: str) -> str:
    return base64.urlsafe_b64encode(_derived(secret, "form key")).decode().rstrip("=")


def _derived(secret: str, purpose: str, text: str = "") -> bytes:
    return hmac.digest(secret.encode(), f"earshot {purpose}\0{text}".encode(), "sha256")


def _cookie() -> str:
    """Return the cookie's name; with `__Host-`, only an https page of this host can set it."""
    return f"__Host-{COOKIE}" if request.is_secure else COOKIE


def _is_private() -> bool:
    """Return whether the connection from browser to server is confidential.

    Without TLS both the sender's address and the name in the URL must be this machine's: a proxy on
    this machine may forward requests of others, and a foreign name may resolve to this machine.
    """
    return request.is_secure or (is_this_machine(request.remote_addr or "") and is_asked_here())


def _is_path(to: str) -> bool:
    """Return whether a redirect target is a path of this site, in printable ASCII."""
    return (
        to.startswith("/")
        and not to.startswith(("//", "/\\"))
        and all("!" <= letter <= "~" for letter in to)
    )


def _to(path: str) -> Response:
    return Response(status=303, headers={"Location": path})
