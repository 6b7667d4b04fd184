"""What a simulated campaign shows: published counts beside the truth, and what phones spent."""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_client.store.memory import MemoryStore
from earshot_protocol import distribution
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces
from earshot_protocol.privacy.accounting import TOLD_DELTA, epsilon_at
from earshot_protocol.privacy.ledger import YEAR, Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.campaigns import series_table
from earshot_server.campaigns.intervals import CONFIDENCE, PublishedFigure, level
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.series import Series, series_of
from earshot_server.campaigns.slots import Slot
from earshot_simulations.campaigns.life import FIRST_WEEK
from earshot_simulations.campaigns.settings import CampaignSettings
from earshot_simulations.populations.interface import Recordings

if TYPE_CHECKING:
    from pandas import DataFrame

LEAST_SHARE = 0.05
"""Share of a week's contacts from which on a place's error counts."""
_STANDARD = level(CONFIDENCE)


class WeekFound(msgspec.Struct, frozen=True, kw_only=True):
    """One week of a simulated campaign: the truth, a sum without noise, and what was published.

    Attributes:
        number: Number of the week, from 1.
        phones: Phones whose counts were added up.
        true: Contacts of these phones at each place.
        everybody: Contacts of all enrolled phones at each place.
        exact: Sum of these phones' projected counts without noise, by entry: labelled contacts,
            named ones, unknown ones.
        published: The same with noise; empty if the phase failed.
        deviation: Standard deviation of the noise on each entry.
        named: Unlabelled contacts of these phones that the map named.
        named_right: Those that it named by their place.
        has_map: Whether there was a map.
    """

    number: int
    phones: int
    true: tuple[int, ...]
    everybody: tuple[int, ...]
    exact: tuple[float, ...]
    published: tuple[float, ...]
    deviation: float
    named: int
    named_right: int
    has_map: bool

    def places(self, entries: tuple[float, ...]) -> NDArray[np.float64]:
        """Return the contacts assigned to each place, float64 (places,), from a sum's entries."""
        labels = len(self.true)
        found = np.array(entries[:labels])
        return found + entries[labels:-1] if self.has_map else found

    @property
    def entry_deviation(self) -> float:
        """Standard deviation of the noise on a place's contacts."""
        return self.deviation * math.sqrt(1 + self.has_map)


