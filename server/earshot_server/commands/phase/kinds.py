"""Kinds of phase that an operator may start, with the options and the parameters of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from cyclopts import Parameter

from earshot_protocol.encoder_file import DamagedEncoderError, EncoderFile, read
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget, labelling_budget, learning_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.labelling_budget import noises as noises_of_votes
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_protocol.secure_sum.interface import SummationName as SummationName  # of `Asked`
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS, packaged
from earshot_server.commands.phase.samples import Samples
from earshot_server.discovery.route import Discovery
from earshot_server.phases.labelling import usual_threshold
from earshot_server.phases.proposal import NO_OPTION, Asked, discovery_parameters

_Parameters = TypeVar("_Parameters", bound=Parameters)
_EPSILON = 0.25
_SHIPPED = ", ".join(SHIPPED_ENCODERS)


@dataclass(frozen=True, kw_only=True)
class Options(Asked):
    """Options that make the parameters of a phase.

    Attributes:
        epsilon: Budget ε of the whole phase, per phone; by default 2. With --discovery local:
            per recording, in place of --budget.
        discovery: Way of finding environments: secure-sum, the default, protects phones; local, the
            thesis's, protects recordings, and no phone takes part by default.
        statistics: Count contacts per environment instead.
        samples: Let phones label these instead: a .npy file of embeddings (samples, dimensions) in
            the encoder's projection.
        samples_of: Let phones label the environments that this phase could not name instead.
        threshold: With --samples: phones that must agree on an answer (T), noise included; by
            default, more than noise alone produces.
        check_share: With --samples: share of ε (in ρ of zero-concentrated privacy) that asking who
            agrees gets: above 0, below 1.
        largest_weight: With --samples: most votes that a phone may make of its one, where its own
            budget holds them.
        budget: Values of ε per recording. With --discovery local: clustering=…,selection=…,
            centroid-vote=…,label-vote=…; with --statistics: histogram=…
        contacts: With --statistics: most contacts that a phone counts.
        since: With --statistics: first day (UTC) that counts.
        until: With --statistics: day after the last one that counts.
        places_of: With --statistics: phase whose environments count contacts that nobody labelled;
            none to leave such contacts out; by default the newest phase.
        encoder: Encoder whose embeddings phones hold: a shipped one by its name (contrast-1,
            contrast-2), or an encoder file.
        dimensions: Dimensions of the projection in which sound is clustered; by default 64, on the
            local route 24.
        local_centroids: With --discovery local: centroids that a phone computes (k).
        top_local_centroids: With --discovery local: centroids that a phone publishes (k*).
        top_global_centroids: With --discovery local: global centroids that the first vote keeps
            (g*).
        selection_method: With --discovery local: method by which a phone chooses the centroids that
            it publishes.
        clustering_runs: With --discovery local: clusterings of a phone, on average, of which it
            keeps the best.
        centroid_votes: With --discovery local: ones in a ballot of the first vote.
        label_votes: With --discovery local: ones in a ballot of the second vote; by default one per
            kept centroid.
        embeddings: Samples that phones label.
    """

    statistics: bool = False
    samples: Path | None = None
    samples_of: str | None = None
    threshold: float | None = None
    check_share: float = labelling_budget.CHECK_SHARE
    largest_weight: int = 1
    budget: str = ""
    contacts: int = 8
    since: Annotated[date | None, Parameter(name="--from")] = None
    until: date | None = None
    places_of: str | None = None
    encoder: str = DEFAULT_ENCODER
    dimensions: int | None = None
    local_centroids: int = learning_budget.LOCAL_CENTROIDS
    top_local_centroids: int = learning_budget.TOP_LOCAL_CENTROIDS
    top_global_centroids: int = learning_budget.TOP_GLOBAL_CENTROIDS
    selection_method: SelectionMethod = SelectionMethod.NOISY_MAX
    clustering_runs: int = 1
    centroid_votes: int = learning_budget.CENTROID_VOTES
    label_votes: int | None = None
    embeddings: Annotated[Samples | None, NO_OPTION] = None


SECURE_SUM = f"--discovery {Discovery.SECURE_SUM}"
LOCAL = f"--discovery {Discovery.LOCAL}"
STATISTICS = "--statistics"
LABELLING = "--samples"

_OPTIONS = {
    SECURE_SUM: {
        *("epsilon", "delta", "label_share", "cells", "most_cells", "sums"),
        *("encoder", "dimensions", "finer", "kinds"),
    },
    LOCAL: {
        *("budget", "epsilon", "delta", "recordings", "encoder", "dimensions"),
        *("local_centroids", "top_local_centroids", "top_global_centroids"),
        *("clustering_runs", "selection_method", "centroid_votes", "label_votes"),
    },
    STATISTICS: {"budget", "contacts", "since", "until", "places_of"},
    LABELLING: {
        *("samples", "samples_of", "threshold", "check_share", "largest_weight"),
        *("epsilon", "delta", "encoder"),
    },
}


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
    given = {each.name for each in fields(options) if getattr(options, each.name) != each.default}
    others = given & frozenset().union(*_OPTIONS.values()) - _OPTIONS[kind]
    if others:
        wanted = [other for other, own in _OPTIONS.items() if others & own]
        raise InvalidInputError(
            f"{', '.join(sorted(map(_written, others)))}: not for {kind}, but for "
            f"{' or '.join(wanted)}; leave it out, or choose that"
        )
    return kind


def _written(name: str) -> str:
    return "--from" if name == "since" else f"--{name.replace('_', '-')}"


def parameters_of(kind: str, options: Options) -> Parameters:
    """Return the parameters of a phase.

    Args:
        kind: Kind of the phase, as `chosen` returns it.
        options: Options of the command.

    Raises:
        EarshotError: An option is wrong; the message says which, and what would be accepted.
    """
    parameters, completed = _KINDS[kind]
    return _asked(parameters, options, completed(options))


def _asked(
    parameters: type[_Parameters], options: Options, completed: Mapping[str, Any]
) -> _Parameters:
    """Return parameters of a kind: each field as completed, or from the option of its name."""
    known = {**vars(options), **completed}
    return parameters(
        **{name: known[name] for name in parameters.__struct_fields__ if name in known}
    )


def _epsilon(options: Options) -> float:
    """Return ε of a phase by secure sums, per phone."""
    return discovery_budget.EPSILON if options.epsilon is None else options.epsilon


def _discovery(options: Options) -> dict[str, Any]:
    encoder = _encoder(options.encoder)
    return msgspec.structs.asdict(discovery_parameters(options, encoder, options.dimensions))


def _learning(options: Options) -> dict[str, Any]:
    epsilon, geometry = options.epsilon, Geometry.SPHERICAL
    usual = learning_budget.BUDGETS[geometry]
    given = parse_budget(options.budget, Budget.names())
    if given and epsilon is not None:
        raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
    dimensions, votes = options.dimensions, options.label_votes
    values = {
        "encoder": _encoder(options.encoder).card.name,
        "label_votes": options.top_global_centroids if votes is None else votes,
        "dimensions": learning_budget.DIMENSIONS if dimensions is None else dimensions,
        "geometry": geometry,
        "budget": msgspec.structs.replace(
            usual, **{name.replace("-", "_"): value for name, value in given.items()}
        ),
    }
    if epsilon is not None:
        asked = _asked(PhaseParameters, options, values)
        values["budget"] = learning_budget.affordable(asked, epsilon).budget
    return values


def _statistics(options: Options) -> dict[str, Any]:
    return {"epsilon": parse_budget(options.budget, [HISTOGRAM]).get(HISTOGRAM, _EPSILON)}


def _labelling(options: Options) -> dict[str, Any]:
    embeddings = options.embeddings
    if embeddings is None:
        raise InvalidInputError("--samples or --samples-of: give what is to be labelled")
    noise = noises_of_votes(
        _epsilon(options),
        options.delta,
        samples=embeddings.points.rows,
        check_share=options.check_share,
        summation=options.summation,
    )
    values = {
        "encoder": embeddings.encoder or _encoder(options.encoder).card.name,
        "samples": embeddings.points,
        "votes_noise": noise.votes,
        "check_noise": noise.check,
    }
    if options.threshold is None:
        asked = _asked(LabellingParameters, options, values | {"threshold": 1.0})
        values["threshold"] = usual_threshold(asked)
    return values


_KINDS: dict[str, tuple[type[Parameters], Callable[[Options], dict[str, Any]]]] = {
    SECURE_SUM: (DiscoveryParameters, _discovery),
    LOCAL: (PhaseParameters, _learning),
    STATISTICS: (StatisticsParameters, _statistics),
    LABELLING: (LabellingParameters, _labelling),
}
"""The parameters of each kind, and what of them is worked out from options."""


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
