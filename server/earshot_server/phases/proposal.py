"""Parameters for what a phase may cost, and what they buy: `earshot budget`.

None of this needs a server or a phone.
"""

from __future__ import annotations

import bisect
import functools
import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from cyclopts import Parameter

from earshot_protocol import checks
from earshot_protocol.encoder_file import EncoderFile
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.acceptance import Limits, default_refusals
from earshot_protocol.phases.discovery import LABELS, MOST_KINDS, DiscoveryParameters, rows_of
from earshot_protocol.phases.learning import CENTROID_VOTE, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, hierarchy_of
from earshot_protocol.privacy.budgets import BUDGETS, Span
from earshot_protocol.privacy.calibration import check_delta
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import BallotSum, Unit, VectorSum
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.discovery.route import Discovery as Discovery  # a part of `Wanted`
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_server.phases.expected import least_clear
from earshot_server.phases.forecast import Refusal
from earshot_server.phases.learning import most_candidates

PHASES_A_YEAR = 12
_MOST_COUNTED = 1000


_Route = DiscoveryParameters | PhaseParameters


NO_OPTION = Parameter(parse=False)
"""Marks a field that the command line reads in another form."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options of a phase, whether it is proposed or started.

    Attributes:
        phones: Phones that are wanted.
        epsilon: Budget ε of the whole phase.
        delta: Value of δ for the phase.
        discovery: Way of finding environments.
        recordings: With --discovery local: recordings of a phone, on average; a public number.
        labels: Classes of environments.
        dropout: Largest fraction of phones that may vanish (ρ).
        corrupted: Fraction of phones that an adversary may control (γ).
        cells: Start centroids of a discovery by secure sums; by default 20, or 40 where crowd and ε
            allow.
        most_cells: Most cells that the start centroids may grow to (k); by default 40.
        sums: Sums over cells before that of labels (T), 0 to 3.
        label_share: Share of ε (in ρ of zero-concentrated privacy) that the labels get: above 0,
            below 1.
        finer: Give each choice of a poll a prototype of its own, besides its label.
        kinds: Kinds of sound by which the rows of labels are split, so that a label of several
            kinds gets several prototypes; 1 leaves rows whole.
        choices: Choices of each label that polls offer; by default the labels themselves.
        summation: Summation of phones' inputs: bell, by the phones' masks, or two-operators, by
            this server and its helper.
    """

    phones: int
    epsilon: float | None = None
    delta: float = discovery_budget.DELTA
    discovery: Discovery | None = None
    recordings: int = learning_budget.RECORDINGS
    labels: Annotated[tuple[str, ...], NO_OPTION] = ()
    dropout: float = 0.2
    corrupted: float = 0.05
    cells: int | None = None
    most_cells: int | None = None
    sums: int = discovery_budget.SUMS
    label_share: float = discovery_budget.LABEL_SHARE
    finer: bool = False
    kinds: int = 1
    choices: Annotated[tuple[tuple[str, ...], ...], NO_OPTION] = ()
    summation: SummationName = SummationName.BELL


