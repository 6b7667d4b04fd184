"""Studies as `earshot reproduce` leaves them in a folder."""

from __future__ import annotations

import csv
from pathlib import Path

from support.command import earshot


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def reproduced(name: str, out: Path, *options: object) -> list[dict[str, str]]:
    """Run a study; return the rows of its table."""
    ran = earshot("reproduce", name, "--out", out, *options)
    assert ran.returncode == 0, ran.stderr
    return rows_of(out / f"{name}.csv")
