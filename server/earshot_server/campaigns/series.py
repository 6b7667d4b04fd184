"""The series of a campaign: what an authority publishes, week after week.

A place's contacts are those that people labelled and those that the map named. Three figures are
published of a week: the share of each place in all contacts that are assigned to a place, contacts
per phone that took part, and the change of the latter against the four weeks before.

If a week under the map has counted how the map names labelled recordings, the contacts that it
named are corrected in all of its weeks (`correction`), and intervals cover what is not known about
its names. Else they cover noise and chance alone (`intervals`). They never cover what projection
leaves out of busy phones' contacts, and who takes part.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Sequence
from datetime import date, datetime

import msgspec
import numpy as np

from earshot_protocol.phases.statistics import Statistics
from earshot_server.campaigns import intervals
from earshot_server.campaigns.correction import Naming, corrected, naming_of
from earshot_server.campaigns.holidays import Holiday
from earshot_server.campaigns.intervals import CONFIDENCE, NoisySum, PublishedFigure, together
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.schedule import PhaseKind
from earshot_server.campaigns.slots import Slot, SlotState
from earshot_server.campaigns.smoothing import smoothed

METHOD = "1"
"""Version of the method, which changes when equal slots would give other figures."""
WEEKS_BEFORE = 4
"""Weeks with which a week is compared."""
_LEVEL = intervals.level(CONFIDENCE)


class ObservationStatus(enum.StrEnum):
    """Status of an observation: codes of SDMX's code list CL_OBS_STATUS."""

    NORMAL = "A"
    BREAK = "B"
    """First week under another map: it does not compare with those before."""
    NOT_COLLECTED = "L"
    """Missing: contacts were made, and not counted."""
    NOT_YET = "O"
    """Missing: not counted yet."""


class Trend(enum.StrEnum):
    """What is told of a change against the weeks before."""

    UP = "up"
    DOWN = "down"
    NOT_TOLD = "not told"
    """Noise and chance may explain it."""


_TRENDS = {1: Trend.UP, 0: Trend.NOT_TOLD, -1: Trend.DOWN}


class SeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a week for one place, for all contacts, or for those that no place was told of.

    Attributes:
        contacts: Contacts, scaled down where a phone had many.
        per_phone: Contacts per phone that took part.
        share: Share in the contacts that are assigned to a place; for unknown contacts, their share
            in all. None if the whole is not clear of the noise, and for all contacts.
        change: Relative change of contacts per phone against the weeks before, 0 for none. The
            intervals of a week's changes hold together, those of other figures one by one. None if
            there are no such weeks, or their contacts are not clear of the noise.
        trend: Whether the change is told; None if there are no weeks to compare with.
        smoothed: Contacts per phone, smoothed over the weeks under the same map (`smoothing`);
            revised whenever a later week is counted. That of the newest week is provisional.
    """

    contacts: PublishedFigure
    per_phone: PublishedFigure
    share: PublishedFigure | None = None
    change: PublishedFigure | None = None
    trend: Trend | None = None
    smoothed: PublishedFigure | None = None


class SeriesWeek(msgspec.Struct, frozen=True, kw_only=True):
    """One week of a series; without figures if it was not counted.

    Attributes:
        number: Number of the slot, from 1.
        since: First day, in UTC.
        until: Day after the last one.
        status: Status of the week's figures.
        enrolled: Phones of the cohorts that were enrolled when its phase opened.
        reason: Reason why the week has none; empty if it has.
        late: Whether it was counted later than it might have been.
        phones: Phones that took part, whose counts were added up.
        map: Identifier of the discovery that named unlabelled contacts, in hexadecimal; empty
            without one.
        map_days: Age of the map when the phase opened, in days; None without one.
        corrected: Whether the contacts that the map named are corrected.
        right_names: Share of the labelled recordings with a name that the map names rightly; None
            if none were counted under it, or too few.
        length: Length to which phones' counts were projected, B.
        deviation: Standard deviation of the noise on each entry of the sum, in contacts.
        weeks_before: Weeks with which the week is compared: those of the four before it that were
            counted under the same map.
        places: Figures of each place, in the order of `Series.places`.
        unknown: Figures of contacts with neither a label nor a name by the map.
        total: Figures of all contacts.
        holidays: Holidays of the week.
    """

    number: int
    since: date
    until: date
    status: ObservationStatus
    enrolled: int
    reason: str = ""
    late: bool = False
    phones: int = 0
    map: str = ""
    map_days: int | None = None
    corrected: bool = False
    right_names: PublishedFigure | None = None
    length: int = 0
    deviation: float = 0.0
    weeks_before: int = 0
    places: tuple[SeriesRow, ...] = ()
    unknown: SeriesRow | None = None
    total: SeriesRow | None = None
    holidays: tuple[Holiday, ...] = ()


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The series of a campaign.

    Attributes:
        name: Name of the campaign.
        authority: Authority that publishes it; empty if the campaign names none.
        results: Address at which it publishes results; empty likewise.
        digest: Digest of the plan, in hexadecimal.
        places: Names of the places.
        method: Version of the method.
        computed: Moment at which the series was computed: its vintage.
        weeks: All weeks that have ended, oldest first, counted or not.
    """

    name: str
    authority: str
    results: str
    digest: str
    places: tuple[str, ...]
    method: str
    computed: datetime
    weeks: tuple[SeriesWeek, ...]

    @property
    def counted(self) -> tuple[SeriesWeek, ...]:
        """Weeks with figures."""
        return tuple(week for week in self.weeks if week.total is not None)


