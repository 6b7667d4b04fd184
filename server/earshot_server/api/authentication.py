"""Who sends a request: a phone, by its signature, or an operator, by the token."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flask import g, request

from earshot_protocol.api import NEW_PHONE
from earshot_protocol.signatures import SignatureError, key_id_of, verify
from earshot_server.api.problems import OperatorError
from earshot_server.credentials import Credentials

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_NOBODY = 0
"""No phone has this number."""
_NOBODYS_KEY = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
"""Signatures in the name of phones that do not exist are checked against this key."""


def authenticate_phone(public_key: Callable[[int], bytes | None], body: bytes) -> int:
    """The number of the phone that signed the present request.

    A phone that does not exist and a signature that is wrong get the same answer for the same work.

    Args:
        public_key: of a phone; None if there is no such phone.
        body: of the request.

    Raises:
        StaleSignatureError: the phone's clock is wrong, or the request is old.
        SignatureError: the signature is missing or wrong, or there is no such phone.
    """
    name = key_id_of(_fields())
    phone = int(name) if _NUMBER.fullmatch(name) else _NOBODY
    _verify(public_key(phone) or _NOBODYS_KEY, body)
    g.phone = phone
    return phone


def authenticate_new_phone(public_key: bytes, body: bytes) -> None:
    """Check that the present request is signed with the key that it names.

    Raises:
        SignatureError: it is not.
    """
    if key_id_of(_fields()) != NEW_PHONE:
        raise SignatureError(f'a phone that enrols signs with keyid="{NEW_PHONE}"')
    _verify(public_key, body)


def _verify(public_key: bytes, body: bytes) -> None:
    content_type = request.headers.get("Content-Type", "")
    verify(public_key, _fields(), time.time(), request.path, content_type, body)


def _fields() -> dict[str, str]:
    names = ("Content-Digest", "Signature-Input", "Signature")
    return {name: request.headers.get(name, "") for name in names}


def authenticate_operator(credentials: Credentials, challenge: str = "Bearer") -> None:
    """Check that the present request carries the operator's token.

    Browsers send the password of HTTP Basic of their own accord, even when another site makes
    them; so it opens what can be read, and never what changes something.

    Args:
        credentials: of the server.
        challenge: the scheme that a request without the token is asked for.

    Raises:
        OperatorError: it does not.
    """
    given = request.authorization
    token = ""
    if given is not None and given.type == "bearer":
        token = given.token or ""
    elif given is not None and given.type == "basic" and request.method in ("GET", "HEAD"):
        token = given.password or ""
    if not credentials.is_operator(token):
        raise OperatorError(challenge)
