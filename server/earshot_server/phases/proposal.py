"""Parameters that fit a privacy budget, and what they achieve, for `earshot budget`.

This needs neither a server nor a phone.
"""

from __future__ import annotations

import bisect
import functools
import math

import msgspec
import numpy as np

from earshot_protocol import checks
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.acceptance import Limits, default_refusals
from earshot_protocol.phases.discovery import LABELS, DiscoveryParameters
from earshot_protocol.phases.learning import CENTROID_VOTE, PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.budgets import BUDGETS, Span
from earshot_protocol.privacy.calibration import check_delta
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import BallotSum, Unit, VectorSum
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_server.phases.expected import least_clear
from earshot_server.phases.forecast import PhaseBytes, Refusal, phase_bytes
from earshot_server.phases.learning import most_candidates
from earshot_server.phases.options import CentroidOptions, Discovery, PhaseOptions

PHASES_A_YEAR = 12
_MOST_COUNTED = 1000


_Route = DiscoveryParameters | PhaseParameters


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of the phase in one unit, at the given δ.

    Attributes:
        epsilon: Cost ε of one phase; None if no ε holds.
        yearly_epsilon: Cost ε of a year of such phases, at the same δ; None if no ε holds.
    """

    epsilon: float | None
    yearly_epsilon: float | None


class StepShare(msgspec.Struct, frozen=True, kw_only=True):
    """Share of one private step in the cost.

    Attributes:
        step: Name of the step.
        setting: Setting that determines its noise: a noise multiplier, or ε.
        value: Value of that setting.
        epsilon: Cost ε of the step by itself, in the given unit; None if no ε holds.
        deviation: Standard deviation of the noise on an entry of a sum, if only the assumed number
            of phones stay, relative to one phone's largest entry; None for local releases.
    """

    step: str
    setting: str
    value: float
    epsilon: float | None
    deviation: float | None


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Split of a budget, and what it achieves.

    Attributes:
        steps: Private steps, and their shares.
        prices: Prices by unit.
        phases_a_year: Number of phases in the yearly ε.
        needed: Phones that must have heard an environment, and nothing else, so that it is clear of
            the noise; by secure sums, that must have labelled it, with recordings that sound the
            same. None if that is more than the honest phones that stay.
        environments: Most environments (labels) that these phones can share equally, each of them
            clear of the noise.
        yearly_phases: Phases like this that a phone with the default policy takes part in within a
            year; at most 1,000 are counted.
        lifetime_phases: Phases like this that it takes part in during its life, counted likewise.
        refusals: Refusals of a phone with the default policy; empty if it accepts the phase.
        bytes: Bytes that one phone sends in a phase, and that operators keep.
    """

    steps: tuple[StepShare, ...]
    prices: dict[str, Price]
    phases_a_year: int
    needed: int | None
    environments: int
    yearly_phases: int
    lifetime_phases: int
    refusals: tuple[Refusal, ...]
    bytes: PhaseBytes


def proposed(
    asked: PhaseOptions, unit: Unit = Unit.PHONE, *, any_delta: bool = False
) -> tuple[Parameters, Proposal]:
    """Return the parameters of such a phase, and what they achieve.

    Args:
        asked: Options of the phase.
        unit: Unit of privacy in which the phase costs ε and δ.
        any_delta: Accept a δ of 1/phones or more.

    Raises:
        InvalidParametersError: A value is out of range, or no such phase can run; the message names
            the value and the accepted ones.
    """
    checks.whole("phones", asked.phones, 3)
    if asked.epsilon is not None:
        checks.epsilon("epsilon", asked.epsilon)
    checks.probability("delta", asked.delta)
    if not any_delta:
        check_delta(asked.delta, asked.phones)
    checks.fraction("dropout", asked.dropout)
    checks.fraction("corrupted", asked.corrupted)
    checks.whole("recordings", asked.recordings)
    parameters = _parameters(asked, unit)
    parameters.check_feasible()
    needed = _phones_needed(parameters)
    honest = parameters.honest_survivors
    return parameters, Proposal(
        steps=_steps(parameters, unit, asked.delta),
        prices={each.value: _price(parameters, each, asked.delta) for each in Unit},
        phases_a_year=PHASES_A_YEAR,
        needed=needed if needed <= honest else None,
        environments=_at_once(parameters, needed),
        yearly_phases=_most_phases(parameters, Span.YEAR),
        lifetime_phases=_most_phases(parameters, Span.LIFE),
        refusals=tuple(
            Refusal(refused.rule.value, refused.reason) for refused in default_refusals(parameters)
        ),
        bytes=phase_bytes(parameters),
    )


