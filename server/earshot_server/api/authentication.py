"""Authentication of phones by signature and of operators by token; authorization by role."""

from __future__ import annotations

import base64
import hmac
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flask import Response, g, request

from earshot_protocol.api import NEW_PHONE
from earshot_protocol.signatures import SignatureError, key_id_of, verify_body, verify_fields
from earshot_server.api import bodies
from earshot_server.api.limits import RateLimits
from earshot_server.api.problems import OperatorError, RoleError
from earshot_server.credentials import Credentials
from earshot_server.dashboard.languages import LazyText, noted
from earshot_server.store.database import Database
from earshot_server.store.operators import FIRST, Accounts, Operator, Role, hash_of
from earshot_server.store.sessions import Sessions

_View = Callable[..., Response]
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_FIRST = Operator(FIRST, Role.ADMIN)
_NOBODY = 0
"""A number that no phone has."""
_NOBODYS_KEY = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
"""Key against which signatures in the name of phones that do not exist are checked."""


def authenticate_phone(public_key: Callable[[int], bytes | None]) -> int:
    """Return the number of the phone that signed the present request; its body is not read yet.

    A missing phone and a wrong signature get the same answer, after the same amount of work.

    Args:
        public_key: Function from a phone's number to its key; None if there is no such phone.

    Raises:
        StaleSignatureError: The phone's clock is wrong, or the request is old.
        SignatureError: The signature is missing or wrong, or there is no such phone.
    """
    name = authenticate(lambda name: public_key(_phone_of(name)))
    g.phone = phone = _phone_of(name)
    return phone


def authenticate(public_key: Callable[[str], bytes | None]) -> str:
    """Return the name of the key that signed the present request; its body is not read yet.

    Args:
        public_key: Function from a key's name to the key; None if there is no such key, which gets
            the same answer as a wrong signature, after the same amount of work.

    Raises:
        StaleSignatureError: The signer's clock is wrong, or the request is old.
        SignatureError: The signature is missing or wrong, or there is no such key.
    """
    name = key_id_of(_fields())
    _verify(public_key(name) or _NOBODYS_KEY)
    return name


def _phone_of(name: str) -> int:
    return int(name) if _NUMBER.fullmatch(name) else _NOBODY


def read_signed(limit: int, formats: Sequence[str] = bodies.FORMATS) -> bytes:
    """Return the body of the present request, whose signature is verified.

    Args:
        limit: Most bytes that it may have.
        formats: Media types that it may have.

    Raises:
        SignatureError: The body is not the one that was signed.
        RemoteError: The body cannot be read (see `bodies.read`).
    """
    body = bodies.read(limit, formats)
    verify_body(_fields(), body)
    return body


def authenticate_new_phone(public_key: bytes, body: bytes) -> None:
    """Check that the present request is signed with the key that it names.

    Raises:
        SignatureError: The request is not signed with that key.
    """
    if key_id_of(_fields()) != NEW_PHONE:
        raise SignatureError(f'a phone that enrols signs with keyid="{NEW_PHONE}"')
    verify_body(_fields(), body)
    _verify(public_key)


def _verify(public_key: bytes) -> None:
    content_type = request.headers.get("Content-Type", "")
    verify_fields(public_key, _fields(), time.time(), request.path, content_type)


def _fields() -> dict[str, str]:
    names = ("Content-Digest", "Signature-Input", "Signature")
    return {name: request.headers.get(name, "") for name in names}


class OperatorAuthentication:
    """Authentication of operators: by the token in a request, or by the session of a browser.

    Args:
        credentials: Credentials of the server, with the first operator's token.
        database: Database with the accounts of all other operators, and with sessions.
        limits: Limits of wrong tokens per address.
    """

    def __init__(self, credentials: Credentials, database: Database, limits: RateLimits) -> None:
        self.sessions = Sessions(database)
        self._first = credentials.is_operator
        self._first_hash = hash_of(credentials.operator_token)
        self._accounts = Accounts(database)
        self._limits = limits

    def by_token(self, challenge: str = "Bearer") -> None:
        """Authenticate the operator of the present request by its token.

        HTTP Basic permits only reading: browsers attach its password to requests that other sites
        make them send.

        Args:
            challenge: Authentication scheme named in the response to a request without a token.

        Raises:
            OperatorError: The token is missing or wrong, or belongs to another operator than named.
            RateLimitError: Too many wrong tokens came from the address; this one was not checked.
        """
        scheme, name, token = given_token()
        if scheme == "basic" and request.method not in ("GET", "HEAD"):
            token = ""
        if not token:  # clients first send a request without one
            raise OperatorError(challenge)
        self.check_failures()
        g.operator = self._admit(token, name, challenge)

    def by_session(self, secret: str) -> bool:
        """Authenticate the operator of the present request by a browser session.

        Returns:
            Whether the session is valid. A session ends when it expires, when the operator signs
            out, and when the token that began it is replaced or its operator removed.
        """
        given = self.sessions.token_hash(secret) if secret else None
        operator = None if given is None else self._holder(given)
        if operator is None:
            return False
        g.operator, g.session = operator, secret
        return True

    def sign_in(self, token: str) -> str:
        """Begin a session of the token's operator, and return its secret.

        Raises:
            OperatorError: The token is wrong.
        """
        g.operator = self._admit(token, None, "Bearer")
        return self.sessions.begin(hash_of(token))

    def check_failures(self) -> None:
        """Check that the sender's address has not sent too many wrong tokens.

        Raises:
            RateLimitError: It has sent too many.
        """
        self._limits.check_failures(request.remote_addr)

    def _admit(self, token: str, name: str | None, challenge: str) -> Operator:
        first = self._first(token)
        operator = _FIRST if first else self._accounts.holder(hash_of(token))
        if operator is None or name not in (None, operator.name):
            self._limits.count_failure(request.remote_addr)
            raise OperatorError(challenge)
        return operator

    def _holder(self, given: bytes) -> Operator | None:
        first = hmac.compare_digest(given, self._first_hash)
        return _FIRST if first else self._accounts.holder(given)


def given_token() -> tuple[str, str | None, str]:
    """Return the scheme, the name and the token of the present request's `Authorization`.

    The name is None where the scheme has none, as with Bearer. An invalid field gives an empty
    token.
    """
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    scheme, rest = scheme.lower(), rest.strip()
    if scheme == "bearer":
        return scheme, None, rest
    if scheme == "basic":
        with suppress(ValueError):  # neither base64 nor UTF-8
            name, _, token = base64.b64decode(rest, validate=True).decode().partition(":")
            return scheme, name, token
    return scheme, None, ""


def present_operator() -> Operator:
    """Return the authenticated operator who sent the present request."""
    operator: Operator = g.operator
    return operator


def needs(role: Role, view: _View) -> _View:
    """Restrict a view to operators whose role includes this one.

    For all others the view raises `RoleError`.
    """

    @wraps(view)
    def checked(*arguments: Any, **named: Any) -> Response:
        operator = present_operator()
        if not operator.role.includes(role):
            raise RoleError(
                LazyText(
                    noted("%(name)s has the role %(role)s; this needs %(needed)s"),
                    name=operator.name,
                    role=LazyText(operator.role.value),
                    needed=LazyText(role.value),
                )
            )
        return view(*arguments, **named)

    return checked
