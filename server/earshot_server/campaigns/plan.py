"""The plan of a campaign: its phases, their noise, what they cost a phone and what they can tell.

It follows from the campaign alone, and needs neither a server nor a phone.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import math
from collections.abc import Sequence
from datetime import date, datetime

import msgspec
import numpy as np

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases import discovery_budget
from earshot_protocol.phases.acceptance import Limits, default_refusals
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.accounting import TOLD_DELTA, Expense, epsilon_at
from earshot_protocol.privacy.budgets import BUDGETS, Span
from earshot_protocol.privacy.calibration import largest_scale
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.ledger import YEAR
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.campaigns.campaign import Campaign, plain
from earshot_server.campaigns.reach import (
    Reach,
    kept,
    phones_needed,
    proposed_length,
    smallest_change,
)
from earshot_server.campaigns.schedule import (
    FREE,
    STEP,
    Lengths,
    PhaseKind,
    PlannedPhase,
    due_before,
    length,
    scheduled,
)
from earshot_server.campaigns.spending import (
    Releases,
    Window,
    YearCost,
    most,
    possible,
    punctual,
    right_guesses,
    windows,
)
from earshot_server.campaigns.weekly_sum import (
    entry_deviation,
    histogram,
    week_parameters,
)
from earshot_server.phases.forecast import PhaseBytes, Refusal, phase_bytes
from earshot_server.phases.options import PhaseOptions

_DIGITS = 4
"""Digits of the noise multiplier, which is rounded up: any reader can compute with it."""
MOST_NOISE_CORRECTED = 0.15
"""Noise on the place of interest, over its contacts, up to which a plan proposes correction."""
_MOST_COUNTED = 100
_FURTHER_WEEKS = 56
"""Weeks of the campaign that follows which may lie within 366 days of this one."""


class ConfusionWeek(msgspec.Struct, frozen=True, kw_only=True):
    """What a week with a confusion matrix costs.

    Attributes:
        bytes: Bytes that one phone sends, and that operators keep.
        guesses: How often somebody is right at most who guesses whether a phone took part with its
            contacts or with zeros, from this week's result.
        contact_guesses: The same about one contact that its user labelled.
    """

    bytes: PhaseBytes
    guesses: float
    contact_guesses: float


class CampaignPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a campaign.

    Attributes:
        campaign: The campaign.
        contacts: Length to which a phone's counts of a week are projected, B: given, or proposed.
        noise: Noise multiplier of a week's sum of counts alone: its standard deviation over the
            most that one phone adds, B contacts.
        confusion: Whether the first sum after each map also has a confusion matrix: given, or
            proposed.
        digest: SHA-256 that identifies the plan, in hexadecimal digits.
        phases: All phases, in the order in which they open.
        lengths: Longest times of phases.
        days: First and last of the 366 days that may cost a phone most.
        weeks: Weekly sums that these days may hold, of this campaign and others.
        matrices: Those of them with a confusion matrix.
        discoveries: Discoveries that they may hold, repeated ones included.
        costs: Most that any 366 days cost a phone, in each unit, at 10⁻⁶ and at the δ of default
            phones' budgets.
        guesses: How often somebody is right at most who guesses whether a phone took part with its
            contacts or with zeros, from these days' results; see `right_guesses`.
        week_guesses: The same from one week's result, of counts alone.
        contact_guesses: The same about one contact, from one week's result, of counts alone.
        life: Campaigns like this that a default phone takes part in during its life, up to 100.
        reach: What a week's sum tells of the place of interest.
        kept: Least share of contacts that remains when counts are projected.
        phones_needed: Phones that can tell a change of 10 % between two weeks; None if none can.
        crowd_factor: Factor by which noise is larger because phones trust no larger crowd than
            10,000 to share it; 1 where that changes nothing.
        operators_factor: Noise of a week over that with two operators; None with two operators.
        week_bytes: Bytes that one phone sends for a week, of counts alone, and that operators keep.
        discovery_bytes: The same for a discovery; None without any.
        confusion_week: A week with a confusion matrix; None without any.
        refusals: Refusals of a phone with the default policy; empty if it accepts all phases.
    """

    campaign: Campaign
    contacts: int
    noise: float
    confusion: bool
    digest: str
    phases: tuple[PlannedPhase, ...]
    lengths: Lengths
    days: tuple[date, date]
    weeks: int
    matrices: int
    discoveries: int
    costs: tuple[YearCost, ...]
    guesses: float
    week_guesses: float
    contact_guesses: float
    life: int
    reach: Reach
    kept: float
    phones_needed: int | None
    crowd_factor: float
    operators_factor: float | None
    week_bytes: PhaseBytes
    discovery_bytes: PhaseBytes | None
    confusion_week: ConfusionWeek | None
    refusals: tuple[Refusal, ...]

    @property
    def missed(self) -> tuple[PlannedPhase, ...]:
        """Phases that those before them, late or repeated, may keep from opening in time."""
        return tuple(phase for phase in self.phases if phase.missed)

    @property
    def late(self) -> tuple[PlannedPhase, ...]:
        """Phases that open late if those before them take their longest time."""
        return tuple(phase for phase in self.phases if phase.late)


