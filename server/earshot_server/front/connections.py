"""The connections of one web process: how long each may take, and how many there may be.

A connection is *waiting* while it is its client's turn: to send the rest of a request, to begin the
next one, or to take its response. Whoever lets us wait past a deadline is cut off; whoever comes
when there are too many takes the place of the one that has been waited for longest. Nobody who is
being served is sent away.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

SWEEP_EVERY = 0.5
"""Seconds between two looks at deadlines."""


@dataclass(frozen=True)
class Patience:
    """How long a client may take, in seconds, and how much it may send.

    Attributes:
        fields: from a connection, or a request's first byte, to the end of its header fields.
        body: for any body, and for any response to be taken.
        bytes_per_second: what a longer body or response must reach beyond that, on the whole.
        idle: between two requests.
        rest: for the rest of a body that was refused, which is read so that the client hears why.
        field_bytes: of a request's line and header fields together.
        field_count: how many header fields.
        per_address: connections of one address; None: as many as there may be at all.
        altogether: connections at all.
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
        """For so many bytes, either way."""
        return self.body + size / self.bytes_per_second


class Connection(Protocol):
    """What is counted: one client's connection."""

    address: str
    deadline: float | None
    """On the clock of `time.monotonic`; None while it is being served."""

    def cut(self) -> None:
        """End it at once."""


class Connections:
    """All connections of this process; for the thread of its event loop.

    Args:
        patience: what they may take.
    """

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        # In both, whoever has been waited for longest is first.
        self._waiting: dict[Connection, None] = {}
        self._waiting_at: dict[str, dict[Connection, None]] = {}
        self._present: set[Connection] = set()
        self._at: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._present)

    def add(self, connection: Connection) -> None:
        """Let a connection in, if need be in the place of another or not at all."""
        address = connection.address
        self._present.add(connection)
        self._at[address] += 1
        most = self.patience.per_address
        if most is not None and self._at[address] > most:
            self._make_room(self._waiting_at.get(address, {}), connection)
        elif len(self._present) > self.patience.altogether:
            self._make_room(self._waiting, connection)

    def _make_room(self, waiting: dict[Connection, None], newcomer: Connection) -> None:
        """Everybody here may be being served: then there is none."""
        gone = next(iter(waiting), newcomer)
        self.remove(gone)
        gone.cut()

    def remove(self, connection: Connection) -> None:
        """It has ended; it may be removed twice."""
        if connection not in self._present:
            return
        self.serve(connection)
        self._present.discard(connection)
        self._at[connection.address] -= 1
        if not self._at[connection.address]:
            del self._at[connection.address]

    def wait(self, connection: Connection, seconds: float) -> None:
        """It is the client's turn, for so long."""
        if connection not in self._present:
            return
        self.serve(connection)
        connection.deadline = time.monotonic() + seconds
        self._waiting[connection] = None
        self._waiting_at.setdefault(connection.address, {})[connection] = None

    def serve(self, connection: Connection) -> None:
        """It is our turn."""
        connection.deadline = None
        self._waiting.pop(connection, None)
        here = self._waiting_at.get(connection.address, {})
        here.pop(connection, None)
        if not here:
            self._waiting_at.pop(connection.address, None)

    def sweep(self) -> None:
        """Cut off whoever is past the deadline."""
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
