"""Holidays of an authority, from a CSV file of its own: the columns `date` and `name`."""

from __future__ import annotations

import csv
import io
import re
from datetime import date
from pathlib import Path

import msgspec

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.text import bare, one_line, text_of

LARGEST_NAME = 100
_COLUMNS = ["date", "name"]
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Holiday(msgspec.Struct, frozen=True, kw_only=True):
    """A holiday.

    Attributes:
        day: The day.
        name: The name.
    """

    day: date
    name: str


def read_holidays(file: Path) -> tuple[Holiday, ...]:
    """Read holidays, one a line; several on a day are accepted.

    Raises:
        InvalidInputError: The file cannot be read, or a line is wrong; the message names the line,
            and what would be right.
    """
    content = text_of(file, "a CSV of holidays")
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(map(bare, row))]
    except csv.Error as error:
        raise InvalidInputError(f"{file}, line {reader.line_num}: is not CSV ({error})") from None
    if not rows or [bare(each).lower() for each in rows[0][1]] != _COLUMNS:
        raise InvalidInputError(
            f"{file}, line {rows[0][0] if rows else 1}: must be the header 'date,name', with a "
            f"comma{_found(rows[0][1]) if rows else ''}"
        )
    found = [_holiday(row, f"{file}, line {line}") for line, row in rows[1:]]
    return tuple(sorted(found, key=lambda holiday: (holiday.day, holiday.name)))


def _found(row: list[str]) -> str:
    return f", not {one_line(','.join(row), LARGEST_NAME)!r}"


def _holiday(row: list[str], place: str) -> Holiday:
    if len(row) != len(_COLUMNS):
        raise InvalidInputError(
            f"{place}: must be a date and a name with one comma between them, such as "
            f"2027-01-06,Epiphany{_found(row)}; put a name with a comma in double quotes"
        )
    told, name = map(bare, row)
    if not _DAY.fullmatch(told):
        raise InvalidInputError(
            f"{place}: date={one_line(told, LARGEST_NAME)!r}: must be year-month-day with digits "
            "and hyphens, such as 2027-01-06 for the sixth of January"
        )
    try:
        day = date.fromisoformat(told)
    except ValueError:
        raise InvalidInputError(f"{place}: date={told}: there is no such day") from None
    if not name or one_line(name, LARGEST_NAME) != name:
        raise InvalidInputError(
            f"{place}: name={one_line(name, LARGEST_NAME)!r}: must be one line of 1 to "
            f"{LARGEST_NAME} characters"
        )
    return Holiday(day=day, name=name)
