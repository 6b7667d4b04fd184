"""Phases whose mechanisms are audited: every kind in every form, by every summation.

Every mechanism that a plan declares has an auditor here, by its type; one without is an error.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from earshot_client.private_runs import clustering_by
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidParametersError, WrongStateError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.phases import discovery_budget, learning, statistics_budget
from earshot_protocol.phases.discovery import DiscoveryParameters, rows_of
from earshot_protocol.phases.kinds import KINDS
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.labelling_budget import noises
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import Kind, Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
    Selection,
    SelectionMethod,
)
from earshot_protocol.privacy.mechanisms import BallotSum, Mechanism, VectorSum
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_protocol.wire import Matrix
from earshot_simulations.auditing import neighbours
from earshot_simulations.auditing.ballots import audit_ballots
from earshot_simulations.auditing.contacts import audit_contacts, places
from earshot_simulations.auditing.findings import Result
from earshot_simulations.auditing.lloyd import Clustering, audit_clustering
from earshot_simulations.auditing.neighbours import Differences
from earshot_simulations.auditing.runs import audit_runs
from earshot_simulations.auditing.selection import audit_selection
from earshot_simulations.auditing.vectors import audit_vectors
from earshot_simulations.auditing.votes import audit_votes

_LABELS = ("street", "train", "nature")
_START, _CELLS, _DIMENSIONS, _SUMS = 16, 20, 16, 2
_LEARNING = PhaseParameters(
    phones=1000,
    recordings=200,
    dimensions=2,
    geometry=Geometry.EUCLIDEAN,
    encoder="points",
    labels=_LABELS,
    local_centroids=6,
    top_local_centroids=2,
    top_global_centroids=10,
    centroid_votes=3,
    label_votes=3,
    dropout=0.05,
    corrupted=0.05,
    budget=Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.5),
)


def _discovery(summation: SummationName, sums: int, *, choices: bool, kinds: int) -> Parameters:
    """Return a phase of the secure-sum route with these sums of cells and rows of labels."""
    labels = neighbours.with_choices(_LABELS) if choices else LabelHierarchy.flat(_LABELS)
    parameters = DiscoveryParameters(
        phones=1000,
        labels=_LABELS,
        encoder="points",
        start=CentroidSet.of(
            unit_rows(np.random.default_rng(0).standard_normal((_START, _DIMENSIONS)))
        ),
        most_cells=_CELLS,
        sums=sums,
        cells_noise=1.0,
        labels_noise=1.0,
        rows=len(rows_of(labels)),
        kinds=kinds,
        hierarchy=labels.digest if choices else b"",
        dropout=0.05,
        corrupted=0.05,
        summation=summation,
    )
    return discovery_budget.affordable(parameters, 2.0, 1 / (_SUMS + 1))


def _labelling(summation: SummationName) -> Parameters:
    noise = noises(2.0, 1e-6, samples=20, summation=summation)
    return LabellingParameters(
        phones=1000,
        labels=_LABELS,
        encoder="points",
        samples=Matrix.of(np.random.default_rng(1).standard_normal((20, _DIMENSIONS))),
        votes_noise=noise.votes,
        check_noise=noise.check,
        threshold=100.0,
        largest_weight=2,
        dropout=0.05,
        corrupted=0.05,
        summation=summation,
    )


def _statistics(summation: SummationName, *, confusion: bool = False) -> Parameters:
    parameters = StatisticsParameters(
        phones=1000,
        labels=_LABELS,
        contacts=8,
        noise=1.0,
        places=places(len(_LABELS)) if confusion else None,
        confusion=confusion,
        dropout=0.05,
        corrupted=0.05,
        summation=summation,
    )
    return statistics_budget.affordable(parameters, 2.0)


def _learning(**changes: Any) -> Form:
    return lambda summation: msgspec.structs.replace(_LEARNING, summation=summation, **changes)


Form = Callable[[SummationName], Parameters]
"""Function that returns a phase with this summation, and the noise that it needs."""
_SOUND: dict[str, Any] = {"dimensions": 8, "geometry": Geometry.SPHERICAL, "recordings": 20}
_ROWS = {"": (False, 1), ", choices": (True, 1), ", kinds": (False, 2)}
_ROWS[", choices and kinds"] = (True, 2)
"""Rows of a sum of labels: whether choices have some, and how many kinds split each."""
FORMS: dict[type[Parameters], dict[str, Form]] = {
    PhaseParameters: {
        "local route, points": _learning(),
        "local route, sound": _learning(
            **_SOUND,
            budget=Budget(clustering=2.0, selection=0.125, centroid_vote=0.5, label_vote=0.25),
            selection_method=SelectionMethod.PERMUTE_AND_FLIP,
        ),
        "local route, points, best of four runs": _learning(
            recordings=20,
            centroid_votes=1,
            clustering_runs=4,
            selection_method=SelectionMethod.GUMBEL,
        ),
        "local route, sound, best of four runs": _learning(**_SOUND, clustering_runs=4),
    },
    DiscoveryParameters: {
        f"secure-sum route{alone}{rows}": functools.partial(
            _discovery, sums=sums, choices=choices, kinds=kinds
        )
        for alone, sums in (("", _SUMS), (", labels alone", 0))
        for rows, (choices, kinds) in _ROWS.items()
    },
    LabellingParameters: {"votes on samples": _labelling},
    StatisticsParameters: {
        "contacts by environment": _statistics,
        "contacts by environment, confusion matrix": functools.partial(_statistics, confusion=True),
    },
}
"""Forms of each kind of phase by name: one for every way in which product code plans it."""
SUMMED = {
    SummationName.BELL: "",
    SummationName.TWO_OPERATORS: ", two operators",
    SummationName.TWO_OPERATORS_UNPROVED: ", two operators, unproved",
}
"""Suffix of a phase's name, by its summation."""


