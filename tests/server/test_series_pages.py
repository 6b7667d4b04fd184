"""What people read of a campaign's series: sentences, rows and charts, in English and German."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from support.slots import COMPUTED, counts, plan, year_of

from earshot_protocol.phases.statistics import Statistics
from earshot_server.campaigns.holidays import Holiday
from earshot_server.campaigns.intervals import PublishedFigure
from earshot_server.campaigns.series import Series, SeriesRow, Trend, series_of
from earshot_server.campaigns.slots import SlotState
from earshot_server.dashboard import languages
from earshot_server.dashboard import series as shown

QUIET = counts((3000, 1500), (3000, 1500), 1000)
MORE = counts((4500, 1500), (4500, 1500), 1000)
PLAN = plan()


def made(*results: Statistics | SlotState, **changes: Any) -> Series:
    return series_of(PLAN, year_of(PLAN, results, **changes), COMPUTED)


def of_places(labels: tuple[str, ...], contacts: Sequence[float]) -> Series:
    result = msgspec.structs.replace(
        QUIET, label_names=labels, labelled=tuple(contacts), named=tuple(contacts)
    )
    of = plan(labels=labels)
    return series_of(of, year_of(of, [result]), COMPUTED)


def test_the_headline_tells_the_newest_week_with_ranges() -> None:
    assert shown.headline(made(QUIET, MORE)) == [
        "11 Jan to 17 Jan 2027: 4\u202f000 phones took part and had 3.25 (3.18 to 3.32) contacts "
        "each in the week, on average.",
        "The largest share of the contacts that are assigned to a place: bar, 75 % (74 % to 76 %).",
        "Contacts per phone, against one of the four weeks before: up: +30 % (+25 % to +36 %).",
        "More contacts per phone at these places: “bar”.",
        "No clear change of contacts per phone at 1 place: noise and chance may explain it.",
    ]


def test_the_headline_says_what_is_missing() -> None:
    assert shown.headline(made(SlotState.MISSED)) == ["No week has been counted yet."]
    *said, last = shown.headline(made(QUIET, SlotState.RUNNING))
    assert said[-1] == "There is no week before to compare with."
    assert last == "The week 11 Jan to 17 Jan 2027 has no figures: is being counted."
    slots = year_of(PLAN, [QUIET, QUIET])
    slots[1] = msgspec.structs.replace(slots[1], map="cd" * 16)
    assert shown.headline(series_of(PLAN, slots, COMPUTED))[-1] == (
        "The map is new, so nothing compares with the weeks before."
    )
    noise = shown.headline(made(counts((30, -50), (0, 20), 10)))
    assert noise[1] == "So few contacts are assigned to a place that their shares may be noise."


def test_no_place_is_the_largest_where_ranges_overlap() -> None:
    labels = ("a", "b", "c", "d", "e")
    assert (
        "assigned to a place: “a” and “b”. Which of these"
        in shown.headline(of_places(labels, (3000, 2990, 100, 100, 100)))[1]
    )
    three = of_places(labels, (3000, 3000, 3000, 100, 100))
    assert "assigned to a place: “a”, “b” and “c”. Which of these" in shown.headline(three)[1]
    four = of_places(labels, (3000, 3000, 3000, 3000, 100))
    nothing = "No place had clearly more contacts than all others."
    assert shown.headline(four)[1] == nothing


def test_a_fall_and_several_weeks_before_have_their_words() -> None:
    said = shown.headline(made(MORE, MORE, MORE, MORE, QUIET))
    assert said[2].startswith("Contacts per phone, against the four weeks before: down: −23 % (−")
    assert said[3] == "Fewer contacts per phone at these places: “bar”."
    assert (
        "against 2 of the four weeks before: no clear change."
        in shown.headline(made(QUIET, QUIET, QUIET))[2]
    )


def test_a_table_has_every_week_with_its_notes() -> None:
    slots = year_of(PLAN, [QUIET, SlotState.MISSED, MORE])
    slots[2] = msgspec.structs.replace(slots[2], map="cd" * 16, late=True)
    holidays = [Holiday(day=date(2027, 1, 6), name="Dreikönig")]
    first, missed, last = shown.table(series_of(PLAN, slots, COMPUTED, holidays), 0)
    assert first == (
        *("4 Jan to 10 Jan 2027", "4\u202f000", "67 % (65 % to 68 %)", "1.50 (1.45 to 1.55)"),
        *("–", "Dreikönig"),
    )
    assert missed[1:] == ("–", "–", "–", "–", "Did not begin in time")
    assert last.note == "Counted late; new map, so nothing compares with the weeks before"
    up = shown.table(made(QUIET, MORE), 0)[-1]
    assert up.change == "up: +50 % (+43 % to +58 %)"
    opened = shown.table(made(counts((0, 1500), (0, 1500), 9), MORE), 0)[-1]
    assert opened.change == "up", "over nothing there is no percentage"
    assert shown.table(made(counts((30, -50), (0, 20), 10)), 1)[0].share == "may be noise"
    total = shown.table(made(QUIET))[0]
    assert (total.share, total.per_phone) == ("–", "2.50 (2.43 to 2.57)")


def test_small_shares_have_a_decimal_and_noise_a_sign() -> None:
    small = of_places(("a", "b"), (-20, 50_000))
    assert shown.table(small, 0)[0].share == "0 % (0 % to 0.1 %)"
    assert shown.table(of_places(("a", "b"), (1000, 50_000)), 0)[0].share.startswith(
        "2 % (1.8 % to"
    )
    assert shown.table(small, 0)[0].per_phone.startswith("−0.0100 (0.00")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.0003, "+0.03 %"),
        (-0.0003, "−0.03 %"),
        (0.0, "0 %"),
        (-1e-9, "−0.0000001 %"),
        (0.0005, "+0.1 %"),
        (0.043, "+4.3 %"),
        (-0.17, "−17 %"),
    ],
)
def test_a_bound_of_a_told_change_is_not_shown_as_zero(change: float, said: str) -> None:
    figure = PublishedFigure(value=0.1, least=change, most=0.2)
    row = SeriesRow(contacts=figure, per_phone=figure, change=figure, trend=Trend.UP)
    assert shown.change(row) == f"up: +10 % ({said} to +20 %)"


def test_a_chart_tells_its_newest_week_and_draws_the_truth_beside() -> None:
    series = made(QUIET, SlotState.MISSED, MORE)
    drawn = ElementTree.fromstring(shown.chart(series, 0, [0.6, 0.7, None]))  # noqa: S314
    title, description = drawn[0].text, drawn[1].text
    assert title == "Share of bar"
    assert description == (
        "Share of bar by week, 4 Jan to 24 Jan 2027. 18 Jan to 24 Jan 2027: 75 % (74 % to 76 %)"
    )
    titles = [each.text for each in drawn.iter("title")][1:]
    assert titles[1] == "11 Jan to 17 Jan 2027: Did not begin in time"
    texts = [each.text for each in drawn.iter("text")]
    assert texts == ["100 %", "0", "4 Jan 2027", "24 Jan 2027"]
    assert "beside" in shown.chart(series, 0, [0.6, 0.7, None])
    assert "beside" not in shown.chart(series, 0)
    assert "Contacts per phone by week" in shown.chart(series)
    assert "No week has been counted yet." in shown.chart(made(SlotState.MISSED), 1)


@pytest.mark.parametrize(
    ("largest", "edge"),
    [(0.011, "2 %"), (0.025, "3 %"), (0.03, "3 %"), (0.04, "5 %"), (0.06, "10 %"), (0.1, "10 %")],
)
def test_the_axis_of_a_chart_ends_at_a_round_figure(largest: float, edge: str) -> None:
    series = of_places(("a", "b"), (0, 5_000_000))
    drawn = shown.chart(series, 0, [largest]).replace("\xa0", " ")
    assert f">{edge}</text>" in drawn


def test_the_axis_of_a_small_share_is_its_own() -> None:
    drawn = shown.chart(of_places(("a", "b"), (100_000, 5_000_000)), 0).replace("\xa0", " ")
    assert ">2 %</text>" in drawn


def test_the_axis_of_a_rate_has_no_unit() -> None:
    assert ">5</text>" in shown.chart(made(MORE))
    assert ">1</text>" in shown.chart(made(SlotState.MISSED))


def test_the_legend_names_the_truth_only_where_it_is_drawn() -> None:
    assert (
        shown.legend(truth=True).removeprefix(shown.legend()) == " The dashed course is the truth."
    )


def test_all_of_it_is_german_on_a_german_page(monkeypatch: pytest.MonkeyPatch) -> None:
    english = [
        *shown.headline(made(QUIET, MORE)),
        *shown.explanation(made(QUIET, MORE)),
        shown.legend(True),
    ]
    monkeypatch.setattr(languages, "_of_page", lambda: "de")
    german = [
        *shown.headline(made(QUIET, MORE)),
        *shown.explanation(made(QUIET, MORE)),
        shown.legend(True),
    ]
    assert not set(english) & set(german)
    assert german[0].endswith(
        "nahmen teil, mit durchschnittlich je 3,25 (3,18 bis 3,32) Kontakten in der Woche."
    )
    assert "Anteil von bar" in shown.chart(made(QUIET), 0)
    assert shown.table(made(QUIET, SlotState.MISSED))[-1].note == "Begann nicht rechtzeitig"
    # A server's own reason is English, and stands with its phase, where it is marked as such.
    failed = made(QUIET, SlotState.FAILED, reason="too few phones")
    assert shown.table(failed)[-1].note == "Ihre Phase ist fehlgeschlagen"
    assert "too few phones" not in " ".join(shown.headline(failed))
    small = shown.table(of_places(("a", "b"), (1000, 50_000)), 0)[0]
    assert small.share.startswith("2\xa0% (1,8\xa0% bis")
