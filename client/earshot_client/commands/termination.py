"""SIGTERM and SIGINT: a phone ends where it waits, never in the middle of a change."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from numpy.typing import NDArray

from earshot_client.hearing import Second, Source
from earshot_client.transport.http import HttpTransport


# Not an Exception, so that error handlers do not catch it.
class Terminated(BaseException):
    """This process was asked to end."""


class Termination:
    """Context that catches the signals; every method raises `Terminated` after one."""

    def __init__(self) -> None:
        self._asked = False
        self._allowed = False

    def __enter__(self) -> Termination:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._allowed:
            raise Terminated

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """Let the process end at any point of a block."""
        before, self._allowed = self._allowed, True
        try:
            if self._asked:
                raise Terminated
            yield
        finally:
            self._allowed = before

    def check(self) -> None:
        """Raise if the process was asked to end."""
        with self.allowed():
            pass

    def pause(self, seconds: float) -> None:
        """Sleep, unless the process ends."""
        with self.allowed():
            time.sleep(seconds)


class EndingSource:
    """A source of sound that does not keep a process from ending."""

    def __init__(self, termination: Termination, source: Source) -> None:
        self._termination, self._source = termination, source

    def seconds(self) -> Sequence[Second]:
        """Return the seconds that there are to hear."""
        return self._source.seconds()

    def read(self, second: Second) -> tuple[NDArray[np.float32], int]:
        """Return the sound of one second, as the source does."""
        with self._termination.allowed():
            return self._source.read(second)


class EndingTransport(HttpTransport):
    """A transport that does not keep a process from ending."""

    def __init__(
        self,
        termination: Termination,
        server: str,
        key: Ed25519PrivateKey,
        known: Callable[[], tuple[bytes, ...]],
    ) -> None:
        super().__init__(server, key, known=known, pause=termination.pause)
        self._termination = termination

    def _call(self, path: str, body: bytes, limit: int) -> bytes:
        with self._termination.allowed():
            return super()._call(path, body, limit)