@dataclass(frozen=True, kw_only=True)
class Wanted(Asked):
    """Options of a phase that is proposed.

    Attributes:
        epsilon: Budget ε of the whole phase, in the unit of --unit; by default 2. With --discovery
            local, by default what its default budget costs.
        unit: Unit of privacy in which the phase costs ε and δ.
        any_delta: Accept a δ of 1/phones or more.
    """

    discovery: Discovery = Discovery.SECURE_SUM
    unit: Annotated[Unit, NO_OPTION] = Unit.PHONE
    any_delta: bool = False


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of the phase in one unit, at the δ that was asked for.

    Attributes:
        epsilon: Cost ε of one phase; None where nothing holds.
        yearly_epsilon: Cost ε of a year of such phases, at the same δ; None where nothing holds.
    """

    epsilon: float | None
    yearly_epsilon: float | None


class StepShare(msgspec.Struct, frozen=True, kw_only=True):
    """Share of one private step in the cost.

    Attributes:
        step: Name of the step.
        setting: Setting that determines its noise: a noise multiplier, or ε.
        value: Value of that setting.
        epsilon: Cost ε of the step by itself, in the unit that was asked for; None where nothing
            holds.
        deviation: Standard deviation of the noise on an entry of a sum, when no more phones stay
            than are counted on, over the most that one phone adds to it; None where phones release
            on their own.
    """

    step: str
    setting: str
    value: float
    epsilon: float | None
    deviation: float | None


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """Split of a budget, and what it buys.

    Attributes:
        steps: Private steps, and their shares.
        prices: Prices by unit.
        phases_a_year: Phases that the yearly ε is for.
        needed: Phones that must have heard an environment, and nothing else, so that it stands
            clear of the noise; by secure sums, labelled it, and it must sound alike. None where
            that is more phones than there are.
        environments: Most environments that the phones counted on can share evenly, each of them
            clear of the noise.
        yearly_phases: Phases like this that a phone with the default policy takes part in within a
            year; at most 1,000 are counted.
        lifetime_phases: Phases like this that it takes part in during its life, counted likewise.
        refusals: Refusals of a phone with the default policy; empty if it accepts the phase.
    """

    steps: tuple[StepShare, ...]
    prices: dict[str, Price]
    phases_a_year: int
    needed: int | None
    environments: int
    yearly_phases: int
    lifetime_phases: int
    refusals: tuple[Refusal, ...]


def proposed(wanted: Wanted) -> tuple[Parameters, Proposal]:
    """Return the parameters of such a phase, and what they buy.

    Raises:
        InvalidParametersError: A value is out of range, or no such phase can run; the error says
            which and what would be accepted.
    """
    checks.whole("phones", wanted.phones, 3)
    if wanted.epsilon is not None:
        checks.epsilon("epsilon", wanted.epsilon)
    checks.probability("delta", wanted.delta)
    if not wanted.any_delta:
        check_delta(wanted.delta, wanted.phones)
    checks.fraction("dropout", wanted.dropout)
    checks.fraction("corrupted", wanted.corrupted)
    checks.whole("recordings", wanted.recordings)
    by_secure_sum = wanted.discovery is Discovery.SECURE_SUM
    parameters: _Route = _discovery(wanted) if by_secure_sum else _learning(wanted)
    parameters.check_feasible()
    needed = _phones_needed(parameters)
    honest = parameters.honest_survivors
    return parameters, Proposal(
        steps=_steps(parameters, wanted.unit, wanted.delta),
        prices={unit.value: _price(parameters, unit, wanted.delta) for unit in Unit},
        phases_a_year=PHASES_A_YEAR,
        needed=needed if needed <= honest else None,
        environments=_at_once(parameters, needed),
        yearly_phases=_most_phases(parameters, Span.YEAR),
        lifetime_phases=_most_phases(parameters, Span.LIFE),
        refusals=tuple(
            Refusal(refused.rule.value, str(refused)) for refused in default_refusals(parameters)
        ),
    )


def discovery_parameters(
    asked: Asked, encoder: EncoderFile, dimensions: int | None = None
) -> DiscoveryParameters:
    """Return the parameters of a phase that finds environments by secure sums.

    Args:
        asked: Options of the phase.
        encoder: Encoder whose embeddings phones hold; it has start centroids.
        dimensions: Dimensions in which sound is sorted; by default the recommended ones.

    Raises:
        EarshotError: An option is wrong; the message says which, and what would be accepted.
    """
    epsilon = discovery_budget.EPSILON if asked.epsilon is None else asked.epsilon
    cells, most = discovery_budget.cell_counts(
        asked.phones, epsilon, asked.delta, asked.cells, asked.most_cells
    )
    dimensions = discovery_budget.DIMENSIONS if dimensions is None else dimensions
    rows, added_to = _rows(asked)
    kinds = checks.whole("kinds", asked.kinds, 1, MOST_KINDS)
    start = encoder.start_centroids(dimensions, cells)
    noise = discovery_budget.noises(
        epsilon,
        asked.delta,
        sums=asked.sums,
        label_share=asked.label_share,
        cells=most,
        dimensions=dimensions,
        rows=rows * kinds,
        levels=added_to,
        summation=asked.summation,
    )
    return DiscoveryParameters(
        phones=asked.phones,
        labels=asked.labels,
        encoder=encoder.card.name,
        start=CentroidSet.of(start),
        most_cells=most,
        sums=asked.sums,
        cells_noise=noise.cells,
        labels_noise=noise.labels,
        rows=rows,
        kinds=kinds,
        delta=asked.delta,
        dropout=asked.dropout,
        corrupted=asked.corrupted,
        summation=asked.summation,
    )


def _discovery(wanted: Wanted) -> DiscoveryParameters:
    epsilon = discovery_budget.EPSILON if wanted.epsilon is None else wanted.epsilon
    start, most = discovery_budget.cell_counts(
        wanted.phones, epsilon, wanted.delta, wanted.cells, wanted.most_cells
    )
    dimensions = discovery_budget.DIMENSIONS
    rows, added_to = _rows(wanted)
    kinds = checks.whole("kinds", wanted.kinds, 1, MOST_KINDS)
    noise = discovery_budget.noises(
        epsilon,
        wanted.delta,
        sums=wanted.sums,
        label_share=wanted.label_share,
        cells=most,
        dimensions=dimensions,
        rows=rows * kinds,
        levels=added_to,
        unit=wanted.unit,
        summation=wanted.summation,
    )
    return DiscoveryParameters(
        phones=wanted.phones,
        labels=wanted.labels,
        encoder=DEFAULT_ENCODER,
        # No statement made here depends on where they are.
        start=CentroidSet.of(np.ones((start, dimensions))),
        most_cells=most,
        sums=wanted.sums,
        cells_noise=noise.cells,
        labels_noise=noise.labels,
        rows=rows,
        kinds=kinds,
        delta=wanted.delta,
        dropout=wanted.dropout,
        corrupted=wanted.corrupted,
        summation=wanted.summation,
    )


def _rows(asked: Asked) -> tuple[int, int]:
    """Return the rows of the sum of labels, and how many of them a recording adds to.

    Raises:
        InvalidParametersError: Choices are to have prototypes, and the labels have no choices.
    """
    labels = len(asked.labels)
    if not asked.finer:
        return labels, 1
    rows = len(rows_of(hierarchy_of(asked.labels, asked.choices)))
    if rows == labels:
        raise InvalidParametersError(
            "finer: the labels have no choices besides themselves; give some (--hierarchy)"
        )
    return rows, 2


def levels(parameters: DiscoveryParameters) -> int:
    """Return how many rows of the sum of labels a recording adds to."""
    return 1 + (parameters.rows > len(parameters.labels))


def _learning(wanted: Wanted) -> PhaseParameters:
    usual = PhaseParameters(
        phones=wanted.phones,
        recordings=wanted.recordings,
        dimensions=learning_budget.DIMENSIONS,
        geometry=Geometry.SPHERICAL,
        encoder=DEFAULT_ENCODER,
        labels=wanted.labels,
        local_centroids=learning_budget.LOCAL_CENTROIDS,
        top_local_centroids=learning_budget.TOP_LOCAL_CENTROIDS,
        top_global_centroids=learning_budget.TOP_GLOBAL_CENTROIDS,
        centroid_votes=learning_budget.CENTROID_VOTES,
        label_votes=learning_budget.TOP_GLOBAL_CENTROIDS,
        dropout=wanted.dropout,
        corrupted=wanted.corrupted,
        budget=learning_budget.BUDGETS[Geometry.SPHERICAL],
        delta=wanted.delta,
        summation=wanted.summation,
    )
    if wanted.epsilon is None:
        return usual
    return learning_budget.affordable(usual, wanted.epsilon, wanted.unit)


def _events(parameters: Parameters, unit: Unit) -> list[Event]:
    return [each.event(unit) for each in parameters.plan().mechanisms.values()]


def _price(parameters: Parameters, unit: Unit, delta: float) -> Price:
    events = _events(parameters, unit)
    return Price(
        epsilon=_known(composed_epsilon(events, delta)),
        yearly_epsilon=_known(composed_epsilon(events * PHASES_A_YEAR, delta)),
    )


def _most_phases(parameters: Parameters, span: Span) -> int:
    """Return how many such phases fit into the default budgets of this span."""
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
    # The first count that does not fit, less one.
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
    """Return how many phones must give one environment their all to clear it of the noise."""
    mechanisms = parameters.plan().mechanisms
    if isinstance(parameters, DiscoveryParameters):
        inputs, mechanism = DiscoveryPhase.expected(parameters, LABELS), mechanisms[LABELS]
        if isinstance(mechanism, VectorSum):
            least = inputs.hurdle.least(mechanism.noise(parameters.phones)) / inputs.unit
            # Where choices have rows, a phone with one choice adds 1/√2 to its label's.
            return math.ceil(least * math.sqrt(levels(parameters)))
        raise TypeError(f"{mechanism.name} is not a sum of vectors")
    mechanism, looked_at = mechanisms[CENTROID_VOTE], most_candidates(parameters)
    if isinstance(mechanism, BallotSum):
        return least_clear((mechanism.noise(parameters.phones),), looked_at)
    raise TypeError(f"{mechanism.name} is not a sum")


def _at_once(parameters: _Route, needed: int) -> int:
    """Return how many environments everybody can hear alike with each still clear of the noise."""
    honest = parameters.honest_survivors
    if isinstance(parameters, DiscoveryParameters):
        # Of e labels alike, a phone adds 1/√e to each.
        return min(len(parameters.labels), int((honest / needed) ** 2))
    clear = honest * parameters.centroid_votes // needed if honest >= needed else 0
    return min(parameters.top_global_centroids, clear)