class PhonesSpent(msgspec.Struct, frozen=True, kw_only=True):
    """What phones' ledgers say at the end, over the 366 days that cost most.

    Attributes:
        unit: Unit of the cost.
        phones: Number of phones with a ledger.
        least: Smallest ε of a phone, at 10⁻⁶.
        median: Median ε.
        most: Largest ε.
        planned: ε of the plan, if every phase is in time.
    """

    unit: Unit
    phones: int
    least: float
    median: float
    most: float
    planned: float


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of what was published on places with 5 % of a week's contacts or more.

    The truth is of the phones that came. Figures are None where there is nothing to judge.

    Attributes:
        weeks: Number of weeks that were counted.
        error: Median relative error of the series' contacts against the truth.
        noise_error: Median relative error of the sums against the same sums without noise.
        coverage: Share of intervals of 95 % for the noise that hold the sum without noise.
        truth_coverage: Share of the series' intervals of contacts that hold the truth: projection
            and unknown contacts are outside of what they promise, and the map's mistakes where they
            are not corrected.
        share_error: Median relative error of the series' shares against the truth.
        share_coverage: Share of their intervals that hold the truth.
        smoothed_error: Median relative error of the smoothed contacts against the truth.
        smoothed_coverage: Share of their intervals that hold the truth.
        corrected: Share of the weeks that are corrected for the map's mistakes.
        kept: Share of the true contacts that is left in the sum without noise, where long counts
            are scaled down.
        unknown: Share of contacts with neither a label nor a name, in the sum without noise.
        right_names: Share of the map's names that are right.
    """

    weeks: int
    error: float | None
    noise_error: float | None
    coverage: float | None
    truth_coverage: float | None
    share_error: float | None
    share_coverage: float | None
    smoothed_error: float | None
    smoothed_coverage: float | None
    corrected: float | None
    kept: float | None
    unknown: float | None
    right_names: float | None


@dataclass(frozen=True, kw_only=True)
class CampaignRun:
    """A simulated campaign.

    Attributes:
        plan: Plan of the campaign.
        settings: Settings of the simulation.
        slots: What became of each planned phase.
        weeks: Truth and published counts of each week.
        spent: What phones spent, by unit.
        refusals: Number of refusals by phones, by reason.
        map_found: Whether the newest map names any place.
        seconds: Time that it took, in seconds.
        peak_memory_mb: Peak memory of all processes, in MiB.
    """

    plan: CampaignPlan
    settings: CampaignSettings
    slots: tuple[Slot, ...]
    weeks: tuple[WeekFound, ...]
    spent: tuple[PhonesSpent, ...]
    refusals: Mapping[str, int]
    map_found: bool
    seconds: float
    peak_memory_mb: float

    @property
    def accuracy(self) -> Accuracy:
        """Accuracy of all weeks."""
        return accuracy(self.weeks, self.series)

    @property
    def newest(self) -> Accuracy:
        """Accuracy of the newest week."""
        return accuracy(self.weeks[-1:], self.series)

    @functools.cached_property
    def series(self) -> Series:
        """What an authority would publish after the last phase."""
        moments = [slot.ended for slot in self.slots if slot.ended is not None]
        return series_of(self.plan, self.slots, max(moments, default=self.plan.phases[0].opens))

    def to_frame(self) -> DataFrame:
        """Return the series as a data frame: the rows and columns of `series.csv`.

        Raises:
            MissingExtraError: The package pandas is not installed.
        """
        return series_table.to_frame(self.series)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the figures do not show."""
        said = []
        without = sum(not week.has_map for week in self.weeks)
        if self.weeks and without == len(self.weeks):
            said.append("There was no map: contacts without a label are unknown.")
        elif without:
            said.append(f"In {without} weeks there was no map yet.")
        elif self.weeks and not self.map_found:
            said.append("The newest map found no place: contacts without a label are unknown.")
        failed = [slot for slot in self.slots if slot.reason]
        said += [
            f"{slot.planned.kind} {slot.planned.number} failed: {slot.reason}" for slot in failed
        ]
        said += [f"{count} refusals by phones: {reason}" for reason, count in self.refusals.items()]
        if self.plan.campaign.follows is not None:
            said.append(
                "The campaign that this one follows was not simulated: its cost is not in these "
                "ledgers, nor its last map."
            )
        if self.plan.campaign.map:
            said.append(
                "The map that the file names was found by phones outside the campaign, whose cost "
                "is not in these ledgers."
            )
        return tuple(said)

    def plain(self) -> dict[str, Any]:
        """Return the run as plain values, for `result.json`."""
        file = self.settings.contacts
        settings = asdict(self.settings) | {"contacts": None if file is None else str(file)}
        found: dict[str, Any] = msgspec.to_builtins(
            {
                "version": distribution.version(),
                "settings": settings,
                "digest": self.plan.digest,
                "contacts": self.plan.contacts,
                "noise": self.plan.noise,
                "labels": self.plan.campaign.labels,
                "accuracy": self.accuracy,
                "newest": self.newest,
                "spent": self.spent,
                "refusals": dict(self.refusals),
                "notes": self.notes,
                "weeks": self.weeks,
                "slots": self.slots,
                "seconds": self.seconds,
                "peak_memory_mb": self.peak_memory_mb,
            }
        )
        return found


