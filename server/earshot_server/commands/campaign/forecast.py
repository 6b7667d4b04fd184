"""The plan of a campaign as text, for a terminal."""

from __future__ import annotations

from datetime import date, datetime

from earshot_protocol.phases.parameters import NOISE_CROWD
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.plan import MOST_NOISE_CORRECTED, CampaignPlan
from earshot_server.campaigns.reach import CONFIDENCE, POWER, TOLD_CHANGE
from earshot_server.campaigns.schedule import PhaseKind, PlannedPhase
from earshot_server.dashboard import prospects, refusals
from earshot_server.dashboard.wording import (
    byte_size,
    counted,
    duration,
    listed,
    percent,
    printable,
    real,
    whole,
    window,
)

WORTH = 1.05
"""Factor of the noise from which two operators are proposed."""


def verdict(plan: CampaignPlan) -> str:
    """Return in one line what the campaign can tell, and what keeps it from running as planned."""
    reach, phones = plan.reach, plan.campaign.expected.phones
    where = f"a place with {_share(reach.place)} of the contacts"
    crowd = counted(phones, "phone")
    if reach.change <= 1:
        said = f"{crowd} can tell a change of {_share(reach.change)} between two weeks in {where}"
    else:
        said = f"{crowd} cannot tell even a doubling between two weeks in {where}"
    needed = plan.phones_needed
    if needed is None:
        said += f"; no crowd would tell {_share(TOLD_CHANGE)}"
    elif needed > phones:
        said += f"; about {whole(needed)} would tell {_share(TOLD_CHANGE)}"
    said += f"; {_operators(plan)}" if _operators(plan) else ""
    if plan.missed:
        first = plan.missed[0]
        said += f"; phases do not fit one after another: {_named(first)} may open too late"
    reasons = "; ".join(refusals.short(each.rule) for each in plan.refusals)
    return f"{said}; default phones refuse it ({reasons})" if reasons else said


def lines(plan: CampaignPlan, today: date) -> list[str]:
    """Describe a plan, for a terminal."""
    campaign = plan.campaign
    cohorts = f"cohort {listed(campaign.cohorts)}" if campaign.cohorts else "all phones"
    return [
        f"{printable(campaign.name)}: {counted(campaign.weeks, 'week')}, "
        f"{window(campaign.begins, campaign.ends)} (UTC), {cohorts}",
        *_phases(plan),
        *_order(plan),
        *_past(campaign.begins, today),
        *_costs(plan),
        *_sum(plan),
        *_reach(plan),
        *_refusals(plan),
        f"plan {plan.digest}",
        verdict(plan),
    ]


def _phases(plan: CampaignPlan) -> list[str]:
    rows = [f"  {'phase':<14}  {'counts':<27}  {'opens':<11}  {'at the latest':<13}  expected"]
    rows += [
        f"  {_named(each):<14}  {window(each.since, each.until):<27}  {_day(each.opens):<11}  "
        f"{_day(each.last):<13}  {_moment(each.expected)}{' late' if each.late else ''}"
        f"{', with a confusion matrix' if each.confusion else ''}"
        for each in plan.phases
    ]
    return rows


def _named(phase: PlannedPhase) -> str:
    name = "week" if phase.kind is PhaseKind.STATISTICS else "discovery"
    return f"{name} {phase.number}"


def _order(plan: CampaignPlan) -> list[str]:
    """Describe whether phases fit one after another, as a phone is in one at a time."""
    lengths = plan.lengths
    said = f"a week's phase takes up to {duration(lengths.statistics.total_seconds())}"
    if lengths.discovery is not None:
        said += f", a discovery up to {duration(lengths.discovery.total_seconds())}"
    if plan.campaign.sum.summation.by_operators:
        said += ", if the helper answers immediately"
    said += "; a phone is in one phase at a time"
    late = f"{counted(len(plan.late), 'phase')} may open late"
    if not plan.late:
        late = "no phase opens late"
    repeated = "" if plan.campaign.discovery is None else ", even if discoveries are repeated"
    if not plan.missed:
        return [f"{said}: all open in time{repeated}; {late}"]
    return [
        f"{said}: {late}, and these may miss their last moment{repeated}:",
        *(f"  {_named(each)}: {_moment(each.latest)}" for each in plan.missed),
    ]


def _past(begins: date, today: date) -> list[str]:
    if begins >= today:
        return []
    return [
        f"{_date(begins)} is in the past: this can be planned, but a campaign starts today or later"
    ]


