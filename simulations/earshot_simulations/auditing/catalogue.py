"""All that can be audited, by name, and how it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing.attacked_generators import (
    ATTACKED,
    audit_generators,
    generator_faults,
    printed_generators,
    warmed_generators,
)
from earshot_simulations.auditing.ballots import BALLOT_SUM
from earshot_simulations.auditing.curator import CURATOR, audit_curator
from earshot_simulations.auditing.curator_faults import curator_faults
from earshot_simulations.auditing.curator_printed import curator_printed
from earshot_simulations.auditing.faults import audit_faults, smallest_clustering
from earshot_simulations.auditing.findings import FAULTS, PRINTED, Result
from earshot_simulations.auditing.gradient_faults import gradient_faults
from earshot_simulations.auditing.limits import THRESHOLDS, audit_thresholds
from earshot_simulations.auditing.lloyd import Clustering, sampled_clustering
from earshot_simulations.auditing.noisy_gradients import TRAINING, audit_training
from earshot_simulations.auditing.plans import (
    DP_LLOYD,
    SPHERICAL_DP_LLOYD,
    Effort,
    audit_mechanism,
    mechanisms_of,
)
from earshot_simulations.auditing.printed import audit_printed
from earshot_simulations.auditing.printed_scale import audit_printed_scale
from earshot_simulations.auditing.published_costs import PUBLISHED_COSTS, audit_published_costs
from earshot_simulations.auditing.routes import WHOLE_PHASES, audit_phases
from earshot_simulations.auditing.runs import PRIVATE_RUNS
from earshot_simulations.auditing.samplers import SAMPLERS, audit_samplers
from earshot_simulations.auditing.selection import SELECTION
from earshot_simulations.auditing.several_winners import SEVERAL_WINNERS, audit_several_winners
from earshot_simulations.auditing.sum_secrets import SECURE_SUM, audit_secrets
from earshot_simulations.auditing.tallies import TALLIES, audit_tallies
from earshot_simulations.auditing.vectors import VECTOR_SUM
from earshot_simulations.auditing.votes import VOTE_SUM
from earshot_simulations.auditing.whole_phones import WHOLE_PHONES, audit_whole_phones

USUAL = Effort(trials=4000, draws=20_000, seed=0)
THOROUGH = Effort(trials=100_000, draws=1_000_000, seed=0)

MECHANISMS: dict[str, tuple[type[Mechanism], ...]] = {
    BALLOT_SUM: (BallotSum,),
    VECTOR_SUM: (VectorSum,),
    VOTE_SUM: (VoteSum,),
    DP_LLOYD: (LaplaceLloyd,),
    SPHERICAL_DP_LLOYD: (GaussianLloyd,),
    PRIVATE_RUNS: (BestLaplaceLloyd, BestGaussianLloyd),
    SELECTION: (Selection,),
}
"""The types of mechanism, by the name that selects their audit."""


def _mechanism(name: str) -> Callable[[Effort], Iterator[Result]]:
    def audit(effort: Effort) -> Iterator[Result]:
        for step, mechanism, parameters in mechanisms_of(MECHANISMS[name]):
            for result in audit_mechanism(step, mechanism, parameters, effort):
                yield replace(result, subject=name)
        if name in _SMALL:
            yield sampled_clustering(_SMALL[name], effort.trials, effort.seed)

    return audit


_SPHERICAL = GaussianLloyd(4.0, 1e-6, 2)
_SMALL = {
    DP_LLOYD: smallest_clustering(DP_LLOYD, "ε = 2, k = 1, d = 1, N = 2"),
    SPHERICAL_DP_LLOYD: Clustering(
        SPHERICAL_DP_LLOYD,
        "ε = 4, k = 1, d = 2, two iterations",
        SphericalDPLloyd(1, _SPHERICAL, iterations=2),
        _SPHERICAL,
        Geometry.SPHERICAL,
        2,
    ),
}


def _printed(effort: Effort) -> Iterator[Result]:
    yield from audit_printed()
    yield from curator_printed()
    yield from audit_printed_scale()
    if effort.trials > USUAL.trials:  # it trains two dozen generators at length
        yield from printed_generators(effort.seed)


def _faults(effort: Effort) -> Iterator[Result]:
    yield from audit_faults(effort.trials, effort.seed)
    yield from curator_faults(effort.trials, effort.seed)
    yield from gradient_faults(effort.draws, effort.seed)
    yield from generator_faults(effort.seed)
    if effort.trials > USUAL.trials:  # likewise
        yield from warmed_generators(effort.seed)


SUBJECTS: dict[str, Callable[[Effort], Iterator[Result]]] = {
    **{name: _mechanism(name) for name in MECHANISMS},
    TALLIES: lambda effort: audit_tallies(effort.draws, effort.seed),
    SEVERAL_WINNERS: lambda effort: audit_several_winners(effort.draws, effort.seed),
    THRESHOLDS: lambda effort: audit_thresholds(effort.draws, effort.seed),
    CURATOR: lambda effort: audit_curator(effort.trials, effort.seed),
    TRAINING: lambda effort: audit_training(5 * effort.draws, effort.seed),
    ATTACKED: lambda effort: audit_generators(effort.seed),
    PUBLISHED_COSTS: lambda effort: audit_published_costs(effort.draws, effort.seed),
    WHOLE_PHASES: lambda effort: audit_phases(),
    WHOLE_PHONES: lambda effort: audit_whole_phones(),
    SAMPLERS: lambda effort: audit_samplers(effort.draws, effort.seed),
    SECURE_SUM: lambda effort: audit_secrets(),
    PRINTED: _printed,
    FAULTS: _faults,
}
"""By the name that selects it."""


def audit(
    name: str | None = None,
    effort: Effort = USUAL,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[Result]:
    """Audit everything, or what goes by one name.

    Args:
        name: of a subject; None for all.
        effort: how much is tried.
        progress: told what is being audited, how many were, and how many there are.

    Raises:
        InvalidParametersError: nothing goes by that name; says what does.
    """
    check(name)
    subjects = SUBJECTS if name is None else {name: SUBJECTS[name]}
    results: list[Result] = []
    for done, (subject, run) in enumerate(subjects.items()):
        progress(f"auditing {subject}", done, len(subjects))
        results.extend(run(effort))
        progress(f"auditing {subject}", done + 1, len(subjects))
    return results


def check(name: str | None) -> None:
    """Refuse a name that nothing goes by.

    Raises:
        InvalidParametersError: says what there is.
    """
    if name is not None and name not in SUBJECTS:
        raise InvalidParametersError(
            f"nothing called '{name}' is audited; there are {', '.join(SUBJECTS)}"
        )
