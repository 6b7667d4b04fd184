"""The page of a simulated campaign: published counts beside the truth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.campaigns.slots import Slot
from earshot_simulations.campaigns.findings import STANDARD, Accuracy, CampaignRun, WeekFound
from earshot_simulations.reporting import drawing, pages
from earshot_simulations.reporting.drawing import INK, MUTED, PALETTE, Picture
from earshot_simulations.reporting.words import NOTHING, counted, duration, optional, real, whole

FILES = ("result.json", "report.html")
"""Files of a simulated campaign, beside what it keeps to go on."""
_MOST_PLACES = 12
_HEIGHT = 2.2


def page(run: CampaignRun) -> str:
    """Return the page of a simulated campaign, without outside resources."""
    order = _largest(run)
    shown = order[:_MOST_PLACES]
    names = run.plan.campaign.labels
    has_weeks = any(week.published for week in run.weeks)
    charts = {"All contacts": _chart(run, None)} if has_weeks else {}
    charts |= {names[place]: _chart(run, place) for place in shown if has_weeks}
    return pages.page(
        "campaigns/report.html",
        title=run.plan.campaign.name,
        kicker="Simulated campaign",
        headline=headline(run),
        version=distribution.version(),
        warnings=run.notes[:1],
        figures=_figures(run),
        run=run,
        charts=charts,
        left_out=len(order) - len(shown),
        accuracy=_accuracy(run.accuracy, run.newest),
        spent=[
            [
                each.unit,
                whole(each.phones),
                *map(real, (each.least, each.median, each.most, each.planned)),
            ]
            for each in run.spent
        ],
        slots=[_slot(run, slot) for slot in run.slots],
        settings=[
            [name, NOTHING if value is None else str(value)]
            for name, value in asdict(run.settings).items()
        ],
    )


def write(run: CampaignRun, folder: Path) -> None:
    """Write the files of a simulated campaign to an existing folder.

    Raises:
        InvalidInputError: The folder cannot be written.
    """
    result = json.dumps(run.plain(), indent=2, allow_nan=False, ensure_ascii=False)
    for name, content in zip(FILES, (result + "\n", page(run)), strict=True):
        try:
            replace_file(folder / name, content)
        except OSError as error:
            raise InvalidInputError(
                f"{folder / name}: cannot be written ({error.strerror}); make room, and run the "
                "same again, which goes on from there"
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
        "coverage": optional(found.coverage, _share),
        "largest ε per phone": real(_phone_epsilon(run)),
        "time": duration(run.seconds),
    }


def _accuracy(every: Accuracy, newest: Accuracy) -> list[list[str]]:
    return [
        [name, optional(getattr(every, field), _share), optional(getattr(newest, field), _share)]
        for name, field in (
            ("Median error against the truth", "error"),
            ("Median error by noise", "noise_error"),
            ("Intervals that hold the sum without noise", "coverage"),
            ("Intervals that hold the truth", "truth_coverage"),
            ("Contacts that projection keeps", "kept"),
            ("Contacts that are unknown", "unknown"),
            ("Names of the map that are right", "right_names"),
        )
    ]


def _slot(run: CampaignRun, slot: Slot) -> list[str]:
    phase = slot.planned
    days = f"{phase.since} to {phase.until}" if phase.since else f"{phase.opens:%Y-%m-%d}"
    phones = unknown = NOTHING
    if phase.since is not None and slot.result is not None:
        week = run.weeks[phase.number - 1]
        phones, total = whole(slot.result.phones), sum(week.exact)
        unknown = _share(week.exact[-1] / total) if total else NOTHING
    state = f"{slot.state}: {slot.reason}" if slot.reason else str(slot.state)
    return [f"{phase.kind} {phase.number}", days, state, whole(slot.enrolled), phones, unknown]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _largest(run: CampaignRun) -> list[int]:
    """Return the places, those with most true contacts first."""
    total = np.zeros(len(run.plan.campaign.labels))
    for week in run.weeks:
        total += week.true
    return [int(place) for place in np.argsort(-total, kind="stable")]


def _chart(run: CampaignRun, place: int | None) -> Picture:
    """Draw published contacts of a place, or of all, beside the truth."""
    numbers = np.array([week.number for week in run.weeks])
    true = np.array([_true(week.true, place) for week in run.weeks])
    exact = np.array([_exact(week, place) for week in run.weeks])
    published, reach = _published(run, place)
    held = ~np.isnan(published)

    def draw(axes: Axes) -> None:
        band = published - reach, published + reach
        axes.fill_between(numbers, *band, color=PALETTE[0], alpha=0.25, linewidth=0)
        axes.plot(numbers, published, color=PALETTE[0], marker=".", linewidth=1, label="published")
        axes.plot(numbers, exact, color=MUTED, linestyle="--", linewidth=1, label="without noise")
        axes.plot(numbers, true, color=INK, linewidth=1, label="true")
        axes.set_ylim(bottom=min(0.0, float(np.nanmin(band[0], initial=0.0))))
        axes.set_xlabel("week")
        axes.set_ylabel("contacts")
        axes.grid(axis="y", linewidth=0.6)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderpad=0)

    name = "all places" if place is None else run.plan.campaign.labels[place]
    apart = np.abs(published[held] - true[held]) / np.maximum(true[held], 1)
    alt = (
        f"Published and true contacts of {name} in {counted(int(held.sum()), 'week')}: true ones "
        f"from {whole(int(true.min()))} to {whole(int(true.max()))}, published ones apart by "
        f"{_share(float(np.median(apart)))} in the median week."
    )
    return drawing.picture(draw, _HEIGHT, alt)


def _true(contacts: tuple[int, ...], place: int | None) -> int:
    return sum(contacts) if place is None else contacts[place]


def _exact(week: WeekFound, place: int | None) -> float:
    return sum(week.exact) if place is None else float(week.places(week.exact)[place])


def _published(
    run: CampaignRun, place: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return published contacts by week, NaN without any, and half of their intervals."""
    values, reach = np.full(len(run.weeks), np.nan), np.full(len(run.weeks), np.nan)
    for row, week in enumerate(run.weeks):
        if not week.published:
            continue
        if place is None:
            values[row] = sum(week.published)
            reach[row] = STANDARD * week.deviation * np.sqrt(len(week.published))
        else:
            values[row] = week.places(week.published)[place]
            reach[row] = STANDARD * week.entry_deviation
    return values, reach
