"""Smoothed and corrected weekly counts of a campaign, beside the truth.

Every estimate is made from the same sums with exactly Gaussian noise, of the deviation that a plan
of 52 weeks and four discoveries has. Correction needs a table at every map, which costs a phone as
much as a week's sum, so its campaign has more noise: what is compared is at equal ε over a year.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol.progress import Progress, silent
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import (
    Campaign,
    ExpectedContacts,
    RepeatedDiscovery,
    SumOptions,
)
from earshot_server.campaigns.correction import Naming, corrected, naming_of
from earshot_server.campaigns.plan import CampaignPlan, planned
from earshot_server.campaigns.smoothing import Smoothed, smoothed
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.campaigns.year import (
    CLOSED,
    FIRST,
    PEAKS,
    PLACES,
    QUARTER,
    SHARES,
    WEEKS,
    World,
    Year,
    lived,
)
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import bars, multiples

Reals = npt.NDArray[np.float64]

NAME = "campaign-estimates"
SEEDS = 10
CROWDS = (
    (1000, SummationName.BELL),
    (2000, SummationName.BELL),
    (3000, SummationName.BELL),
    (5000, SummationName.BELL),
    (5000, SummationName.TWO_OPERATORS),
    (20_000, SummationName.TWO_OPERATORS),
    (100_000, SummationName.TWO_OPERATORS),
)
WORLDS = tuple(World(right, harder) for harder, right in product((0.0, 0.2), (0.93, 0.75)))

RAW, SMOOTHED, NEWEST, BY_ENTRY = "raw", "smoothed", "newest week", "smoothed by entry"
CORRECTED, AFTER, BEFORE = "corrected", "corrected, smoothed", "smoothed, corrected"
_LEVEL = 1.959964
_BREAKS = tuple(range(QUARTER, WEEKS, QUARTER))
_LARGE = SHARES >= 0.05
_SMALL = _LARGE & (SHARES <= 0.08)
_WAVES = [peak + week for peak in PEAKS for week in range(-2, 3)]
_FIGURES = (
    "count_error", "share_error", "small_share_error", "share_coverage", "small_half_interval",
    "noise_error", "noise_coverage", "peak_coverage", "at_peaks", "before_closing", "after_closing",
)  # fmt: skip


class WeeklyCounts(NamedTuple):
    """Estimated contacts of each place.

    Attributes:
        counts: Contacts, float64 (weeks, places).
        covariances: Covariances of their errors, float64 (weeks, places, places).
    """

    counts: Reals
    covariances: Reals


class Noise(NamedTuple):
    """Deviations of the noise in a campaign.

    Attributes:
        entry: Of an entry of a week's sum, in contacts.
        with_tables: The same in a campaign that also pays for a table at every map.
        table: Of an entry of a table, in recordings.
    """

    entry: float
    with_tables: float
    table: float


def noise_of(plan: CampaignPlan) -> Noise:
    """Return the noise of a plan without tables, and of the same with one at every map."""
    options = msgspec.structs.replace(plan.campaign.sum, contacts=plan.contacts, confusion=True)
    other = planned(msgspec.structs.replace(plan.campaign, sum=options))
    more = other.reach.entry_deviation
    return Noise(plan.reach.entry_deviation, more, more / plan.contacts)


def estimates(
    year: Year, noise: Noise, phones: int, source: np.random.Generator
) -> dict[str, WeeklyCounts]:
    """Add noise to the sums of a year, and estimate the contacts of each place in every way.

    Args:
        year: Sums without noise.
        noise: Deviations of the noise.
        phones: Phones that took part in every week.
        source: Source of the noise.
    """
    drawn = source.standard_normal(year.sums.shape)
    tables = year.tables + noise.table * source.standard_normal(year.tables.shape)
    crowd = np.full(WEEKS, float(phones))
    namings = [naming_of(table, noise.table) for table in tables]
    return {
        **_uncorrected(year.sums + noise.entry * drawn, noise.entry**2, crowd),
        **_corrected(year.sums + noise.with_tables * drawn, noise.with_tables**2, crowd, namings),
    }


def _uncorrected(sums: Reals, variance: float, crowd: Reals) -> dict[str, WeeklyCounts]:
    """Return the estimates that take the map's names for right."""
    counts = _totals(sums)
    own = np.full(counts.shape, 2 * variance)
    newest = np.array([_newest(counts, own, crowd, week) for week in range(WEEKS)])
    labelled, named = _smoothed_apart(sums, variance, crowd)
    return {
        RAW: WeeklyCounts(counts, _apart(own)),
        SMOOTHED: _independent(smoothed(counts, own, crowd, _BREAKS)),
        NEWEST: WeeklyCounts(newest[:, 0], _apart(newest[:, 1])),
        BY_ENTRY: WeeklyCounts(
            labelled.counts + named.counts, _apart(labelled.variances + named.variances)
        ),
    }


