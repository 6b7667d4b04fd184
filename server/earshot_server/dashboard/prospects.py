"""Forecast of a phase as text, for `earshot phase start`, `earshot budget` and the dashboard."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from earshot_protocol.api import StartPhase
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import UNNAMED
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.privacy.sum_noise import OPERATORS
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators.parameters import USUAL_REPORTS
from earshot_server.dashboard.spending import (
    VACUOUS_EPSILON,
    dearer_recording,
    is_vacuous,
    limited_to,
)
from earshot_server.dashboard.wording import byte_size, counted, duration, listed, real
from earshot_server.phases.expected import Expected
from earshot_server.phases.forecast import (
    Forecast,
    Outlook,
    SumForecast,
    expected,
    last_forecast,
)
from earshot_server.records import GATHERING, CohortRecord, PhaseRecord

_UNLIKELY = 0.2
"""Largest probability that is described as unlikely."""


def enrolled(asked: StartPhase, cohorts: Iterable[CohortRecord]) -> tuple[int, int]:
    """Return how many enrolled phones may join the phase, and how many of them are in no phase."""
    eligible = [each for each in cohorts if not asked.cohorts or each.name in asked.cohorts]
    return sum(each.phones for each in eligible), sum(each.free for each in eligible)


def phone_lines(asked: StartPhase, phones: int, free: int) -> list[str]:
    """Return a line on how many phones are enrolled."""
    return [f"{phones} phones are enrolled{_whose(asked)}, {free} of them in no phase"]


def too_few(asked: StartPhase, phones: int) -> str:
    """Return the end of the verdict if fewer phones are enrolled than must join; else empty."""
    if phones >= asked.least():
        return ""
    return (
        f"; {asked.least()} must join, and {phones} are enrolled{_whose(asked)}: enrol more "
        "(earshot invite)"
    )


def _whose(asked: StartPhase) -> str:
    return f" in {', '.join(asked.cohorts)}" if asked.cohorts else ""


def gathering_before(asked: StartPhase, records: Iterable[PhaseRecord]) -> list[PhaseRecord]:
    """Return the gathering phases that phones would join before this one."""
    return [
        each
        for each in records
        if each.status == GATHERING
        and each.joined < each.wanted
        and not (each.cohorts and asked.cohorts and set(each.cohorts).isdisjoint(asked.cohorts))
    ]


def lines(asked: StartPhase, seen: Forecast, now: float | None = None) -> list[str]:
    """Describe the forecast of a phase, for a terminal.

    Args:
        asked: Phase to be started.
        seen: Forecast of the phase.
        now: Present time, in seconds since 1970; by default, the clock's.
    """
    now = time.time() if now is None else now
    return [
        f"{asked.parameters.kind} phase of {seen.phones} phones; {seen.honest_survivors} of them "
        "are assumed to stay and be honest (--dropout, --corrupted)",
        f"{'each phone spends':<24}  {'per recording':<28}  per phone (zero-out: its part against "
        "zeros)",
        *_spending(asked.parameters, seen),
        *_weights(asked.parameters),
        *_places(asked.parameters),
        *prototype_lines(asked.parameters),
        *(line for each in seen.sums for line in _sum(asked.parameters, each)),
        *_operators(asked),
        f"each phone sends {byte_size(seen.bytes_up)} in {seen.steps} steps",
        f"ends at the earliest {_moment(now + seen.earliest_seconds)} "
        f"({duration(seen.earliest_seconds)}; all phones join now and none drops out), at the "
        f"latest {_moment(now + seen.latest_seconds)} ({duration(seen.latest_seconds)}"
        f"{_away(seen)})",
        *_refusals(asked.parameters, seen),
    ]


def _spending(parameters: Parameters, seen: Forecast) -> list[str]:
    costs: dict[str, dict[str, tuple[float, float]]] = {}
    for release in seen.privacy:
        costs.setdefault(release.step, {})[release.unit.value] = (release.epsilon, release.delta)
    costs["together"] = {unit: (cost.epsilon, cost.delta) for unit, cost in seen.together.items()}
    rows = [
        f"  {step:<22}  "
        + "  ".join(
            f"ε = {real(by_unit[unit.value][0]):<9} δ = {real(by_unit[unit.value][1]):<11}"
            for unit in LEDGER_UNITS
        ).rstrip()
        for step, by_unit in costs.items()
    ]
    replaced = seen.together[Unit.REPLACED_PHONE]
    beside = (
        f"  a phone replaced by another: ε = {real(replaced.epsilon)}, "
        f"δ = {real(replaced.delta)}, which counts towards no budget"
    )
    dearer, limited = dearer_recording(seen.together), limited_to([parameters])
    return [
        *rows,
        *([f"  {dearer}"] if dearer else []),
        *([f"  {limited}"] if limited else []),
        beside,
        *(
            f"  per {unit}, that promises nothing: a promise begins well below "
            f"ε = {VACUOUS_EPSILON:g}"
            for unit in LEDGER_UNITS
            if is_vacuous(seen.together[unit])
        ),
    ]


def _weights(parameters: Parameters) -> list[str]:
    """Describe what phones do whose own budgets do not cover these costs."""
    if 0 not in parameters.weights:
        return []
    most = max(parameters.weights)
    if most == 1:
        return [
            "  a phone whose own budget does not cover that adds only noise, which is not visible"
        ]
    return [
        f"  that is for a phone that casts {most} votes; one whose own budget does not cover it "
        "casts fewer, or adds only noise, which is not visible"
    ]


def _places(parameters: Parameters) -> list[str]:
    """Describe how unlabelled contacts are counted."""
    if not isinstance(parameters, StatisticsParameters):
        return []
    places = parameters.places
    if places is None:
        return ["only contacts with a label of their own count (--places-of)"]
    named = sum(label != UNNAMED for label in places.labels)
    near = (
        ""
        if places.radius is None
        else f", where that lies within {real(places.radius)} (1 − cosine)"
    )
    return [
        f"contacts without a label of their own count by the nearest of {len(places.labels)} "
        f"places, of which {named} have a name{near}; phones without the encoder "
        f"{places.encoder} refuse"
    ]


def prototype_lines(parameters: Parameters) -> list[str]:
    """Describe the cost and effect of further prototypes of labels; empty if there are none."""
    if not isinstance(parameters, DiscoveryParameters):
        return []
    labels, rows, kinds = len(parameters.labels), parameters.rows, parameters.kinds
    if (rows, kinds) == (labels, 1):
        return []
    whole = msgspec.structs.replace(parameters, rows=labels, kinds=1)
    sent, less = (byte_size(last_forecast(each).bytes_up) for each in (parameters, whole))
    finer = (
        f"{rows - labels} choices of polls get their own prototypes, in addition to {labels} "
        "labels (--finer)",
        "  a phone's vector is shared between both, so the length of a label falls by up to √2",
    )
    split = (
        f"a label gets up to {kinds} prototypes, one for each kind of sound that it covers "
        "(--kinds)",
        "  its length is shared between them, so a label of several kinds needs more phones to be "
        "clear",
    )
    return [
        *(finer if rows > labels else ()),
        *(split if kinds > 1 else ()),
        f"  the sum of labels has {rows * kinds} × {parameters.dimensions} numbers, not {labels} × "
        f"{parameters.dimensions}, and each phone sends {sent} for it, not {less}",
    ]


def _sum(parameters: Parameters, each: SumForecast) -> list[str]:
    by = (
        "a sum by two operators, one message a phone"
        if each.neighbours is None
        else f"a secure sum with k = {each.neighbours} neighbours and threshold "
        f"t = {each.threshold}"
    )
    said = [
        f"{each.part}: {by}; {byte_size(each.bytes_up)} up per phone",
        f"  noise on each number: standard deviation {real(each.deviation)}, within "
        f"±{real(each.radius)} in 95 of 100 cases",
    ]
    inputs = expected(parameters, each.part)
    return said + (_outlook(inputs, each.outlook) if inputs and each.outlook else [])


def _away(seen: Forecast) -> str:
    """Describe the latest end if the helper answers; empty without a helper."""
    usual = duration(seen.latest_seconds - seen.helper_seconds)
    return f"; {usual} if the helper answers immediately" if seen.helper_seconds else ""


def _operators(asked: StartPhase) -> list[str]:
    """Describe which phones and helpers take part in sums by two operators; empty without any."""
    parameters = asked.parameters
    if not parameters.summation.by_operators:
        return []
    said = [
        "phones take part whose app names both operators (earshot phone --leader-key, "
        "--helper-key); all others refuse: unknown_helper"
    ]
    if parameters.summation is SummationName.TWO_OPERATORS_PROVED:
        said.append(
            "  their apps also need the package that proves ballots (the extra [proofs]); "
            "without it, phones refuse: proofs"
        )
    return [*said, *few_reports(asked)]


def few_reports(asked: StartPhase) -> list[str]:
    """Say that a helper must permit a small crowd; empty if default helpers accept the phase."""
    parameters = asked.parameters
    fewest = msgspec.structs.replace(parameters, phones=asked.least()).least_survivors
    if not parameters.summation.by_operators or fewest >= USUAL_REPORTS:
        return []
    return [
        f"this phase may have sums of {fewest} reports, and a helper takes {USUAL_REPORTS} or more "
        "unless its operator allows fewer, with earshot helper allow KEY --least-reports "
        f"{fewest}"
    ]


def proposed_summation(masked: Parameters, split: Parameters) -> str:
    """Return the summation proposed if the server has a helper, and why, as a sentence.

    Args:
        masked: Parameters of the phase by the phones' masks.
        split: Parameters of the same phase by two operators.
    """
    both, masks = _multipliers(split), _multipliers(masked)
    one = [each / math.sqrt(OPERATORS) for each in both]
    visits = len(BELL.rounds)
    return (
        "proposed, as this server has a helper: two operators (--summation two-operators). A phone "
        f"visits once a sum, not {visits} times; noise is {_row(both)} times the most that a phone "
        f"adds ({_row(one)} that of one operator, which protects), with bell {_row(masks)}; phones "
        "trust that the two operators never put their data together, with bell that this server "
        "follows the protocol"
    )


def _multipliers(parameters: Parameters) -> list[float]:
    """Return the noise of each distinct sum relative to a phone's largest entry, if all stay."""
    sums = [part.mechanism for part in parameters.plan().parts if isinstance(part, SecureSum)]
    return [
        each.noise(parameters.phones).deviation / each.largest_entry for each in dict.fromkeys(sums)
    ]


