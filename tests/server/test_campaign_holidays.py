"""Holidays of an authority: a plain CSV is read, and formats of other countries refused by line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from earshot_protocol.errors import InvalidInputError
from earshot_server.campaigns.holidays import Holiday, read_holidays


def read(folder: Path, content: str | bytes) -> tuple[Holiday, ...]:
    file = folder / "holidays.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_holidays(file)


@pytest.mark.parametrize(
    "content",
    [
        'date,name\n2027-01-06,Dreikönig\n2027-01-01,"New Year, all day"\n',
        '\ufeffdate,name\r\n2027-01-01,"New Year, all day"\r\n\r\n2027-01-06,Dreikönig',
        'Date, Name\n 2027-01-01 ,"New Year, all day"\n,\n2027-01-06, Dreikönig\n',
    ],
    ids=["plain", "from a spreadsheet", "with spaces"],
)
def test_holidays_are_read_by_day(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == (
        Holiday(day=date(2027, 1, 1), name="New Year, all day"),
        Holiday(day=date(2027, 1, 6), name="Dreikönig"),
    )


def test_a_file_without_holidays_is_fine_and_days_have_several(tmp_path: Path) -> None:
    assert read(tmp_path, "date,name\n") == ()
    assert len(read(tmp_path, "date,name\n2027-01-01,a\n2027-01-01,b\n")) == 2


HEADER = "date,name\n2027-01-01,New Year\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("date;name\n2027-01-06;Dreikönig\n", "line 1: must be the header 'date,name'"),
        ("2027-01-06,Epiphany\n", "line 1: must be the header 'date,name'"),
        ("", "line 1: must be the header 'date,name'"),
        (f"{HEADER}2027-01-06;Dreikönig\n", "line 3: must be a date and a name with one comma"),
        (f"{HEADER}2027-01-06\n", "line 3: must be a date and a name with one comma"),
        (f"{HEADER}2027-01-06,Epiphany,all day\n", "line 3: .*in double quotes"),
        (f"{HEADER}\n06.01.2027,Dreikönig\n", "line 4: date='06.01.2027': .*such as 2027-01-06"),
        (f"{HEADER}01/06/2027,Epiphany\n", "line 3: date='01/06/2027': .*such as 2027-01-06"),
        (f"{HEADER}2027/01/06,Epiphany\n", "line 3: date='2027/01/06': .*such as 2027-01-06"),
        (f"{HEADER}2027-1-6,Epiphany\n", "line 3: date='2027-1-6': .*such as 2027-01-06"),
        (f"{HEADER}20270106,Epiphany\n", "line 3: date='20270106': .*such as 2027-01-06"),
        (f"{HEADER}2027-W01-3,Epiphany\n", "line 3: date='2027-W01-3'"),
        (f"{HEADER}２０２７-01-06,Epiphany\n", "line 3: date="),
        (f"{HEADER}2027-02-29,Leap day\n", "line 3: date=2027-02-29: there is no such day"),
        (f"{HEADER}2027-01-06,\n", "line 3: name='': must be one line"),
        (f'{HEADER}2027-01-06,"a\nb"\n', "line 4: name='a b': must be one line"),
        (f"{HEADER}2027-01-06,{'x' * 101}\n", "line 3: name="),
        (f'{HEADER}2027-01-06,"open\n', "line 3: is not CSV"),
        ("date,name\n2027-01-06,Dreikönig\n".encode("latin-1"), "line 2: is not UTF-8"),
        (b"x" * (2**20 + 1), "at most 1048576 bytes are read"),
    ],
)
def test_other_formats_are_refused_by_line_with_what_would_be_right(
    tmp_path: Path, content: str | bytes, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"holidays.csv(, |: ){told}"):
        read(tmp_path, content)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no\.csv: cannot be read \(No such.*name a CSV"):
        read_holidays(tmp_path / "no.csv")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_holidays(tmp_path)
