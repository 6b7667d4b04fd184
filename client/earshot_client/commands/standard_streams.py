"""Standard streams that may be closed, full, read in part, or in a legacy encoding.

Failed writes cause no traceback, and do not end a command before its work is done. Only if the
reader of standard output has gone does a command end immediately and silently, as other tools do.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

from earshot_protocol.overriding import override

UNREAD = 141
"""Exit status if the reader of standard output has gone: a shell's for an end by SIGPIPE."""
INTERRUPTED = 130
"""Exit status after Ctrl-C: a shell's for an end by SIGINT."""
UNWRITTEN = 1
"""Exit status if standard output could not be written."""

_ESCAPES = "earshot-json"


class _Output(io.FileIO):
    """A stream of this process that drops what cannot be written.

    Args:
        number: File descriptor of the stream; it stays open.
        ends: Whether the process ends once the reader of the stream has gone.
    """

    def __init__(self, number: int, ends: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None
        self._ends = ends

    @property
    def unread(self) -> bool:
        """Whether the reader has gone."""
        return self.failure is not None and self.failure.errno == errno.EPIPE

    @override
    def write(self, content: Any) -> int:
        if self.unread:
            return len(content)
        try:
            # None if another process has made the shared stream non-blocking.
            while (written := super().write(content)) is None:
                select.select([], [self], [])
            return written
        except OSError as error:  # a full disk may have room again
            self.failure = error
        if self.unread and self._ends:
            sys.exit(UNREAD)  # not an OSError, which a command would attribute to its own files
        return len(content)


def run(command: Callable[[], None]) -> NoReturn:
    """Run a command as the whole work of this process, and end with its exit status.

    Args:
        command: Function that returns, or raises SystemExit or KeyboardInterrupt, when it is done.
    """
    _occupy()
    codecs.register_error(_ESCAPES, _escaped)
    sys.stdout, output = _taken(sys.stdout, ends=True)
    sys.stderr, _ = _taken(sys.stderr, ends=False)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="backslashreplace")  # what is typed may be in any encoding
    status: str | int | None = 0
    try:
        command()
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C does not wait for threads
        status = INTERRUPTED
    sys.stdout.flush()
    if output is not None and output.failure is not None and not status:
        status = UNREAD if output.unread else UNWRITTEN
        if status == UNWRITTEN:
            print(f"earshot: standard output: {output.failure.strerror}", file=sys.stderr)
    sys.exit(status)


def _occupy() -> None:
    """Open the null device for closed streams, so that no file takes their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _taken(stream: TextIO, ends: bool) -> tuple[TextIO, _Output | None]:
    """Return the replacement of a stream and its raw writer; the stream itself if it has no file.

    Args:
        stream: Standard output or error.
        ends: Whether the process ends once its reader has gone.
    """
    try:
        output = _Output(stream.fileno(), ends)
    except OSError:
        return stream, None
    # Unbuffered means line by line: Python's unbuffered writes lose the ends of long texts.
    lines = stream.isatty() or getattr(stream, "write_through", False) or not ends
    text = io.TextIOWrapper(
        io.BufferedWriter(output), stream.encoding, _ESCAPES, line_buffering=lines
    )
    return text, output


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Escape characters missing from an encoding as JSON does, so that JSON stays valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