def _row(values: list[float]) -> str:
    return listed([real(value) for value in values])


def _outlook(inputs: Expected, seen: Outlook) -> list[str]:
    among = counted(seen.environments, inputs.place)
    return [
        f"  {inputs.honest}: {real(seen.expected)} for each of {among}, {inputs.provided}; "
        f"{seen.needed} {inputs.enough}",
        f"  {_hope(inputs, seen)}",
    ]


def _hope(inputs: Expected, seen: Outlook) -> str:
    """Describe how many places can be found, or how unlikely it is that any is."""
    if seen.clear >= seen.environments:
        return f"{'all ' if seen.environments > 1 else ''}{seen.environments} can {inputs.can}"
    if seen.clear:
        return f"that is enough for {seen.clear} of {seen.environments} to {inputs.can}"
    advice = f"more phones (--phones) or a larger {inputs.remedy}"
    if seen.chance > _UNLIKELY:
        return f"that is not enough for any to {inputs.can}, except by chance: {advice}"
    most = math.ceil(100 * seen.chance)
    return (
        f"it is unlikely that any can {inputs.can} (a probability of at most {most} %, whatever "
        f"phones hear): {advice}"
    )


def _refusals(parameters: Parameters, seen: Forecast) -> list[str]:
    phone = "a default phone"
    if parameters.summation.by_operators:
        phone += " whose app names both operators"
    if not seen.refusals:
        return [f"{phone} accepts this phase"]
    return [
        f"{phone} refuses this phase:",
        *(f"  {refusal.reason}" for refusal in seen.refusals),
    ]


def _moment(seconds: float) -> str:
    then = datetime.fromtimestamp(seconds, UTC)
    return f"{then.day} {then:%b %Y, %H:%M UTC}"