class _Counted:
    """Sums of a week that was counted.

    Attributes:
        slot: The slot.
        result: Its published counts.
        naming: How its map names recordings; None if that was not counted.
        phones: Phones that took part.
        assigned: Contacts of all places together, which a correction does not change.
        places: Contacts of each place.
        covariances: Covariances of the errors of `places` with that of `assigned`.
        unknown: Unknown contacts.
    """

    def __init__(self, slot: Slot, result: Statistics, naming: Naming | None) -> None:
        variance = result.deviation**2
        # Without a map, no contact is named, and the entries for names hold nothing but noise.
        if slot.map:
            totals, entries = result.assigned, 2
        else:
            totals, entries = result.labelled, 1
        self.slot, self.result, self.phones = slot, result, result.phones
        self.naming = naming
        self.places = tuple(NoisySum(each, entries * variance) for each in totals)
        self.covariances = [each.variance for each in self.places]
        self.assigned = together(self.places)
        self.unknown = NoisySum(result.unknown, variance)
        if naming is not None:
            self._correct(naming, variance)

    def _correct(self, naming: Naming, variance: float) -> None:
        """Correct the contacts that the map named."""
        named = np.array(self.result.named)
        found = corrected(named, np.full(len(named), variance), naming)
        # Errors of the rates move contacts from place to place, so they are not in the whole.
        self.covariances = (variance + found.noise.sum(axis=1)).tolist()
        common = np.sqrt(np.maximum(np.diagonal(found.naming, axis1=1, axis2=2).T, 0))
        self.places = tuple(
            NoisySum(labelled + own, variance + noise, tuple(loadings))
            for labelled, own, noise, loadings in zip(
                self.result.labelled,
                found.counts.tolist(),
                np.diagonal(found.noise).tolist(),
                common.tolist(),
                strict=True,
            )
        )

    @functools.cached_property
    def sums(self) -> tuple[NoisySum, ...]:
        """Contacts of each place, unknown ones, and all."""
        return (*self.places, self.unknown, together((self.assigned, self.unknown)))

    @property
    def shares(self) -> list[PublishedFigure | None]:
        """Shares of the same: of places in assigned contacts, of unknown ones in all, and none."""
        *_, total = self.sums
        found = [
            intervals.share(place, self.assigned, _LEVEL, covariance)
            for place, covariance in zip(self.places, self.covariances, strict=True)
        ]
        return [*found, intervals.share(self.unknown, total, _LEVEL), None]

    @property
    def right_names(self) -> PublishedFigure | None:
        """Share of labelled recordings that the map names rightly; None if it is not known."""
        if self.naming is None:
            return None
        variance, places = self.naming.deviation**2, len(self.places)
        right = NoisySum(float(np.trace(self.naming.table)), places * variance)
        named = NoisySum(float(self.naming.table.sum()), places**2 * variance)
        return intervals.share(right, named, _LEVEL)


def series_of(
    plan: CampaignPlan,
    slots: Sequence[Slot],
    computed: datetime,
    holidays: Sequence[Holiday] = (),
) -> Series:
    """Return the series of a campaign.

    Args:
        plan: Plan of the campaign.
        slots: What became of its phases.
        computed: The present moment.
        holidays: Holidays to note in their weeks.
    """
    weeks = sorted(
        (
            slot
            for slot in slots
            if slot.planned.kind is PhaseKind.STATISTICS and slot.state is not SlotState.PLANNED
        ),
        key=lambda slot: slot.planned.number,
    )
    namings = _namings(weeks)
    counted = {
        slot.planned.number: _Counted(slot, slot.result, namings.get(slot.map))
        for slot in weeks
        if slot.result is not None and slot.result.phones
    }
    smooth = _smoothed(counted)
    public = plan.campaign.public
    return Series(
        name=plan.campaign.name,
        authority=public.authority if public else "",
        results=public.results if public else "",
        digest=plan.digest,
        places=plan.campaign.labels,
        method=METHOD,
        computed=computed,
        weeks=tuple(_week(slot, counted, smooth, holidays) for slot in weeks),
    )


