"""The series of a campaign for people: its sentences, its charts, and the rows of its tables.

Pages of the dashboard and of simulations show them, so nothing here imports a web server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from markupsafe import Markup

from earshot_server.campaigns.intervals import PublishedFigure
from earshot_server.campaigns.series import (
    WEEKS_BEFORE,
    ObservationStatus,
    Series,
    SeriesRow,
    SeriesWeek,
    Trend,
)
from earshot_server.dashboard import charts
from earshot_server.dashboard.charts import ChartTexts, WeekMark
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import gettext_among, ngettext, noted
from earshot_server.dashboard.wording import (
    NOTHING,
    counted,
    listed,
    printable,
    real,
    sentence,
    whole,
    window,
)

_REASONS = frozenset(
    (
        *(noted("waits for its turn"), noted("is being counted"), noted("did not begin in time")),
        *(noted("the campaign was stopped"), noted("no phone took part")),
        noted("may have been counted after the backup from which the server was restored"),
    )
)
_MOST_NAMED = 3
"""Most places that are named as those with the largest shares."""
_Text = Callable[[float], str]


class WeekTexts(NamedTuple):
    """Row of a table of one place's weeks.

    Attributes:
        days: Days of the week.
        phones: Phones that took part.
        share: Share of the place, with its interval.
        per_phone: Contacts per phone, with their interval.
        change: Change against the weeks before.
        note: What else has to be known of the week.
    """

    days: str
    phones: str
    share: str
    per_phone: str
    change: str
    note: str


def headline(series: Series) -> list[str]:
    """Return sentences on the newest week that was counted, the most important first."""
    if not series.counted:
        return [_("No week has been counted yet.")]
    week = series.counted[-1]
    said = [_participation(week), _largest(series, week), *_changes(series, week)]
    newest = series.weeks[-1]
    if newest.total is None:
        said.append(
            _(
                "The week %(days)s has no figures: %(reason)s.",
                days=window(newest.since, newest.until),
                reason=_reason(newest),
            )
        )
    return said


def explanation(series: Series) -> list[str]:
    """Return sentences on what a series shows, and what it does not."""
    said = [
        _(
            "This series shows at which kinds of place the phones that take part had contacts: the "
            "share of each place, and contacts per phone."
        ),
        _(
            "Noise protects each person who takes part. The range beside a figure holds the right "
            "one in 95 of 100 cases, as far as noise and chance go."
        ),
        _(
            "A change compares contacts per phone with the weeks before. It is called up or down "
            "only if noise and chance hardly explain it: where nothing changes, 95 of 100 weeks "
            "have no such word at any place. A slow rise or fall may never get one."
        ),
        _(
            "It does not show contacts of people who do not take part, nor all contacts of phones "
            "that had very many. No range covers these."
        ),
    ]
    newest = series.counted[-1] if series.counted else None
    if newest is not None and newest.corrected:
        said.append(_corrected(newest))
    elif newest is None or newest.map:
        said.append(
            _(
                "A map names contacts that nobody labelled, and makes mistakes. No range covers "
                "them."
            )
        )
    return said


def _corrected(week: SeriesWeek) -> str:
    """Return for what the contacts that a map named are corrected."""
    if week.right_names is None:
        return _(
            "A map names contacts that nobody labelled. They are corrected for how it names "
            "recordings that people labelled, as far as these stand clear of the noise, and ranges "
            "allow for it. That assumes that all recordings of a place sound alike."
        )
    return _(
        "A map names contacts that nobody labelled. Of the recordings that people labelled, it "
        "names %(right)s rightly. Figures are corrected for its mistakes, and ranges allow for "
        "them. That assumes that all recordings of a place sound alike.",
        right=_ranged(week.right_names, _percent),
    )


def legend(truth: bool = False) -> str:
    """Return what the marks of a chart mean.

    Args:
        truth: Whether the chart has a line of true figures, which simulations know.
    """
    said = _(
        "A vertical line is a range that holds the figure in 95 of 100 cases. A square is a week "
        "that was counted late, a grey one was not counted. From a dashed upright line on there is "
        "a new map, and nothing compares with the weeks before."
    )
    return f"{said} {_('The dashed course is the truth.')}" if truth else said


def table(series: Series, place: int | None = None) -> list[WeekTexts]:
    """Return the rows of a table of all weeks, oldest first.

    Args:
        series: The series.
        place: Number of the place, from 0; None for all contacts.
    """
    uncorrected: dict[str, int] = {}
    if any(week.corrected for week in series.weeks):
        for week in series.weeks:
            if week.map and not week.corrected:
                uncorrected.setdefault(week.map, week.number)
    return [
        WeekTexts(
            days=window(week.since, week.until),
            phones=whole(week.phones) if week.phones else NOTHING,
            share=_share(row, place) if row else NOTHING,
            per_phone=_ranged(row.per_phone, _rate) if row else NOTHING,
            change=change(row) if row else NOTHING,
            note=note(week, uncorrected.get(week.map) == week.number),
        )
        for week in series.weeks
        for row in [_row(week, place)]
    ]


class PlaceTexts(NamedTuple):
    """Row of a table of one week's places.

    Attributes:
        name: Name of the place; for the last rows, unknown and all contacts.
        share: Share of the place, with its interval.
        per_phone: Contacts per phone, with their interval.
        change: Change against the weeks before.
    """

    name: str
    share: str
    per_phone: str
    change: str


def newest(series: Series) -> list[PlaceTexts]:
    """Return the rows of a table of the newest week that was counted; none without any."""
    if not series.counted:
        return []
    week = series.counted[-1]
    rows = [
        *zip(series.places, week.places, strict=True),
        (_("Unknown"), week.unknown),
        (_("All contacts"), week.total),
    ]
    return [
        PlaceTexts(
            name=printable(name),
            share=NOTHING if row is week.total else _share(row, 0),
            per_phone=_ranged(row.per_phone, _rate),
            change=change(row),
        )
        for name, row in rows
        if row is not None
    ]


def chart(series: Series, place: int | None = None, truth: Sequence[float | None] = ()) -> Markup:
    """Draw the share of a place, or contacts per phone of all, over the weeks.

    Args:
        series: The series, with at least one week.
        place: Number of the place, from 0; None for all contacts.
        truth: True figures of the weeks, of which simulations know them; None where there is none.
    """
    text = _rate if place is None else _percent
    marks = [
        _mark(week, _figure(week, place), text, beside)
        for week, beside in zip(series.weeks, truth or [None] * len(series.weeks), strict=True)
    ]
    largest = max(
        (value for mark in marks for value in (mark.most, mark.beside or 0.0)), default=0.0
    )
    top = _edge(largest)
    first, last = series.weeks[0], series.weeks[-1]
    name = (
        _("Contacts per phone")
        if place is None
        else _("Share of %(place)s", place=series.places[place])
    )
    counted_weeks = [mark for mark in marks if mark.value is not None]
    return charts.of_weeks(
        marks,
        top,
        ChartTexts(
            title=name,
            description=_(
                "%(name)s by week, %(days)s. %(last)s",
                name=name,
                days=window(first.since, last.until),
                last=counted_weeks[-1].told
                if counted_weeks
                else _("No week has been counted yet."),
            ),
            top=real(top) if place is None else _percent(top),
            first=_day(first.since),
            last=_day(last.until - timedelta(days=1)),
            broken=_("new map"),
        ),
    )


def change(row: SeriesRow) -> str:
    """Return what is told of a row's change against the weeks before."""
    if row.trend is None:
        return NOTHING
    if row.trend is Trend.NOT_TOLD:
        return _("no clear change")
    word = _("up") if row.trend is Trend.UP else _("down")
    return f"{word}: {_ranged(row.change, _signed)}" if row.change else word


