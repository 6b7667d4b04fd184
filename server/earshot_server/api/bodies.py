"""Bodies of requests and responses: MessagePack or JSON, and not larger than they need to be."""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeVar

from flask import Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from earshot_protocol.api import JSON, LARGEST_SMALL_BODY, MESSAGEPACK, decode_body, encode_body
from earshot_server.api.problems import BusyError, NotAcceptableError, UnsupportedMediaError

_T = TypeVar("_T")

ARRIVAL = "earshot.arrival"
"""Where in a WSGI environment the present request's `Arrival` is, if its body came late."""


class Arrival(Enum):
    """How far a body is that has not come with its fields."""

    AWAITED = auto()
    """It is not there; the same request comes again, and is counted then, if it is read."""
    COMPLETE = auto()
    """It is there now."""
    LATE = auto()
    """It did not come in time."""
    CROWDED = auto()
    """Too many others are being waited for."""


class BodyAwaited(BaseException):
    """The request is good as far as it is known, and its body is wanted.

    Attributes:
        limit: how many bytes it may have.
        sender: who sends it; empty if that is not known.
    """

    def __init__(self, limit: int, sender: str = "") -> None:
        super().__init__(limit)
        self.limit = limit
        self.sender = sender


def is_second_look() -> bool:
    """Whether the present request was looked at before, when its body was not there."""
    return request.environ.get(ARRIVAL, Arrival.AWAITED) is not Arrival.AWAITED


def check_fields(limit: int) -> None:
    """Check what the present request says of its body, which is not read.

    Raises:
        UnsupportedMediaError: neither MessagePack nor JSON, or compressed.
        RequestEntityTooLarge: more than `limit` bytes.
    """
    if request.mimetype not in (MESSAGEPACK, JSON):
        raise UnsupportedMediaError(f"Content-Type must be {MESSAGEPACK} or {JSON}")
    if "Content-Encoding" in request.headers:
        raise UnsupportedMediaError("bodies come without Content-Encoding")
    if (request.content_length or 0) > limit:
        raise RequestEntityTooLarge


def read(limit: int = LARGEST_SMALL_BODY) -> bytes:
    """The body of the present request.

    Raises:
        UnsupportedMediaError: neither MessagePack nor JSON, or compressed.
        RequestEntityTooLarge: more than `limit` bytes; one more is read at most.
        RequestTimeout: it did not come in time.
        BusyError: too many other bodies are being waited for.
        BodyAwaited: it is not there yet.
    """
    check_fields(limit)
    arrival = request.environ.get(ARRIVAL)
    if arrival is Arrival.AWAITED:
        raise BodyAwaited(limit, str(g.get("phone", "")))
    if arrival is Arrival.LATE:
        raise RequestTimeout
    if arrival is Arrival.CROWDED:
        raise BusyError
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