def _parameters(asked: PhaseOptions, unit: Unit) -> _Route:
    if asked.discovery is not Discovery.LOCAL:
        # The proposal does not depend on the positions of the start centroids.
        return asked.discovery_parameters(DEFAULT_ENCODER, _anywhere, unit)
    known = {
        "encoder": DEFAULT_ENCODER,
        "dimensions": learning_budget.DIMENSIONS,
        "geometry": Geometry.SPHERICAL,
        "budget": learning_budget.BUDGETS[Geometry.SPHERICAL],
    }
    return CentroidOptions().centroid_parameters(asked.epsilon, unit, **vars(asked) | known)


def _anywhere(count: int) -> CentroidSet:
    return CentroidSet.of(np.ones((count, discovery_budget.DIMENSIONS)))


def _events(parameters: Parameters, unit: Unit) -> list[Event]:
    return [each.event(unit) for each in parameters.plan().mechanisms.values()]


def _price(parameters: Parameters, unit: Unit, delta: float) -> Price:
    events = _events(parameters, unit)
    return Price(
        epsilon=_known(composed_epsilon(events, delta)),
        yearly_epsilon=_known(composed_epsilon(events * PHASES_A_YEAR, delta)),
    )


def _most_phases(parameters: Parameters, span: Span) -> int:
    """Return how many such phases fit into the default budgets of a year or a life."""
    limits = Limits()
    fitting = (
        functools.partial(
            _fits,
            tuple(_events(parameters, budget.unit)),
            float(getattr(limits, budget.epsilon)),
            float(getattr(limits, budget.delta)),
        )
        for budget in BUDGETS
        if budget.span is span
    )
    # The index of the first count that does not fit is the largest count that does.
    most = range(1, _MOST_COUNTED + 1)
    return min(bisect.bisect_left(most, True, key=lambda n: not fits(n)) for fits in fitting)


def _fits(events: tuple[Event, ...], epsilon: float, delta: float, phases: int) -> bool:
    return composed_epsilon(events * phases, delta) <= epsilon * (1 + 1e-9)


def _known(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _steps(parameters: Parameters, unit: Unit, delta: float) -> tuple[StepShare, ...]:
    found = []
    for step, mechanism in parameters.plan().mechanisms.items():
        deviation = None
        if isinstance(mechanism, VectorSum | BallotSum):
            noise = mechanism.noise(parameters.noise_survivors or parameters.phones)
            deviation = noise.deviation / mechanism.largest_entry
        by_noise = isinstance(mechanism, VectorSum)
        found.append(
            StepShare(
                step=step,
                setting="noise multiplier" if by_noise else "ε per recording",
                value=float(getattr(mechanism, "noise_multiplier" if by_noise else "epsilon")),
                epsilon=_known(composed_epsilon([mechanism.event(unit)], delta)),
                deviation=deviation,
            )
        )
    return tuple(found)


def _phones_needed(parameters: _Route) -> int:
    """Return how many phones must give their whole vote to one environment to clear the noise."""
    mechanisms = parameters.plan().mechanisms
    if isinstance(parameters, DiscoveryParameters):
        inputs, mechanism = DiscoveryPhase.expected(parameters, LABELS), mechanisms[LABELS]
        if isinstance(mechanism, VectorSum):
            least = inputs.hurdle.least(mechanism.noise(parameters.phones)) / inputs.unit
            # If choices have rows, a phone with one choice adds 1/√2 to its label's row.
            return math.ceil(least * math.sqrt(discovery_budget.levels(parameters)))
        raise TypeError(f"{mechanism.name} is not a sum of vectors")
    mechanism, looked_at = mechanisms[CENTROID_VOTE], most_candidates(parameters)
    if isinstance(mechanism, BallotSum):
        return least_clear((mechanism.noise(parameters.phones),), looked_at)
    raise TypeError(f"{mechanism.name} is not a sum")


def _at_once(parameters: _Route, needed: int) -> int:
    """Return how many equally heard environments can all be clear of the noise."""
    honest = parameters.honest_survivors
    if isinstance(parameters, DiscoveryParameters):
        # A phone with e equal labels adds 1/√e to each.
        return min(len(parameters.labels), int((honest / needed) ** 2))
    clear = honest * parameters.centroid_votes // needed if honest >= needed else 0
    return min(parameters.top_global_centroids, clear)