def note(week: SeriesWeek, begins_uncorrected: bool = False) -> str:
    """Return what else has to be known of a week; empty if nothing.

    Args:
        week: The week.
        begins_uncorrected: Whether it is the first week under a map that is not corrected for its
            mistakes, in a series in which others are.
    """
    notes = [each.name for each in week.holidays]
    if begins_uncorrected:
        notes.insert(0, _("under this map, places are not corrected for its mistakes"))
    if week.status is ObservationStatus.BREAK:
        notes.insert(0, _("new map, so nothing compares with the weeks before"))
    if week.late:
        notes.insert(0, _("counted late"))
    if week.reason:
        notes.insert(0, _reason(week))
    return sentence("; ".join(notes))


def _participation(week: SeriesWeek) -> str:
    """Return how many phones took part, and how many contacts each had."""
    total = week.total
    return _(
        "%(days)s: %(phones)s took part and had %(contacts)s contacts each in the week, on "
        "average.",
        days=window(week.since, week.until),
        phones=counted(week.phones, "phone"),
        contacts=_ranged(total.per_phone if total else None, _rate),
    )


def _largest(series: Series, week: SeriesWeek) -> str:
    """Return which places have the largest share, as far as their ranges tell."""
    shares = {
        name: row.share
        for name, row in zip(series.places, week.places, strict=True)
        if row.share is not None
    }
    if not shares:
        return _("So few contacts are assigned to a place that their shares may be noise.")
    first = max(shares, key=lambda name: shares[name].value)
    among = [name for name in shares if shares[name].most >= shares[first].least]
    if among == [first]:
        return _(
            "The largest share of the contacts that are assigned to a place: %(place)s, %(share)s.",
            place=printable(first),
            share=_ranged(shares[first], _percent),
        )
    if len(among) > _MOST_NAMED:
        return _("No place had clearly more contacts than all others.")
    return _(
        "The largest shares of the contacts that are assigned to a place: %(places)s. Which of "
        "these is the largest is not clear.",
        places=listed(list(map(_quoted, among))),
    )


