"""The CSV file of factors by which an authority says how contacts of a year vary."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.text import text_of

COLUMNS = ("week", "place", "factor")
LARGEST_FACTOR = 1000.0


def read_factors(path: Path, weeks: int, places: tuple[str, ...]) -> NDArray[np.float64]:
    """Read factors of contacts.

    A row of one place and one without a place multiply each other. What no row names has 1.

    Args:
        path: CSV file with a header of week, place and factor; weeks count from 1.
        weeks: Number of weeks.
        places: Names of the places.

    Returns:
        Factors, float64 (weeks, places).

    Raises:
        InvalidInputError: The file cannot be read, or a row is wrong; the message names its line.
    """
    content = text_of(path, "a CSV of factors")
    try:
        rows = csv.reader(content.splitlines(), strict=True)
        header = tuple(each.strip() for each in next(rows, []))
        if header != COLUMNS:
            raise InvalidInputError(
                f"{path}, line 1: {','.join(header)[:100]!r}; the columns are {','.join(COLUMNS)}"
            )
        factors = np.ones((weeks, len(places)))
        seen: set[tuple[int, str]] = set()
        for row in rows:
            if row:
                where = f"{path}, line {rows.line_num}"
                week, place, factor = _row(where, row, weeks, places)
                if (week, place) in seen:
                    raise InvalidInputError(
                        f"{where}: week {week} of {place or 'all places'} a second time"
                    )
                seen.add((week, place))
                columns = places.index(place) if place else slice(None)
                factors[week - 1, columns] *= factor
    except csv.Error as error:
        raise InvalidInputError(f"{path}: is not CSV ({error})") from None
    return factors


def _row(where: str, row: list[str], weeks: int, places: tuple[str, ...]) -> tuple[int, str, float]:
    if len(row) != len(COLUMNS):
        raise InvalidInputError(f"{where}: has {len(row)} values; give {', '.join(COLUMNS)}")
    week, place, factor = (each.strip() for each in row)
    if not (week.isascii() and week.isdecimal() and 1 <= int(week) <= weeks):
        raise InvalidInputError(f"{where}: week={week[:20]!r}: must be 1 to {weeks}")
    if place and place not in places:
        raise InvalidInputError(
            f"{where}: place={place[:50]!r}: must be empty, for every place, or one of "
            f"{', '.join(places)}"
        )
    try:
        number = float(factor)
    except ValueError:
        number = math.nan
    if not 0 <= number <= LARGEST_FACTOR:
        raise InvalidInputError(
            f"{where}: factor={factor[:20]!r}: must be a number from 0 to {LARGEST_FACTOR:g}, "
            "with a point"
        )
    return int(week), place, number
