"""The series of a campaign as one table: a CSV file, its description, and a data frame.

The table is in long form: for each week a row for each place, for unknown contacts and for all. The
description is a Data Package (datapackage.org, version 2.0), by which programs read the columns
with their types and meanings. Text is English and numbers have a decimal point, whatever the
locale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from earshot_protocol.files import replace_file
from earshot_server.campaigns.intervals import PublishedFigure
from earshot_server.campaigns.series import (
    ObservationStatus,
    Series,
    SeriesRow,
    SeriesWeek,
    Trend,
)
from earshot_server.data_frames import data_frame
from earshot_server.sheet import Cell, Sheet

if TYPE_CHECKING:
    from pandas import DataFrame

CSV, JSON, PACKAGE = "series.csv", "series.json", "datapackage.json"
"""Names of the files of a series."""
PLACE, UNKNOWN, ALL = "place", "unknown", "all"
"""Kinds of rows."""
_PROFILES = "https://datapackage.org/profiles/2.0"


class _Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """Column of the table: a field of a Table Schema.

    Attributes:
        name: Name of the column.
        type: Type of its values.
        description: Meaning of its values.
        unit: Unit; empty for none.
        constraints: Constraints of its values.
    """

    name: str
    type: str
    description: str
    unit: str = ""
    constraints: dict[str, Any] = {}


def _figure(name: str, unit: str, description: str) -> tuple[_Column, ...]:
    """Return the columns of a figure and its interval."""
    return (
        _Column(name, "number", description, unit),
        _Column(f"{name}_least", "number", f"Lower end of the 95 % interval of {name}.", unit),
        _Column(f"{name}_most", "number", f"Upper end of the 95 % interval of {name}.", unit),
    )


_ALWAYS = {"required": True}
_TEXT = (
    "text that begins with = + - or @ has an apostrophe in front, so that spreadsheets do not "
    "compute it"
)
COLUMNS = (
    _Column("since", "date", "First day of the week, in UTC.", constraints=_ALWAYS),
    _Column("until", "date", "Day after the last one, in UTC.", constraints=_ALWAYS),
    _Column("week", "integer", "Number of the week in the campaign.", "", _ALWAYS),
    _Column(
        "kind",
        "string",
        "What the row is about: a place, contacts that are unknown (neither labelled nor named by "
        "the map), or all contacts.",
        constraints={**_ALWAYS, "enum": [PLACE, UNKNOWN, ALL]},
    ),
    _Column(
        "place", "string", f"Name of the place; otherwise the kind again; {_TEXT}.", "", _ALWAYS
    ),
    _Column(
        "obs_status",
        "string",
        "Status of the week, by SDMX's code list CL_OBS_STATUS: A normal; B break, as it is the "
        "first week under another map and does not compare with those before; L missing, as "
        "contacts were not counted; O missing, as they are not counted yet.",
        constraints={**_ALWAYS, "enum": [each.value for each in ObservationStatus]},
    ),
    _Column("reason", "string", "Reason why the week has no figures."),
    _Column("late", "boolean", "Whether the week was counted later than planned.", "", _ALWAYS),
    _Column("enrolled", "integer", "Phones that were enrolled when counting began.", "phones"),
    _Column("phones", "integer", "Phones that took part, whose counts were added up.", "phones"),
    *_figure(
        "contacts",
        "contacts",
        "Contacts of the phones that took part, with noise, so it may be negative; those of a "
        "phone with many are scaled down to the length B. See `corrected` for those that the map "
        "named.",
    ),
    *_figure("per_phone", "contacts per phone", "Contacts over phones."),
    *_figure(
        "share",
        "1",
        "Share of a place in the contacts that are assigned to a place, labelled or named; of "
        "unknown contacts in all contacts. Missing where the whole may be noise.",
    ),
    *_figure(
        "change",
        "1",
        "Relative change of contacts per phone against those of the weeks before, 0 for none. The "
        "intervals of all changes of a week hold together in 95 of 100 weeks. Missing where the "
        "contacts before may be noise.",
    ),
    _Column(
        "trend",
        "string",
        "Whether contacts per phone went up or down against the weeks before; not told if noise "
        "and chance may explain the change.",
        constraints={"enum": [each.value for each in Trend]},
    ),
    *_figure(
        "smoothed",
        "contacts per phone",
        "Contacts per phone, smoothed over the weeks before and after under the same map: with "
        "less noise, and flatter where they jump. Revised whenever a later week is counted; that "
        "of the newest week is provisional.",
    ),
    _Column(
        "weeks_before",
        "integer",
        "Weeks with which the week is compared: those of the four before it that were counted "
        "under the same map.",
        "weeks",
    ),
    *_figure(
        "unknown_share",
        "1",
        "Share of the week's contacts that are unknown. Missing where the whole may be noise.",
    ),
    _Column("map", "string", "Identifier of the discovery that named unlabelled contacts."),
    _Column("map_days", "integer", "Age of that map when counting began.", "days"),
    _Column(
        "corrected",
        "boolean",
        "Whether contacts that the map named are corrected for how it names recordings that people "
        "labelled, and intervals cover what is not known about that. Assumes that other recordings "
        "sound like these. All weeks under a map are revised once it is known.",
    ),
    *_figure(
        "right_names",
        "1",
        "Share of the recordings that people labelled and the map named, which it named rightly. "
        "Missing where that was not counted, or may be noise.",
    ),
    _Column("length", "integer", "Length B to which a phone's counts are scaled down.", "contacts"),
    _Column(
        "deviation",
        "number",
        "Standard deviation of the noise on each entry of the sum. A place's contacts are the sum "
        "of two entries, or of one without a map.",
        "contacts",
    ),
    _Column("holidays", "string", f"Holidays of the week; {_TEXT}."),
    _Column("method", "string", "Version of the method.", "", _ALWAYS),
    _Column(
        "computed",
        "datetime",
        "Vintage: the moment at which the figures were computed, in UTC.",
        constraints=_ALWAYS,
    ),
)
"""Columns of the table, in their order."""


def rows(series: Series) -> list[dict[str, Any]]:
    """Return the table's rows: each has all columns, and None where a value is missing.

    Figures have six digits, more than their intervals leave.
    """
    return [
        {
            "since": week.since,
            "until": week.until,
            "week": week.number,
            "kind": kind,
            "place": place,
            "obs_status": week.status.value,
            "reason": week.reason or None,
            "late": week.late,
            "enrolled": week.enrolled or None,
            "phones": week.phones or None,
            **_ends("contacts", row.contacts if row else None),
            **_ends("per_phone", row.per_phone if row else None),
            **_ends("share", row.share if row else None),
            **_ends("change", row.change if row else None),
            "trend": row.trend.value if row and row.trend else None,
            **_ends("smoothed", row.smoothed if row else None),
            "weeks_before": week.weeks_before if row else None,
            **_ends("unknown_share", week.unknown.share if week.unknown else None),
            "map": week.map or None,
            "map_days": week.map_days,
            "corrected": week.corrected if row else None,
            **_ends("right_names", week.right_names),
            "length": week.length or None,
            "deviation": _rounded(week.deviation) if row else None,
            "holidays": "; ".join(each.name for each in week.holidays) or None,
            "method": series.method,
            "computed": series.computed,
        }
        for week in series.weeks
        for kind, place, row in _of_week(series, week)
    ]


def _of_week(series: Series, week: SeriesWeek) -> Iterator[tuple[str, str, SeriesRow | None]]:
    """Yield the kind, the place and the figures of a week's rows."""
    figures = week.places or (None,) * len(series.places)
    yield from ((PLACE, *each) for each in zip(series.places, figures, strict=True))
    yield UNKNOWN, UNKNOWN, week.unknown
    yield ALL, ALL, week.total


