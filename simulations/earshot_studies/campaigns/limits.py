"""Ways to bound what one phone adds to a week's sum, at equal ε over a year of weekly sums.

A phone's counts are scaled down to a length, or its newest contacts are counted and no others; the
noise is Gaussian, in proportion to the Euclidean length of what a phone may add, or Laplace, to its
sum of absolute values. A phone may have all its contacts in one place, so that both are the limit
itself, in every way. Newest contacts and Laplace noise are here alone: no phase has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol.privacy.accounting import TOLD_DELTA
from earshot_protocol.privacy.calibration import largest_scale
from earshot_protocol.privacy.events import DiscreteLaplaceSum, Event, ZeroConcentrated
from earshot_protocol.progress import Progress, silent
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.campaigns.year import PEAKS, PLACES, SHARES, WEEKS, weekly_contacts
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import bars, multiples

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NAME = "campaign-limits"
SEEDS = 5
CROWDS = (5000, 20_000, 100_000)
EPSILON = 8.0
LIMITS = (4, 6, 8, 12, 16, 24, 32, 48)
PROJECTED, NEWEST = "projected", "newest"
GAUSSIAN, LAPLACE = "Gaussian", "Laplace"
WAYS = tuple(product((PROJECTED, NEWEST), (GAUSSIAN, LAPLACE)))
_TRIED = (1000, 1001)
"""Seeds of the years by which a way's limit is chosen; none of them is reported."""
_STEPS = 16
"""Steps of the noise in what one phone adds: with many more, ledgers round its losses up."""
_IDEAL = 128
"""Bits by which a sum is as good as an ideal one."""
_LARGE = SHARES >= 0.05
_FIGURES = ("error", "at_peaks", "lost", "deviation")


class LimitedYear(NamedTuple):
    """A year of sums without noise.

    Attributes:
        made: Contacts that were made, float64 (weeks, places).
        sums: Sums for each limit and way of limiting, float64 (weeks, places).
    """

    made: Reals
    sums: dict[tuple[int, str, str], Reals]


def events_of(noise: str, multiplier: float) -> list[Event]:
    """Return the events of a year, in the unit of a whole phone.

    Args:
        noise: `GAUSSIAN` or `LAPLACE`.
        multiplier: Standard deviation of the noise over the most that one phone adds.
    """
    event: Event = ZeroConcentrated(1 / (2 * multiplier**2))
    if noise == LAPLACE:
        event = DiscreteLaplaceSum(
            scale=_STEPS * multiplier / math.sqrt(2),
            sensitivity=_STEPS,
            statistical_security=_IDEAL,
        )
    return [event] * WEEKS


def multiplier_of(noise: str) -> float:
    """Return the noise multiplier at which a year costs a phone `EPSILON` at δ = 10⁻⁶."""
    return 1 / largest_scale(
        lambda scale: events_of(noise, 1 / scale), EPSILON, TOLD_DELTA, 2.0**-20, 2.0**10
    )


def limited(phones: int, seed: int, limits: Sequence[int] = LIMITS) -> LimitedYear:
    """Live through a year, and add up what each way counts.

    Args:
        phones: Number of phones.
        seed: Seed of waves and contacts.
        limits: Limits of what a phone adds, in contacts.
    """
    made = np.zeros((WEEKS, PLACES))
    sums = {(limit, *way): np.zeros((WEEKS, PLACES)) for limit, way in product(limits, WAYS)}
    for week, (phone, place) in enumerate(weekly_contacts(phones, seed)):
        made[week] = np.bincount(place, minlength=PLACES)
        counts = np.bincount(phone * PLACES + place, minlength=phones * PLACES)
        counts = counts.reshape(phones, PLACES)
        lengths = {
            GAUSSIAN: np.sqrt((counts**2).sum(axis=1)),
            LAPLACE: counts.sum(axis=1).astype(np.float64),
        }
        rank = ranks(phone)
        for limit in limits:
            newest = np.bincount(place[rank < limit], minlength=PLACES)
            for noise in (GAUSSIAN, LAPLACE):
                weights = np.minimum(1, limit / np.maximum(lengths[noise], 1))
                sums[limit, PROJECTED, noise][week] = weights @ counts
                sums[limit, NEWEST, noise][week] = newest
    return LimitedYear(made, sums)


def ranks(phone: Integers) -> Integers:
    """Return each contact's place among its phone's, from 0; their order is that of chance."""
    starts = np.searchsorted(phone, phone)
    ranked: Integers = np.arange(len(phone)) - starts
    return ranked