def _costs(plan: CampaignPlan) -> list[str]:
    found = [
        f"a phone spends in any 366 days at most ({counted(plan.weeks, 'weekly sum')}, "
        f"{_matrices(plan.matrices)}{_discoveries(plan.discoveries)}: phases may be late"
        f"{', and the next campaign follows' if plan.campaign.budget.continues else ''}), and in "
        "time",
    ]
    for unit in LEDGER_UNITS:
        for cost in (each for each in plan.costs if each.unit is unit):
            limit = "" if cost.largest is None else f"  (a default phone accepts {cost.largest:g})"
            found.append(
                f"  per {unit:<10}  δ = {real(cost.delta):<5}  ε = {real(cost.epsilon):<6}  "
                f"ε = {real(cost.punctual_epsilon)}{limit}"
            )
    times = "100 or more" if plan.life >= 100 else str(plan.life)
    return [*found, f"a default phone takes part in {times} such campaigns during its life"]


def _matrices(number: int) -> str:
    return f"{number} of them with a confusion matrix, " if number else ""


def _discoveries(number: int) -> str:
    if not number:
        return "no discovery"
    return "1 discovery" if number == 1 else f"{number} discoveries, repeated ones included"


def _sum(plan: CampaignPlan) -> list[str]:
    campaign, reach = plan.campaign, plan.reach
    names = "by label, by the map's name, and unknown"
    if not campaign.names_by_map:
        names = "by label, and unknown, as no map names them"
    proposed = " (proposed)" if campaign.sum.contacts is None else ""
    return [
        f"each week a phone sends {campaign.entries} numbers, its contacts {names}, projected to "
        f"a length of B = {counted(plan.contacts, 'contact')}{proposed}",
        *_confusion(plan),
        f"  noise on each: standard deviation {real(reach.entry_deviation)} contacts if all phones "
        f"stay (multiplier {real(plan.noise)}); at least {percent(plan.kept)} of the contacts "
        "remain",
        *([f"  {crowd}"] if (crowd := _crowd(plan)) else []),
        *sent_lines(plan),
    ]


def sent_lines(plan: CampaignPlan) -> list[str]:
    """Describe what a phone sends in each kind of phase, and what the operators keep of it."""
    week = plan.confusion_week
    phases = {
        "a week": plan.week_bytes,
        "a week with a confusion matrix": week.bytes if week else None,
        "a discovery": plan.discovery_bytes,
    }
    return [
        line
        for phase, found in phases.items()
        if found is not None
        for line in (
            f"for {phase} a phone sends {byte_size(found.sent)}",
            *prospects.stored_lines(plan.campaign.expected.phones, found),
        )
    ]


def _confusion(plan: CampaignPlan) -> list[str]:
    campaign, reach, week = plan.campaign, plan.reach, plan.confusion_week
    proposed = campaign.sum.confusion is None
    if week is not None:
        return [
            f"  in the first week after each map {len(campaign.labels) ** 2} more, what its user "
            "labelled by label and by the map's name (a confusion matrix"
            f"{', proposed' if proposed else ''}), at the cost of two weeks"
        ]
    if not (proposed and campaign.names_by_map):
        return []
    return [
        "  no confusion matrix is proposed, so the map's mistakes stay: noise on the place of "
        f"interest is {_share(reach.deviation / reach.contacts)} of its contacts, and correction "
        f"pays up to about {_share(MOST_NOISE_CORRECTED)}"
    ]


def _crowd(plan: CampaignPlan) -> str:
    if plan.crowd_factor < WORTH:
        return ""
    return (
        f"phones rely on the noise of {whole(NOISE_CROWD)} phones at most: in a crowd of "
        f"{whole(plan.campaign.expected.phones)} it is {real(plan.crowd_factor)} times as large as "
        "its privacy needs"
    )


def _operators(plan: CampaignPlan) -> str:
    factor = plan.operators_factor
    if factor is None or factor < WORTH:
        return ""
    return (
        f'proposed: two operators (sum.summation = "{SummationName.TWO_OPERATORS}"), whose noise '
        f"is {real(factor)} times smaller"
    )


def _reach(plan: CampaignPlan) -> list[str]:
    reach = plan.reach
    total = "its total of two numbers" if plan.campaign.names_by_map else "its number"
    return [
        f"a place with {_share(reach.place)} of the contacts has {whole(reach.contacts)} in a "
        f"week; noise on {total}: standard deviation {real(reach.deviation)}",
        f"  the smallest change between two weeks that can be told: {_share(reach.change)} "
        f"({percent(CONFIDENCE)} confidence, {percent(POWER)} power; contacts come independently, "
        "and the map's mistakes are not in it)",
    ]


def _refusals(plan: CampaignPlan) -> list[str]:
    if not plan.refusals:
        return ["a default phone accepts these phases"]
    return [
        "a default phone refuses:",
        *(f"  {refusal.reason}" for refusal in plan.refusals),
    ]


def _share(value: float) -> str:
    """Return a share as a percentage with two digits."""
    return f"{100 * value:.2g} %" if value < 0.995 else f"{100 * value:.0f} %"


def _day(moment: datetime) -> str:
    return _date(moment.date())


def _date(day: date) -> str:
    return f"{day.day} {day:%b} {day.year}"


def _moment(moment: datetime) -> str:
    return f"{_day(moment)}, {moment:%H:%M}"
