"""`earshot phase start`: kinds of phase that an operator may start, and the options of each."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import to_builtins

from earshot_protocol.api import StartPhase
from earshot_protocol.encoder_file import DamagedEncoderError, EncoderFile, read
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import learning_budget, statistics_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, hierarchy_of, parse_budget
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS, packaged
from earshot_server.commands.options import DEFAULT, AsJson, Labels, OperatorConnection
from earshot_server.commands.phase.hierarchy import asked as asked_hierarchy
from earshot_server.commands.phase.places import NOTHING, of_phase, published
from earshot_server.commands.phase.samples import Samples, of_file, unnamed
from earshot_server.dashboard import prospects
from earshot_server.dashboard.verdict import verdict
from earshot_server.operator_client import OperatorClient, ServerError
from earshot_server.phases import sitting as sittings
from earshot_server.phases.forecast import forecast
from earshot_server.phases.options import (
    NO_OPTION,
    CellOptions,
    CentroidOptions,
    Discovery,
    PhaseOptions,
    VoteOptions,
    given,
    made,
    names,
    of_encoder,
    refuse_others,
)
from earshot_server.phases.places import newest

_HOUR = 3600.0
_DAY_HOURS = 24.0
_Operator = Callable[[], OperatorClient | None]
"""The server's operator, connected on demand; None for a dry run without a server."""
_SHIPPED = ", ".join(SHIPPED_ENCODERS)


@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """Options of a phase that counts contacts.

    Attributes:
        contacts: With --statistics: length to which a phone's counts are projected (B), about three
            times a phone's usual contacts.
        since: With --statistics: first day (UTC) that counts.
        until: With --statistics: day after the last one that counts.
        places_of: With --statistics: phase whose environments name unlabelled contacts; none to
            count these as unknown; by default the newest phase.
    """

    contacts: int = statistics_budget.CONTACTS
    since: Annotated[date | None, Parameter(name="--from")] = None
    until: date | None = None
    places_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Options(StatisticsOptions, VoteOptions, CentroidOptions, PhaseOptions):
    """Options that determine the parameters of a phase.

    Attributes:
        statistics: Count contacts per environment, instead of discovering environments.
        samples: Let phones label these samples, instead of discovering environments: a .npy file of
            embeddings (samples, dimensions) in the encoder's projection.
        samples_of: Likewise, let phones label the environments that this phase could not name.
        budget: Values of ε. With --discovery local, per recording: clustering=…,selection=…,
            centroid-vote=…,label-vote=…; with --statistics, per phone: histogram=…, by default 1.
        encoder: Encoder whose embeddings phones hold: a shipped one by its name (contrast-1,
            contrast-3), or an encoder file.
        dimensions: Dimensions of the projection in which sound is clustered; by default 64, on the
            local route 24.
        embeddings: Samples that phones label.
    """

    statistics: bool = False
    samples: Path | None = None
    samples_of: str | None = None
    budget: str = ""
    encoder: str = DEFAULT_ENCODER
    dimensions: int | None = None
    embeddings: Annotated[Samples | None, NO_OPTION] = None


SECURE_SUM = f"--discovery {Discovery.SECURE_SUM}"
LOCAL = f"--discovery {Discovery.LOCAL}"
STATISTICS = "--statistics"
LABELLING = "--samples"

_COSTS = {"epsilon", "delta", "encoder"}
_OWN = {
    SECURE_SUM: names(CellOptions) | _COSTS | {"dimensions", "finer"},
    LOCAL: names(CentroidOptions) | _COSTS | {"dimensions", "budget", "recordings"},
    STATISTICS: names(StatisticsOptions) | {"budget", "delta"},
    LABELLING: names(VoteOptions) | _COSTS | {"samples", "samples_of"},
}
"""Options that only some kinds of phase have."""


def chosen(options: Options) -> str:
    """Return the kind of phase to start.

    Returns:
        `SECURE_SUM`, `LOCAL`, `STATISTICS` or `LABELLING`.

    Raises:
        InvalidInputError: More than one kind is chosen, or an option belongs to another kind.
    """
    labels = options.samples is not None or options.samples_of is not None
    if (options.discovery is not None) + options.statistics + labels > 1:
        raise InvalidInputError("--discovery, --statistics and --samples: a phase does one of them")
    kind = f"--discovery {options.discovery or Discovery.SECURE_SUM}"
    if options.statistics or labels:
        kind = STATISTICS if options.statistics else LABELLING
    refuse_others(given(options, Options(phones=options.phones)), kind, _OWN)
    return kind


