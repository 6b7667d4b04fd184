"""Relay of the processes' output to a reader that may stall.

Whoever writes to a pipe that is full waits for its reader, so a pager that shows one page of a log
would stop the server. Here all processes write to a pipe of our own, which a thread of the
supervisor empties at once; another thread passes the lines on, and it alone waits for a reader, or
for room on a disk. Lines beyond a limit are dropped, and counted where they are missing.
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
"""Bytes of the lines that wait."""
_LONGEST_LINE = 2**16
_LATEST = 200
"""Lines that are remembered, whether or not they were passed on."""
_PAUSE = 1.0
"""Seconds until what could not be written is tried again."""
_PATIENCE = 2.0
"""Seconds for the lines that wait in the end."""
_END = b"\0\n"
"""Line after which nothing of ours follows; others may hold the pipe for longer."""
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
        """Pass on what is left, for a few seconds at most, and give the stream back."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os.write(self._stream, _END)
        for thread in self._threads:
            thread.join(_PATIENCE)
        # Nor must our last words wait where all others did.
        target = self._target if self._passed else os.open(os.devnull, os.O_WRONLY)
        os.dup2(target, self._stream)
        os.close(target)

    def last_words(self, since: float) -> str:
        """Return the last complaint; empty if there is none.

        Args:
            since: Time on the clock of `time.monotonic` from which lines count.
        """
        said = [_complaint(line) for at, line in list(self._latest) if at >= since]
        reasons = [text for text, is_reason in said if is_reason]
        return (reasons or [text for text, _ in said if text] or [""])[-1]

    def _take(self) -> None:
        """Take lines out of the pipe as fast as they come."""
        with open(self._source, "rb") as source:
            for line in iter(partial(source.readline, _LONGEST_LINE), b""):
                over = line.endswith(_END)
                self._latest.append((time.monotonic(), line))
                with self._changed:
                    if over:
                        break
                    # Behind a line that was dropped, all are, until that has been said.
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
        """Write the lines to the stream, unless its reader has gone."""
        while line := self._next():
            while line:
                try:
                    line = line[os.write(self._target, line) :]
                except OSError:  # a full disk may have room again, and a named pipe a reader
                    with self._changed:
                        if self._changed.wait_for(lambda: self._over, _PAUSE):
                            return
        self._passed = True

    def _next(self) -> bytes:
        """Return the next line, as soon as there is one; empty in the end."""
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
    """Take the place of standard output and standard error; yield the relay of the latter."""
    with Relay(1), Relay(2) as errors:
        yield errors


def _notice(lost: int) -> bytes:
    record = logging.makeLogRecord(
        {
            "name": __name__,
            "levelname": "WARNING",
            "msg": "lines are missing here: nobody took them in time",
            "lines": lost,
        }
    )
    return formatter().format(record).encode() + b"\n"


def _complaint(line: bytes) -> tuple[str, bool]:
    """Return what a line complains about, and whether it names an error that was raised."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # An interpreter writes so that has no log yet.
        text = line.decode(errors="replace").strip()
        return text, bool(text)
    if entry.get("level") in _QUIET:
        return "", False
    message, raised = str(entry.get("message")), str(entry.get("exc_info", "")).splitlines()
    return (f"{message}: {raised[-1]}", True) if raised else (message, False)