def _changes(series: Series, week: SeriesWeek) -> list[str]:
    """Return what is told of changes against the weeks before."""
    if not week.weeks_before or week.total is None:
        if week.status is ObservationStatus.BREAK:
            return [_("The map is new, so nothing compares with the weeks before.")]
        return [_("There is no week before to compare with.")]
    named = {
        trend: [
            name for name, row in zip(series.places, week.places, strict=True) if row.trend is trend
        ]
        for trend in Trend
    }
    said = [
        _(
            "Contacts per phone, against %(before)s: %(change)s.",
            before=_before(week.weeks_before),
            change=change(week.total),
        )
    ]
    if named[Trend.UP]:
        up = listed(list(map(_quoted, named[Trend.UP])))
        said.append(_("More contacts per phone at these places: %(places)s.", places=up))
    if named[Trend.DOWN]:
        down = listed(list(map(_quoted, named[Trend.DOWN])))
        said.append(_("Fewer contacts per phone at these places: %(places)s.", places=down))
    if named[Trend.NOT_TOLD]:
        number = len(named[Trend.NOT_TOLD])
        said.append(
            ngettext(
                "No clear change of contacts per phone at %(number)s place: noise and chance may "
                "explain it.",
                "No clear change of contacts per phone at %(number)s places: noise and chance may "
                "explain it.",
                number,
                number=number,
            )
        )
    return said


def _quoted(place: str) -> str:
    """Return a place's name in quotation marks, as it may hold commas."""
    return _("“%(place)s”", place=place)


def _before(weeks: int) -> str:
    """Return with which of the weeks before a week is compared."""
    if weeks == WEEKS_BEFORE:
        return _("the four weeks before")
    return ngettext(
        "one of the four weeks before",
        "%(number)s of the four weeks before",
        weeks,
        number=weeks,
    )


def _reason(week: SeriesWeek) -> str:
    """Return why a week has no figures; a failure's own reason stands with its phase."""
    known = week.reason in _REASONS
    return gettext_among(_REASONS, week.reason) if known else _("its phase failed")


def _row(week: SeriesWeek, place: int | None) -> SeriesRow | None:
    if place is None or week.total is None:
        return week.total
    return week.places[place]


def _figure(week: SeriesWeek, place: int | None) -> PublishedFigure | None:
    """Return the figure that a chart draws."""
    row = _row(week, place)
    if row is None:
        return None
    return row.per_phone if place is None else row.share


def _mark(
    week: SeriesWeek, figure: PublishedFigure | None, text: _Text, beside: float | None
) -> WeekMark:
    said = [_ranged(figure, text), note(week)] if figure else [note(week)]
    days = window(week.since, week.until)
    return WeekMark(
        told=f"{days}: {'; '.join(filter(None, said)) or NOTHING}",
        value=figure.value if figure else None,
        least=figure.least if figure else 0.0,
        most=figure.most if figure else 0.0,
        late=week.late,
        broken=week.status is ObservationStatus.BREAK,
        beside=beside,
    )


def _share(row: SeriesRow, place: int | None) -> str:
    """Return a place's share; all contacts have none."""
    if row.share is None and place is not None:
        return _("may be noise")
    return _ranged(row.share, _percent)


def _ranged(figure: PublishedFigure | None, text: _Text) -> str:
    """Return a figure with its interval."""
    if figure is None:
        return NOTHING
    return _(
        "%(value)s (%(least)s to %(most)s)",
        value=text(figure.value),
        least=text(figure.least),
        most=text(figure.most),
    )


def _percent(value: float) -> str:
    """Return a share as a percentage, with a decimal below 10 %."""
    return _("%(number)s %%", number=_signless(100 * value))


def _signed(value: float) -> str:
    """Return a relative change as a percentage with its sign, to one digit if it is near 0."""
    percent = 100 * value
    # Beside "up", a bound that is not 0 is not shown as 0.
    number = _signless(percent) if abs(percent) >= 0.05 else _near_zero(percent)
    sign = "+" if percent > 0 and number != "0" else ""
    return f"{sign}{_('%(number)s %%', number=number)}"


def _near_zero(value: float) -> str:
    return f"{Decimal(f'{value or 0:.1g}'):f}".replace("-", "−").replace(".", _("."))


def _signless(value: float) -> str:
    digits = f"{abs(value):.0f}" if abs(value) >= 9.95 else f"{abs(value):.1f}".removesuffix(".0")
    sign = "−" if value < 0 and float(digits) else ""
    return f"{sign}{digits}".replace(".", _("."))


def _rate(value: float) -> str:
    """Return contacts per phone to three digits."""
    digits = f"{abs(value):#.3g}".removesuffix(".").replace(".", _("."))
    return f"{'−' if value < 0 else ''}{digits}"


def _edge(largest: float) -> float:
    """Return the least of 1, 2, 3, 5 and 10 times a power of ten that is not below a figure."""
    if largest <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(largest))
    return next(each * power for each in (1, 2, 3, 5, 10) if each * power >= largest)


def _day(day: date) -> str:
    return window(day, day + timedelta(days=1))
