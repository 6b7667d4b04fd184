"""What `earshot phase start` says before a phase is started."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from earshot_protocol.api import StartPhase
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_server.dashboard.spending import VACUOUS_EPSILON, is_vacuous
from earshot_server.dashboard.wording import byte_size, duration, real
from earshot_server.phases.forecast import Forecast, SumForecast
from earshot_server.records import CohortRecord


def enrolled(asked: StartPhase, cohorts: Iterable[CohortRecord]) -> tuple[int, int]:
    """How many enrolled phones the phase may gather, and how many of them are in no other."""
    eligible = [each for each in cohorts if not asked.cohorts or each.name in asked.cohorts]
    return sum(each.phones for each in eligible), sum(each.free for each in eligible)


def phone_lines(asked: StartPhase, phones: int, free: int) -> list[str]:
    """Whether there are phones enough."""
    whose = f" in {', '.join(asked.cohorts)}" if asked.cohorts else ""
    said = [f"{phones} phones are enrolled{whose}, {free} of them in no phase"]
    if phones < asked.least():
        said.append(
            f"  too few: {asked.least()} must join, or the gathering ends without a phase; enrol "
            "more (earshot invite)"
        )
    return said


def lines(asked: StartPhase, seen: Forecast, now: float | None = None) -> list[str]:
    """The forecast of a phase, for a terminal.

    Args:
        asked: the phase.
        seen: its forecast.
        now: seconds since 1970; by default, now.
    """
    now = time.time() if now is None else now
    return [
        f"{asked.parameters.kind} phase of {seen.phones} phones; {seen.honest_survivors} of them "
        "are counted on to stay and be honest (--dropout, --corrupted)",
        f"{'each phone spends':<24}  {'per recording':<28}  per phone (its part against zeros)",
        *_spending(seen),
        *(line for each in seen.sums for line in _sum(each)),
        f"each phone sends {byte_size(seen.bytes_up)} in {seen.steps} steps",
        f"ends at the earliest {_moment(now + seen.earliest_seconds)} "
        f"({duration(seen.earliest_seconds)}; all phones come at once and none vanishes), at the "
        f"latest {_moment(now + seen.latest_seconds)} ({duration(seen.latest_seconds)})",
        *_refusals(seen),
    ]


def _spending(seen: Forecast) -> list[str]:
    costs: dict[str, dict[str, tuple[float, float]]] = {}
    for release in seen.privacy:
        costs.setdefault(release.step, {})[release.unit.value] = (release.epsilon, release.delta)
    costs["together"] = {unit: (cost.epsilon, cost.delta) for unit, cost in seen.total.items()}
    rows = [
        f"  {step:<22}  "
        + "  ".join(
            f"ε = {real(by_unit[unit.value][0]):<9} δ = {real(by_unit[unit.value][1]):<11}"
            for unit in LEDGER_UNITS
        ).rstrip()
        for step, by_unit in costs.items()
    ]
    return rows + [
        f"  per {unit}, that promises nothing: a promise begins well below ε = {VACUOUS_EPSILON:g}"
        for unit, cost in seen.total.items()
        if is_vacuous(cost)
    ]


def _sum(each: SumForecast) -> list[str]:
    said = [
        f"{each.part}: a secure sum with k = {each.neighbours} neighbours and threshold "
        f"t = {each.threshold}; {byte_size(each.bytes_up)} up per phone",
        f"  noise on each number: standard deviation {real(each.deviation)}, within "
        f"±{each.radius} in 95 of 100 cases",
    ]
    outlook = each.outlook
    if outlook is not None:
        said.append(
            f"  honest votes: {real(outlook.expected)} for each of {outlook.environments} "
            f"environments, if every phone casts all of its own; {outlook.needed} stand clear of "
            "the noise"
        )
        if outlook.clear >= outlook.environments:
            said.append(f"  all {outlook.environments} can stand clear of the noise")
        elif outlook.clear:
            said.append(
                f"  at most {outlook.clear} of {outlook.environments} can stand clear of the noise"
            )
        else:
            said.append(
                "  none can stand clear of the noise: more phones (--phones) or a larger --budget"
            )
    return said


def _refusals(seen: Forecast) -> list[str]:
    if not seen.refusals:
        return ["a default phone accepts this phase"]
    return [
        "a default phone refuses this phase:",
        *(f"  {refusal.reason}" for refusal in seen.refusals),
    ]


def _moment(seconds: float) -> str:
    then = datetime.fromtimestamp(seconds, UTC)
    return f"{then.day} {then:%b %Y, %H:%M UTC}"