def accuracy(weeks: Iterable[WeekFound], series: Series) -> Accuracy:
    """Return the accuracy of weeks; those without a result do not count.

    Args:
        weeks: Truth and sums of the weeks.
        series: Series in which they are published, with others or without.
    """
    held = [week for week in weeks if week.published]
    rows = {week.number: week for week in series.counted}
    noise_errors, covered = [], []
    contacts, shares, smoothed = _Judged(), _Judged(), _Judged()
    for week in held:
        true = np.array(week.true, dtype=np.float64)
        large = np.flatnonzero(true >= LEAST_SHARE * max(1.0, true.sum()))
        published, exact = week.places(week.published)[large], week.places(week.exact)[large]
        noise_errors += (np.abs(published - exact) / np.maximum(exact, 1.0)).tolist()
        covered += (np.abs(published - exact) <= _STANDARD * week.entry_deviation).tolist()
        for place in large:
            row, made = rows[week.number].places[place], float(true[place])
            contacts.judge(row.contacts, made)
            shares.judge(row.share, made / true.sum())
            smoothed.judge(row.smoothed, made / week.phones)
    total = sum(sum(week.exact) for week in held)
    made_in_all = sum(sum(week.true) for week in held)
    named = sum(week.named for week in held)
    return Accuracy(
        weeks=len(held),
        error=contacts.error,
        noise_error=float(np.median(noise_errors)) if noise_errors else None,
        coverage=float(np.mean(covered)) if covered else None,
        truth_coverage=contacts.coverage,
        share_error=shares.error,
        share_coverage=shares.coverage,
        smoothed_error=smoothed.error,
        smoothed_coverage=smoothed.coverage,
        corrected=float(np.mean([rows[week.number].corrected for week in held])) if held else None,
        kept=total / made_in_all if made_in_all else None,
        unknown=sum(week.exact[-1] for week in held) / total if total else None,
        right_names=sum(week.named_right for week in held) / named if named else None,
    )


class _Judged:
    """Published figures of one kind beside the truth."""

    def __init__(self) -> None:
        self._errors: list[float] = []
        self._held: list[bool] = []

    def judge(self, figure: PublishedFigure | None, true: float) -> None:
        """Judge a figure; one that was not published does not count."""
        if figure is not None:
            self._errors.append(abs(figure.value - true) / true)
            self._held.append(figure.least <= true <= figure.most)

    @property
    def error(self) -> float | None:
        """Median relative error."""
        return float(np.median(self._errors)) if self._errors else None

    @property
    def coverage(self) -> float | None:
        """Share of the intervals that hold the truth."""
        return float(np.mean(self._held)) if self._held else None


def entries_of(
    recordings: Recordings, places: AgreedPlaces | None, labels: Sequence[str]
) -> NDArray[np.int64]:
    """Return the entry of a week's sum in which each contact counts, as phones decide it.

    Args:
        recordings: The contacts.
        places: Places of the phase; None without any.
        labels: Labels of the phase.
    """
    unknown = 2 * len(labels)
    entries = np.where(recordings.labels >= 0, recordings.labels, unknown).astype(np.int64)
    if places is None or not len(entries):
        return entries
    within = places.named(labels).within(recordings.points)
    named = np.array([UNNAMED if each is None else places.labels[each] for each in within])
    by_map = (recordings.labels < 0) & (named != UNNAMED)
    entries[by_map] = len(labels) + named[by_map]
    return entries


def fullest(days: Sequence[date]) -> list[date]:
    """Return the last days of the years to which no release can be added without one dropping out.

    Args:
        days: Days of releases, ascending.
    """
    starts = [bisect.bisect_right(days, day - YEAR) for day in days]
    pairs = zip(days, starts, [*starts, len(days)][1:], strict=True)
    return [day for day, start, next_start in pairs if next_start > start]


def spent_by(
    states: Mapping[int, bytes], joined: NDArray[np.int64], plan: CampaignPlan
) -> tuple[PhonesSpent, ...]:
    """Return what phones spent that were enrolled throughout, or all if none was.

    Args:
        states: Saved store of each phone.
        joined: Week in which each phone's user joined.
        plan: Plan of the campaign.
    """
    stayed = {phone for phone in states if joined[phone] == FIRST_WEEK} or set(states)
    found: dict[Unit, list[float]] = {Unit.PHONE: [], Unit.RECORDING: []}
    for phone in stayed:
        ledger = Ledger(MemoryStore.from_bytes(states[phone]).ledger())
        for unit, costs in found.items():
            years = [ledger.expenses_of(unit, today=day) for day in fullest(ledger.days)]
            costs.append(max((epsilon_at(TOLD_DELTA, year) for year in years), default=0.0))
    return tuple(
        PhonesSpent(
            unit=unit,
            phones=len(costs),
            least=min(costs, default=0.0),
            median=float(np.median(costs)) if costs else 0.0,
            most=max(costs, default=0.0),
            planned=next(
                each.punctual_epsilon
                for each in plan.costs
                if each.unit is unit and each.delta == TOLD_DELTA
            ),
        )
        for unit, costs in found.items()
    )
