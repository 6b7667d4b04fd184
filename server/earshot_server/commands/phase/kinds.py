"""The kinds of phase that an operator may start: which options are for which, and what of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import typer

from earshot_protocol.encoder_file import EncoderFile, read
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases import discovery_budget, learning_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.discovery_budget import cell_counts, noises
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.labelling_budget import noises as noises_of_votes
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS, packaged
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.commands.phase.samples import Samples
from earshot_server.commands.routes import check_options, given
from earshot_server.discovery.route import Discovery
from earshot_server.phases.labelling import usual_threshold

_Parameters = TypeVar("_Parameters", bound=Parameters)
_EPSILON = 0.25
_SHIPPED = ", ".join(SHIPPED_ENCODERS)

SECURE_SUM = f"--discovery {Discovery.SECURE_SUM}"
LOCAL = f"--discovery {Discovery.LOCAL}"
STATISTICS = "--statistics"
LABELLING = "--samples"

_OPTIONS = {
    SECURE_SUM: {
        *("epsilon", "delta", "label_share", "cells", "most_cells", "sums"),
        *("encoder", "dimensions"),
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


def chosen(context: typer.Context, discovery: Discovery | None, statistics: bool) -> str:
    """Which kind of phase is to be started.

    Returns:
        `SECURE_SUM`, `LOCAL`, `STATISTICS` or `LABELLING`.

    Raises:
        InvalidInputError: two kinds at once, or an option of another kind.
    """
    labels = bool({"samples", "samples_of"} & given(context))
    if (discovery is not None) + statistics + labels > 1:
        raise InvalidInputError("--discovery, --statistics and --samples: a phase does one of them")
    kind = f"--discovery {discovery or Discovery.SECURE_SUM}"
    if statistics or labels:
        kind = STATISTICS if statistics else LABELLING
    check_options(context, given(context), kind, _OPTIONS)
    return kind


def parameters_of(kind: str, options: Mapping[str, Any]) -> Parameters:
    """The parameters of a phase.

    Args:
        kind: see `chosen`.
        options: of the command, by the names of the parameters.

    Raises:
        EarshotError: says which option is wrong and what would be accepted.
    """
    parameters, completed = _KINDS[kind]
    return _asked(parameters, {**options, **completed(options)})


def _asked(parameters: type[_Parameters], values: Mapping[str, Any]) -> _Parameters:
    """Parameters of a kind, from options by the names of its fields; others are left out."""
    return parameters(
        **{name: values[name] for name in parameters.__struct_fields__ if name in values}
    )


def _epsilon(options: Mapping[str, Any]) -> float:
    """ε of a phase by secure sums, per phone."""
    given: float | None = options["epsilon"]
    return discovery_budget.EPSILON if given is None else given


def _discovery(options: Mapping[str, Any]) -> dict[str, Any]:
    delta, sums, dimensions = (options[name] for name in ("delta", "sums", "dimensions"))
    epsilon = _epsilon(options)
    cells, most = cell_counts(
        options["phones"], epsilon, delta, options["cells"], options["most_cells"]
    )
    dimensions = discovery_budget.DIMENSIONS if dimensions is None else dimensions
    encoder = _encoder(options["encoder"])
    start = encoder.start_centroids(dimensions, cells)
    noise = noises(
        epsilon,
        delta,
        sums=sums,
        label_share=options["label_share"],
        cells=most,
        dimensions=dimensions,
        labels=len(options["labels"]),
    )
    return {
        "encoder": encoder.card.name,
        "start": CentroidSet.of(start),
        "most_cells": most,
        "cells_noise": noise.cells,
        "labels_noise": noise.labels,
    }


def _learning(options: Mapping[str, Any]) -> dict[str, Any]:
    epsilon, geometry = options["epsilon"], Geometry.SPHERICAL
    usual = learning_budget.BUDGETS[geometry]
    given = parse_budget(options["budget"], Budget.names())
    if given and epsilon is not None:
        raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
    dimensions, votes = options["dimensions"], options["label_votes"]
    values = {
        "encoder": _encoder(options["encoder"]).card.name,
        "label_votes": options["top_global_centroids"] if votes is None else votes,
        "dimensions": learning_budget.DIMENSIONS if dimensions is None else dimensions,
        "geometry": geometry,
        "budget": msgspec.structs.replace(
            usual, **{name.replace("-", "_"): value for name, value in given.items()}
        ),
    }
    if epsilon is not None:
        asked = _asked(PhaseParameters, {**options, **values})
        values["budget"] = learning_budget.affordable(asked, epsilon).budget
    return values


def _statistics(options: Mapping[str, Any]) -> dict[str, Any]:
    days = {name: options[name] and options[name].date() for name in ("since", "until")}
    budget = parse_budget(options["budget"], [HISTOGRAM])
    return {**days, "epsilon": budget.get(HISTOGRAM, _EPSILON)}


def _labelling(options: Mapping[str, Any]) -> dict[str, Any]:
    chosen: Samples = options["chosen_samples"]
    noise = noises_of_votes(
        _epsilon(options),
        options["delta"],
        samples=chosen.points.rows,
        check_share=options["check_share"],
    )
    values = {
        "encoder": chosen.encoder or _encoder(options["encoder"]).card.name,
        "samples": chosen.points,
        "votes_noise": noise.votes,
        "check_noise": noise.check,
    }
    if options["threshold"] is None:
        asked = _asked(LabellingParameters, {**options, **values, "threshold": 1.0})
        values["threshold"] = usual_threshold(asked)
    return values


_KINDS: dict[str, tuple[type[Parameters], Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    SECURE_SUM: (DiscoveryParameters, _discovery),
    LOCAL: (PhaseParameters, _learning),
    STATISTICS: (StatisticsParameters, _statistics),
    LABELLING: (LabellingParameters, _labelling),
}
"""The parameters of each kind, and what of them is worked out from options."""


def _encoder(given: str) -> EncoderFile:
    """A shipped encoder by its name, or the one that a file holds.

    Raises:
        InvalidInputError: no such encoder is known.
        DamagedEncoderError: the file is not one of an encoder.
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
    return read(content)
