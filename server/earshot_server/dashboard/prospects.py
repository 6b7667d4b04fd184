"""Forecast of a phase as text, for `earshot phase start`, `earshot budget` and the dashboard."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import msgspec

from earshot_protocol.api import StartPhase
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import UNNAMED
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.privacy.sum_noise import OPERATORS
from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.two_operators.parameters import USUAL_REPORTS
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import gettext_among, ngettext, noted
from earshot_server.dashboard.sentences import kind_of_phase, step
from earshot_server.dashboard.spending import (
    VACUOUS_EPSILON,
    dearer_recording,
    is_vacuous,
    limited_to,
)
from earshot_server.dashboard.wording import byte_size, duration, instant, listed, real, whole
from earshot_server.phases.expected import Expected
from earshot_server.phases.forecast import (
    USUAL_BYTES,
    Forecast,
    Outlook,
    PhaseBytes,
    SumForecast,
    expected,
    last_forecast,
    phase_bytes,
    samples_within,
)
from earshot_server.records import GATHERING, CohortRecord, PhaseRecord

_UNLIKELY = 0.2
"""Largest probability that is described as unlikely."""
_EXPECTED = frozenset(
    (
        *(noted("honest votes"), noted("honest phones"), noted("honest phones that agree")),
        noted("contacts of honest phones"),
        noted("if every phone casts all of its own"),
        noted("if every phone has as many as it may count"),
        noted("if all that a phone labelled has one label and sounds the same"),
        noted("if each hears one thing, in one cell"),
        noted("if every phone knows every sample and all give the same answers"),
        *(noted("stand clear of the noise"), noted("give it a prototype"), noted("move one")),
        noted("make an answer that stands clear of the noise"),
        *(noted("get a prototype"), noted("be moved to where sound is")),
        noted("get such an answer"),
        noted("for each of %(number)s environment"),
        noted("for each of %(number)s environments"),
        *(noted("for each of %(number)s label"), noted("for each of %(number)s labels")),
        *(noted("for each of %(number)s cell"), noted("for each of %(number)s cells")),
        *(noted("for each of %(number)s sample"), noted("for each of %(number)s samples")),
    )
)
"""Words with which each kind of phase describes its `Expected` inputs."""
_VACUOUS = {
    Unit.RECORDING: noted(
        "  per recording, that promises nothing: a promise begins well below ε = %(epsilon)s"
    ),
    Unit.PHONE: noted(
        "  per phone, that promises nothing: a promise begins well below ε = %(epsilon)s"
    ),
}


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
        _(
            "%(kind)s of %(phones)s phones; %(honest)s of them are assumed to stay and be honest "
            "(--dropout, --corrupted)",
            kind=kind_of_phase(asked.parameters),
            phones=seen.phones,
            honest=seen.honest_survivors,
        ),
        f"{_('each phone spends'):<24}  {_('per recording'):<28}  "
        + _("per phone (zero-out: its part against zeros)"),
        *_spending(asked.parameters, seen),
        *_weights(asked.parameters),
        *_places(asked.parameters),
        *prototype_lines(asked.parameters),
        *(line for each in seen.sums for line in _sum(asked.parameters, each)),
        *_operators(asked),
        *sent_lines(seen),
        *large_inputs(asked.parameters),
        _(
            "ends at the earliest %(earliest)s (%(least)s; all phones join now and none drops "
            "out), at the latest %(latest)s (%(most)s)",
            earliest=instant(now + seen.earliest_seconds),
            least=duration(seen.earliest_seconds),
            latest=instant(now + seen.latest_seconds),
            most=_longest(seen),
        ),
        *_refusals(asked.parameters, seen),
    ]


def _spending(parameters: Parameters, seen: Forecast) -> list[str]:
    costs: dict[str, dict[str, tuple[float, float]]] = {}
    for release in seen.privacy:
        name = step(release.step)
        costs.setdefault(name, {})[release.unit.value] = (release.epsilon, release.delta)
    costs[_("together")] = {
        unit: (cost.epsilon, cost.delta) for unit, cost in seen.together.items()
    }
    rows = [
        f"  {name:<22}  "
        + "  ".join(
            f"ε = {real(by_unit[unit.value][0]):<9} δ = {real(by_unit[unit.value][1]):<11}"
            for unit in LEDGER_UNITS
        ).rstrip()
        for name, by_unit in costs.items()
    ]
    replaced = seen.together[Unit.REPLACED_PHONE]
    beside = _(
        "  a phone replaced by another: ε = %(epsilon)s, δ = %(delta)s, which counts towards no "
        "budget",
        epsilon=real(replaced.epsilon),
        delta=real(replaced.delta),
    )
    dearer, limited = dearer_recording(seen.together), limited_to([parameters])
    return [
        *rows,
        *([f"  {dearer}"] if dearer else []),
        *([f"  {limited}"] if limited else []),
        beside,
        *(
            _(_VACUOUS[unit], epsilon=f"{VACUOUS_EPSILON:g}")
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
            _(
                "  a phone whose own budget does not cover that adds only noise, which is not "
                "visible"
            )
        ]
    return [
        _(
            "  that is for a phone that casts %(votes)s votes; one whose own budget does not cover "
            "it casts fewer, or adds only noise, which is not visible",
            votes=most,
        )
    ]


def _places(parameters: Parameters) -> list[str]:
    """Describe how unlabelled contacts are counted."""
    if not isinstance(parameters, StatisticsParameters):
        return []
    places = parameters.places
    if places is None:
        return [_("contacts without a label of their own count as unknown (--places-of)")]
    near = ""
    if places.radius is not None:
        near = _(", where that lies within %(radius)s (1 − cosine)", radius=real(places.radius))
    return [
        _(
            "contacts without a label of their own are named by the nearest of %(places)s places, "
            "of which %(named)s have a name%(near)s; phones without the encoder %(encoder)s refuse",
            places=len(places.labels),
            named=sum(label != UNNAMED for label in places.labels),
            near=near,
            encoder=places.encoder,
        )
    ]


def prototype_lines(parameters: Parameters) -> list[str]:
    """Describe the cost and effect of further prototypes of labels; empty if there are none."""
    if not isinstance(parameters, DiscoveryParameters):
        return []
    labels, rows, kinds = len(parameters.labels), parameters.rows, parameters.kinds
    if (rows, kinds) == (labels, 1):
        return []
    plain = msgspec.structs.replace(parameters, rows=labels, kinds=1)
    sent, less = (byte_size(last_forecast(each).traffic.sent) for each in (parameters, plain))
    finer = (
        _(
            "%(choices)s choices of polls get their own prototypes, in addition to %(labels)s "
            "labels (--finer)",
            choices=rows - labels,
            labels=labels,
        ),
        _("  a phone's vector is shared between both, so the length of a label falls by up to √2"),
    )
    split = (
        _(
            "a label gets up to %(kinds)s prototypes, one for each kind of sound that it covers "
            "(--kinds)",
            kinds=kinds,
        ),
        _(
            "  its length is shared between them, so a label of several kinds needs more phones to "
            "be clear"
        ),
    )
    return [
        *(finer if rows > labels else ()),
        *(split if kinds > 1 else ()),
        _(
            "  the sum of labels has %(rows)s × %(dimensions)s numbers, not %(labels)s × "
            "%(dimensions)s, and each phone sends %(sent)s for it, not %(less)s",
            rows=rows * kinds,
            dimensions=parameters.dimensions,
            labels=labels,
            sent=sent,
            less=less,
        ),
    ]


def _sum(parameters: Parameters, each: SumForecast) -> list[str]:
    by = _("a sum by two operators, one message a phone")
    if each.neighbours is not None:
        by = _(
            "a secure sum with k = %(neighbours)s neighbours and threshold t = %(threshold)s",
            neighbours=each.neighbours,
            threshold=each.threshold,
        )
    said = [
        _(
            "%(part)s: %(by)s; %(bytes)s up per phone",
            part=step(each.part),
            by=by,
            bytes=byte_size(each.traffic.sent),
        ),
        _(
            "  noise on each number: standard deviation %(deviation)s, within ±%(radius)s in 95 of "
            "100 cases",
            deviation=real(each.deviation),
            radius=real(each.radius),
        ),
    ]
    inputs = expected(parameters, each.part)
    return said + (_outlook(inputs, each.outlook) if inputs and each.outlook else [])


def _longest(seen: Forecast) -> str:
    """Return the longest time to the end; with a helper, also the longest if it answers."""
    longest = duration(seen.latest_seconds)
    if not seen.helper_seconds:
        return longest
    return _(
        "%(longest)s; %(usual)s if the helper answers immediately",
        longest=longest,
        usual=duration(seen.latest_seconds - seen.helper_seconds),
    )


def _operators(asked: StartPhase) -> list[str]:
    """Describe which phones and helpers take part in sums by two operators; empty without any."""
    parameters = asked.parameters
    if not parameters.summation.by_operators:
        return []
    said = [
        _(
            "phones take part whose app names both operators (earshot phone --leader-key, "
            "--helper-key); all others refuse: unknown_helper"
        )
    ]
    if parameters.summation.proved:
        said.append(
            _(
                "  their apps also need the package that proves inputs (pycryptodomex, by the "
                "extra [proofs]); without it, phones refuse: proofs"
            )
        )
    return [*said, *few_reports(asked)]


def sent_lines(seen: Forecast) -> list[str]:
    """Describe what each phone sends, and what the operators keep of it."""
    return [
        _(
            "each phone sends %(bytes)s in %(steps)s steps",
            bytes=byte_size(seen.bytes.sent),
            steps=seen.steps,
        ),
        *stored_lines(seen.phones, seen.bytes),
    ]


def stored_lines(phones: int, found: PhaseBytes) -> list[str]:
    """Describe what all phones send together, and what the operators need to keep it.

    Args:
        phones: Number of phones.
        found: Bytes of the phase.
    """
    said = [
        _(
            "  all phones together %(sent)s; this server’s database keeps up to %(server)s at a "
            "time, and needs twice that, as it keeps erased rows for a while",
            sent=byte_size(phones * found.sent),
            server=byte_size(found.server),
        )
    ]
    if found.helper:
        said.append(
            _(
                "  the helper’s disk keeps up to %(helper)s, part of it for days",
                helper=byte_size(found.helper),
            )
        )
    return said


def large_inputs(parameters: Parameters) -> list[str]:
    """Say how a phase of proved inputs gets smaller; empty if phones send no more than usual."""
    found = phase_bytes(parameters)
    if not parameters.summation.proved or found.sent <= USUAL_BYTES:
        return []
    unproved = msgspec.structs.replace(parameters, summation=SummationName.TWO_OPERATORS_UNPROVED)
    without = _(
        "without proofs (--summation two-operators-unproved) it would send %(less)s, and nobody "
        "could check its input",
        less=byte_size(phase_bytes(unproved).sent),
    )
    fewer = ""
    if isinstance(parameters, LabellingParameters):
        fewer = _(
            "with %(samples)s samples or fewer in place of %(given)s it would send less; ",
            samples=whole(samples_within(parameters)),
            given=whole(parameters.samples.rows),
        )
    return [
        _(
            "each phone sends %(bytes)s, most of it proofs, and no more than %(usual)s is "
            "proposed: ",
            bytes=byte_size(found.sent),
            usual=byte_size(USUAL_BYTES),
        )
        + fewer
        + without
    ]


def few_reports(asked: StartPhase) -> list[str]:
    """Say that a helper must permit a small crowd; empty if default helpers accept the phase."""
    parameters = asked.parameters
    fewest = msgspec.structs.replace(parameters, phones=asked.least()).least_survivors
    if not parameters.summation.by_operators or fewest >= USUAL_REPORTS:
        return []
    return [
        _(
            "this phase may have sums of %(fewest)s reports, and a helper takes %(usual)s or more "
            "unless its operator allows fewer, with earshot helper allow KEY --least-reports "
            "%(fewest)s",
            fewest=fewest,
            usual=USUAL_REPORTS,
        )
    ]


def proposed_summation(masked: Parameters, split: Parameters) -> str:
    """Return the summation proposed if the server has a helper, and why, as a sentence.

    Args:
        masked: Parameters of the phase by the phones' masks.
        split: Parameters of the same phase by two operators.
    """
    both, masks = _multipliers(split), _multipliers(masked)
    one = [each / math.sqrt(OPERATORS) for each in both]
    how = "--summation two-operators"
    if large_inputs(split):
        sent = byte_size(phase_bytes(split).sent)
        how = _(
            "--summation two-operators-unproved, as a phone would send %(bytes)s with proofs",
            bytes=sent,
        )
        if isinstance(split, LabellingParameters):
            how = _(
                "--summation two-operators with %(samples)s samples at most, or --summation "
                "two-operators-unproved: with all %(given)s samples and proofs a phone would send "
                "%(bytes)s",
                samples=whole(samples_within(split)),
                given=whole(split.samples.rows),
                bytes=sent,
            )
    return _(
        "proposed, as this server has a helper: two operators (%(how)s). A phone visits once a "
        "sum, not %(visits)s times; noise is %(both)s times the most that a phone adds (%(one)s "
        "that of one operator, which protects), with bell %(masks)s; phones trust that the two "
        "operators never put their data together, with bell that this server follows the protocol",
        how=how,
        visits=len(BELL.rounds),
        both=_row(both),
        one=_row(one),
        masks=_row(masks),
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
    each = f"for each of %(number)s {inputs.place}{'' if seen.environments == 1 else 's'}"
    return [
        _(
            "  %(honest)s: %(expected)s %(each)s, %(provided)s; %(needed)s %(enough)s",
            honest=gettext_among(_EXPECTED, inputs.honest),
            expected=real(seen.expected),
            each=gettext_among(_EXPECTED, each, number=whole(seen.environments)),
            provided=gettext_among(_EXPECTED, inputs.provided),
            needed=seen.needed,
            enough=gettext_among(_EXPECTED, inputs.enough),
        ),
        f"  {_hope(inputs, seen)}",
    ]


def _hope(inputs: Expected, seen: Outlook) -> str:
    """Describe how many places can be found, or how unlikely it is that any is."""
    can = gettext_among(_EXPECTED, inputs.can)
    if seen.clear >= seen.environments:
        return ngettext(
            "%(number)s can %(can)s",
            "all %(number)s can %(can)s",
            seen.environments,
            number=seen.environments,
            can=can,
        )
    if seen.clear:
        return _(
            "that is enough for %(clear)s of %(number)s to %(can)s",
            clear=seen.clear,
            number=seen.environments,
            can=can,
        )
    advice = _("more phones (--phones) or a larger %(option)s", option=inputs.remedy)
    if seen.chance > _UNLIKELY:
        return _(
            "that is not enough for any to %(can)s, except by chance: %(advice)s",
            can=can,
            advice=advice,
        )
    return _(
        "it is unlikely that any can %(can)s (a probability of at most %(most)s %%, whatever "
        "phones hear): %(advice)s",
        can=can,
        most=math.ceil(100 * seen.chance),
        advice=advice,
    )


def _refusals(parameters: Parameters, seen: Forecast) -> list[str]:
    if parameters.summation.by_operators:
        accepts = _("a default phone whose app names both operators accepts this phase")
        refuses = _("a default phone whose app names both operators refuses this phase:")
    else:
        accepts = _("a default phone accepts this phase")
        refuses = _("a default phone refuses this phase:")
    if not seen.refusals:
        return [accepts]
    return [refuses, *(f"  {refusal.reason}" for refusal in seen.refusals)]