def planned(campaign: Campaign) -> CampaignPlan:
    """Return the plan of a campaign.

    Raises:
        InvalidParametersError: A value is wrong, or no noise keeps to the budget; the message says
            what would fit.
    """
    campaign.check()
    made = Planning(campaign)
    week = made.week
    _check_feasible(week, "a week's sum")
    worst = max(made.windows, key=lambda each: epsilon_at(TOLD_DELTA, each.expenses(Unit.PHONE)))
    return CampaignPlan(
        campaign=campaign,
        contacts=week.contacts,
        noise=week.noise,
        confusion=made.confusion,
        digest=made.digest,
        phases=made.phases,
        lengths=made.lengths,
        days=(worst.first, worst.last),
        weeks=worst.weeks,
        matrices=worst.matrices,
        discoveries=worst.discoveries + len(worst.repeated),
        costs=tuple(_costs(made.windows, made.punctual_windows)),
        guesses=right_guesses(worst.expenses(Unit.PHONE)),
        week_guesses=right_guesses(made.expenses_of_a_week(Unit.PHONE)),
        contact_guesses=right_guesses(made.expenses_of_a_week(Unit.RECORDING)),
        life=_life(made),
        reach=made.reach(campaign.expected.phones),
        kept=kept(week.contacts, campaign.expected.contacts),
        phones_needed=phones_needed(
            lambda phones: made.reach(phones).change, campaign.expected.phones
        ),
        crowd_factor=_crowd_factor(week),
        operators_factor=_operators_factor(made),
        week_bytes=phase_bytes(week),
        discovery_bytes=phase_bytes(made.discovery) if made.discovery else None,
        confusion_week=_confusion_week(made),
        refusals=tuple(_refusals(made)),
    )


