"""The table of a series: what it says, how programs and spreadsheets read it."""

from __future__ import annotations

import csv
import hashlib
import json
import locale
import re
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pandas
import pytest
from support.slots import COMPUTED, MAP, counts, plan, year_of

from earshot_server.campaigns.campaign import Publication
from earshot_server.campaigns.holidays import Holiday
from earshot_server.campaigns.series import Series, series_of
from earshot_server.campaigns.series_table import COLUMNS, rows, to_csv, to_frame, write_series
from earshot_server.campaigns.slots import SlotState

PUBLIC = Publication(authority="Gesundheitsamt Nord", results="https://health.example/contacts")
QUIET = counts((3000, 1500), (3000, 1500), 1000)
GOLDEN = f"""\
since,until,week,kind,place,obs_status,reason,late,enrolled,phones,\
contacts,contacts_least,contacts_most,per_phone,per_phone_least,per_phone_most,\
share,share_least,share_most,change,change_least,change_most,trend,\
smoothed,smoothed_least,smoothed_most,weeks_before,\
unknown_share,unknown_share_least,unknown_share_most,map,map_days,\
corrected,right_names,right_names_least,right_names_most,length,deviation,\
holidays,method,computed
2027-01-04,2027-01-11,1,place,"Café, außen",A,,false,5000,4000,\
6000.0,5813.92,6189.92,1.5,1.45348,1.54748,\
0.666667,0.653262,0.68003,,,,,1.5,1.47228,1.52772,0,\
0.1,0.0908049,0.109441,{MAP},10,false,,,,10,40.0,\
'=Inventur; Dreikönig,1,2027-04-01T12:00:00Z
2027-01-04,2027-01-11,1,place,'=1+1,A,,false,5000,4000,\
3000.0,2847.58,3156.26,0.75,0.711895,0.789065,\
0.333333,0.31997,0.346738,,,,,0.75,0.722282,0.777718,0,\
0.1,0.0908049,0.109441,{MAP},10,false,,,,10,40.0,\
'=Inventur; Dreikönig,1,2027-04-01T12:00:00Z
2027-01-04,2027-01-11,1,unknown,unknown,A,,false,5000,4000,\
1000.0,901.963,1101.88,0.25,0.225491,0.27547,\
0.1,0.0908049,0.109441,,,,,0.25,0.2304,0.2696,0,\
0.1,0.0908049,0.109441,{MAP},10,false,,,,10,40.0,\
'=Inventur; Dreikönig,1,2027-04-01T12:00:00Z
2027-01-04,2027-01-11,1,all,all,A,,false,5000,4000,\
10000.0,9738.96,10264.9,2.5,2.43474,2.56622,\
,,,,,,,2.5,2.45617,2.54383,0,\
0.1,0.0908049,0.109441,{MAP},10,false,,,,10,40.0,\
'=Inventur; Dreikönig,1,2027-04-01T12:00:00Z
2027-01-11,2027-01-18,2,place,"Café, außen",L,did not begin in time,false,5000,,\
,,,,,,,,,,,,,,,,,,,,,,,,,,,,,1,2027-04-01T12:00:00Z
2027-01-11,2027-01-18,2,place,'=1+1,L,did not begin in time,false,5000,,\
,,,,,,,,,,,,,,,,,,,,,,,,,,,,,1,2027-04-01T12:00:00Z
2027-01-11,2027-01-18,2,unknown,unknown,L,did not begin in time,false,5000,,\
,,,,,,,,,,,,,,,,,,,,,,,,,,,,,1,2027-04-01T12:00:00Z
2027-01-11,2027-01-18,2,all,all,L,did not begin in time,false,5000,,\
,,,,,,,,,,,,,,,,,,,,,,,,,,,,,1,2027-04-01T12:00:00Z
"""


def made(*results: Any, labels: tuple[str, str] = ("Café, außen", "=1+1")) -> Series:
    named = [
        msgspec.structs.replace(each, label_names=labels) if not isinstance(each, str) else each
        for each in results
    ]
    of = plan(labels=labels, public=PUBLIC)
    holidays = [
        Holiday(day=date(2027, 1, 5), name="=Inventur"),
        Holiday(day=date(2027, 1, 6), name="Dreikönig"),
    ]
    return series_of(of, year_of(of, named), COMPUTED, holidays)


def described(folder: Path) -> dict[str, Any]:
    package: dict[str, Any] = json.loads((folder / "datapackage.json").read_text("utf-8"))
    return package


def test_the_table_is_as_it_was() -> None:
    written = to_csv(made(QUIET, SlotState.MISSED))
    assert written.removeprefix("\ufeff").replace("\r\n", "\n") == GOLDEN


def test_numbers_have_a_point_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    before = to_csv(made(QUIET))
    monkeypatch.setattr(locale, "localeconv", lambda: {"decimal_point": ",", "thousands_sep": "."})
    assert to_csv(made(QUIET)) == before
    there = msgspec.structs.replace(
        made(QUIET), computed=COMPUTED.astimezone(timezone(timedelta(hours=13)))
    )
    assert to_csv(there) == before, "moments are in UTC"


READERS: dict[str, Any] = {
    "date": date.fromisoformat,
    "datetime": lambda text: datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC),
    "integer": int,
    "number": float,
    "boolean": {"true": True, "false": False}.__getitem__,
    "string": str,
}
"""Types of a Table Schema that are used, as its specification reads them."""


