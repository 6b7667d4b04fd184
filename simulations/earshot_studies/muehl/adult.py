"""UCI Adult: census records, by income above 50,000 dollars a year or not (Kohavi 1996)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from earshot_models.datasets.dataset import DatasetError, check_folder, existing
from earshot_studies.muehl.table import PublishedSplit, Table

LAYOUT = "Adult: adult.data and adult.test, or adult-train.csv and adult-test.csv"
CLASSES = ("<=50K", ">50K")

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
_NUMBERS = frozenset(
    ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
)
_MISSING = "?"


def load(folder: Path) -> PublishedSplit:
    """Read both parts: records float32 (records, 14) in [0, 1], by the names in `COLUMNS`.

    Rows with a missing value are left out. A category becomes its index in alphabetical order; each
    column is scaled from its least to its largest number over both parts.

    Raises:
        DatasetError: A file is missing or cannot be read, a row has other columns, a cell of a
            numeric column is not a number, or a class is unknown.
    """
    check_folder(folder, LAYOUT)
    train = _rows(existing(folder, "adult.data", "adult-train.csv"))
    test = _rows(existing(folder, "adult.test", "adult-test.csv"))
    both = train + test
    columns = [_scaled(name, [row[place] for row in both]) for place, name in enumerate(COLUMNS)]
    rows = np.stack(columns, axis=1).astype(np.float32)
    labels = np.array([_label(row[-1]) for row in both], dtype=np.int64)
    whole = Table(rows, labels, CLASSES)
    return PublishedSplit(whole.at(slice(len(train))), whole.at(slice(len(train), None)))


def _rows(path: Path) -> list[list[str]]:
    """Return the complete rows of a file.

    The test part opens with a remark and ends lines with a full stop.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = [
                [cell.strip() for cell in line]
                for line in csv.reader(file)
                if len(line) > 1 or (line and line[0].strip() and not line[0].startswith("|"))
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if len(line) != len(COLUMNS) + 1:
            raise DatasetError(
                f"{path}, row {number}: has {len(line)} columns, not {len(COLUMNS) + 1}"
            )
    complete = [line for line in lines if _MISSING not in line]
    if not complete:
        raise DatasetError(f"{path} holds no complete row")
    return complete


def _scaled(name: str, cells: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if name in _NUMBERS:
        try:
            column = np.array([float(cell) for cell in cells])
        except ValueError as error:
            raise DatasetError(f"the column {name} must hold numbers: {error}") from error
        if not np.isfinite(column).all():
            raise DatasetError(f"the column {name} must hold finite numbers")
    else:
        column = np.unique(np.array(cells), return_inverse=True)[1].astype(np.float64)
    least, most = column.min(), column.max()
    scaled: np.ndarray[tuple[int], np.dtype[np.float64]] = (column - least) / max(
        most - least, np.finfo(np.float64).tiny
    )
    return scaled


def _label(cell: str) -> int:
    name = cell.removesuffix(".")
    if name not in CLASSES:
        raise DatasetError(f"the class {cell!r} is not one of {', '.join(CLASSES)}")
    return CLASSES.index(name)
