"""Operators' browsers: signing in, and which of their requests may change anything.

An operator gives the token once, in a form, and the browser keeps the secret of a session in a
cookie. A change needs three things: that session; the browser's own word that the form was sent
from this site (`Sec-Fetch-Site`, or `Origin` from browsers that do not send it); and the session's
form key, which every form carries and no other site can read.
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
from earshot_server.store.sessions import HOURS

COOKIE = "earshot-session"
KEY_FIELD = "form_key"
"""Name of the field of a form that holds the session's form key."""


class Browsers:
    """Sessions of the browsers that ask for the dashboard.

    Args:
        operators: Authentication of operators.
    """

    def __init__(self, operators: OperatorAuthentication) -> None:
        self._operators = operators

    def authenticate(self) -> Response | None:
        """Find out which operator sends the present request: by session, or else by token.

        Returns:
            None, or the way to the form in which to sign in, for a browser that only reads.

        Raises:
            OperatorError: A client that is not a browser sent no token, or a wrong one.
            SignedOutError: A form was sent by nobody who is signed in.
            ForgedRequestError: Another site sent it.
        """
        if request.endpoint == "dashboard.static":  # the form in which to sign in has colours, too
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
        """Refuse a sign-in over an insecure connection, or after too many wrong tokens.

        Raises:
            InsecureSignInError: The browser is elsewhere, and its connection is not encrypted.
            RateLimitError: Too many wrong tokens came from its address.
        """
        if not _is_private():
            raise InsecureSignInError
        self._operators.check_failures()

    def sign_in(self, token: str, to: str) -> Response:
        """Begin a session for the token's holder, and redirect the browser to a path.

        Raises:
            OperatorError: The token is nobody's.
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
    """Refuse a form that the browser sends on behalf of another site, or does not vouch for.

    Raises:
        ForgedRequestError: It does not come from a page of this site.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site != "same-origin" if site is not None else request.headers.get("Origin") != own_origin():
        raise ForgedRequestError("the browser does not say that it was sent from this site")


def own_origin() -> str:
    """Return the origin of this site, as the browser that sent the present request knows it."""
    return f"{request.scheme}://{request.host}"


def is_asked_here() -> bool:
    """Return whether the browser knows this server by a name of this machine itself."""
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
    """Return the cookie's name, with which no other host, and no plain page, can set it."""
    return f"__Host-{COOKIE}" if request.is_secure else COOKIE


def _is_private() -> bool:
    """Return whether the connection from browser to server is confidential.

    Without TLS both must be on this machine, also by the name under which the browser knows the
    server: a proxy on this machine may serve others, and a stranger's name may lead here.
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
