"""A server behind the front door, in this process: what a client meets, down to the bytes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from functools import partial

import uvicorn
from flask import Flask

from earshot_server.front.connections import Connections, Patience
from earshot_server.front.gateway import Gateway
from earshot_server.front.protocol import PatientProtocol
from support.networked import await_

LONG = 120.0
"""Seconds that nothing here takes, however busy the machine is."""
PATIENT = Patience(fields=LONG, body=LONG, bytes_per_second=2**20, idle=LONG, rest=LONG)
"""A test makes one deadline short, the one that it is about: no other can come before it."""


class Door:
    """A server behind the front door, in a thread of this process."""

    def __init__(self, app: Flask, patience: Patience, threads: int) -> None:
        self.app = app
        self.connections = Connections(patience)
        self.gateway = Gateway(app, threads, self.connections)
        config = uvicorn.Config(
            self.gateway,
            http=partial(PatientProtocol, self.connections, pages=self.gateway.pages),
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            timeout_graceful_shutdown=int(2 * LONG),  # so that whoever delays the end is noticed
        )
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        watching = asyncio.create_task(self.connections.watch())
        await self._server.serve([self._listener])
        watching.cancel()

    @contextlib.contextmanager
    def open(self) -> Iterator[Door]:
        self._thread.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(LONG)
        assert not self._thread.is_alive()

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(
            ("127.0.0.1", self.port), timeout=LONG, source_address=(address, 0)
        )

    def say(self, words: bytes) -> socket.socket:
        connection = self.connect()
        with contextlib.suppress(OSError):  # it was cut off already
            connection.sendall(words)
        return connection

    def hears(self, path: str, count: int = 1) -> None:
        """Wait until the application has been asked for the path so many times."""
        await_(lambda: self.app.seen.count(path) >= count, path)  # type: ignore[attr-defined]
