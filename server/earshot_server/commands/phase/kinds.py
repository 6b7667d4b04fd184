"""Kinds of phase that an operator may start, with the options and the parameters of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from earshot_protocol.encoder_file import DamagedEncoderError, EncoderFile, read
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import learning_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS, packaged
from earshot_server.commands.phase.samples import Samples
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

_EPSILON = 0.25
_SHIPPED = ", ".join(SHIPPED_ENCODERS)


@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """Options of a phase that counts contacts.

    Attributes:
        contacts: With --statistics: most contacts that a phone counts.
        since: With --statistics: first day (UTC) that counts.
        until: With --statistics: day after the last one that counts.
        places_of: With --statistics: phase whose environments count contacts that nobody labelled;
            none to leave such contacts out; by default the newest phase.
    """

    contacts: int = 8
    since: Annotated[date | None, Parameter(name="--from")] = None
    until: date | None = None
    places_of: str | None = None


@dataclass(frozen=True, kw_only=True)
class Options(StatisticsOptions, VoteOptions, CentroidOptions, PhaseOptions):
    """Options that make the parameters of a phase.

    Attributes:
        statistics: Count contacts per environment instead.
        samples: Let phones label these instead: a .npy file of embeddings (samples, dimensions) in
            the encoder's projection.
        samples_of: Let phones label the environments that this phase could not name instead.
        budget: Values of ε per recording. With --discovery local: clustering=…,selection=…,
            centroid-vote=…,label-vote=…; with --statistics: histogram=…
        encoder: Encoder whose embeddings phones hold: a shipped one by its name (contrast-1,
            contrast-2), or an encoder file.
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
    STATISTICS: names(StatisticsOptions) | {"budget"},
    LABELLING: names(VoteOptions) | _COSTS | {"samples", "samples_of"},
}
"""Options that some kinds of phase have, and others not."""


def chosen(options: Options) -> str:
    """Return which kind of phase is to be started.

    Returns:
        `SECURE_SUM`, `LOCAL`, `STATISTICS` or `LABELLING`.

    Raises:
        InvalidInputError: Two kinds are asked for at once, or an option belongs to another kind.
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
    epsilon = parse_budget(options.budget, [HISTOGRAM]).get(HISTOGRAM, _EPSILON)
    return made(StatisticsParameters, options, epsilon=epsilon)


def _labelling(options: Options) -> LabellingParameters:
    embeddings = options.embeddings
    if embeddings is None:
        raise InvalidInputError("--samples or --samples-of: give what is to be labelled")
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
"""Functions that make the parameters of each kind from options."""


def _encoder(given: str) -> EncoderFile:
    """Return a shipped encoder by its name, or the one that a file holds.

    Raises:
        InvalidInputError: No such encoder is known.
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
