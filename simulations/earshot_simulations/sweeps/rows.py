"""The file of a sweep: one finished phase per line, which a later run does not repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from earshot_protocol import journal
from earshot_protocol.journal import Journal

Figures = Mapping[str, float | int | str | None]
"""Measurements of one phase, by name."""

FILE = "phases.jsonl"
"""Name of the file in the output folder of commands."""


class Rows:
    """An append-only file of finished phases, by their keys; `opened` makes one.

    Attributes:
        versions: Versions of Earshot, by the keys of the finished phases.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.versions: dict[str, str] = {}
        self._figures: dict[str, Figures] = {}
        for line in journal.lines:
            line.read(self._take, "not a row of a sweep; remove the line, or name another folder")

    def __contains__(self, key: str) -> bool:
        return key in self._figures

    def __getitem__(self, key: str) -> Figures:
        return self._figures[key]

    def append(self, key: str, configuration: Mapping[str, object], figures: Figures) -> None:
        """Keep a finished phase; it is on the disk when this returns.

        Raises:
            InvalidInputError: The phase cannot be kept, as for `Journal.append`; earlier ones are.
        """
        row = {"key": key, "configuration": configuration, "figures": figures}
        self._journal.append(json.dumps(row))
        self.versions[key] = str(configuration["version"])
        self._figures[key] = figures

    def _take(self, line: bytes) -> None:
        row = json.loads(line)
        key, figures = str(row["key"]), dict(row["figures"])
        self.versions.setdefault(key, str(row["configuration"]["version"]))
        self._figures.setdefault(key, figures)


@contextmanager
def opened(path: Path) -> Iterator[Rows]:
    """Open the rows of a file, which is created if it does not exist.

    Raises:
        InvalidInputError: Another run is writing the file, or it holds something else.
    """
    with journal.opened(path) as lines:
        yield Rows(lines)
