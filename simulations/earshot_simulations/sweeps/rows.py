"""The file of a sweep: one finished phase per line, which a later run does not repeat."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from earshot_protocol import journal
from earshot_protocol.journal import Journal
from earshot_protocol.plain_values import plain_value
from earshot_simulations.phases.run import INFINITE, plain

Figures = Mapping[str, float | int | str | None]
"""Measurements of one phase, by name; NumPy numbers are converted to Python's."""

_NOT_FINITE = {repr(number): number for number in (math.inf, -math.inf, math.nan)}
"""Numbers that JSON cannot represent, by their text in the file."""

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
        """Append a finished phase; it is on disk when this returns.

        Raises:
            InvalidInputError: The phase cannot be written (see `Journal.append`).
        """
        found = {name: plain_value(value) for name, value in figures.items()}
        row = {
            "key": key,
            "configuration": plain(configuration, INFINITE),
            "figures": {name: _written(value) for name, value in found.items()},
        }
        self._journal.append(json.dumps(row, allow_nan=False))
        self.versions[key] = str(configuration["version"])
        self._figures[key] = found

    def _take(self, line: bytes) -> None:
        row = json.loads(line)
        key = str(row["key"])
        figures = {name: _NOT_FINITE.get(value, value) for name, value in row["figures"].items()}
        self.versions.setdefault(key, str(row["configuration"]["version"]))
        self._figures.setdefault(key, figures)


def _written(value: float | str | None) -> float | str | None:
    lacking = isinstance(value, float) and not math.isfinite(value)
    return repr(value) if lacking else value


@contextmanager
def opened(path: Path) -> Iterator[Rows]:
    """Open the rows of a file, which is created if it does not exist.

    Raises:
        InvalidInputError: Another run is writing the file, or it holds something else.
    """
    with journal.opened(path) as lines:
        yield Rows(lines)