def _namings(weeks: Sequence[Slot]) -> dict[str, Naming]:
    """Return how each map names recordings, as the first week under it that counted it tells."""
    found: dict[str, Naming] = {}
    for slot in weeks:
        result = slot.result
        if slot.map and result is not None and result.confusion:
            places = len(result.label_names)
            table = np.array(result.confusion).reshape(places, places)
            found.setdefault(slot.map, naming_of(table, result.deviation / result.contacts))
    return found


def _week(
    slot: Slot,
    counted: dict[int, _Counted],
    smooth: dict[int, list[PublishedFigure]],
    holidays: Sequence[Holiday],
) -> SeriesWeek:
    number, since, until = slot.planned.number, slot.planned.since, slot.planned.until
    if since is None or until is None:
        raise ValueError(f"slot {number} has no days")
    week = SeriesWeek(
        number=number,
        since=since,
        until=until,
        status=ObservationStatus.NOT_COLLECTED,
        enrolled=slot.enrolled,
        holidays=tuple(each for each in holidays if since <= each.day < until),
    )
    change = msgspec.structs.replace
    now = counted.get(number)
    if now is None:
        is_open = slot.state in (SlotState.DUE, SlotState.RUNNING)
        status = ObservationStatus.NOT_YET if is_open else ObservationStatus.NOT_COLLECTED
        return change(week, status=status, reason=_reason(slot))
    earlier = [each for before, each in sorted(counted.items()) if before < number]
    broken = bool(earlier) and earlier[-1].slot.map != slot.map
    before = [
        each
        for each in earlier
        if each.slot.planned.number >= number - WEEKS_BEFORE and each.slot.map == slot.map
    ]
    *places, unknown, total = _rows(now, before, smooth[number])
    return change(
        week,
        status=ObservationStatus.BREAK if broken else ObservationStatus.NORMAL,
        late=slot.late,
        phones=now.phones,
        map=slot.map,
        map_days=(slot.opened - slot.mapped).days if slot.opened and slot.mapped else None,
        corrected=now.naming is not None,
        right_names=now.right_names,
        length=now.result.contacts,
        deviation=now.result.deviation,
        weeks_before=len(before),
        places=tuple(places),
        unknown=unknown,
        total=total,
    )


def _smoothed(counted: dict[int, _Counted]) -> dict[int, list[PublishedFigure]]:
    """Return the smoothed contacts per phone of each counted week, in the order of its rows."""
    if not counted:
        return {}
    numbers = sorted(counted)
    entries = len(counted[numbers[0]].sums)
    totals = np.full((numbers[-1] + 1, entries), np.nan)
    noise, common, phones = np.ones_like(totals), np.zeros_like(totals), np.ones(len(totals))
    for number in numbers:
        week = counted[number]
        totals[number], noise[number], common[number] = zip(
            *((each.total, each.variance, each.covariance(each)) for each in week.sums), strict=True
        )
        phones[number] = week.phones
    breaks = [
        after
        for before, after in itertools.pairwise(numbers)
        if counted[before].slot.map != counted[after].slot.map
    ]
    found = smoothed(totals, noise, phones, breaks)
    means = found.counts / phones[:, np.newaxis]
    # Errors that all weeks under a map share do not become smaller.
    wide = _LEVEL * np.sqrt(found.variances + common) / phones[:, np.newaxis]
    return {
        number: [
            PublishedFigure(value=value, least=value - half, most=value + half)
            for value, half in zip(means[number].tolist(), wide[number].tolist(), strict=True)
        ]
        for number in numbers
    }


def _reason(slot: Slot) -> str:
    """Return why a week has no figures."""
    match slot.state:
        case SlotState.DUE:
            return "waits for its turn"
        case SlotState.RUNNING:
            return "is being counted"
        case SlotState.MISSED:
            return slot.reason or "did not begin in time"
        case SlotState.STOPPED:
            return "the campaign was stopped"
        case _:
            return slot.reason or "no phone took part"


def _rows(
    now: _Counted, before: Sequence[_Counted], smooth: Sequence[PublishedFigure]
) -> list[SeriesRow]:
    """Return the rows of a counted week: of each place, of unknown contacts, and of all."""
    deviations = intervals.level(CONFIDENCE, len(now.sums))
    phones_before = sum(week.phones for week in before)
    rows = []
    for number, (own, share) in enumerate(zip(now.sums, now.shares, strict=True)):
        contacts, change, trend = intervals.count(own, _LEVEL), None, None
        if before:
            compared = intervals.compared(
                own,
                together(week.sums[number] for week in before),
                now.phones / phones_before,
                deviations,
            )
            change, trend = compared.change, _TRENDS[compared.sign]
        rows.append(
            SeriesRow(
                contacts=contacts,
                per_phone=contacts.over(now.phones),
                share=share,
                change=change,
                trend=trend,
                smoothed=smooth[number],
            )
        )
    return rows
