"""HTTP/1.1 on one connection: uvicorn's protocol, with deadlines for the client.

The turns are:

- the client's, from the connection or the first byte of a request to the end of its fields;
- the server's, from there on, while the gateway bounds the time for the body (`gateway`);
- the client's, once the response is written: to take it, to send the rest of an unread body, and
  to begin the next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NoReturn

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from earshot_protocol.api import PROBLEM
from earshot_protocol.overriding import override
from earshot_server.api.limits import subscriber
from earshot_server.api.pages_of_phones import PagesOfPhones
from earshot_server.api.problems import (
    BAD_REQUEST,
    FIELDS_TOO_LARGE,
    ProblemKind,
    encode_problem,
)
from earshot_server.front.connections import Connections
from earshot_server.front.fields import DETAILS, fault

_NO_PAGES = PagesOfPhones()


class PatientProtocol(HttpToolsProtocol):
    """Protocol of one connection, which is closed at its deadline (`Connections`).

    Args:
        connections: All connections of this process.
        config: Configuration of uvicorn.
        server_state: State of uvicorn's server.
        app_state: State of uvicorn's application.
        pages: Pages of other origins that may read refusals.
    """

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        pages: PagesOfPhones = _NO_PAGES,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._pages = pages
        self.address = ""
        self.deadline: float | None = None
        self._all = connections
        self._patience = connections.patience
        self._whole = True
        """Whether the newest request has arrived with its body."""
        self._in_fields = False
        self._arriving = self._beside = 0
        """Bytes since the newest request began, or since the last piece of its body."""
        self._refusal = BAD_REQUEST

    # ------------------------------------------------------------------- the connection

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = subscriber(self.client[0] if self.client else "")
        self._all.add(self)
        self._all.wait(self, self._patience.fields)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        super().connection_lost(exc)

    @override
    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection open for the response to a complete request, if there is one."""
        if self._answering:
            self.cycle.keep_alive = False
        return self._answering

    def cut(self) -> None:
        """Close the connection immediately, even with unsent data."""
        self.transport.abort()

    @override
    def shutdown(self) -> None:
        """Answer complete requests when the server stops; clients repeat all others."""
        if self._answering:
            self.cycle.keep_alive = False
        elif self.transport.get_write_buffer_size():
            self.transport.close()
        else:
            self.cut()

    @property
    def _answering(self) -> bool:
        """Whether a complete request waits for its response."""
        latest = self.cycle
        return bool(self.pipeline) or (
            latest is not None and not latest.more_body and not latest.response_complete
        )

    # -------------------------------------------------------------------------- requests

    @override
    def data_received(self, data: bytes) -> None:
        """Count the bytes outside bodies, and refuse too many of them."""
        self._arriving = len(data)
        super().data_received(data)
        self._beside += len(data)
        if self._whole or self.transport.is_closing():
            return
        # These are header fields; in a chunked body, also chunk sizes and trailers.
        if self._beside > self._patience.field_bytes:
            if self._in_fields or not self.cycle.response_started:
                self._refuse(FIELDS_TOO_LARGE)
            else:
                self.cut()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["earshot.connection"] = self  # type: ignore[typeddict-unknown-key]
        self._whole, self._in_fields, self._beside = False, True, 0
        if self.cycle is None or self.cycle.response_complete:
            self._all.wait(self, self._patience.fields)

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        """Accept one field; trailers of a chunked body are ignored (RFC 9110, 6.5.1)."""
        if not self._in_fields:
            return
        super().on_header(name, value)
        if len(self.headers) > self._patience.field_count:
            self._stop(FIELDS_TOO_LARGE)

    @override
    def on_headers_complete(self) -> None:
        """Check a request's fields once they are complete."""
        self._in_fields = False
        kind = fault(self.parser.get_http_version(), self.url, self.headers, self._patience)
        if kind is not None:
            self._stop(kind)
        self._all.serve(self)
        super().on_headers_complete()

    @override
    def on_body(self, body: bytes) -> None:
        self._beside = -self._arriving  # counts from the bytes after these
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._whole = True
        super().on_message_complete()
        if self.cycle.response_complete:  # the body was not read
            self._their_turn()

    def _stop(self, kind: ProblemKind) -> NoReturn:
        """Refuse from within the parser, which then calls `send_400_response`."""
        self._refusal = kind
        raise ValueError(kind.title)

    @override
    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal)

    @override
    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: a client that offers another protocol is answered in HTTP/1.1."""

    def _refuse(self, kind: ProblemKind) -> None:
        body = encode_problem(kind, DETAILS[kind])
        for_browsers = "".join(f"{name}: {value}\r\n" for name, value in self._for_browsers())
        fields = (
            f"content-type: {PROBLEM}\r\ncontent-length: {len(body)}\r\n"
            "x-content-type-options: nosniff\r\nconnection: close\r\n"
            f"{for_browsers}\r\n"
        )
        self.transport.write(STATUS_LINE[kind.status] + fields.encode() + body)
        self.transport.close()
        self._their_turn()

    def _for_browsers(self) -> Iterable[tuple[str, str]]:
        """Return the CORS fields of a refusal, from the request's fields that have arrived."""
        if not self.headers:  # perhaps no request has arrived at all
            return ()
        origins = [value.decode("latin-1") for name, value in self.headers if name == b"origin"]
        method, path = self.parser.get_method().decode(), self.url.decode("latin-1")
        return self._pages.fields(method, path, origins[0] if origins else None).items()

    # ------------------------------------------------------------------------- responses

    @override
    def on_response_complete(self) -> None:
        """Give the client its turn: the response is written, though perhaps not yet received."""
        next_one = bool(self.pipeline)
        super().on_response_complete()
        if not next_one:
            self._their_turn()

    @override
    def pause_writing(self) -> None:
        """Give the client its turn: it receives more slowly than we send."""
        super().pause_writing()
        self._their_turn()

    @override
    def resume_writing(self) -> None:
        """Continue once the client has received most of what was sent."""
        super().resume_writing()
        if self.cycle is not None and not self.cycle.response_complete:
            self._all.serve(self)
        else:
            self._their_turn()

    def _their_turn(self) -> None:
        """Start the deadline for the client's next action."""
        if self.flow.write_paused or self.transport.is_closing():
            seconds = self._patience.seconds(self.transport.get_write_buffer_size())
        elif self._in_fields:
            seconds = self._patience.fields
        elif not self._whole:
            seconds = self._patience.rest
        else:
            seconds = self._patience.idle
        self._all.wait(self, seconds)
