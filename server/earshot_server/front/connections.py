"""Connections of one web process: their deadlines, and limits on their number.

A connection is *waiting* while it is its client's turn: to send the rest of a request, to begin the
next one, or to take its response. A connection past its deadline is closed. If there are too many,
a new one replaces the one that has been waiting longest. No connection is closed while its request
is being served.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

SWEEP_EVERY = 0.5
"""Seconds between two checks of deadlines."""


@dataclass(frozen=True)
class Patience:
    """Limits on how long a client may take, in seconds, and how much it may send.

    Attributes:
        fields: Seconds from a connection, or a request's first byte, to the end of its header
            fields.
        body: Seconds for any body to arrive, and for any response to be taken.
        bytes_per_second: Rate that adds time for longer bodies and responses: one second for this
            many bytes.
        idle: Seconds between two requests.
        rest: Seconds for the rest of a refused body, which is read so that the client receives the
            response.
        field_bytes: Largest size of a request's line and header fields together, in bytes.
        field_count: Largest number of header fields.
        per_address: Largest number of connections from one address; None for no limit but
            `altogether`.
        altogether: Largest number of connections in all.
    """

    fields: float = 10.0
    body: float = 20.0
    bytes_per_second: float = 16_384.0
    idle: float = 75.0
    rest: float = 20.0
    field_bytes: int = 32_768
    field_count: int = 100
    per_address: int | None = 1000
    altogether: int = 4000

    def seconds(self, size: int) -> float:
        """Return the seconds allowed for this many bytes, in either direction."""
        return self.body + size / self.bytes_per_second


class Connection(Protocol):
    """Connection of one client, as `Connections` counts it."""

    address: str
    deadline: float | None
    """Time on the clock of `time.monotonic`; None while the client is being served."""

    def cut(self) -> None:
        """Close the connection immediately."""


class Connections:
    """All connections of this process, for the thread of its event loop.

    Args:
        patience: Limits on each connection, and on their number.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        # Both are ordered: the one that has been waiting longest is first.
        self._waiting: dict[Connection, None] = {}
        self._waiting_at: dict[str, dict[Connection, None]] = {}
        self._present: set[Connection] = set()
        self._at: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._present)

    def add(self, connection: Connection) -> None:
        """Add a connection; if there are too many, close the longest waiting one, or this one."""
        address = connection.address
        self._present.add(connection)
        self._at[address] += 1
        most = self.patience.per_address
        if most is not None and self._at[address] > most:
            self._make_room(self._waiting_at.get(address, {}), connection)
        elif len(self._present) > self.patience.altogether:
            self._make_room(self._waiting, connection)

    def _make_room(self, waiting: dict[Connection, None], newcomer: Connection) -> None:
        """Close the one that has been waiting longest, or the newcomer if all are being served."""
        gone = next(iter(waiting), newcomer)
        self.remove(gone)
        gone.cut()

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has ended; removing it twice is harmless."""
        if connection not in self._present:
            return
        self.serve(connection)
        self._present.discard(connection)
        self._at[connection.address] -= 1
        if not self._at[connection.address]:
            del self._at[connection.address]

    def wait(self, connection: Connection, seconds: float) -> None:
        """Mark a connection as waiting, with a deadline in this many seconds."""
        if connection not in self._present:
            return
        self.serve(connection)
        connection.deadline = time.monotonic() + seconds
        self._waiting[connection] = None
        self._waiting_at.setdefault(connection.address, {})[connection] = None

    def serve(self, connection: Connection) -> None:
        """Mark a connection as being served, without a deadline."""
        connection.deadline = None
        self._waiting.pop(connection, None)
        here = self._waiting_at.get(connection.address, {})
        here.pop(connection, None)
        if not here:
            self._waiting_at.pop(connection.address, None)

    def sweep(self) -> None:
        """Close connections that are past their deadline."""
        now = time.monotonic()
        late = [each for each in self._waiting if each.deadline is not None and each.deadline < now]
        for connection in late:
            self.remove(connection)
            connection.cut()

    async def watch(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            self.sweep()
