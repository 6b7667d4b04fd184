"""Gateway from the event loop, where requests arrive, to the threads that answer them.

A request is dispatched to a thread once it is complete, so that slow clients hold none. If the body
does not arrive right after the header fields, the application is first called with the fields
alone: it either responds (to refuse an unknown client, for example), or raises `BodyAwaited`; then
the gateway awaits the body, for as long as its size allows, and calls the application again.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO, RawIOBase
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from flask import Flask

from earshot_protocol.api import LARGEST_SMALL_BODY
from earshot_protocol.overriding import override
from earshot_server.api.bodies import ARRIVAL, Arrival, BodyAwaited
from earshot_server.api.health import LIVE, READY, STUCK
from earshot_server.api.pages_of_phones import PAGES, PagesOfPhones
from earshot_server.front.connections import Connection, Connections

_RIGHT_BEHIND = 0.05
"""Seconds to wait for a body that was sent together with its header fields."""
_PROMPT = 5.0
"""Seconds within which a thread becomes free even under load; longer counts as stuck."""
_BODIES_OF_ONE = 2
"""Number of long bodies that one sender may send at a time."""
_LARGEST_BODIES = 256 * 2**20
"""Largest total size of all awaited bodies, in bytes."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Response(NamedTuple):
    status: int
    fields: list[tuple[bytes, bytes]]
    body: bytes


class _Gone(Exception):  # noqa: N818 - not an error
    """The client has closed the connection."""


class Gateway:
    """ASGI application for uvicorn that runs a WSGI application in threads.

    Args:
        app: WSGI application.
        threads: Number of its threads; health checks have two separate ones.
        connections: Connections of this process.
    """

    def __init__(self, app: Flask, threads: int, connections: Connections) -> None:
        self._app = app
        self.connections = connections
        self.pages: PagesOfPhones = app.extensions.get(PAGES, PagesOfPhones())
        """Pages of other origins that may read refusals made before the application is called."""
        self._threads = ThreadPoolExecutor(threads, "request")
        self._health = {path: ThreadPoolExecutor(1, path) for path in (LIVE, READY)}
        self._probe: asyncio.Future[None] | None = None
        self._senders: Counter[str] = Counter()
        self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            response = await self._answer(scope, receive)
        except _Gone:
            return
        await send(
            {"type": "http.response.start", "status": response.status, "headers": response.fields}
        )
        await send({"type": "http.response.body", "body": response.body})

    async def _answer(self, scope: Message, receive: Receive) -> _Response:
        body = _Body(receive)
        if not any(name == b"expect" for name, _ in scope["headers"]):
            with suppress(TimeoutError):
                async with asyncio.timeout(_RIGHT_BEHIND):
                    await body.read(LARGEST_SMALL_BODY)
        if body.whole:
            return await self._run(scope, body)
        try:
            return await self._run(scope, body, Arrival.AWAITED)
        except BodyAwaited as wanted:
            arrival = await self._await(scope["earshot.connection"], body, wanted)
            return await self._run(scope, body, arrival)

    async def _await(self, connection: Connection, body: _Body, wanted: BodyAwaited) -> Arrival:
        """Wait for the rest of a body, for as long as one of `wanted.limit` bytes may take."""
        size = wanted.limit
        if self._held + size > _LARGEST_BODIES or self._senders[wanted.sender] >= _BODIES_OF_ONE:
            return Arrival.CROWDED
        seconds = self.connections.patience.seconds(size)
        # The connection's own deadline is only a fallback for this one.
        self.connections.wait(connection, 2 * seconds)
        self._held += size
        self._senders[wanted.sender] += wanted.sender != ""
        try:
            async with asyncio.timeout(seconds):
                await body.read(wanted.limit)
        except TimeoutError:
            return Arrival.LATE
        finally:
            self.connections.serve(connection)
            self._held -= size
            self._senders[wanted.sender] -= wanted.sender != ""
            self._senders += Counter()  # this removes senders with a count of 0
        return Arrival.COMPLETE

    async def _run(self, scope: Message, body: _Body, arrival: Arrival | None = None) -> _Response:
        environ = _environ(scope)
        if arrival is not None:
            environ[ARRIVAL] = arrival
        if body.whole:
            environ["CONTENT_LENGTH"] = str(len(body.data))
        environ["wsgi.input"] = _Unread() if arrival is Arrival.AWAITED else BytesIO(body.data)
        if scope["path"] == READY:
            environ[STUCK] = await self._is_stuck()
        threads = self._health.get(scope["path"], self._threads)
        return await asyncio.get_running_loop().run_in_executor(threads, _call, self._app, environ)

    async def _is_stuck(self) -> bool:
        """Return whether no request thread becomes free within `_PROMPT` seconds."""
        if self._probe is None or self._probe.done():  # one probe serves all requests
            loop = asyncio.get_running_loop()
            self._probe = loop.run_in_executor(self._threads, lambda: None)
        done, _ = await asyncio.wait({self._probe}, timeout=_PROMPT)
        return not done


class _Body:
    """Body of one request, possibly incomplete."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.data = bytearray()
        self.whole = False

    async def read(self, limit: int) -> None:
        """Read to the end, or until there are more than `limit` bytes."""
        while not self.whole and len(self.data) <= limit:
            message = await self._receive()
            if message["type"] != "http.request":
                raise _Gone
            self.data += message.get("body", b"")
            self.whole = not message.get("more_body", False)


class _Unread(RawIOBase):
    """Input stream of a request whose body has not arrived; reading raises `BodyAwaited`."""

    @override
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        """Signal that the application needs the body."""
        raise BodyAwaited(LARGEST_SMALL_BODY)


def _environ(scope: Message) -> dict[str, Any]:
    """Return the request in WSGI's form (PEP 3333), without its body."""
    server, client = scope["server"] or ("", 0), scope["client"] or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in scope["headers"]:
        if b"_" in name:  # WSGI would not distinguish it from the field with "-"
            continue
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ


def _call(app: Flask, environ: dict[str, Any]) -> _Response:
    """Call the application and return its whole response."""
    said: list[tuple[int, list[tuple[bytes, bytes]]]] = []

    def start_response(
        status: str, fields: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        lower = [(name.lower().encode(), value.encode("latin-1")) for name, value in fields]
        said.append((int(status[:3]), lower))
        return lambda data: None

    answered = app(environ, start_response)
    try:
        body = b"".join(answered)
    finally:
        if hasattr(answered, "close"):
            answered.close()
    return _Response(*said[-1], body)
