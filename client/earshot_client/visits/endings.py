"""Phases that a phone knows to be over, and the ending not yet shown to its user."""

from __future__ import annotations

import msgspec

from earshot_client.store.interface import Store
from earshot_protocol.messages import decode_task
from earshot_protocol.wire import Ending, Task, encode

_NAME = "endings"
_KNOWN = 8
"""Most phases that are sent to the server, as many as `AskTask` takes."""


class _Saved(msgspec.Struct, frozen=True):
    known: tuple[bytes, ...] = ()
    """Phases that are over, newest first."""
    untold: bytes = b""


class Endings:
    """Endings in the phone's store, so that none is lost or shown twice if the phone is killed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def known(self) -> tuple[bytes, ...]:
        """Return the phases, newest first, at most 8; the server reports only others."""
        return (self._read() or _Saved()).known

    def note(self, task: Task) -> bool:
        """Note the server's task.

        Returns:
            Whether it is a new ending.
        """
        saved = self._read()
        if not isinstance(task, Ending):
            if saved is None:
                self._write(_Saved())
            return False
        known = self.known()
        if task.phase in known:
            return False
        # A result that is the first message is older than this phone.
        untold = b"" if saved is None and task.told_to_all else encode(task)
        self._write(_Saved((task.phase, *known)[:_KNOWN], untold))
        return True

    def untold(self) -> Ending | None:
        """Return the newest ending that is not marked as shown, unless older than this phone."""
        saved = self._read()
        if saved is None or not saved.untold:
            return None
        ending = decode_task(saved.untold)
        return ending if isinstance(ending, Ending) else None

    def told(self) -> None:
        """Mark the ending as shown to the user."""
        self._write(_Saved(self.known()))

    def _read(self) -> _Saved | None:
        saved = self._store.get(_NAME)
        return None if saved is None else msgspec.msgpack.decode(saved, type=_Saved)

    def _write(self, saved: _Saved) -> None:
        self._store.put(_NAME, msgspec.msgpack.encode(saved))
