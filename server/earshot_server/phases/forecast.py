"""Forecast of a phase's cost and of what it can find, from its parameters alone.

It shows before the gathering whether default phones would refuse the phase, and whether the noise
is too large for its votes. It needs neither a server nor a phone.
"""

from __future__ import annotations

import bisect
import math

import msgspec

from earshot_protocol.api import StartPhase
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.acceptance import default_refusals
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import LocalRelease, SecureSum
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_protocol.privacy.significance import LEVEL
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.interface import Asks
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.summations import AnySumParameters
from earshot_protocol.traffic import Traffic, traffic
from earshot_protocol.two_operators.leader import PATIENCE
from earshot_protocol.wire import Matrix, encode
from earshot_server.accounting.accountant import Composed
from earshot_server.phases.costs import together
from earshot_server.phases.expected import Expected
from earshot_server.phases.kinds import KINDS
from earshot_server.phases.present import VISITS_PER_STEP

CONFIDENCE = 0.95
USUAL_BYTES = 10**6
"""Most bytes that a phone sends in a phase that is proposed."""
PER_RECORDING = (
    "; the local route protects single recordings, not phones: only phones take part whose policy "
    "permits it (`Policy.per_recording()` in an app, `earshot phone --per-recording`)"
)
"""Warning about phases that cluster on each phone."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """Outlook of a sum's votes: whether they can be clear of their noise.

    Attributes:
        environments: Places among which the votes are shared: for a vote the most environments that
            are kept, for a histogram or a sum of labels all labels, for a sum over cells all cells.
        expected: Votes for each place, if the honest phones that stay cast all their votes, equally
            for all places.
        needed: Fewest votes that are clear of the noise (`Expected.hurdle`).
        clear: Most places that can share the votes equally and all be clear.
        chance: Bound on the probability that any place is clear by noise, if no phone drops out,
            whatever phones hear; 1 if votes alone can be clear.
    """

    environments: int
    expected: float
    needed: int
    clear: int
    chance: float


class SumForecast(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of one secure sum.

    Attributes:
        part: Name of the part of the plan.
        neighbours: Neighbours k of each phone; None in a sum by two operators.
        threshold: Threshold t of shares; None in a sum by two operators.
        entries: Number of entries of an input; for a vote on candidates that are found only later,
            the largest possible one.
        deviation: Standard deviation of the noise on an entry, in votes, if all phones stay.
        radius: Bound on this noise that holds in 95 of 100 cases, in votes.
        traffic: Bytes that one phone sends, and that operators keep.
        outlook: Outlook of the votes; None for a kind of phase without expected inputs.
    """

    part: str
    neighbours: int | None
    threshold: int | None
    entries: int
    deviation: float
    radius: float
    traffic: Traffic
    outlook: Outlook | None


class Refusal(msgspec.Struct, frozen=True):
    """Refusal by a default phone: the rule, and the value with the accepted range."""

    rule: str
    reason: str


