"""The series of a campaign: every week has a row, every figure an interval, every word a reason."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec
import numpy as np
import pytest
from support.slots import COMPUTED, LABELS, MAP, counts, plan, slot, weekly, year_of

from earshot_server.campaigns import intervals
from earshot_server.campaigns.campaign import RepeatedDiscovery
from earshot_server.campaigns.holidays import Holiday
from earshot_server.campaigns.intervals import CONFIDENCE, NoisySum, level
from earshot_server.campaigns.series import ObservationStatus, Series, Trend, series_of
from earshot_server.campaigns.slots import SlotState

PLAN = plan()
QUIET = counts((3000, 1500), (3000, 1500), 1000)


def made(*results: object, **changes: object) -> Series:
    return series_of(PLAN, year_of(PLAN, results, **changes), COMPUTED)  # type: ignore[arg-type]


def test_a_week_has_its_three_figures_and_what_they_rest_on() -> None:
    series = made(QUIET)
    (week,) = series.weeks
    bar, office = week.places
    assert (series.places, series.digest, series.computed) == (LABELS, PLAN.digest, COMPUTED)
    assert (week.number, week.since, week.until) == (1, date(2027, 1, 4), date(2027, 1, 11))
    assert (week.status, week.reason, week.late) == (ObservationStatus.NORMAL, "", False)
    assert (week.enrolled, week.phones, week.length, week.deviation) == (5000, 4000, 10, 40.0)
    assert (week.map, week.map_days) == (MAP, 10)
    assert week.unknown
    assert week.total
    assert bar.share
    assert office.share
    assert week.unknown.share
    assert (bar.contacts.value, office.contacts.value) == (6000, 3000), "labelled and named"
    assert bar.share.value == pytest.approx(2 / 3)
    assert bar.share.value + office.share.value == 1, "of contacts that are assigned"
    assert week.unknown.share.value == pytest.approx(0.1), "of all contacts"
    assert week.total.per_phone.value == 2.5
    assert week.total.share is None
    assert bar.contacts.least == pytest.approx(4000 * bar.per_phone.least)
    assert bar.contacts.most - 6000 == pytest.approx(1.96 * np.sqrt(2 * 40**2 + 6000), rel=0.02)
    assert week.total.contacts.most - 10_000 == pytest.approx(
        1.96 * np.sqrt(5 * 40**2 + 10_000), rel=0.02
    )
    assert bar.trend is None, "there is no week before"
    assert bar.change is None


def test_a_week_that_was_not_counted_is_a_row_with_its_reason() -> None:
    slots = year_of(PLAN, [QUIET, SlotState.MISSED, SlotState.FAILED, SlotState.RUNNING])
    slots[2] = msgspec.structs.replace(slots[2], reason="too few phones joined")
    slots += year_of(PLAN, [SlotState.PLANNED] * 6)[4:]
    weeks = series_of(PLAN, slots[::-1], COMPUTED).weeks
    assert [week.number for week in weeks] == [1, 2, 3, 4], "planned ones have not ended"
    assert [week.status.value for week in weeks] == ["A", "L", "L", "O"]
    assert [week.reason for week in weeks] == [
        "",
        "did not begin in time",
        "too few phones joined",
        "is being counted",
    ]
    for week in weeks[1:]:
        empty = (0, "", None, 0, 0.0, 0, (), None, None)
        assert (week.phones, week.map, week.map_days, week.length, week.deviation) == empty[:5]
        assert (week.weeks_before, week.places, week.unknown, week.total) == empty[5:]
        assert week.enrolled == 5000


def test_a_trend_is_told_against_up_to_four_weeks_before() -> None:
    more = counts((4000, 1500), (4000, 1500), 1000)
    missed = SlotState.MISSED
    series = made(QUIET, QUIET, missed, missed, missed, more)
    assert [week.weeks_before for week in series.weeks] == [0, 1, 0, 0, 0, 1]
    assert [row.trend for row in series.weeks[1].places] == [Trend.NOT_TOLD] * 2
    bar, office = series.weeks[-1].places
    assert (bar.trend, office.trend) == (Trend.UP, Trend.NOT_TOLD)
    assert bar.change
    assert bar.change.value == pytest.approx(1 / 3)
    assert 0 < bar.change.least < 1 / 3 < bar.change.most
    assert series.weeks[-1].total
    assert series.weeks[-1].total.trend is Trend.UP
    fewer = counts((2000, 1500), (2000, 1500), 1000)
    assert made(QUIET, fewer).weeks[-1].places[0].trend is Trend.DOWN
    assert made(missed, missed, missed, missed, missed, more).weeks[-1].weeks_before == 0


def test_what_is_compared_is_per_phone() -> None:
    """Half the phones with half the contacts: nothing changed."""
    half = counts((1500, 750), (1500, 750), 500, phones=2000)
    rows = made(QUIET, half).weeks[-1].places
    assert [row.trend for row in rows] == [Trend.NOT_TOLD] * 2
    assert [row.change and row.change.value for row in rows] == [0.0, 0.0]


def test_nothing_is_compared_across_a_new_map() -> None:
    slots = year_of(PLAN, [QUIET] * 5)
    other = [msgspec.structs.replace(each, map="cd" * 16) for each in slots[2:]]
    weeks = series_of(PLAN, slots[:2] + other, COMPUTED).weeks
    assert [week.status.value for week in weeks] == ["A", "A", "B", "A", "A"]
    assert [week.weeks_before for week in weeks] == [0, 1, 0, 1, 2]
    assert [row.trend for row in weeks[2].places] == [None, None]


def test_without_a_map_the_entries_of_names_are_noise_and_left_out() -> None:
    named_by_noise = counts((3000, 1500), (90, -60), 1000)
    slots = [slot(weekly(PLAN)[0], result=named_by_noise, map="", mapped=None)]
    (week,) = series_of(PLAN, slots, COMPUTED).weeks
    assert [row.contacts.value for row in week.places] == [3000, 1500]
    assert week.total
    assert week.total.contacts.value == 5500
    assert week.map_days is None
    (with_map,) = made(named_by_noise).weeks
    width = [row.contacts.most - row.contacts.least for row in (*with_map.places, *week.places)]
    assert width[0] > width[2]


def test_late_weeks_and_holidays_are_noted() -> None:
    slots = [slot(phase, result=QUIET, late=True) for phase in weekly(PLAN)[:2]]
    monday = date(2027, 1, 11)
    holidays = [
        Holiday(day=monday + timedelta(days=each), name=str(each)) for each in (-1, 0, 6, 7)
    ]
    weeks = series_of(PLAN, slots, COMPUTED, holidays).weeks
    assert [week.late for week in weeks] == [True, True]
    assert [[each.name for each in week.holidays] for week in weeks] == [["-1"], ["0", "6"]]


def test_a_week_that_failed_late_was_not_counted_late() -> None:
    failed = slot(weekly(PLAN)[0], SlotState.FAILED, late=True, reason="nobody answered")
    assert not series_of(PLAN, [failed], COMPUTED).weeks[0].late


def test_discoveries_are_no_weeks() -> None:
    of = plan(weeks=6, discovery=RepeatedDiscovery(every_weeks=13, retries=0))
    slots = [slot(phase, SlotState.FAILED, reason="no map") for phase in of.phases]
    assert len(slots) > 6
    assert len(series_of(of, slots, COMPUTED).weeks) == 6


def test_the_age_of_a_map_needs_both_moments() -> None:
    (phase, *_) = weekly(PLAN)
    slots = [slot(phase, result=QUIET, opened=None), slot(phase, result=QUIET, mapped=None)]
    ages = [series_of(PLAN, [each], COMPUTED).weeks[0].map_days for each in slots]
    assert ages == [None, None]


def test_a_week_without_days_is_an_error() -> None:
    (phase, *_) = weekly(PLAN)
    for missing in ({"since": None}, {"until": None}):
        broken = slot(msgspec.structs.replace(phase, **missing), result=QUIET)
        with pytest.raises(ValueError, match="slot 1 has no days"):
            series_of(PLAN, [broken], COMPUTED)


def test_a_share_of_noise_has_no_figure() -> None:
    (week,) = made(counts((60, -30), (20, 40), 10)).weeks
    assert week.unknown is not None
    assert [row.share for row in (*week.places, week.unknown)] == [None] * 3
    assert all(row.contacts.least == 0 for row in week.places)


def test_a_week_in_which_no_phone_came_has_no_figures() -> None:
    (week,) = made(counts((0, 0), (0, 0), 0, phones=0)).weeks
    assert (week.status, week.reason) == (ObservationStatus.NOT_COLLECTED, "no phone took part")


@pytest.mark.parametrize("named", [True, False])
def test_a_quiet_year_has_right_figures_and_few_words(named: bool) -> None:
    """Eight years of twelve places, with the entries and the noise of real phases.

    Rates are known, as they are drawn from here.
    """
    random = np.random.default_rng(58)
    labels = tuple("abcdefghijkl")
    of = plan(weeks=52, labels=labels)
    shares = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.04, 0.03, 0.015, 0.01, 0.005])
    held: list[bool] = []
    weeks_with_words = weeks = 0
    for _ in range(8):
        slots = []
        for phase in weekly(of):
            phones = int(random.integers(3500, 5500))
            each = 3 * phones * shares
            rates = np.concatenate([0.4 * each, 0.6 * each * named, [0.2 * 3 * phones]])
            steps = (100 * 57.0) ** 2 / 2
            noise = (random.poisson(steps, 25) - random.poisson(steps, 25)) / 100
            counted = (random.poisson(rates) + noise).tolist()
            result = msgspec.structs.replace(
                QUIET,
                label_names=labels,
                labelled=tuple(counted[:12]),
                named=tuple(counted[12:24]),
                unknown=counted[24],
                deviation=57.0,
                phones=phones,
            )
            slots.append(slot(phase, result=result, map=MAP if named else ""))
        for week in series_of(of, slots, COMPUTED).weeks:
            scale = 3 if named else 1.2
            for row, share in zip(week.places, shares, strict=True):
                assert row.share
                held.append(row.share.least <= share <= row.share.most)
                held.append(row.per_phone.least <= scale * share <= row.per_phone.most)
            assert week.total
            held.append(week.total.per_phone.least <= scale + 0.6 <= week.total.per_phone.most)
            if week.weeks_before:
                rows = (*week.places, week.unknown, week.total)
                weeks += 1
                weeks_with_words += any(row and row.trend is not Trend.NOT_TOLD for row in rows)
    assert 0.94 <= np.mean(held) <= 0.96
    assert 0.01 <= weeks_with_words / weeks <= 0.07


def test_contacts_per_phone_are_smoothed_under_one_map() -> None:
    """Noise of 100 around 3,000 contacts of 4,000 phones, or of 2,000 with half of them."""
    source = np.random.default_rng(53)
    crowds = [4000, 4000, 2000, 4000, 4000, 4000, 4000, 4000]
    results: list[object] = [
        counts(
            source.normal((phones / 2, phones / 4), 70),
            source.normal((phones / 4, phones / 8), 70),
            phones / 8,
            deviation=70.0,
            phones=phones,
        )
        for phones in crowds
    ]
    results[4] = SlotState.MISSED
    planned = plan(weeks=8)
    slots = year_of(planned, results)  # type: ignore[arg-type]
    weeks = series_of(planned, slots, COMPUTED).counted
    assert len(weeks) == 7
    smooth = [week.places[0].smoothed for week in weeks]
    assert all(each and each.least < 0.75 < each.most for each in smooth)
    assert np.std([each.value for each in smooth if each]) < 0.7 * np.std(
        [week.places[0].per_phone.value for week in weeks]
    )
    for week in weeks:
        for row in (*week.places, week.unknown, week.total):
            assert row
            assert row.smoothed
            assert row.smoothed.most - row.smoothed.value == pytest.approx(
                row.smoothed.value - row.smoothed.least
            )
            assert row.smoothed.most - row.smoothed.least < row.per_phone.most - row.per_phone.least
    # The first week of a new map, alone, is as it was counted; others keep to their map.
    slots[-1] = msgspec.structs.replace(slots[-1], map="cd" * 16)
    *_, last = series_of(planned, slots, COMPUTED).counted
    assert last.places[0].smoothed
    assert last.places[0].smoothed.value == pytest.approx(last.places[0].per_phone.value)
    earlier = series_of(planned, slots[:-1], COMPUTED).counted[-1].places[0].smoothed
    assert earlier
    assert smooth[-2]
    assert earlier.value != smooth[-2].value, "revised when a later week is counted"


CONFUSED = (900.0, 100.0, 0.0, 500.0)
"""Of a thousand recordings of a bar a tenth sounds like an office, and none the other way round."""


def test_a_matrix_corrects_all_weeks_under_its_map() -> None:
    """2,700 of 3,000 unlabelled contacts at the bar were named so, and 300 more at the office."""
    week = counts((3000, 1500), (2700, 1800), 1000, deviation=40.0)
    counted = msgspec.structs.replace(week, confusion=CONFUSED)
    slots = year_of(PLAN, [week, counted, week, week])
    slots[3] = msgspec.structs.replace(slots[3], map="cd" * 16)
    *same, other = series_of(PLAN, slots, COMPUTED).weeks
    for each in same:
        bar, office = each.places
        assert (bar.contacts.value, office.contacts.value) == pytest.approx((6000, 3000), rel=1e-9)
        assert bar.share
        assert bar.share.value == pytest.approx(2 / 3)
        assert each.total
        assert each.total.contacts.value == pytest.approx(10_000)
        assert each.corrected
        assert each.right_names
        assert each.right_names.value == pytest.approx(1400 / 1500)
        # Noise of 40 contacts is 4 recordings where phones count for 10 contacts at most.
        told = intervals.share(
            NoisySum(1400, 2 * 4**2), NoisySum(1500, 4 * 4**2), level(CONFIDENCE)
        )
        assert each.right_names == told
    assert not other.corrected
    assert other.right_names is None
    assert [row.contacts.value for row in other.places] == [5700, 3300]


def test_what_is_not_known_of_a_map_is_in_intervals_and_not_in_changes() -> None:
    """Few labelled recordings: shares are uncertain, but alike in all weeks under the map."""
    week = counts((3000, 1500), (2700, 1800), 1000, deviation=4.0)
    few, many = (
        msgspec.structs.replace(week, confusion=tuple(size * each / 1000 for each in CONFUSED))
        for size in (100, 1e6)
    )
    wide, narrow = (
        series_of(PLAN, year_of(PLAN, [each, week]), COMPUTED).weeks[-1].places[0]
        for each in (few, many)
    )
    for name in ("contacts", "per_phone", "share", "smoothed"):
        widths = [getattr(each, name).most - getattr(each, name).least for each in (wide, narrow)]
        assert widths[0] > 1.2 * widths[1], name
    assert wide.change
    assert narrow.change
    assert wide.change.most == pytest.approx(narrow.change.most, rel=0.1)
    more = msgspec.structs.replace(week, named=(3400.0, 1800))
    fewest = msgspec.structs.replace(few, confusion=tuple(each / 125 for each in CONFUSED))
    *_, risen = series_of(PLAN, year_of(PLAN, [fewest, more]), COMPUTED).weeks
    assert risen.places[0].trend is Trend.UP, "whatever the map's rates are, they are the same"
    assert risen.places[0].contacts.least < 6000 < 6700 < risen.places[0].contacts.most


def test_without_a_map_a_matrix_corrects_nothing() -> None:
    counted = counts((3000, 1500), (90, -60), 1000, confusion=CONFUSED)
    slots = [slot(weekly(PLAN)[0], result=counted, map="", mapped=None)]
    (week,) = series_of(PLAN, slots, COMPUTED).weeks
    assert not week.corrected
    assert [row.contacts.value for row in week.places] == [3000, 1500]
