"""Pages of campaigns on the dashboard, over plans and slots made by hand."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from html import unescape

import msgspec
import pytest
from support import dashboard_records as made
from support.dashboard_server import application
from support.hand_made_campaigns import HandMadeCampaigns, started
from support.slots import COMPUTED, counts, plan, slot, weekly, year_of
from werkzeug.test import TestResponse

from earshot_server.campaigns.campaign import ExpectedContacts
from earshot_server.campaigns.conduct import _LOST
from earshot_server.campaigns.intervals import PublishedFigure
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.series import SeriesRow, Trend, series_of
from earshot_server.campaigns.series_table import files
from earshot_server.campaigns.slots import Slot, SlotState
from earshot_server.dashboard import campaigns as shown
from earshot_server.dashboard import series as shown_series
from earshot_server.records import CampaignState

PLAN = plan()
NOW = COMPUTED.timestamp()
QUIET = counts((3000, 1500), (3000, 1500), 1000)
MORE = counts((4500, 1500), (4500, 1500), 1000)
PLANNED = [slot(phase, SlotState.PLANNED, phase="") for phase in weekly(PLAN)]


def year(*results: object) -> list[Slot]:
    """Slots of all weeks; those without a result given are planned."""
    begun = year_of(PLAN, results)  # type: ignore[arg-type]
    return [*begun, *PLANNED[len(begun) :]]


def get(
    slots: list[Slot], path: str = "", of: CampaignPlan = PLAN, **changes: object
) -> TestResponse:
    campaigns = HandMadeCampaigns((started(of, **changes), slots))
    client = application(made.HandMadeArchive(()), campaigns, NOW).test_client()
    return client.get(f"/campaigns/{of.digest}{path}")


def words(response: TestResponse) -> str:
    assert response.status_code == 200
    return re.sub(r"[ \n]+", " ", unescape(re.sub(r"<[^>]+>", " ", response.text)))


def test_the_newest_week_is_the_headline_with_shares_rates_and_changes() -> None:
    page = get(year(QUIET, MORE))
    assert (
        "<h1>11 Jan to 17 Jan 2027: 4\u202f000 phones took part and had 3.25 (3.18 to 3.32) "
        "contacts each in the week, on average</h1>" in page.text
    )
    said = words(page)
    assert "More contacts per phone at these places: “bar”." in said
    assert "bar 75\u00a0% 74\u00a0% to 76\u00a0% 2.25" in said
    assert "office 25\u00a0% 24\u00a0% to 26\u00a0% 0.750" in said
    assert "up: +30\u00a0% +25\u00a0% to +36\u00a0%" in said
    assert "2 of 6 weeks counted" in said
    assert "Places, 11 Jan to 17 Jan 2027" in said
    assert "What this shows, and what it does not" in said
    for each in ("ε bounds how much", "δ is how likely", "B keeps any phone from weighing much"):
        assert each in said
    assert "Next: week 3; it opens by itself, from 25 Jan 2027 on, until 8 Feb 2027" in said


def test_a_place_is_chosen_by_a_link() -> None:
    page = get(year(QUIET, MORE))
    assert '<a href="?place=1#weeks">office</a>' in page.text
    assert '<a href="?#weeks" aria-current="true">All contacts</a>' in page.text
    chosen = get(year(QUIET, MORE), "?place=1")
    assert '<a href="?place=1#weeks" aria-current="true">office</a>' in chosen.text
    assert "Share of office by week" in chosen.text
    for wrong in ("?place=2", "?place=-1", "?place=x"):
        assert 'aria-current="true">All contacts' in get(year(QUIET), wrong).text


def test_before_the_first_week_the_page_says_what_comes() -> None:
    page = get(PLANNED)
    assert "<h1>No week has been counted yet</h1>" in page.text
    assert "The first week has not ended yet" in words(page)
    assert "weeks-chart" not in page.text
    assert "series.csv" not in page.text


def test_with_all_weeks_missed_the_page_says_so_and_draws_gaps() -> None:
    page = get(year(*[SlotState.MISSED] * 6))
    said = words(page)
    assert "No week was counted" in said
    assert "yet" not in page.text.partition("</h1>")[0]
    assert "0 of 6 weeks counted; 6 without figures" in said
    assert "The campaign is over: all its phases have ended." in said
    assert page.text.count('class="gap"') == 6


def test_one_page_holds_a_year_of_weeks() -> None:
    of = plan(53)
    slots = [slot(each, result=QUIET, late=each.number == 9) for each in weekly(of)]
    page = get(slots, of=of)
    assert "53 of 53 weeks counted" in words(page)
    assert page.text.count('class="week"') == 52
    assert page.text.count("Opened late") == 1


@pytest.mark.parametrize(
    ("least", "most", "told"),
    [
        (0.00003, 0.1, "up: +5\u00a0% (+0.003\u00a0% to +10\u00a0%)"),
        (0.0004, 0.1, "up: +5\u00a0% (+0.04\u00a0% to +10\u00a0%)"),
        (-0.1, -0.000012, "down: +5\u00a0% (−10\u00a0% to −0.001\u00a0%)"),
        (0.0, 0.1, "up: +5\u00a0% (0\u00a0% to +10\u00a0%)"),
    ],
)
def test_a_bound_beside_a_word_is_not_rounded_to_zero(least: float, most: float, told: str) -> None:
    some = PublishedFigure(value=1.0, least=0.5, most=1.5)
    change = PublishedFigure(value=0.05, least=least, most=most)
    trend = Trend.UP if least >= 0 else Trend.DOWN
    row = SeriesRow(contacts=some, per_phone=some, change=change, trend=trend)
    assert shown_series.change(row).replace(" %", "\u00a0%") == told


def test_a_week_that_a_restore_may_have_lost_says_so() -> None:
    """A failed one points to its phase, which has the reason."""
    slots = year(QUIET, SlotState.MISSED, SlotState.FAILED)
    for place, reason in ((1, _LOST), (2, "too few phones")):
        slots[place] = msgspec.structs.replace(slots[place], reason=reason)
    said = words(get(slots))
    assert "May have been counted after the backup from which the server was restored" in said
    assert "Its phase failed" in said


def test_a_damaged_campaign_is_named_beside_the_others() -> None:
    of = started(PLAN)
    damaged = of.row._replace(campaign=bytes.fromhex("ab" * 32), plan=b"", operator="<i>eve")
    campaigns = HandMadeCampaigns((of, year(QUIET)), damaged=(damaged,))
    client = application(made.HandMadeArchive(()), campaigns, NOW).test_client()
    page = client.get("/campaigns")
    assert "<h1>2 campaigns</h1>" in page.text
    assert "Started on 23 Dec 2026 by <i>eve. It cannot be read from the database" in words(page)
    assert f'href="/campaigns/{PLAN.digest}"' in page.text
    assert f'href="/campaigns/{"ab" * 32}"' in page.text


def test_what_operators_and_files_write_is_text() -> None:
    markup = ("<script>alert(1)</script>", "a" * 64)
    name = "<b>north</b>"
    of = plan(labels=markup, name=name)
    result = msgspec.structs.replace(QUIET, label_names=markup)
    slots = year_of(of, [result, SlotState.FAILED], reason="<i>worn</i>")
    for path in ("", "?place=0"):
        page = get(slots, path, of)
        assert page.status_code == 200
        for raw in ("<script>alert", "<b>north", "<i>worn"):
            assert raw not in page.text
        assert "&lt;b&gt;north&lt;/b&gt;" in page.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text


@pytest.mark.parametrize(
    ("state", "status", "word"),
    [
        (CampaignState.PAUSED, "paused", "No phase opens meanwhile"),
        (CampaignState.STOPPED, "stopped", "The campaign was stopped: no further phase opens."),
    ],
)
def test_a_campaign_that_does_not_run_says_why(
    state: CampaignState, status: str, word: str
) -> None:
    slots = year(QUIET) if state is CampaignState.PAUSED else year(QUIET, *[SlotState.STOPPED] * 5)
    page = get(slots, state=state, reason="the server was restored")
    assert f'<span class="status {status}">' in page.text
    assert ("The server was restored." in words(page)) == (status == "paused")
    assert word in words(page)


def test_slots_show_what_became_of_each() -> None:
    reason = "only 3 phones"
    slots = year(QUIET, SlotState.FAILED, SlotState.MISSED, SlotState.RUNNING, SlotState.DUE)
    slots[0] = msgspec.structs.replace(slots[0], late=True, attempts=2)
    slots[1] = msgspec.structs.replace(slots[1], reason=reason)
    rows = shown.rows(slots)
    assert [(row.name, row.state, row.note, row.reason, row.phones) for row in rows] == [
        ("week 1", "published", "Opened late; 2 attempts", "", "4\u202f000 of 5\u202f000"),
        ("week 2", "failed", "", reason, "–"),
        ("week 3", "missed", "", "", "–"),
        ("week 4", "running", "", "", "–"),
        ("week 5", "due", "", "", "–"),
        ("week 6", "planned", "", "", "–"),
    ]
    assert shown.counted(slots) == (1, 2, 6)
    assert shown.coming(slots, "running") == (
        "Under way: week 4. Due: week 5; it opens by itself, until 22 Feb 2027 at the latest."
    )
    page = get(slots)
    assert f'<a href="/phases/{slots[0].phase}">Week 1</a>' in page.text


def test_the_map_in_use_and_its_age() -> None:
    first, second = year_of(PLAN, [QUIET, QUIET])
    newer = msgspec.structs.replace(second, map="cd" * 16)
    found = shown.newest_map(PLAN, [newer, first])
    assert found is not None
    assert (found.phase, found.mapped) == ("cd" * 16, newer.mapped.timestamp())
    assert shown.newest_map(PLAN, PLANNED[:0]) is None
    given = plan(map="ef" * 16)
    found = shown.newest_map(given, [])
    assert found == shown.NewestMap("ef" * 16, None)


def test_phases_of_366_days_count_as_spent() -> None:
    day = 86_400.0
    old, new = (
        made.published_statistics(each, NOW - days * day) for each, days in ((1, 400), (2, 3))
    )
    alone = shown.spent([new], NOW)
    assert alone > 0
    assert shown.spent([old, new], NOW) == alone
    assert shown.spent([old, new], NOW - 60 * day) > alone
    assert shown.spent([], NOW) == 0
    punctual, most = shown.planned(PLAN)
    assert 0 < punctual <= most <= PLAN.campaign.budget.epsilon


def test_a_year_as_planned_spends_what_was_planned_to_the_last_digit() -> None:
    of = plan(53)
    week = msgspec.structs.replace(started(of).week, phones=4000)
    records = []
    for number in range(53):
        record = made.published_statistics(number, NOW - number * 7 * 86_400)
        ending = msgspec.structs.replace(QUIET, privacy=tuple(week.plan().releases()))
        records.append(msgspec.structs.replace(record, parameters=week, ending=ending))
    assert shown.spent(records, NOW) == shown.planned(of)[0]


def test_downloads_are_what_the_command_exports() -> None:
    slots = year(QUIET, SlotState.MISSED)
    expected = files(series_of(PLAN, slots, COMPUTED))
    assert get(slots, "/series.csv").data == expected["series.csv"]
    assert get(slots, "/series.json").data == expected["series.json"]
    whole = get(slots, "/series.zip")
    with zipfile.ZipFile(io.BytesIO(whole.data)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == expected
    assert whole.headers["Content-Disposition"].endswith(f'-{PLAN.digest[:12]}.zip"')
    assert len(list(csv.DictReader(io.StringIO(expected["series.csv"].decode())))) == 8
    assert json.loads(expected["series.json"])["digest"] == PLAN.digest
    assert get(slots, "/series.exe").status_code == 404


def test_an_unknown_campaign_is_said_to_be_unknown() -> None:
    client = application(made.HandMadeArchive(()), HandMadeCampaigns(), NOW).test_client()
    for digest in ("0" * 64, "x" * 64, "ab"):
        page = client.get(f"/campaigns/{digest}")
        assert (page.status_code, "There is no such campaign" in page.text) == (404, True)
        assert client.get(f"/campaigns/{digest}/series.csv").status_code == 404


def test_the_list_has_each_campaign_with_its_newest_headline() -> None:
    other = plan(name="South", cohorts=("south",), expected=ExpectedContacts(phones=200))
    campaigns = HandMadeCampaigns(
        (started(other), [slot(each, SlotState.PLANNED) for each in weekly(other)]),
        (started(PLAN), year(QUIET, SlotState.MISSED)),
    )
    client = application(made.HandMadeArchive(()), campaigns, NOW).test_client()
    said = words(client.get("/campaigns"))
    assert "2 campaigns" in said
    assert "South running No week has been counted yet. Days 4 Jan to 14 Feb 2027" in said
    assert "Cohorts south" in said
    assert "Weeks counted 1 of 6 Weeks without figures 1 Next phase from 25 Jan 2027" in said
    campaigns.known[0][0].row = campaigns.known[0][0].row._replace(state=CampaignState.PAUSED)
    assert "South paused" in words(client.get("/campaigns"))
    assert "Next phase from – " in words(client.get("/campaigns"))
    nothing = application(made.HandMadeArchive(())).test_client().get("/campaigns")
    assert "No campaign has been started yet" in words(nothing)
    assert "earshot campaign start FILE" in words(nothing)


def test_a_phase_of_a_campaign_names_it() -> None:
    record = made.published_statistics(30, NOW)
    own = slot(weekly(PLAN)[0], result=QUIET, phase=record.phase.hex())
    campaigns = HandMadeCampaigns((started(PLAN), [own]))
    archive = made.HandMadeArchive((record, made.running()))
    client = application(archive, campaigns, NOW).test_client()
    link = f'<a href="/campaigns/{PLAN.digest}">{PLAN.campaign.name}</a>'
    assert link in client.get(f"/phases/{record.phase.hex()}").text
    assert link not in client.get(f"/phases/{made.running().phase.hex()}").text


def test_the_page_says_what_its_ranges_cover() -> None:
    """Corrected under the second map alone: said of the newest week, and where the others begin."""
    counted = msgspec.structs.replace(QUIET, confusion=(900.0, 100.0, 0.0, 500.0))
    slots = year(QUIET, QUIET, counted, QUIET)
    newer = [msgspec.structs.replace(each, map="cd" * 16) for each in slots[2:4]]
    text = get([*slots[:2], *newer, *slots[4:]]).text
    assert "it names 93 % (" in text
    assert "ranges allow for them" in text
    told = "Under this map, places are not corrected for its mistakes"
    assert text.count(told) == 1
    assert told not in get(slots).text, "the only map there is was corrected later"
    plain = get(year(QUIET, QUIET)).text
    assert "and makes mistakes. No range covers them." in plain
    assert told not in plain
