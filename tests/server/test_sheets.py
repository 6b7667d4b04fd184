"""The dashboard's tables as CSV: all of them, whole, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re

import msgspec
import pytest
from support import dashboard_records as made
from support.dashboard_server import application

from earshot_protocol.messages import Failed
from earshot_server.dashboard import sheets
from earshot_server.sheet import Sheet

LEARNED, COUNTED = made.name_of(10).hex(), made.name_of(30).hex()
PAGES = {
    "/": 2,
    "/statistics": 4,
    f"/phases/{LEARNED}": 5,  # environments, their votes, participation, privacy, parameters
    f"/phases/{COUNTED}": 4,
    f"/phases/{made.name_of(1).hex()}": 3,
    f"/phases/{made.name_of(3).hex()}": 3,
}


def rows(text: str) -> list[dict[str, str]]:
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text[1:])))


def fetched(path: str) -> list[dict[str, str]]:
    response = application(made.HandMadeArchive(made.some_months())).test_client().get(path)
    assert response.status_code == 200, path
    assert response.mimetype == "text/csv"
    assert re.fullmatch(
        r'attachment; filename="earshot-[a-z0-9-]+\.csv"', response.headers["Content-Disposition"]
    )
    return rows(response.text)


@pytest.mark.parametrize("path", PAGES)
def test_every_table_of_a_page_can_be_downloaded(path: str) -> None:
    client = application(made.HandMadeArchive(made.some_months())).test_client()
    links = re.findall(r'href="(/[^"]+\.csv)"', client.get(path).text)
    assert len(links) == len(set(links)) == PAGES[path]
    for link in links:
        assert fetched(link), link


def test_a_sheet_says_what_its_table_says() -> None:
    environments = fetched(f"/phases/{LEARNED}/environments.csv")
    assert [row["votes to keep it"] for row in environments] == [
        str(130 - 15 * place) for place in range(8)
    ]
    assert environments[-1]["votes for its label"] == ""
    votes = fetched(f"/phases/{LEARNED}/label-votes.csv")
    assert list(votes[0]) == ["number", *made.LABELS]
    histogram = fetched(f"/phases/{COUNTED}/histogram.csv")
    by_label = {row["label"]: row for row in histogram}
    assert float(by_label["sport"]["published"]) == -11
    parts = [float(by_label["car"][name]) for name in ("labelled", "named")]
    assert sum(parts) == float(by_label["car"]["published"]) == 233
    unknown = histogram[-1]
    assert (unknown["label"], float(unknown["published"])) == ("unknown", 150)
    assert (unknown["labelled"], unknown["named"]) == ("", "")
    privacy = fetched(f"/phases/{LEARNED}/privacy.csv")
    assert {row["unit"] for row in privacy} == {"recording", "phone", "replaced phone"}
    counts = fetched("/statistics/contacts/counts.csv")
    assert len(counts) == 6 * len(made.LABELS)
    assert counts[0]["published"] == "2026-09-16T14:13:20Z"
    assert counts[0]["phones"] == "186"
    changes = fetched("/statistics/contacts/changes.csv")
    assert [row["label"] for row in changes if row["clear"] == "yes"] == ["sport"]


def test_phases_are_one_row_each_with_why_they_failed() -> None:
    found = fetched("/phases.csv")
    assert [row["phase"] for row in found] == [each.phase.hex() for each in made.some_months()]
    failed = [row for row in found if row["status"] == "failed"]
    assert "37 phones have joined in time; at least 120 are needed" in failed[-1]["outcome"]
    assert found[0]["finished"] == ""


@pytest.mark.parametrize("said", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_nothing_is_a_formula_but_numbers_stay_numbers(said: str) -> None:
    failed = made.too_few()
    record = msgspec.structs.replace(failed, ending=Failed(phase=failed.phase, reason=said))
    outcome = rows(sheets.phases([record]).csv())[0]["outcome"]
    assert outcome.startswith("'")
    assert (
        Sheet(("votes",), ((-11,), (None,), (0.5,))).csv() == '\ufeffvotes\r\n-11\r\n""\r\n0.5\r\n'
    )


@pytest.mark.parametrize(
    "path",
    [
        f"/phases/{'0' * 32}/privacy.csv",
        f"/phases/{'z' * 32}/privacy.csv",
        "/phases/12/privacy.csv",
        f"/phases/{LEARNED}/histogram.csv",
        f"/phases/{LEARNED}/unknown.csv",
        "/statistics/contacts/unknown.csv",
        "/statistics/unknown/counts.csv",
    ],
)
def test_a_table_that_does_not_exist_is_not_found(path: str) -> None:
    client = application(made.HandMadeArchive(made.some_months())).test_client()
    assert client.get(path).status_code == 404


def test_refusals_names_and_cohorts_are_in_the_sheets() -> None:
    record = msgspec.structs.replace(
        made.running(), refusals={"encoder": 3}, name="=Week 12", cohorts=("north", "west")
    )
    client = application(made.HandMadeArchive([record])).test_client()
    address = f"/phases/{record.phase.hex()}/refusals.csv"
    assert f'href="{address}"' in client.get(f"/phases/{record.phase.hex()}").text
    (refused,) = rows(client.get(address).text)
    assert (refused["rule"], refused["phones"]) == ("encoder", "3")
    (listed,) = rows(client.get("/phases.csv").text)
    assert listed["cohorts"] == "north west"
    assert listed["name"].endswith("Week 12")
    assert not listed["name"].startswith("=")