def _corrected(
    sums: Reals, variance: float, crowd: Reals, namings: Sequence[Naming]
) -> dict[str, WeeklyCounts]:
    """Return the estimates that correct the map's names."""
    flat = np.full((WEEKS, PLACES), variance)
    counts, noise, naming = _by_week(sums[:, PLACES : 2 * PLACES], flat, namings)
    counts, noise = sums[:, :PLACES] + counts, noise + _apart(flat)
    later = smoothed(counts, np.diagonal(noise, axis1=1, axis2=2), crowd, _BREAKS)
    labelled, named = _smoothed_apart(sums, variance, crowd)
    first, of_first, naming_of_first = _by_week(named.counts, named.variances, namings)
    return {
        CORRECTED: WeeklyCounts(counts, noise + naming),
        AFTER: WeeklyCounts(later.counts, _apart(later.variances) + naming),
        BEFORE: WeeklyCounts(
            labelled.counts + first, _apart(labelled.variances) + of_first + naming_of_first
        ),
    }


def _by_week(
    named: Reals, variances: Reals, namings: Sequence[Naming]
) -> tuple[Reals, Reals, Reals]:
    """Correct every week: counts, their covariances by noise, and those by naming."""
    weeks = [
        corrected(named[week], variances[week], namings[week // QUARTER]) for week in range(WEEKS)
    ]
    counts, noise, naming = (np.stack(part) for part in zip(*weeks, strict=True))
    return counts, noise, naming.sum(axis=1)


def _smoothed_apart(sums: Reals, variance: float, crowd: Reals) -> tuple[Smoothed, Smoothed]:
    """Smooth labelled contacts, which no new map concerns, and named ones by themselves."""
    flat = np.full((WEEKS, PLACES), variance)
    return (
        smoothed(sums[:, :PLACES], flat, crowd),
        smoothed(sums[:, PLACES : 2 * PLACES], flat, crowd, _BREAKS),
    )


def measured(year: Year, found: Mapping[str, WeeklyCounts]) -> dict[str, dict[str, float]]:
    """Return the figures of each estimate.

    Errors are medians over weeks and places of at least 5 %, relative to the truth; those of small
    places over places of 5 to 8 %. Figures of noise compare with the sums without noise instead,
    which have the map's mistakes and lack what projection leaves out.
    """
    made, silent_sums = year.made, _totals(year.sums)
    shares = made / made.sum(axis=1, keepdims=True)
    figures = {}
    for name, (counts, covariances) in found.items():
        estimated, deviations = _shares(counts, covariances)
        own = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        peaks = counts[list(PEAKS)].sum(axis=1) / made[list(PEAKS)].sum(axis=1) - 1
        closing = (counts - made)[:, CLOSED] / made[FIRST - 1, CLOSED]
        by_noise = name in (RAW, SMOOTHED, NEWEST, BY_ENTRY)
        figures[name] = {
            "count_error": _median(counts, made, _LARGE),
            "share_error": _median(estimated, shares, _LARGE),
            "small_share_error": _median(estimated, shares, _SMALL),
            "share_coverage": _coverage(estimated - shares, deviations),
            "small_half_interval": _median(shares + _LEVEL * deviations, shares, _SMALL),
            "noise_error": _median(counts, silent_sums, _SMALL) if by_noise else math.nan,
            "noise_coverage": _coverage(counts - silent_sums, own) if by_noise else math.nan,
            "peak_coverage": (
                _coverage((counts - silent_sums)[_WAVES], own[_WAVES]) if by_noise else math.nan
            ),
            "at_peaks": float(peaks.mean()),
            "before_closing": float(closing[FIRST - 1]),
            "after_closing": float(closing[FIRST]),
        }
    return figures


def reproduce(
    seeds: int = SEEDS,
    crowds: Sequence[tuple[int, SummationName]] = CROWDS,
    worlds: Sequence[World] = WORLDS,
    progress: Progress = silent,
) -> Reproduction:
    """Live through years of each crowd in each world, and compare all estimates.

    Args:
        seeds: Years of each crowd in each world, at least 1; one has no intervals.
        crowds: Phones and their summation.
        worlds: What maps make of the sound.
        progress: Callback that receives the progress.
    """
    rows: list[Row] = []
    cells = list(product(crowds, worlds))
    for number, ((phones, summation), world) in enumerate(cells):
        plan = planned(campaign(phones, summation))
        noise, runs = noise_of(plan), dict[str, list[Row]]()
        for seed in range(seeds):
            progress("living through years", number * seeds + seed, len(cells) * seeds)
            year = lived(phones, world, plan.contacts, seed)
            found = estimates(year, noise, phones, np.random.default_rng([seed, 3]))
            for name, figures in measured(year, found).items():
                runs.setdefault(name, []).append(
                    {key: "" if math.isnan(value) else value for key, value in figures.items()}
                )
        cell: Row = {
            "phones": phones, "summation": summation.value, "contacts": plan.contacts,
            "names_right": world.right, "harder": world.harder, "seeds": seeds,
        }  # fmt: skip
        rows += [{**cell, "estimate": name, **means(each, _FIGURES)} for name, each in runs.items()]
    progress("living through years", len(cells) * seeds, len(cells) * seeds)
    return Reproduction(NAME, rows, partial(_draw, rows), _note(rows))


def campaign(phones: int, summation: SummationName) -> Campaign:
    """Return the campaign whose noise is added: a year of twelve places, with four discoveries.

    It has no tables.
    """
    return Campaign(
        name="Contacts",
        begins=date(2027, 1, 4),
        weeks=WEEKS,
        labels=tuple("abcdefghijkl"),
        expected=ExpectedContacts(phones=phones),
        sum=SumOptions(summation=summation, confusion=False),
        discovery=RepeatedDiscovery(),
    )


def _totals(sums: Reals) -> Reals:
    """Return the contacts that are assigned to each place: labelled and named ones."""
    totals: Reals = sums[:, :PLACES] + sums[:, PLACES : 2 * PLACES]
    return totals


def _newest(counts: Reals, noise: Reals, crowd: Reals, week: int) -> list[Reals]:
    """Return a week's smoothed counts and their variances, as of its end."""
    until = week + 1
    found = smoothed(counts[:until], noise[:until], crowd[:until], _BREAKS)
    return [found.counts[week], found.variances[week]]


def _apart(variances: Reals) -> Reals:
    """Return diagonal covariances."""
    covariances: Reals = variances[:, :, np.newaxis] * np.eye(PLACES)
    return covariances


def _independent(found: Smoothed) -> WeeklyCounts:
    return WeeklyCounts(found.counts, _apart(found.variances))


def _shares(counts: Reals, covariances: Reals) -> tuple[Reals, Reals]:
    """Return shares of the places and their deviations, by the delta method."""
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / totals
    slopes = (np.eye(PLACES) - shares[:, :, np.newaxis]) / totals[:, :, np.newaxis]
    variances = np.einsum("wij,wjk,wik->wi", slopes, covariances, slopes)
    return shares, np.sqrt(variances)


def _median(found: Reals, truth: Reals, places: npt.NDArray[np.bool_]) -> float:
    """Return the median relative error where there were contacts."""
    there = truth[:, places] > 0
    errors = np.abs(found - truth)[:, places][there] / truth[:, places][there]
    return float(np.median(errors))


def _coverage(errors: Reals, deviations: Reals) -> float:
    return float((np.abs(errors) <= _LEVEL * deviations)[:, _LARGE].mean())


_SHOWN = {
    "count_error": "error of a count", "share_error": "of a share",
    "small_share_error": "of a share of 5 to 8 %", "share_coverage": "coverage of shares",
    "small_half_interval": "half interval, 5 to 8 %", "noise_error": "error by noise, 5 to 8 %",
    "noise_coverage": "coverage of noise", "peak_coverage": "around the peaks",
    "at_peaks": "at the peaks", "before_closing": "week before a place closes",
    "after_closing": "first closed week",
}  # fmt: skip


def _note(rows: Sequence[Row]) -> str:
    told = [
        {
            "phones": row["phones"],
            "summation": row["summation"],
            "right": row["names_right"],
            "harder": row["harder"],
            "estimate": row["estimate"],
            **{shown: with_interval(_percent(row, key), key, 1) for key, shown in _SHOWN.items()},
        }
        for row in rows
    ]
    return f"""# Smoothed and corrected counts of a campaign

`earshot reproduce {NAME}`: {rows[0]["seeds"]} years for each crowd and each quality of the map, in
%, with 95 % intervals. Errors are medians over weeks and places of at least 5 % of the contacts.
*right*: share of recordings that the map names rightly; *harder*: share of the unlabelled ones that
it names rightly half as often as the labelled ones, against the assumption of the correction.

{markdown_table(told, list(told[0]))}
"""


def _percent(row: Row, key: str) -> Row:
    wide = f"{key}_interval_95"
    return {each: "" if row[each] == "" else 100 * float(row[each]) for each in (key, wide)}


def _draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the error of a share by crowd, for each quality of the map."""
    kinds = list(dict.fromkeys((row["names_right"], row["harder"]) for row in rows))
    crowds = list(dict.fromkeys((row["phones"], row["summation"]) for row in rows))
    looks = (RAW, SMOOTHED, CORRECTED, AFTER)

    def chart(axis: Any, kind: tuple[Any, Any]) -> None:
        for number, name in enumerate(looks):
            own = [
                row
                for row in rows
                if (row["names_right"], row["harder"]) == kind and row["estimate"] == name
            ]
            places = np.arange(len(crowds)) + 0.2 * (number - 1.5)
            bars(axis, places, own, "share_error", 0.2, label=name)
        axis.set_xticks(range(len(crowds)), [f"{phones:,}\n{how}" for phones, how in crowds])
        axis.set_title(f"names right {kind[0]:g}, harder {kind[1]:g}")
        axis.set_ylabel("median error of a share")
        axis.legend(fontsize="small")

    multiples(path, (11, 8), min(2, len(kinds)), [partial(chart, kind=kind) for kind in kinds])
