"""Relay of the processes' output to a reader that may stall.

Writing to a full pipe blocks, so a pager that shows one page of a log would stop the server.
Therefore all processes write to a pipe that a thread of the supervisor always reads; another thread
passes the lines on, and only that one waits for a reader or for disk space. Lines beyond a limit
are dropped, and a line with their number is written instead.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

import msgspec

from earshot_server.processes.logs import formatter

LARGEST_BACKLOG = 4 * 2**20
"""Largest size of the waiting lines, in bytes."""
_LONGEST_LINE = 2**16
_LATEST = 200
"""Number of latest lines that are kept, whether or not they were passed on."""
_PAUSE = 1.0
"""Seconds until a failed write is tried again."""
_PATIENCE = 2.0
"""Seconds for the remaining lines at the end."""
_END = b"\0\n"
"""Our last line; other processes may hold the pipe open for longer."""
_QUIET = ("DEBUG", "INFO")


class Relay:
    """Relay of one stream of this process, and of all processes that inherit the stream.

    Args:
        stream: File descriptor of the stream.
    """

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._target = os.dup(stream)
        self._source, sink = os.pipe()
        os.dup2(sink, stream)
        os.close(sink)
        self._changed = threading.Condition()
        self._lines = deque[bytes]()
        self._latest = deque[tuple[float, bytes]](maxlen=_LATEST)
        self._size = self._lost = 0
        self._over = self._passed = False
        self._threads = [
            threading.Thread(target=work, name="relay", daemon=True)
            for work in (self._take, self._pass)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        """Pass on the remaining lines, for a few seconds at most, and restore the stream."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os.write(self._stream, _END)
        for thread in self._threads:
            thread.join(_PATIENCE)
        # If the reader has stalled, later output must not wait for it either.
        target = self._target if self._passed else os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, self._stream)
        os.close(target)

    def last_words(self, since: float) -> str:
        """Return the last warning or error, preferably with an exception; empty if there is none.

        Args:
            since: Time on the clock of `time.monotonic`; earlier lines are ignored.
        """
        said = [_complaint(line) for at, line in list(self._latest) if at >= since]
        reasons = [text for text, is_reason in said if is_reason]
        return (reasons or [text for text, _ in said if text] or [""])[-1]

    def _take(self) -> None:
        """Read lines from the pipe as fast as they come."""
        with open(self._source, "rb") as source:
            for line in iter(partial(source.readline, _LONGEST_LINE), b""):
                over = line.endswith(_END)
                self._latest.append((time.monotonic(), line))
                with self._changed:
                    if over:
                        break
                    # After a dropped line, all are dropped until their number has been written.
                    if self._lost or self._size + len(line) > LARGEST_BACKLOG:
                        self._lost += 1
                    else:
                        self._size += len(line)
                        self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _pass(self) -> None:
        """Write the lines to the stream, retrying until the end if it cannot be written."""
        while line := self._next():
            while line:
                try:
                    line = line[os.write(self._target, line) :]
                except OSError:  # a disk may be full, or a named pipe without a reader, for now
                    with self._changed:
                        if self._changed.wait_for(lambda: self._over, _PAUSE):
                            return
        self._passed = True

    def _next(self) -> bytes:
        """Wait for the next line and return it; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._lost or self._over)
            if self._lines:
                line = self._lines.popleft()
                self._size -= len(line)
                return line
            lost, self._lost = self._lost, 0
        return _notice(lost) if lost else b""


@contextmanager
def relayed() -> Iterator[Relay]:
    """Relay standard output and standard error; yield the relay of the latter."""
    with Relay(1), Relay(2) as errors:
        yield errors


def _notice(lost: int) -> bytes:
    record = logging.makeLogRecord(
        {
            "name": __name__,
            "levelname": "WARNING",
            "msg": "lines are missing here: they were not read in time",
            "lines": lost,
        }
    )
    return formatter().format(record).encode() + b"\n"


def _complaint(line: bytes) -> tuple[str, bool]:
    """Return a line's warning or error, and whether it names an exception."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # An interpreter writes plain text before logging is configured.
        text = line.decode(errors="replace").strip()
        return text, bool(text)
    if entry.get("level") in _QUIET:
        return "", False
    message, raised = str(entry.get("message")), str(entry.get("exc_info", "")).splitlines()
    return (f"{message}: {raised[-1]}", True) if raised else (message, False)
