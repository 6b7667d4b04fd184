"""Bodies of requests and responses: MessagePack or JSON, and no larger than needed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TypeVar
from urllib.parse import parse_qsl

from flask import Response, g, request
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout

from earshot_protocol.api import JSON, LARGEST_SMALL_BODY, MESSAGEPACK, decode_body, encode_body
from earshot_protocol.errors import MalformedMessageError
from earshot_server.api.problems import BusyError, NotAcceptableError, UnsupportedMediaError

_T = TypeVar("_T")

FORMATS = (MESSAGEPACK, JSON)
FORM = "application/x-www-form-urlencoded"
"""Media type of a browser's form."""
ARRIVAL = "earshot.arrival"
"""Key of the `Arrival` in the WSGI environment, set if the body did not come with the header."""


class Arrival(Enum):
    """State of a request body that did not arrive with the header fields."""

    AWAITED = auto()
    """The body has not arrived; the request will be dispatched again with it."""
    COMPLETE = auto()
    """The body has arrived."""
    LATE = auto()
    """The body did not arrive in time."""
    CROWDED = auto()
    """Too many other bodies are being waited for."""


class BodyAwaited(BaseException):
    """Signal that the header fields were accepted and the body should now be read.

    Attributes:
        limit: Largest size of the body, in bytes.
        sender: Sender of the body; empty if unknown.
    """

    def __init__(self, limit: int, sender: str = "") -> None:
        super().__init__(limit)
        self.limit = limit
        self.sender = sender


def is_second_look() -> bool:
    """Return whether this is the second dispatch of a request whose body was missing."""
    return request.environ.get(ARRIVAL, Arrival.AWAITED) is not Arrival.AWAITED


def check_fields(limit: int, formats: Sequence[str] = FORMATS) -> None:
    """Check the header fields of the present request that describe its body.

    Raises:
        UnsupportedMediaError: The body has none of the formats, or is compressed.
        RequestEntityTooLarge: The body has more than `limit` bytes.
    """
    if request.mimetype not in formats:
        raise UnsupportedMediaError(f"Content-Type must be {' or '.join(formats)}")
    if "Content-Encoding" in request.headers:
        raise UnsupportedMediaError("bodies come without Content-Encoding")
    if (request.content_length or 0) > limit:
        raise RequestEntityTooLarge


def read(limit: int = LARGEST_SMALL_BODY, formats: Sequence[str] = FORMATS) -> bytes:
    """Return the body of the present request.

    Args:
        limit: Most bytes that it may have.
        formats: Media types that it may have.

    Raises:
        UnsupportedMediaError: The body has none of the formats, or is compressed.
        RequestEntityTooLarge: The body has more than `limit` bytes; at most one more is read.
        RequestTimeout: The body did not arrive in time.
        BusyError: Too many other bodies are being waited for.
        BodyAwaited: The body has not arrived yet.
    """
    check_fields(limit, formats)
    arrival = request.environ.get(ARRIVAL)
    if arrival is Arrival.AWAITED:
        raise BodyAwaited(limit, str(g.get("phone", g.get("leader", ""))))
    if arrival is Arrival.LATE:
        raise RequestTimeout
    if arrival is Arrival.CROWDED:
        raise BusyError
    # The framework truncates a body without a length; one byte more shows that it is too long.
    request.max_content_length = limit + 1
    body = request.get_data()
    if len(body) > limit:
        raise RequestEntityTooLarge
    return body


def read_form(limit: int = LARGEST_SMALL_BODY) -> dict[str, str]:
    """Return a browser form's fields by name; of a repeated field, the last value.

    Raises:
        MalformedMessageError: The body is not such a form.
        RemoteError: The body cannot be read (see `read`).
    """
    body = read(limit, (FORM,))
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=64
        )
    except ValueError as error:
        raise MalformedMessageError("the body is not a form") from error
    return {name: text.replace("\r\n", "\n") for name, text in pairs}


def decode(body: bytes, kind: type[_T]) -> _T:
    """Decode the body of the present request.

    Raises:
        MalformedMessageError: The body is not of this kind; the error says where.
    """
    return decode_body(body, request.mimetype, kind)


def negotiate() -> None:
    """Choose the format of the response, before the request changes anything.

    The default is the format of the request's body, or JSON without a body.

    Raises:
        NotAcceptableError: The request accepts neither format.
    """
    formats = [MESSAGEPACK, JSON] if request.mimetype == MESSAGEPACK else [JSON, MESSAGEPACK]
    g.media_type = request.accept_mimetypes.best_match(formats, formats[0])
    if request.accept_mimetypes and not request.accept_mimetypes.best_match(formats):
        raise NotAcceptableError(f"responses are {MESSAGEPACK} or {JSON}")


def respond(body: object, status: int = 200) -> Response:
    """Return a response in the negotiated format."""
    return Response(encode_body(body, g.media_type), status, content_type=g.media_type)
