"""Everything that can be audited, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from earshot_client.clustering import SphericalDPLloyd
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
    Selection,
)
from earshot_protocol.privacy.mechanisms import BallotSum, Mechanism, VectorSum
from earshot_protocol.progress import Progress, silent
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing.ensembles import (
    audit_curator,
    audit_several_winners,
    audit_thresholds,
)
from earshot_simulations.auditing.false_inputs import audit_false_inputs
from earshot_simulations.auditing.faults import audit_faults, smallest_clustering
from earshot_simulations.auditing.findings import AuditRole, Result
from earshot_simulations.auditing.lloyd import Clustering, sampled_clustering
from earshot_simulations.auditing.operators import audit_operators
from earshot_simulations.auditing.owners import audit_owners
from earshot_simulations.auditing.plans import Effort, audit_mechanism, mechanisms_of
from earshot_simulations.auditing.proved_ballots import audit_proved_ballots
from earshot_simulations.auditing.published_costs import audit_published_costs
from earshot_simulations.auditing.routes import audit_phases
from earshot_simulations.auditing.samplers import audit_samplers
from earshot_simulations.auditing.sum_secrets import audit_secrets
from earshot_simulations.auditing.tallies import audit_tallies
from earshot_simulations.auditing.whole_phones import audit_whole_phones

USUAL = Effort(trials=4000, draws=20_000, seed=0)
THOROUGH = Effort(trials=100_000, draws=1_000_000, seed=0)

MECHANISMS: dict[str, tuple[type[Mechanism], ...]] = {
    "ballot-sum": (BallotSum,),
    "vector-sum": (VectorSum,),
    "vote-sum": (VoteSum,),
    "dp-lloyd": (LaplaceLloyd,),
    "spherical-dp-lloyd": (GaussianLloyd,),
    "private-runs": (BestLaplaceLloyd, BestGaussianLloyd),
    "selection": (Selection,),
}
"""Types of mechanism, by the name that selects their audit."""

_SPHERICAL = GaussianLloyd(4.0, 1e-6, 2)
_SMALL = {
    "dp-lloyd": smallest_clustering("ε = 2, k = 1, d = 1, N = 2"),
    "spherical-dp-lloyd": Clustering(
        "ε = 4, k = 1, d = 2, two iterations",
        SphericalDPLloyd(1, _SPHERICAL, iterations=2),
        _SPHERICAL,
        Geometry.SPHERICAL,
        2,
    ),
}


def _mechanism(name: str) -> Callable[[Effort], Iterator[Result]]:
    def audit(effort: Effort) -> Iterator[Result]:
        for step, mechanism, parameters in mechanisms_of(MECHANISMS[name]):
            yield from audit_mechanism(step, mechanism, parameters, effort)
        if name in _SMALL:
            yield sampled_clustering(_SMALL[name], effort.trials, effort.seed)

    return audit


def _votes(effort: Effort) -> Iterator[Result]:
    yield from audit_curator(effort.trials, effort.seed)
    yield from audit_owners()


SUBJECTS: dict[str, Callable[[Effort], Iterable[Result]]] = {
    **{name: _mechanism(name) for name in MECHANISMS},
    "teachers-votes": lambda effort: audit_tallies(effort.draws, effort.seed),
    "several-winners": lambda effort: audit_several_winners(effort.draws, effort.seed),
    "thresholds": lambda effort: audit_thresholds(effort.draws, effort.seed),
    "curator-votes": _votes,
    "published-costs": lambda effort: audit_published_costs(effort.draws, effort.seed),
    "phases": lambda effort: audit_phases(),
    "whole-phones": lambda effort: audit_whole_phones(),
    "samplers": lambda effort: audit_samplers(effort.draws, effort.seed),
    "secure-sum": lambda effort: audit_secrets(),
    "two-operators": lambda effort: audit_operators(effort.draws, effort.seed),
    "proved-ballots": lambda effort: audit_proved_ballots(),
    "false-inputs": lambda effort: audit_false_inputs(),
    "faults": audit_faults,
}
"""Audits by the name that selects them."""


def audit(
    name: str | None = None, effort: Effort = USUAL, progress: Progress = silent
) -> list[Result]:
    """Audit everything, or one subject.

    Args:
        name: Name of a subject; None for all.
        effort: Size of the audit.
        progress: Progress by subject.

    Raises:
        InvalidParametersError: No subject has that name; the error lists them.
    """
    check(name)
    subjects = SUBJECTS if name is None else {name: SUBJECTS[name]}
    results: list[Result] = []
    for done, (subject, run) in enumerate(subjects.items()):
        progress(f"auditing {subject}", done, len(subjects))
        role = AuditRole.FAULT if subject == "faults" else AuditRole.PRODUCT
        results.extend(replace(each, subject=subject, role=role) for each in run(effort))
        progress(f"auditing {subject}", done + 1, len(subjects))
    return results


def check(name: str | None) -> None:
    """Check that a subject has this name.

    Raises:
        InvalidParametersError: No subject has that name; the error lists them.
    """
    if name is not None and name not in SUBJECTS:
        raise InvalidParametersError(
            f"nothing called '{name}' is audited; there are {', '.join(SUBJECTS)}"
        )