def _ends(name: str, figure: PublishedFigure | None) -> dict[str, float | None]:
    values = (figure.value, figure.least, figure.most) if figure else (None,) * 3
    names = (name, f"{name}_least", f"{name}_most")
    return {
        name: None if value is None else _rounded(value)
        for name, value in zip(names, values, strict=True)
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def to_frame(series: Series) -> DataFrame:
    """Return `rows` as a data frame.

    Raises:
        MissingExtraError: The package pandas is not installed.
    """
    return data_frame(rows(series))


def to_csv(series: Series) -> str:
    """Return the table as comma-separated values, safe to open in a spreadsheet."""
    return Sheet(
        tuple(column.name for column in COLUMNS),
        tuple(tuple(_cell(row[column.name]) for column in COLUMNS) for row in rows(series)),
    ).csv()


def _cell(value: Any) -> Cell:
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case date():
            return value.isoformat()
    cell: Cell = value
    return cell


def package(series: Series, csv: bytes) -> dict[str, Any]:
    """Return the description of the table, a Data Package.

    Args:
        series: The series.
        csv: Content of its file.
    """
    described: dict[str, Any] = {
        "$schema": f"{_PROFILES}/datapackage.json",
        "name": f"campaign-{series.digest[:16]}",
        "id": series.digest,
        "title": series.name,
        "description": (
            "Weekly counts of contacts by kind of place, from sums with noise. Intervals cover the "
            "noise and chance, as if contacts happened independently. They do not cover mistakes "
            "of the map, contacts that scaling down leaves out, and who takes part."
        ),
        "version": series.method,
        "created": _cell(series.computed),
        "resources": [
            {
                "$schema": f"{_PROFILES}/dataresource.json",
                "name": "series",
                "type": "table",
                "path": CSV,
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "bytes": len(csv),
                "hash": f"sha256:{hashlib.sha256(csv).hexdigest()}",
                "schema": {
                    "$schema": f"{_PROFILES}/tableschema.json",
                    "fields": msgspec.to_builtins(COLUMNS),
                    "primaryKey": ["since", "kind", "place"],
                    "missingValues": [""],
                },
            }
        ],
    }
    if series.authority:
        described["contributors"] = [{"title": series.authority, "roles": ["publisher"]}]
        described["homepage"] = series.results
    return described


def files(series: Series) -> dict[str, bytes]:
    """Return a series as `series.csv`, `datapackage.json` and `series.json`: content by name."""
    csv = to_csv(series).encode()
    return {CSV: csv, PACKAGE: _indented(package(series, csv)), JSON: _indented(series)}


def write_series(series: Series, folder: Path) -> None:
    """Write the `files` of a series.

    Args:
        series: The series.
        folder: Folder of the files, which exists; files of an earlier vintage are replaced.
    """
    for name, content in files(series).items():
        replace_file(folder / name, content)


def _indented(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