def test_the_package_describes_the_file_by_the_specification(tmp_path: Path) -> None:
    """The rules of Data Package 2.0 on what is used here, read from its text, not from our code."""
    fewer = counts((1500, 1500), (1500, 1500), 1000)
    noise = counts((30, -50), (0, 20), 10, confusion=(900.0, 90, 40, 700))
    write_series(made(QUIET, SlotState.RUNNING, fewer, noise), tmp_path)
    package = described(tmp_path)
    assert package["$schema"] == "https://datapackage.org/profiles/2.0/datapackage.json"
    assert re.fullmatch(r"[a-z0-9._/-]+", package["name"])
    assert datetime.fromisoformat(package["created"]) == COMPUTED
    assert package["contributors"] == [{"title": "Gesundheitsamt Nord", "roles": ["publisher"]}]
    assert package["homepage"] == "https://health.example/contacts"
    (resource,) = package["resources"]
    content = (tmp_path / resource["path"]).read_bytes()
    assert not resource["path"].startswith(("/", ".", "~"))
    assert (resource["type"], resource["encoding"]) == ("table", "utf-8")
    assert resource["bytes"] == len(content)
    assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    schema = resource["schema"]
    assert schema["missingValues"] == [""]
    with (tmp_path / resource["path"]).open(encoding="utf-8-sig", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == [field["name"] for field in schema["fields"]]
    read = []
    for line in lines:
        row = {}
        for field, text in zip(schema["fields"], line, strict=True):
            rules = field.get("constraints", {})
            value = row[field["name"]] = READERS[field["type"]](text) if text else None
            assert text or not rules.get("required"), field["name"]
            assert not text or value in rules.get("enum", [value])
        read.append(row)
    keys = [tuple(row[name] for name in schema["primaryKey"]) for row in read]
    assert len(set(keys)) == len(keys) == 16
    seen = {name for row in read for name, value in row.items() if value is not None}
    assert seen == set(header), "every column has a value somewhere in this series"
    for field in schema["fields"]:
        assert len(field["description"]) > 15
        assert ("unit" in field) == (
            field["type"] == "number" or field["name"] in ("enrolled", "phones", "weeks_before")
            or field["name"] in ("map_days", "length")
        )  # fmt: skip


def test_what_is_missing_is_none_and_not_empty() -> None:
    of = plan()
    missed = series_of(of, year_of(of, [SlotState.MISSED], enrolled=0), COMPUTED)
    row = rows(missed)[0]
    given = {name for name, value in row.items() if value is not None}
    required = {each.name for each in COLUMNS if each.constraints.get("required")}
    assert given == {*required, "reason"}
    (counted, *_) = rows(series_of(of, year_of(of, [QUIET]), COMPUTED))
    assert (counted["reason"], counted["holidays"]) == (None, None)


def test_no_figure_stands_without_its_interval() -> None:
    for row in rows(made(QUIET, QUIET, counts((30, -50), (0, 20), 10), SlotState.FAILED)):
        for name in (
            "contacts", "per_phone", "share", "change", "unknown_share", "right_names",
        ):  # fmt: skip
            ends = [row[each] is None for each in (name, f"{name}_least", f"{name}_most")]
            assert len(set(ends)) == 1, name
            assert row[name] is None or row[f"{name}_least"] <= row[f"{name}_most"]


def test_the_same_series_as_json_and_as_a_data_frame(tmp_path: Path) -> None:
    series = made(QUIET, SlotState.MISSED, QUIET)
    write_series(series, tmp_path)
    assert msgspec.json.decode((tmp_path / "series.json").read_bytes(), type=Series) == series
    frame = to_frame(series)
    read = pandas.read_csv(tmp_path / "series.csv")
    assert list(read.columns) == list(frame.columns)
    figures = ["contacts", "share", "change_least", "phones", "week", "deviation"]
    pandas.testing.assert_frame_equal(read[figures], frame[figures], check_dtype=False)
    shares = frame[frame["kind"] == "place"].groupby("week")["share"].sum(min_count=1)
    assert shares.isna().tolist() == [False, True, False]
    assert shares[1] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("x")'])
def test_no_label_is_a_formula(label: str) -> None:
    written = list(csv.reader(to_csv(made(QUIET, labels=(label, "ok")))[1:].splitlines()))
    assert written[1][4] == f"'{label}"


def test_a_place_is_not_confused_with_unknown_contacts() -> None:
    of = [row for row in rows(made(QUIET, labels=("unknown", "all"))) if row["place"] == "unknown"]
    assert [(row["kind"], row["contacts"]) for row in of] == [("place", 6000), ("unknown", 1000)]


def test_the_guide_names_every_column() -> None:
    guide = (Path(__file__).parents[2] / "docs/campaigns.md").read_text("utf-8")
    section = guide.split("## Read the series")[1].split("\n## ")[0]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)))
    ends = re.compile("_least$|_most$")
    assert {ends.sub("", column.name) for column in COLUMNS} == set(named)


def test_a_campaign_without_an_authority_names_none(tmp_path: Path) -> None:
    of = plan()
    write_series(series_of(of, [], COMPUTED), tmp_path)
    assert "contributors" not in described(tmp_path)
    assert "homepage" not in described(tmp_path)
    assert len((tmp_path / "series.csv").read_text("utf-8").splitlines()) == 1
