"""Bodies of requests and responses: MessagePack or JSON, and not larger than they need to be."""

from __future__ import annotations

from typing import TypeVar

from flask import Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from earshot_protocol.api import JSON, LARGEST_SMALL_BODY, MESSAGEPACK, decode_body, encode_body
from earshot_server.api.problems import NotAcceptableError, UnsupportedMediaError

_T = TypeVar("_T")


def read(limit: int = LARGEST_SMALL_BODY) -> bytes:
    """The body of the present request.

    Raises:
        UnsupportedMediaError: neither MessagePack nor JSON, or compressed.
        RequestEntityTooLarge: more than `limit` bytes; one more is read at most.
    """
    if request.mimetype not in (MESSAGEPACK, JSON):
        raise UnsupportedMediaError(f"Content-Type must be {MESSAGEPACK} or {JSON}")
    if "Content-Encoding" in request.headers:
        raise UnsupportedMediaError("bodies come without Content-Encoding")
    # Of a body without a length, the framework takes the beginning; one byte more tells.
    request.max_content_length = limit + 1
    body = request.get_data()
    if len(body) > limit:
        raise RequestEntityTooLarge
    return body


def decode(body: bytes, kind: type[_T]) -> _T:
    """What the body of the present request says.

    Raises:
        MalformedMessageError: it is not of this kind; says where.
    """
    return decode_body(body, request.mimetype, kind)


def negotiate() -> None:
    """Choose the format of the response, before anything is changed.

    Without a preference, it is the format of the request's own body, else JSON.

    Raises:
        NotAcceptableError: the request accepts neither.
    """
    formats = [MESSAGEPACK, JSON] if request.mimetype == MESSAGEPACK else [JSON, MESSAGEPACK]
    g.media_type = request.accept_mimetypes.best_match(formats, formats[0])
    if request.accept_mimetypes and not request.accept_mimetypes.best_match(formats):
        raise NotAcceptableError(f"responses are {MESSAGEPACK} or {JSON}")


def respond(body: object, status: int = 200) -> Response:
    """A response in the format that was negotiated."""
    return Response(encode_body(body, g.media_type), status, content_type=g.media_type)
