"""Clients that hold connections and make a server wait, as it must bear while phones work.

Each client is cut off sooner or later and reconnects, so their number stays about the same.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

from earshot_protocol.api import ANSWER, ENROL, JSON, OPENAPI

_GET = b"GET %s HTTP/1.1\r\nHost: x\r\n"
_POST = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: " + JSON.encode()
_LIVE = b"/health/live"
_BYTE_EVERY = 1.0
_COME_AGAIN = 0.2
_PROBE_EVERY = 0.2
_PATIENCE = 60.0
"""Seconds after which a probe counts as unanswered: a late answer is a long time, not none."""
_TRAILERS = (b"X-Field: " + b"x" * 1000 + b"\r\n") * 16
_UNREAD = 50
"""Responses that a client requests and does not read."""

Behaviour = Callable[[Reader, Writer], Awaitable[None]]
"""A client's use of a connection until it is cut off."""


class SlowClients:
    """Clients that hold connections to a server, and a probe that keeps asking whether it is alive.

    Args:
        address: Address of the server, `http://host:port`.
        connections: Connections held at a time.
        behaviours: Behaviours of the clients, in turn; by default all in `BEHAVIOURS`.
    """

    def __init__(
        self, address: str, connections: int, behaviours: Sequence[Behaviour] | None = None
    ) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._hold()))
        self._behaviours = behaviours or BEHAVIOURS
        url = urlsplit(address)
        self._place = (url.hostname or "", url.port or 80)
        self._connections = connections
        self.made = 0
        """Connections made so far."""
        self.alive = 0
        """Probes with a good answer."""
        self.unanswered = 0
        """Probes without a good answer within `_PATIENCE`."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _hold(self) -> None:
        tasks = [
            asyncio.create_task(self._come_again(self._behaviours[number % len(self._behaviours)]))
            for number in range(self._connections)
        ]
        while not self._stop.is_set():
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._probe()
            except (OSError, TimeoutError):
                self.unanswered += 1
            await asyncio.sleep(_PROBE_EVERY)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _come_again(self, behave: Behaviour) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*self._place, limit=1024)
                self.made += 1
                try:
                    await behave(reader, writer)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(_COME_AGAIN)

    async def _probe(self) -> None:
        reader, writer = await asyncio.open_connection(*self._place)
        try:
            writer.write(_GET % _LIVE + b"Connection: close\r\n\r\n")
            said = await reader.read()
        finally:
            writer.transport.abort()
        if not said.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(f"the server is not alive: {said[:100]!r}")
        self.alive += 1


async def _nothing(reader: Reader, writer: Writer) -> None:
    await _until_cut(reader)


async def _no_body(reader: Reader, writer: Writer) -> None:
    writer.write(_POST % ANSWER.encode() + b"\r\nContent-Length: 100000\r\n\r\n")
    await _until_cut(reader)


async def _dripping_fields(reader: Reader, writer: Writer) -> None:
    writer.write(_GET % _LIVE)
    await _drip(reader, writer, b"X-Field: value\r\n")


async def _dripping_body(reader: Reader, writer: Writer) -> None:
    writer.write(_POST % ENROL.encode() + b"\r\nContent-Length: 10000\r\n\r\n")
    await _drip(reader, writer, b" ")


async def _idle(reader: Reader, writer: Writer) -> None:
    writer.write(_GET % _LIVE + b"\r\n")
    await _until_cut(reader)


async def _taking_nothing(reader: Reader, writer: Writer) -> None:
    writer.write((_GET % OPENAPI.encode() + b"\r\n") * _UNREAD)
    while await reader.read(1):
        await asyncio.sleep(_BYTE_EVERY)


async def endless_trailers(reader: Reader, writer: Writer) -> None:
    """Send fields after an empty body as fast as they are read, before any signature is."""
    writer.write(_POST % ANSWER.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    while True:
        writer.write(_TRAILERS)
        await writer.drain()


async def _until_cut(reader: Reader) -> None:
    while await reader.read(1024):
        pass


async def _drip(reader: Reader, writer: Writer, words: bytes) -> None:
    while True:
        for byte in words:
            writer.write(bytes([byte]))
            await writer.drain()
            with suppress(TimeoutError):
                async with asyncio.timeout(_BYTE_EVERY):
                    await _until_cut(reader)
                return


BEHAVIOURS: tuple[Behaviour, ...] = (
    *(_nothing, _no_body, _dripping_fields, _dripping_body, _idle, _taking_nothing),
    endless_trailers,
)