class Planning:
    """A campaign with what follows from it, step by step.

    Attributes:
        campaign: The campaign.
        discovery: Parameters of its discovery phases; None without any.
        lengths: Longest times of phases.
        confusion: Whether the first sum after each map also has a confusion matrix.
        phases: All phases.
        noise: Noise multiplier of a week's sum of counts alone.
        week: Parameters of the phase that counts a week, without a confusion matrix.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.discovery = _discovery(campaign)
        # Its times and number of steps depend on neither noise nor length.
        self.lengths = Lengths(
            statistics=length(self._week(1, 1.0).plan()),
            discovery=length(self.discovery.plan()) if self.discovery else None,
        )
        self._before = Planning(campaign.follows) if campaign.follows else None
        proposed = campaign.sum.confusion is None and campaign.names_by_map
        self._settle(proposed or bool(campaign.sum.confusion))
        if proposed and not self._is_corrected_well():
            self._settle(confusion=False)

    def _settle(self, confusion: bool) -> None:
        """Settle the phases and their noise, with or without confusion matrices."""
        self.confusion = confusion
        self.phases = scheduled(self.campaign, self.lengths, self._free, confusion=confusion)
        self.noise = self._noise()
        self.week = self._week(self._length(self.campaign.expected.phones), self.noise)

    def _is_corrected_well(self) -> bool:
        """Return whether noise is small enough for confusion matrices to be worth their cost."""
        reach = self.reach(self.campaign.expected.phones)
        return reach.deviation <= MOST_NOISE_CORRECTED * reach.contacts

    def _week(self, contacts: int, noise: float, confusion: bool = False) -> StatisticsParameters:
        return week_parameters(self.campaign, contacts, noise, STEP.total_seconds(), confusion)

    @property
    def confusion_week(self) -> StatisticsParameters | None:
        """Parameters of the phase that counts a week with a confusion matrix; None without any."""
        if not self.confusion:
            return None
        return self._week(self.week.contacts, self.noise, confusion=True)

    @property
    def digest(self) -> str:
        """SHA-256 over the campaign, B, the noise, its matrices, and the plan that it follows."""
        told = {
            "campaign": plain(self.campaign),
            "contacts": self.week.contacts,
            "noise": self.noise,
            "confusion": self.confusion,
            "follows": self._before.digest if self._before else None,
        }
        return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()

    @property
    def digests_before(self) -> tuple[str, ...]:
        """Digests of the plans before this one, the last of them first."""
        before = self._before
        return () if before is None else (before.digest, *before.digests_before)

    @functools.cached_property
    def windows(self) -> list[Window]:
        """Windows of 366 days that may hold the most, with something of this campaign."""
        return windows(self.releases(self._further, self.noise), self.campaign.begins)

    @functools.cached_property
    def punctual_windows(self) -> list[Window]:
        """Windows of 366 days if every phase is in time, none is repeated and none follows."""
        return windows(punctual(self.releases(0, self.noise)), self.campaign.begins)

    @property
    def _further(self) -> int:
        return _FURTHER_WEEKS if self.campaign.budget.continues else 0

    @property
    def _free(self) -> datetime:
        """Moment at which the campaign before has no phase under way."""
        if self._before is None:
            return FREE
        return max(
            (
                phase.latest + self._before.lengths.of(phase.kind)
                for phase in self._before.phases
                if due_before(self.campaign.begins, phase.kind, phase.opens.date())
            ),
            default=FREE,
        )

    def releases(self, further_weeks: int, noise: float | None = None) -> list[Releases]:
        """Return all releases of this campaign and of those before, oldest first.

        Args:
            further_weeks: Weeks after the last one for which the campaign goes on likewise.
            noise: Noise multiplier of a week's sum; None if it is sought, which leaves expenses
                empty.
        """
        week, confusion_week = (
            () if noise is None else self._week(self.week.contacts, noise, each).plan().expenses()
            for each in (False, True)
        )
        found = self._before.releases(0, self._before.noise) if self._before else []
        begins = self.campaign.begins
        found = [each for each in found if due_before(begins, each.kind, each.first)]
        chosen = self.campaign.discovery
        for phase in scheduled(
            self.campaign, self.lengths, self._free, further_weeks, self.confusion
        ):
            expenses, reserve = confusion_week if phase.confusion else week, 0
            if phase.kind is PhaseKind.DISCOVERY and self.discovery and chosen:
                expenses, reserve = self.discovery.plan().expenses(), chosen.retries
            found.append(possible(phase, self.lengths, expenses, reserve))
        return found

    def expenses_of_a_week(self, unit: Unit, confusion: bool = False) -> tuple[Expense, ...]:
        """Return what one week's sum costs a phone, in one unit."""
        week = self._week(self.week.contacts, self.noise, confusion)
        return tuple(each for each in week.plan().expenses() if each.release.unit is unit)

    def _noise(self) -> float:
        """Return the least noise multiplier that keeps to the budget over every 366 days.

        A week by itself, also with a confusion matrix, costs no more than a default phone accepts
        in one phase.
        """
        epsilon, limits = self.campaign.budget.epsilon, Limits()
        scale = largest_scale(
            lambda scale: [self._event(scale, self.confusion)],
            limits.largest_phone_epsilon,
            limits.largest_phone_delta,
        )
        found = windows(self.releases(self._further), self.campaign.begins)
        for window in sorted(found, key=lambda each: len(each.unknown), reverse=True):
            self._check_room(window, epsilon)
            fixed, weeks = window.events(Unit.PHONE), window.unknown
            events = functools.partial(self._events, fixed, weeks)
            if weeks and composed_epsilon(events(scale), TOLD_DELTA) > epsilon:
                scale = largest_scale(events, epsilon, TOLD_DELTA)
        exponent = math.floor(-math.log10(scale)) - _DIGITS + 1
        return float(f"{math.ceil(10.0**-exponent / scale)}e{exponent}")

    def _event(self, scale: float, confusion: bool) -> Event:
        """Return the event of a week, if the noise multiplier of counts alone is 1/scale."""
        return histogram(self._week(1, 1 / scale, confusion)).mechanism.event(Unit.PHONE)

    def _events(self, fixed: Sequence[Event], weeks: Sequence[bool], scale: float) -> list[Event]:
        event = {each: self._event(scale, each) for each in set(weeks)}
        return [*fixed, *(event[each] for each in weeks)]

    def _check_room(self, window: Window, epsilon: float) -> None:
        """Refuse a budget that discoveries and the campaign before use up."""
        fixed = window.events(Unit.PHONE)
        cost = composed_epsilon(fixed, TOLD_DELTA) if fixed else 0.0
        if cost < epsilon:
            return
        twice = composed_epsilon([*fixed, *fixed], TOLD_DELTA)
        begins = self.campaign.begins
        before = [each for each in window.releases if each.first < begins]
        discoveries = [*window.releases, *window.repeated]
        own = sum(each.first >= begins and each.kind is PhaseKind.DISCOVERY for each in discoveries)
        what = [
            *(["1 discovery"] if own == 1 else []),
            *([f"{own} discoveries, repeated ones included"] if own > 1 else []),
            *([f"{len(before)} phases of the campaign before"] if before else []),
        ]
        enough = (
            f"budget.epsilon={math.ceil(10 * twice) / 10:g} would leave half to the weekly sums"
            if math.isfinite(twice)
            else "no budget.epsilon would leave half to the weekly sums"
        )
        after = f"; or from={before[-1].last + YEAR}, when they no longer count" if before else ""
        fewer = "; or fewer or cheaper discoveries ([discovery])" if own else ""
        raise InvalidParametersError(
            f"budget.epsilon={epsilon:g}: nothing fits: {' and '.join(what)} within 366 days from "
            f"{window.first} cost ε={cost:.3g} by themselves; {enough}{fewer}{after}"
        )

    def reach(self, phones: int) -> Reach:
        """Return what a week's sum over this many phones tells of the place of interest."""
        expected = self.campaign.expected
        week = msgspec.structs.replace(self._week(self._length(phones), self.noise), phones=phones)
        entry = entry_deviation(week)
        deviation = entry * math.sqrt(self._entries_of_place)
        contacts = phones * expected.contacts * expected.place
        counted = contacts * kept(week.contacts, expected.contacts)
        return Reach(
            place=expected.place,
            contacts=counted,
            entry_deviation=entry,
            deviation=deviation,
            change=smallest_change(counted, deviation),
        )

    @property
    def _entries_of_place(self) -> int:
        """Entries that add up to a place's total: of labels, and of names by the map."""
        return 2 if self.campaign.names_by_map else 1

    def _length(self, phones: int) -> int:
        """Return the length to which counts are projected, B: the given one, or a proposed one."""
        expected, given = self.campaign.expected, self.campaign.sum.contacts
        if given is not None:
            return given
        one = msgspec.structs.replace(self._week(1, self.noise), phones=phones)
        deviation = entry_deviation(one) * math.sqrt(self._entries_of_place)
        contacts = phones * expected.contacts * expected.place
        return proposed_length(expected.contacts, deviation, contacts)


