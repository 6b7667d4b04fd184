"""The outcome of a reproduction: a table, a picture and a note."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot_protocol.files import replacement
from earshot_simulations.sweeps.estimate import estimate

Row = dict[str, str | float | int]


@dataclass(frozen=True)
class Reproduction:
    """A reproduced table or figure.

    Attributes:
        name: Name of the study and of its files, such as "liebenow-9.1".
        rows: Rows of the table, all with the same columns.
        draw: Function that writes the picture to a path.
        note: Note in Markdown: method, results, differences from the paper.
    """

    name: str
    rows: Sequence[Row]
    draw: Callable[[Path], None]
    note: str


def files_of(name: str) -> tuple[str, ...]:
    """Return the names of the files that `write` writes for a reproduction of this name."""
    return tuple(f"{name}.{suffix}" for suffix in ("csv", "md", "png"))


def write(outcome: Reproduction, folder: Path) -> list[Path]:
    """Write NAME.csv, NAME.png and NAME.md, each whole or not at all.

    Args:
        outcome: Outcome with at least one row.
        folder: Folder, created if it does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = io.StringIO()
    writer = csv.DictWriter(table, fieldnames=list(outcome.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(outcome.rows)
    writers: dict[str, Callable[[Path], object]] = {
        "csv": lambda path: path.write_text(table.getvalue(), encoding="utf-8"),
        "md": lambda path: path.write_text(outcome.note, encoding="utf-8"),
        "png": outcome.draw,
    }
    for suffix, write_to in writers.items():
        with replacement(folder / f"{outcome.name}.{suffix}") as draft:
            write_to(draft)
    return [folder / f"{outcome.name}.{suffix}" for suffix in writers]


def means(rows: Sequence[Row], columns: Sequence[str]) -> Row:
    """Return each column's mean over rows, and half of its 95 % interval as NAME_interval_95.

    Args:
        rows: Rows with numbers in these columns, or "" where nothing was measured (left out).
        columns: Names of the columns.

    Returns:
        Two entries per column; "" where nothing was measured, or where one row has no interval.
    """
    found: Row = {}
    for name in columns:
        values = [float(row[name]) for row in rows if row[name] != ""]
        each = estimate(values) if values else None
        found[name] = "" if each is None else each.mean
        found[f"{name}_interval_95"] = "" if each is None or each.wide is None else each.wide
    return found


def with_interval(row: Row, name: str, digits: int = 3) -> str:
    """Return a mean of `means` with half of its interval, if it has one; a dash for no mean."""
    if row[name] == "":
        return "–"
    wide = row.get(f"{name}_interval_95", "")
    mean = f"{float(row[name]):.{digits}f}"
    return mean if wide in ("", 0.0) else f"{mean} ± {float(wide):.{digits}f}"