def parameters_of(kind: str, options: Options) -> Parameters:
    """Return the parameters of a phase.

    Args:
        kind: Kind of the phase, as `chosen` returns it.
        options: Options of the command.

    Raises:
        EarshotError: An option is wrong; the message says which, and what would be accepted.
    """
    return _KINDS[kind](options)


def _discovery(options: Options) -> DiscoveryParameters:
    encoder, dimensions = _encoder(options.encoder), options.dimensions
    return options.discovery_parameters(encoder.card.name, of_encoder(encoder, dimensions))


def _learning(options: Options) -> PhaseParameters:
    dimensions, geometry = options.dimensions, Geometry.SPHERICAL
    steps = parse_budget(options.budget, Budget.names())
    if steps and options.epsilon is not None:
        raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
    return options.centroid_parameters(
        options.epsilon,
        encoder=_encoder(options.encoder).card.name,
        dimensions=learning_budget.DIMENSIONS if dimensions is None else dimensions,
        geometry=geometry,
        budget=msgspec.structs.replace(
            learning_budget.BUDGETS[geometry],
            **{name.replace("-", "_"): value for name, value in steps.items()},
        ),
    )


def _statistics(options: Options) -> StatisticsParameters:
    epsilon = parse_budget(options.budget, [HISTOGRAM]).get(HISTOGRAM, statistics_budget.EPSILON)
    return statistics_budget.affordable(made(StatisticsParameters, options, noise=1.0), epsilon)


def _labelling(options: Options) -> LabellingParameters:
    embeddings = options.embeddings
    if embeddings is None:
        raise InvalidInputError("--samples or --samples-of: give the samples to be labelled")
    return options.vote_parameters(
        options.phone_epsilon,
        embeddings.points,
        options.summation,
        encoder=embeddings.encoder or _encoder(options.encoder).card.name,
    )


_KINDS: Mapping[str, Callable[[Options], Parameters]] = {
    SECURE_SUM: _discovery,
    LOCAL: _learning,
    STATISTICS: _statistics,
    LABELLING: _labelling,
}
"""Functions that make the parameters of each kind."""


def _encoder(given: str) -> EncoderFile:
    """Return a shipped encoder by its name, or the encoder of a file.

    Raises:
        InvalidInputError: There is no shipped encoder of this name, and the file cannot be read.
        DamagedEncoderError: The file is not an encoder file; the message names it.
    """
    if given in SHIPPED_ENCODERS:
        return read(packaged(given))
    try:
        content = Path(given).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"encoder '{given}' is not known: give {_SHIPPED}, or the file of the encoder that "
            "your phones have"
        ) from error
    try:
        return read(content)
    except DamagedEncoderError as error:
        raise DamagedEncoderError(f"encoder '{given}': {error}") from error


