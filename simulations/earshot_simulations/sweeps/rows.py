"""The file of a sweep: one finished phase per line, which a later run does not repeat."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from earshot_protocol.errors import InvalidInputError

Figures = Mapping[str, float | int | str | None]
"""Measurements of one phase, by name."""

FILE = "phases.jsonl"
"""Name of the file in the output folder of commands."""


class Rows:
    """An append-only file of finished phases, by their keys; `opened` makes one.

    A line that a killed run left half written is cut off, so only that phase is lost.

    Attributes:
        versions: Versions of Earshot, by the keys of the finished phases.
    """

    def __init__(self, path: Path, file: FileIO) -> None:
        self._path = path
        self._file = file
        self.versions: dict[str, str] = {}
        self._figures: dict[str, Figures] = {}
        content = file.read()
        whole = content.rfind(b"\n") + 1
        file.truncate(whole)
        file.seek(whole)
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                row = json.loads(line)
                key, figures = str(row["key"]), dict(row["figures"])
                self.versions.setdefault(key, str(row["configuration"]["version"]))
                self._figures.setdefault(key, figures)
            except (ValueError, KeyError, TypeError):
                raise InvalidInputError(
                    f"{path}, line {number}: not a row of a sweep; remove the line, or name "
                    "another folder"
                ) from None

    def __contains__(self, key: str) -> bool:
        return key in self._figures

    def __getitem__(self, key: str) -> Figures:
        return self._figures[key]

    def append(self, key: str, configuration: Mapping[str, object], figures: Figures) -> None:
        """Keep a finished phase; it is on the disk when this returns.

        Raises:
            InvalidInputError: if the disk is full, or cannot be written for another reason; earlier
                phases are kept.
        """
        row = {"key": key, "configuration": configuration, "figures": figures}
        line = json.dumps(row).encode() + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InvalidInputError(
                f"{self._path}: nothing more can be written ({error.strerror}); finished runs are "
                "kept: make room, and the same command continues from there"
            ) from error
        self.versions[key] = str(configuration["version"])
        self._figures[key] = figures


@contextmanager
def opened(path: Path) -> Iterator[Rows]:
    """Open the rows of a file, which is created if it does not exist.

    Raises:
        InvalidInputError: if another run is writing it, or it holds something else.
    """
    path.touch()
    # Without a buffer, which would be written again on closing after a full disk refused it.
    with path.open("r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError(
                f"{path}: another run is writing it; wait for it, or name another folder"
            ) from None
        yield Rows(path, file)