class PhaseBytes(msgspec.Struct, frozen=True):
    """Bytes of a whole phase, the most that there can be, without the overhead of HTTP and stores.

    Attributes:
        sent: What one phone sends in all answers.
        server: What the server keeps at a time, of answers and of tasks.
        helper: What the helper keeps: the largest list, and all totals, which it drops days later.
    """

    sent: int
    server: int
    helper: int


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast of a phase's cost and of what it can find.

    Attributes:
        phones: Number n of wanted phones.
        honest_survivors: Number of phones that are assumed to stay and to vote honestly.
        privacy: Privacy that each phone spends, per step and unit.
        total: Cost of all steps together, per unit of ledgers.
        together: Cost of all steps together, per unit, including `Unit.REPLACED_PHONE`.
        sums: Forecasts of the secure sums.
        bytes: Bytes that one phone sends in all answers, and that operators keep.
        steps: Number of steps in which phones answer.
        earliest_seconds: Earliest end, in seconds: all phones join immediately, none drops out, and
            each visits as often as the server's tasks say.
        latest_seconds: Latest end, in seconds.
        helper_seconds: Part of `latest_seconds` spent waiting for an absent helper; 0 if only
            phones are asked.
        refusals: Refusals of a phone with the default policy; empty if it accepts the phase.
    """

    phones: int
    honest_survivors: int
    privacy: tuple[Release, ...]
    total: dict[str, Composed]
    together: dict[str, Composed]
    sums: tuple[SumForecast, ...]
    bytes: PhaseBytes
    steps: int
    earliest_seconds: float
    latest_seconds: float
    helper_seconds: float
    refusals: tuple[Refusal, ...]


def forecast(asked: StartPhase) -> Forecast:
    """Return the forecast of a phase.

    Raises:
        InvalidParametersError: No such phase can run; the message names the wrong value and the
            accepted ones.
    """
    check_possible(asked)
    parameters = asked.parameters
    plan = parameters.plan()
    sums = tuple(
        _sum_forecast(parameters, part) for part in plan.parts if isinstance(part, SecureSum)
    )
    asked_of_phones = [step for step in plan.steps if step.asks is not Asks.HELPER]
    seconds, costs = len(asked_of_phones) * parameters.step_seconds, together(plan)
    helpers = (len(plan.steps) - len(asked_of_phones)) * PATIENCE
    return Forecast(
        phones=parameters.phones,
        honest_survivors=parameters.honest_survivors,
        privacy=plan.releases(),
        total={unit.value: costs[unit] for unit in LEDGER_UNITS},
        together={unit.value: cost for unit, cost in costs.items()},
        sums=sums,
        bytes=phase_bytes(parameters),
        steps=len(asked_of_phones),
        earliest_seconds=seconds / VISITS_PER_STEP,
        latest_seconds=asked.gather_seconds + seconds + helpers,
        helper_seconds=helpers,
        refusals=refusals(asked),
    )


def check_possible(asked: StartPhase) -> None:
    """Check that a phase can run with phones of some policy.

    Raises:
        InvalidParametersError: A value is wrong; the message names it and the accepted ones.
    """
    asked.check_name()
    for parameters in _crowds(asked):
        parameters.check_feasible()
        phase_bytes(parameters)
    dimensions = getattr(asked.parameters, "dimensions", 0)
    if dimensions > DIMENSIONS:
        raise InvalidParametersError(
            f"dimensions={dimensions}: must be at most {DIMENSIONS}, as in the embeddings of every "
            "encoder"
        )


def refusals(asked: StartPhase) -> tuple[Refusal, ...]:
    """Return all reasons why a default phone refuses the phase, each rule once.

    Both the wanted number of phones and the least one are checked.
    """
    found: dict[str, Refusal] = {}
    for parameters in _crowds(asked):
        few = parameters.phones < asked.parameters.phones
        condition = f"if no more than {parameters.phones} phones join, " if few else ""
        for refused in default_refusals(parameters):
            reason = f"{condition}{refused.reason}"
            if refused.rule is Rule.LARGEST_PHONE_EPSILON and _is_local(parameters):
                reason += PER_RECORDING
            found.setdefault(refused.rule, Refusal(refused.rule.value, reason))
    return tuple(found.values())


def _is_local(parameters: Parameters) -> bool:
    """Return whether the phase has a local release."""
    return any(isinstance(part, LocalRelease) for part in parameters.plan().parts)


def _crowds(asked: StartPhase) -> tuple[Parameters, ...]:
    """Return the parameters with the wanted number of phones, and with the least one."""
    least = msgspec.structs.replace(asked.parameters, phones=asked.least())
    return (asked.parameters,) if least == asked.parameters else (asked.parameters, least)


def expected(parameters: Parameters, part: str) -> Expected | None:
    """Return the expected inputs of a sum of this phase; None if its kind does not know them."""
    return KINDS[type(parameters)].expected(parameters, part)


def phase_bytes(parameters: Parameters) -> PhaseBytes:
    """Return the bytes of a phase if all phones answer.

    Raises:
        InvalidParametersError: A message would be too large.
    """
    parts = parameters.plan().parts
    sums = [traffic(_agreed(parameters, part)) for part in parts if isinstance(part, SecureSum)]
    released = sum(release_bytes(parameters) for part in parts if isinstance(part, LocalRelease))
    return PhaseBytes(
        sent=released + sum(each.sent for each in sums),
        server=max([parameters.phones * released, *(each.server for each in sums)]),
        helper=max([0, *(each.list for each in sums)]) + sum(each.total for each in sums),
    )


def _agreed(parameters: Parameters, part: SecureSum) -> AnySumParameters:
    """Return the parameters of a sum of the largest possible inputs."""
    inputs = expected(parameters, part.name)
    return parameters.sum_parameters(part, inputs.shape if inputs else (1,))


def _sum_forecast(parameters: Parameters, part: SecureSum) -> SumForecast:
    inputs = expected(parameters, part.name)
    chosen = _agreed(parameters, part)
    noise = part.mechanism.noise(parameters.phones)
    unit = inputs.unit if inputs else 1.0
    return SumForecast(
        part=part.name,
        neighbours=chosen.degree if isinstance(chosen, SumParameters) else None,
        threshold=chosen.threshold if isinstance(chosen, SumParameters) else None,
        entries=chosen.length,
        deviation=noise.deviation / unit,
        radius=noise.radius(CONFIDENCE) / unit,
        traffic=traffic(chosen),
        outlook=outlook(parameters, part),
    )


def last_forecast(parameters: Parameters) -> SumForecast:
    """Return the forecast of the last secure sum of a phase."""
    sums = [part for part in parameters.plan().parts if isinstance(part, SecureSum)]
    return _sum_forecast(parameters, sums[-1])


def outlook(parameters: Parameters, part: SecureSum) -> Outlook | None:
    """Return the outlook of a sum's votes; None without expected inputs."""
    inputs = expected(parameters, part.name)
    if inputs is None:
        return None
    noise = part.mechanism.noise(parameters.phones)
    honest, places = parameters.honest_survivors, inputs.places
    needed = math.ceil(inputs.hurdle.least(noise) / inputs.unit)
    reachable = honest * inputs.most >= needed
    return Outlook(
        environments=places,
        expected=min(honest * inputs.votes / places, honest * inputs.most),
        needed=needed,
        clear=min(places, honest * inputs.votes // needed) if reachable else 0,
        chance=1.0 if reachable else _luck(parameters, inputs, noise),
    )


def _luck(parameters: Parameters, inputs: Expected, noise: NoiseLaw) -> float:
    """Bound the probability that any place is clear though all votes together do not suffice.

    The probability f(c) that an entry with c votes is clear is convex up to the needed entry, so
    f(c) ≤ f(0) + (f(M) − f(0)) · c/M for the largest possible entry M, where every phone casts its
    most votes. Over all entries, f(0) adds up to at most `LEVEL`, and c to a multiple of M.
    """
    most = parameters.phones * inputs.most
    spread = inputs.votes / inputs.most if inputs.spread is None else inputs.spread
    lifted = inputs.hurdle.chance(noise, math.ceil(most * inputs.unit))
    return min(1.0, LEVEL + spread * lifted)


def samples_within(parameters: LabellingParameters, most: int = USUAL_BYTES) -> int:
    """Return how many samples phones can label if each sends at most this many bytes."""

    def sent(samples: int) -> int:
        size = 4 * samples * parameters.dimensions
        kept = Matrix(samples, parameters.dimensions, parameters.samples.data[:size])
        return phase_bytes(msgspec.structs.replace(parameters, samples=kept)).sent

    counts = range(1, parameters.samples.rows + 1)
    return bisect.bisect_left(counts, True, key=lambda samples: sent(samples) > most)


def release_bytes(parameters: Parameters) -> int:
    """Return the bytes that one phone publishes in a local release; 0 without an example."""
    answer = KINDS[type(parameters)].expected_answer(parameters)
    return 0 if answer is None else len(encode(answer))