def _discovery(campaign: Campaign) -> DiscoveryParameters | None:
    """Return the parameters of a campaign's discoveries, whose cost depends on no centroid."""
    if campaign.discovery is None:
        return None
    options = PhaseOptions(
        phones=campaign.expected.phones,
        epsilon=campaign.discovery.epsilon,
        delta=TOLD_DELTA,
        labels=campaign.labels,
        choices=campaign.choices,
        dropout=campaign.sum.dropout,
        corrupted=campaign.sum.corrupted,
        summation=campaign.sum.summation,
    )
    try:
        parameters = options.discovery_parameters(DEFAULT_ENCODER, _anywhere)
    except InvalidParametersError as error:
        raise InvalidParametersError(f"discovery: {error}") from None
    parameters = msgspec.structs.replace(parameters, step_seconds=STEP.total_seconds())
    _check_feasible(parameters, "discovery")
    return parameters


def _check_feasible(parameters: Parameters, what: str) -> None:
    try:
        parameters.check_feasible()
        phase_bytes(parameters)
    except InvalidParametersError as error:
        raise InvalidParametersError(f"{what}: {error}") from None


def _anywhere(count: int) -> CentroidSet:
    return CentroidSet.of(np.ones((count, discovery_budget.DIMENSIONS)))


def _costs(possible: Sequence[Window], in_time: Sequence[Window]) -> list[YearCost]:
    limits = Limits()
    found = []
    for budget in (each for each in BUDGETS if each.span is Span.YEAR):
        delta, largest = (float(getattr(limits, each)) for each in (budget.delta, budget.epsilon))
        found += [
            YearCost(
                unit=budget.unit,
                delta=each,
                epsilon=most(possible, budget.unit, each),
                punctual_epsilon=most(in_time, budget.unit, each),
                largest=largest if each == delta else None,
            )
            for each in (TOLD_DELTA, delta)
        ]
    return found


