"""The page of a simulated campaign: what an authority would publish, beside the truth."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.campaigns.schedule import PhaseKind
from earshot_server.campaigns.series import WEEKS_BEFORE
from earshot_server.campaigns.series_table import CSV, JSON, PACKAGE, write_series
from earshot_server.campaigns.slots import Slot
from earshot_server.dashboard import series as shown
from earshot_simulations.campaigns.findings import CampaignRun, WeekFound
from earshot_simulations.reporting import pages
from earshot_simulations.reporting.words import NOTHING, counted, duration, optional, real, whole

_RESULT = ("result.json", "report.html")
FILES = (*_RESULT, CSV, PACKAGE, JSON)
"""Files of a simulated campaign, beside what it keeps to go on."""
_MOST_PLACES = 12


def page(run: CampaignRun) -> str:
    """Return the page of a simulated campaign, without outside resources."""
    series, places = run.series, _largest(run)
    charts = (
        {series.places[each]: shown.chart(series, each, _true_shares(run, each)) for each in places}
        if series.weeks
        else {}
    )
    return pages.page(
        "campaigns/report.html",
        title=run.plan.campaign.name,
        kicker="Simulated campaign",
        headline=headline(run),
        version=distribution.version(),
        warnings=run.notes[:1],
        figures=_figures(run),
        run=run,
        headlines=shown.headline(series),
        newest=_newest(run),
        legend=shown.legend(truth=True),
        explanation=shown.explanation(series),
        total=shown.chart(series, None, _per_phone(run)) if series.weeks else "",
        charts=charts,
        left_out=len(series.places) - len(places),
        weeks=[
            [row.days, row.phones, row.per_phone, row.change, row.note]
            for row in shown.table(series)
        ],
        accuracy=_accuracy(run),
        spent=[
            [
                each.unit,
                whole(each.phones),
                *map(real, (each.least, each.median, each.most, each.planned)),
            ]
            for each in run.spent
        ],
        phases=_phases(run),
        slots=[_slot(run, slot) for slot in run.slots],
        settings=[
            [name, NOTHING if value is None else str(value)]
            for name, value in asdict(run.settings).items()
        ],
    )


def write(run: CampaignRun, folder: Path) -> None:
    """Write the files of a simulated campaign, and its series, to an existing folder.

    Raises:
        InvalidInputError: The folder cannot be written.
    """
    result = json.dumps(run.plain(), indent=2, allow_nan=False, ensure_ascii=False)
    try:
        for name, content in zip(_RESULT, (result + "\n", page(run)), strict=True):
            replace_file(folder / name, content)
        write_series(run.series, folder)
    except OSError as error:
        raise InvalidInputError(
            f"{folder}: cannot be written ({error.strerror}); make room, and run the same again, "
            "which goes on from there"
        ) from None


def headline(run: CampaignRun) -> str:
    """Return what the campaign showed, in one sentence."""
    found = run.accuracy
    counted_weeks = f"{found.weeks} of {counted(run.plan.campaign.weeks, 'week')} counted"
    if found.error is None:
        return f"{counted_weeks}: nothing to compare with the truth."
    return (
        f"{counted_weeks} over {counted(run.plan.campaign.expected.phones, 'phone')}: half of the "
        f"larger counts are within {_share(found.error)} of the truth, for "
        f"ε = {real(_phone_epsilon(run))} a phone."
    )


def _phone_epsilon(run: CampaignRun) -> float:
    return max((each.most for each in run.spent if each.unit is Unit.PHONE), default=0.0)


def _figures(run: CampaignRun) -> dict[str, str]:
    found = run.accuracy
    return {
        "phones": whole(run.plan.campaign.expected.phones),
        "weeks counted": whole(found.weeks),
        "median error": optional(found.error, _share),
        "error by noise": optional(found.noise_error, _share),
        "ranges of the noise that hold": optional(found.coverage, _share),
        "ranges with the truth": optional(found.truth_coverage, _share),
        "largest ε per phone": real(_phone_epsilon(run)),
        "computing time": duration(run.seconds),
    }


def _accuracy(run: CampaignRun) -> list[list[str]]:
    """Return rows of the figures of all weeks, and of the newest one."""
    found = (run.accuracy, run.newest)
    return [
        [name, *(optional(getattr(each, field), _share) for each in found)]
        for name, field in (
            ("Contacts: median error against the truth", "error"),
            ("Contacts: ranges that hold the truth", "truth_coverage"),
            ("Shares: median error against the truth", "share_error"),
            ("Shares: ranges that hold the truth", "share_coverage"),
            ("Smoothed contacts: median error against the truth", "smoothed_error"),
            ("Smoothed contacts: ranges that hold the truth", "smoothed_coverage"),
            ("Sums: median error by noise", "noise_error"),
            ("Sums: ranges of the noise that hold the sum without it", "coverage"),
            ("Weeks that are corrected for the map's mistakes", "corrected"),
            ("Contacts that projection keeps", "kept"),
            ("Contacts that are unknown", "unknown"),
            ("Names of the map that are right", "right_names"),
        )
    ]


def _newest(run: CampaignRun) -> list[list[str]]:
    """Return rows of the newest week that was counted: each published figure, and the truth."""
    if not run.series.counted:
        return []
    week = run.series.counted[-1]
    now = run.weeks[week.number - 1]
    before = [
        run.weeks[each.number - 1]
        for each in run.series.counted[:-1]
        if each.number >= week.number - WEEKS_BEFORE and each.map == week.map
    ]
    true, then = _rates([now]), _rates(before)
    places = [
        [_share(rate / true[-1]) if true[-1] else NOTHING, real(rate), _change(rate, earlier)]
        for rate, earlier in zip(true, then or [0.0] * len(true), strict=True)
    ]
    # Every contact was made at a place: none is unknown to the truth, and all have no share.
    truth = [*places[:-1], [NOTHING] * 3, [NOTHING, *places[-1][1:]]]
    return [
        [row.name, *itertools.chain(*zip(row[1:], beside, strict=True))]
        for row, beside in zip(shown.newest(run.series), truth, strict=True)
    ]


def _rates(weeks: list[WeekFound]) -> list[float]:
    """Return the true contacts per phone in some weeks, of each place and of all; none without."""
    totals = np.sum([week.true for week in weeks], axis=0)
    phones = sum(week.phones for week in weeks)
    return [*(totals / phones).tolist(), float(totals.sum()) / phones] if phones else []


def _change(now: float, before: float) -> str:
    return f"{100 * (now / before - 1):+.1f} %".replace("-", "−") if before else NOTHING


def _phases(run: CampaignRun) -> str:
    """Return how many phases there were, by kind."""
    kinds = Counter(slot.planned.kind for slot in run.slots)
    parts = ((PhaseKind.STATISTICS, "week"), (PhaseKind.DISCOVERY, "map"))
    found = " and ".join(counted(kinds[kind], noun) for kind, noun in parts)
    return f"{counted(len(run.slots), 'phase')}: {found}"


def _slot(run: CampaignRun, slot: Slot) -> list[str]:
    phase = slot.planned
    days = f"{phase.since} to {phase.until}" if phase.since else f"{phase.opens:%Y-%m-%d}"
    phones = unknown = NOTHING
    if phase.since is not None and slot.result is not None:
        week = run.weeks[phase.number - 1]
        phones, total = whole(slot.result.phones), sum(week.exact)
        unknown = _share(week.exact[-1] / total) if total else NOTHING
    state = f"{slot.state}: {slot.reason}" if slot.reason else str(slot.state)
    kind = "week" if phase.kind is PhaseKind.STATISTICS else "map"
    return [f"{kind} {phase.number}", days, state, whole(slot.enrolled), phones, unknown]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _largest(run: CampaignRun) -> list[int]:
    """Return the places with most true contacts, in the order of the campaign's labels."""
    total = np.zeros(len(run.plan.campaign.labels))
    for week in run.weeks:
        total += week.true
    most = np.argsort(-total, kind="stable")[:_MOST_PLACES]
    return sorted(int(place) for place in most if total[place])


def _per_phone(run: CampaignRun) -> list[float | None]:
    """Return the true contacts per phone of each week of the series."""
    true = {week.number: sum(week.true) / week.phones for week in run.weeks if week.phones}
    return [true.get(week.number) for week in run.series.weeks]


def _true_shares(run: CampaignRun, place: int) -> list[float | None]:
    """Return the true share of a place in each week of the series."""
    true = {week.number: week.true[place] / sum(week.true) for week in run.weeks if any(week.true)}
    return [true.get(week.number) for week in run.series.weeks]