def measured(
    year: LimitedYear, limit: int, way: tuple[str, str], multiplier: float, seed: int
) -> dict[str, float]:
    """Return the figures of a year with one limit, in one way, noise added."""
    sums, deviation = year.sums[(limit, *way)], multiplier * limit
    source = np.random.default_rng([seed, 4])
    if way[1] == LAPLACE:
        noise = source.laplace(0, deviation / math.sqrt(2), sums.shape)
    else:
        noise = source.normal(0, deviation, sums.shape)
    made, peaks = year.made, list(PEAKS)
    large = made[:, _LARGE]
    errors = np.abs(sums + noise - made)[:, _LARGE][large > 0] / large[large > 0]
    return {
        "error": float(np.median(errors)),
        "at_peaks": float((sums[peaks].sum(axis=1) / made[peaks].sum(axis=1) - 1).mean()),
        "lost": float(1 - sums.sum() / made.sum()),
        "deviation": deviation,
    }


def reproduce(
    seeds: int = SEEDS, crowds: Sequence[int] = CROWDS, progress: Progress = silent
) -> Reproduction:
    """Live through years of each crowd, and compare the ways, each at its own best limit.

    Args:
        seeds: Years of each crowd, at least 1; one has no intervals.
        crowds: Numbers of phones.
        progress: Callback that receives the progress.
    """
    multipliers = {noise: multiplier_of(noise) for noise in (GAUSSIAN, LAPLACE)}
    rows: list[Row] = []
    each = seeds + len(_TRIED)
    for number, phones in enumerate(crowds):
        tried: list[tuple[int, LimitedYear]] = []
        told: list[tuple[int, LimitedYear]] = []
        for done, seed in enumerate((*_TRIED, *range(seeds))):
            progress("living through years", number * each + done, len(crowds) * each)
            (tried if seed in _TRIED else told).append((seed, limited(phones, seed)))
        for way in WAYS:
            multiplier = multipliers[way[1]]

            def errs(limit: int, way: tuple[str, str] = way, by: float = multiplier) -> float:
                found = [measured(year, limit, way, by, seed)["error"] for seed, year in tried]  # noqa: B023
                return float(np.mean(found))

            best = min(LIMITS, key=errs)
            runs: list[Row] = [
                {**measured(year, best, way, multiplier, seed)} for seed, year in told
            ]
            row: Row = {"phones": phones, "limit": way[0], "noise": way[1], "contacts": best}
            rows.append({**row, "seeds": seeds, **means(runs, _FIGURES)})
    progress("living through years", len(crowds) * each, len(crowds) * each)
    return Reproduction(NAME, rows, partial(_draw, rows), _note(rows, multipliers))


_SHOWN = {"error": "error of a count", "at_peaks": "bias at the peaks", "lost": "contacts lost"}


def _note(rows: Sequence[Row], multipliers: dict[str, float]) -> str:
    told = [
        {
            "phones": row["phones"],
            "limit": row["limit"],
            "noise": row["noise"],
            "contacts": row["contacts"],
            "deviation": f"{float(row['deviation']):.0f}",
            **{shown: with_interval(_percent(row, key), key, 1) for key, shown in _SHOWN.items()},
        }
        for row in rows
    ]
    return f"""# Limits and noise of a week's sum

`earshot reproduce {NAME}`: {rows[0]["seeds"]} years of each crowd, {WEEKS} weekly sums at
ε = {EPSILON:g} per phone and δ = 10⁻⁶ together, in %, with 95 % intervals. Errors are medians over
weeks and places of at least 5 % of the contacts. Each way has the limit that errs least in two
other years, of {", ".join(map(str, LIMITS))} contacts. The deviation of Gaussian noise is
{multipliers[GAUSSIAN]:.2f} times the limit, and that of Laplace noise {multipliers[LAPLACE]:.2f}
times.

{markdown_table(told, list(told[0]))}
"""


def _percent(row: Row, key: str) -> Row:
    wide = f"{key}_interval_95"
    return {each: "" if row[each] == "" else 100 * float(row[each]) for each in (key, wide)}


def _draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the error of a count and the contacts lost, by crowd, for each way."""
    crowds = list(dict.fromkeys(row["phones"] for row in rows))

    def chart(axis: Any, key: str) -> None:
        for number, (limit, noise) in enumerate(WAYS):
            own = [row for row in rows if (row["limit"], row["noise"]) == (limit, noise)]
            places = np.arange(len(crowds)) + 0.2 * (number - 1.5)
            bars(axis, places, own, key, 0.2, label=f"{limit}, {noise}")
        axis.set_xticks(range(len(crowds)), [f"{phones:,}" for phones in crowds])
        axis.set_xlabel("phones")
        axis.set_ylabel({"error": "median error of a count", "lost": "contacts lost"}[key])
        axis.legend(fontsize="small")

    multiples(path, (11, 4.5), 2, [partial(chart, key=key) for key in ("error", "lost")])
