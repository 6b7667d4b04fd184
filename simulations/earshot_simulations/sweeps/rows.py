"""The file of a sweep: one finished phase a line, which a later run does not do again."""

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
"""What was measured of one phase."""

FILE = "phases.jsonl"
"""What commands call it, in their output folder."""


class Rows:
    """An append-only file of finished phases, by their keys; `opened` makes one.

    A line that a killed run left half written is cut off, so nothing but that phase is lost.

    Attributes:
        versions: of Earshot, by the keys of the phases that are done.
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
                    f"{path}, line {number}: no row of a sweep; remove the line, or name another "
                    "folder"
                ) from None

    def __contains__(self, key: str) -> bool:
        return key in self._figures

    def __getitem__(self, key: str) -> Figures:
        return self._figures[key]

    def append(self, key: str, configuration: Mapping[str, object], figures: Figures) -> None:
        """Keep a finished phase; it is on the disk when this returns.

        Raises:
            InvalidInputError: the disk is full, or takes no more for another reason; the phases
                before this one are kept.
        """
        row = {"key": key, "configuration": configuration, "figures": figures}
        line = json.dumps(row).encode() + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InvalidInputError(
                f"{self._path}: nothing more can be written ({error.strerror}); what is finished "
                "is kept: make room, and the same command goes on from there"
            ) from error
        self.versions[key] = str(configuration["version"])
        self._figures[key] = figures


@contextmanager
def opened(path: Path) -> Iterator[Rows]:
    """The rows of a file, which is made if it is not there.

    Raises:
        InvalidInputError: another run is writing it, or it holds something else.
    """
    path.touch()
    # Without a buffer: what a full disk did not take would be tried again on closing.
    with path.open("r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInputError(
                f"{path}: another run is writing it; wait for it, or name another folder"
            ) from None
        yield Rows(path, file)