def _life(made: Planning) -> int:
    """Return how many such campaigns fit into the budgets of a default phone's life."""
    limits, begins = Limits(), made.campaign.begins
    own = [each for each in made.releases(0, made.noise) if each.first >= begins]
    spent = Window(begins, tuple(punctual(own)))

    def fits(campaigns: int) -> bool:
        return all(
            epsilon_at(getattr(limits, budget.delta), spent.expenses(budget.unit) * campaigns)
            <= getattr(limits, budget.epsilon)
            for budget in BUDGETS
            if budget.span is Span.LIFE
        )

    return bisect.bisect_left(range(1, _MOST_COUNTED + 1), True, key=lambda n: not fits(n))


def _crowd_factor(week: StatisticsParameters) -> float:
    counted = week.noise_survivors
    return 1.0 if counted is None else math.sqrt(week.honest_survivors / counted)


def _operators_factor(made: Planning) -> float | None:
    """Return the noise of a week over that with two operators, at the same length B."""
    campaign, week = made.campaign, made.week
    if campaign.sum.summation.by_operators:
        return None
    chosen = msgspec.structs.replace(
        campaign.sum, summation=SummationName.TWO_OPERATORS, confusion=made.confusion
    )
    # Noise hardly depends on the campaign before, whose phones may be with one operator.
    split = Planning(msgspec.structs.replace(campaign, sum=chosen, follows=None)).noise
    other = msgspec.structs.replace(week, summation=SummationName.TWO_OPERATORS, noise=split)
    return entry_deviation(week) / entry_deviation(other)


def _confusion_week(made: Planning) -> ConfusionWeek | None:
    week = made.confusion_week
    if week is None:
        return None
    return ConfusionWeek(
        bytes=phase_bytes(week),
        guesses=right_guesses(made.expenses_of_a_week(Unit.PHONE, confusion=True)),
        contact_guesses=right_guesses(made.expenses_of_a_week(Unit.RECORDING, confusion=True)),
    )


def _refusals(made: Planning) -> list[Refusal]:
    """Return why a default phone refuses a phase, or the budgets of a year; each rule once."""
    found: dict[str, Refusal] = {}
    for parameters in (made.week, made.discovery):
        for refused in default_refusals(parameters) if parameters else ():
            found.setdefault(refused.rule, Refusal(refused.rule.value, refused.reason))
    for budget in (each for each in BUDGETS if each.span is Span.YEAR):
        limits = Limits()
        delta, largest = (float(getattr(limits, each)) for each in (budget.delta, budget.epsilon))
        spent = most(made.windows, budget.unit, delta)
        if spent > largest:
            reason = (
                f"{budget.epsilon}: ε {budget.span.over} per {budget.unit}={spent:.6g}; at most "
                f"{largest:g} is accepted"
            )
            found.setdefault(budget.epsilon, Refusal(budget.epsilon.value, reason))
    return list(found.values())
