"""A table as comma-separated values, for spreadsheets and statistics programs."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

Cell = str | int | float | None

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet read a cell as a formula."""


class Sheet(NamedTuple):
    """Table of comma-separated values.

    Attributes:
        header: Names of the columns.
        rows: Rows, each with as many cells.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def csv(self) -> str:
        """Return the table as in RFC 4180, after a byte order mark, so that spreadsheets use UTF-8.

        Labels and reasons are not trusted, so text that a spreadsheet would take for a formula gets
        an apostrophe in front.
        """
        written = io.StringIO()
        writer = csv.writer(written)
        writer.writerow(self.header)
        writer.writerows([_plain(cell) for cell in row] for row in self.rows)
        return "\ufeff" + written.getvalue()


def _plain(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