def start(
    *,
    options: Annotated[Options, Parameter(name="*")],
    sitting: bool = False,
    labels: Labels = None,
    hierarchy: Path | None = None,
    least_phones: int | None = None,
    gather_hours: float = _DAY_HOURS,
    step_hours: float = _DAY_HOURS,
    name: str = "",
    cohort: str = "",
    anyway: bool = False,
    dry_run: bool = False,
    verbose: bool = False,
    connection: OperatorConnection = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Start a phase, which gathers phones and then runs, and print its identifier.

    A one-line verdict on what the phase can find is printed on standard error; with --dry-run,
    which works without a server, on standard output.

    Args:
        sitting: Find environments with the pages of phones that are open now, by two operators:
            ten minutes to join, or until `phase begin`, steps of half a minute, and half of the
            phones are enough.
        hierarchy: JSON file of classes, and for each the choices that polls offer.
        least_phones: Number of phones that is enough when the gathering ends; by default all.
        gather_hours: Hours in which phones may join.
        step_hours: Hours that a step waits for phones that have not answered.
        name: Name that people call the phase; need not be unique.
        cohort: Cohorts whose phones are gathered, as NAME,NAME; by default all.
        anyway: Start the phase even if default phones refuse it.
        dry_run: Show what the phase would find, without starting it.
        verbose: Also show the phase's cost, noise and end, and why default phones refuse it.
    """
    kind, gather, step = chosen(options), gather_hours * _HOUR, step_hours * _HOUR
    if sitting:
        _check_sitting(kind, options, gather_hours, step_hours)
        options, gather = sittings.seated(options), sittings.GATHER_SECONDS
        step = sittings.STEP_SECONDS
        least_phones = sittings.enough(options.phones) if least_phones is None else least_phones
    classes, choices = asked_hierarchy(labels, hierarchy)
    agreed = hierarchy_of(classes, choices)
    embeddings = _embeddings(options, connection) if kind == LABELLING else None
    options = replace(options, labels=classes, choices=choices, embeddings=embeddings)

    def parameters_by(summation: SummationName) -> Parameters:
        return msgspec.structs.replace(
            parameters_of(kind, replace(options, summation=summation)),
            hierarchy=agreed.digest if choices else b"",
            step_seconds=step,
        )

    parameters = parameters_by(options.summation)
    parameters.check()
    operator = functools.cache(functools.partial(_operator, connection, dry_run))
    if isinstance(parameters, StatisticsParameters):
        places = _places(options.places_of, agreed, operator)
        parameters = msgspec.structs.replace(parameters, places=places)
        parameters.check()
    asked = StartPhase(
        parameters=parameters,
        least_phones=least_phones,
        gather_seconds=gather,
        choices=choices,
        name=name,
        anyway=anyway,
        cohorts=tuple(each.strip() for each in cohort.split(",") if each.strip()),
    )
    foreseen = forecast(asked)
    server = operator()
    said, details = verdict(parameters, foreseen.refusals), prospects.lines(asked, foreseen)
    found, proposal = {}, list[str]()
    if server is not None:
        if server.two_operators().helper and not sitting:
            masked, split = map(parameters_by, (SummationName.BELL, SummationName.TWO_OPERATORS))
            proposal = [prospects.proposed_summation(masked, split)]
        enrolled, free = prospects.enrolled(asked, server.cohorts())
        details += prospects.phone_lines(asked, enrolled, free)
        said += prospects.too_few(asked, enrolled)
        found = {"enrolled": enrolled, "free": free}
    if not as_json:
        lines = [*(details if verbose else ()), *(proposal if verbose or dry_run else ()), said]
        if not verbose:
            lines += prospects.sent_lines(foreseen) if dry_run else []
            lines += prospects.large_inputs(parameters) + prospects.few_reports(asked)
        print("\n".join(lines), file=sys.stdout if dry_run else sys.stderr)
    started = None if dry_run or server is None else server.start(asked)
    if as_json:
        known = {"phase": started, "verdict": said, "forecast": to_builtins(foreseen)}
        print(json.dumps(known | found))
    elif started is not None:
        print(started)
        if sitting:
            wall = f"{connection.address.rstrip('/')}/phases/{started}/wall"
            print(f"wall page: {wall}", file=sys.stderr)
    if dry_run and foreseen.refusals and not anyway:
        sys.exit(1)


def _check_sitting(kind: str, options: Options, *hours: float) -> None:
    """Refuse options that do not go with a sitting.

    Raises:
        InvalidInputError: One is given; the message names it.
    """
    usual = Options(phones=options.phones)
    others = {
        "--gather-hours, --step-hours": any(each != _DAY_HOURS for each in hours),
        "--sums": options.sums not in (usual.sums, sittings.SUMS),
        kind: kind != SECURE_SUM,
    }
    for name, wrong in others.items():
        if wrong:
            raise InvalidInputError(f"{name}: not for --sitting; leave out one of them")


def _embeddings(options: Options, connection: OperatorConnection) -> Samples:
    """Return the samples to be labelled: of a file, or the unnamed environments of a phase."""
    file, phase = options.samples, options.samples_of
    if file is not None and phase is not None:
        raise InvalidInputError("--samples and --samples-of: give one of them")
    if file is not None:
        return of_file(file)
    operator, named = connection.operator(), str(phase)
    return unnamed(named, operator.export(operator.find(named)).ending)


def _places(
    phase: str | None, hierarchy: LabelHierarchy, operator: _Operator
) -> AgreedPlaces | None:
    """Return the places used to count unlabelled contacts: of one phase, or of the newest."""
    server = None if phase == NOTHING else operator()
    if phase is None and server is not None:
        return newest(published(server), hierarchy)
    if phase in (None, NOTHING):
        return None
    if server is None:
        raise InvalidInputError(f"--places-of {phase}: a server that knows the phase is needed")
    return of_phase(phase, server.export(server.find(phase)).ending, hierarchy)


def _operator(connection: OperatorConnection, dry_run: bool) -> OperatorClient | None:
    """Return a client of the server; None for a dry run if the server does not answer."""
    try:
        operator = connection.operator()
        operator.cohorts()
    except ServerError as error:
        if not dry_run:
            raise
        print(f"enrolled phones are not known: {error}", file=sys.stderr)
        return None
    return operator
