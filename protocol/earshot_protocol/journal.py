"""Append-only files of lines, each on the disk before it is acted on.

A line that a killed run left half written was never acted on, and is cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import to_disk

Content = TypeVar("Content")


@dataclass(frozen=True)
class Line:
    """A line read from a journal.

    Attributes:
        place: File and number of the line, counted from 1.
        text: The line without its end.
    """

    place: str
    text: bytes

    def read(self, reader: Callable[[bytes], Content], otherwise: str) -> Content:
        """Parse the line.

        Args:
            reader: Function that parses the line, and raises ValueError, KeyError, TypeError or
                RecursionError if it cannot.
            otherwise: Error message if it cannot: what is wrong with the line, and what to do.

        Raises:
            InvalidInputError: The reader cannot read the line.
        """
        try:
            return reader(self.text)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidInputError(f"{self.place}: {otherwise}") from None


class Journal:
    """An open journal, locked against other processes; `opened` makes one.

    Attributes:
        path: Path of the file.
        lines: Lines of the file when it was opened, in order.
    """

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self._file = file
        content = path.read_bytes()
        self._whole = content.rfind(b"\n") + 1
        os.ftruncate(file, self._whole)
        self.lines = tuple(
            Line(f"{path}, line {number}", text)
            for number, text in enumerate(content.split(b"\n")[:-1], start=1)
        )

    def append(self, line: str) -> None:
        """Add a line; it is on the disk when this returns, and not in the file if this raises.

        Args:
            line: The line without its end.

        Raises:
            InvalidInputError: The file cannot be written (for example, the disk is full), or was
                removed.
        """
        content = line.encode() + b"\n"
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._whole)
            raise InvalidInputError(
                f"{self.path}: cannot be written ({error.strerror}); finished work is kept: make "
                "room, and the same command continues from there"
            ) from error
        if not os.fstat(self._file).st_nlink:
            raise InvalidInputError(
                f"{self.path}: was removed while it was being written, and its content is lost; "
                "start again in another folder"
            )
        self._whole += len(content)


@contextmanager
def opened(path: Path, mode: int = 0o666) -> Iterator[Journal]:
    """Open the journal in a file, and make the file if it is missing.

    Args:
        path: Path of the file; its folder exists.
        mode: Permissions of a new file, less the process's mask.

    Raises:
        InvalidInputError: Another run is writing the file, or its file system has no locks.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError(
                f"{path}: another run is writing it; wait for it, or name another folder"
            ) from None
        except OSError as error:
            raise InvalidInputError(
                f"{path}: the file system has no locks ({error.strerror}), which keep other runs "
                "from writing it; name a folder on another one"
            ) from error
        to_disk(path.parent)
        yield Journal(path, file)
    finally:
        with contextlib.suppress(OSError):
            os.close(file)