def phases(kinds: Iterable[Kind] = KINDS) -> Iterator[tuple[str, Parameters]]:
    """Yield every form of every kind with every summation that it supports, and its name.

    Args:
        kinds: Kinds of phase.

    Raises:
        WrongStateError: A kind of phase has no form.
    """
    for kind in kinds:
        forms = FORMS.get(kind.parameters)
        if forms is None:
            raise WrongStateError(
                f"no form of {kind.parameters.__name__} is audited: add one to "
                "earshot_simulations.auditing.plans"
            )
        for summation in SummationName:
            for name, form in forms.items():
                with contextlib.suppress(InvalidParametersError):
                    parameters = form(summation)
                    parameters.check_feasible()
                    yield name + SUMMED[summation], parameters


PHASES: dict[str, Parameters] = dict(phases())
"""Phases by name; their budgets are at or near the default limits of a phone."""

_DIFFERENCES: dict[str, Callable[[Parameters], Differences]] = {
    learning.CENTROID_VOTE: lambda each: neighbours.of_centroid_votes(each.centroid_votes),  # type: ignore[attr-defined]
    learning.LABEL_VOTE: lambda each: neighbours.of_label_votes(each.label_votes),  # type: ignore[attr-defined]
}


def differences_of(step: str, parameters: Parameters) -> Differences:
    """Return the differences of neighbours, by the code that phones run in this step."""
    return _DIFFERENCES[step](parameters)


@dataclass(frozen=True)
class Effort:
    """Size of an audit.

    Attributes:
        trials: Transcripts of each clustering on each of two data sets.
        draws: Draws of each sampler and selection.
        seed: Seed of both.
    """

    trials: int
    draws: int
    seed: int


def mechanisms_of(kinds: tuple[type[Mechanism], ...]) -> list[tuple[str, Mechanism, Parameters]]:
    """Return the private steps of all audited phases whose mechanism is of these types."""
    found: dict[tuple[str, str], tuple[str, Mechanism, Parameters]] = {}
    for parameters in PHASES.values():
        for step, mechanism in parameters.plan().mechanisms.items():
            if isinstance(mechanism, kinds):
                found.setdefault(
                    (step.rstrip(" 123"), repr(mechanism)), (step, mechanism, parameters)
                )
    return list(found.values())


def audit_mechanism(
    step: str, mechanism: Mechanism, parameters: Parameters, effort: Effort
) -> Iterator[Result]:
    """Audit one private step of one phase.

    Raises:
        WrongStateError: A mechanism of that type has no auditor.
    """
    match mechanism:
        case BallotSum():
            yield from audit_ballots(step, mechanism, differences_of(step, parameters), parameters)
        case VectorSum():
            part = parameters.plan().part(step)
            assert isinstance(part, SecureSum)  # noqa: S101
            if isinstance(parameters, StatisticsParameters):
                yield from audit_contacts(part, mechanism, parameters, effort.seed)
            else:
                assert isinstance(parameters, DiscoveryParameters)  # noqa: S101
                yield from audit_vectors(part, mechanism, parameters, effort.seed)
        case VoteSum():
            part = parameters.plan().part(step)
            assert isinstance(part, SecureSum) and isinstance(parameters, LabellingParameters)  # noqa: S101, PT018
            yield from audit_votes(part, mechanism, parameters, effort.seed)
        case LaplaceLloyd() | GaussianLloyd():
            yield from audit_clustering(clustering_of(mechanism, parameters), effort.seed)
        case BestLaplaceLloyd() | BestGaussianLloyd():
            yield from audit_runs(step, mechanism, effort.draws, effort.seed)
        case Selection():
            assert isinstance(parameters, PhaseParameters)  # noqa: S101
            yield from audit_selection(
                step, mechanism, parameters.local_centroids, effort.draws // 10, effort.seed
            )
        case _:
            raise WrongStateError(
                f"{type(mechanism).__name__} of '{step}' has no auditor: add one to "
                "earshot_simulations.auditing.plans"
            )


def clustering_of(mechanism: LaplaceLloyd | GaussianLloyd, parameters: Parameters) -> Clustering:
    """Return the clustering that phones run in a phase."""
    assert isinstance(parameters, PhaseParameters)  # noqa: S101
    k, d = parameters.local_centroids, parameters.dimensions
    case = f"ε = {mechanism.epsilon:g}, k = {k}, d = {d}, N = {mechanism.recordings}"
    run = clustering_by(mechanism, k)
    return Clustering(case, run, mechanism, parameters.geometry, d)
