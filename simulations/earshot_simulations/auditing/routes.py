"""Whole phases: the joint privacy loss of their steps against the proven cost of their events.

A server may choose each step by the results of the steps before, so each step is measured at its
own worst neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.accounting import total
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
    Selection,
)
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, BallotSum, Mechanism, Unit, VectorSum
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing.ballots import counted_on, difference_loss
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.lloyd import clustering_loss
from earshot_simulations.auditing.losses import Losses, composed, loss
from earshot_simulations.auditing.plans import PHASES, clustering_of, differences_of
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.runs import worst_runs
from earshot_simulations.auditing.selection import selection_law, worst_selection
from earshot_simulations.auditing.vectors import spread
from earshot_simulations.auditing.votes import worst

_CELLS = 2**16
_EXACT = Technique(
    EXACT, "exact: the losses of all steps convolved, with the guaranteed noise of each sum"
)


def audit_phases() -> Iterator[Finding]:
    """Audit every phase, in both units of a ledger."""
    for name, parameters in PHASES.items():
        plan = parameters.plan()
        for unit in LEDGER_UNITS:
            events = tuple(each.event(unit) for each in plan.mechanisms.values())
            step = composed_epsilon(events, DELTA) / _CELLS
            losses = phase_losses(parameters, unit, step)
            case = f"{name}: {', '.join(plan.mechanisms)}"
            claimed = total(plan.releases())[unit].epsilon
            measured = losses.epsilon(DELTA)
            yield composed_finding(case, unit, claimed, events, measured, _EXACT)


def phase_losses(parameters: Parameters, unit: Unit, step: float, recordings: int = 0) -> Losses:
    """Return the loss of all steps together, on a grid.

    Args:
        parameters: Parameters of the phase.
        unit: Unit in which neighbours differ.
        step: Step of the grid.
        recordings: Recordings that the phone holds, if more than the phase states.
    """
    return composed(
        _loss(name, mechanism, parameters, unit, step, recordings)
        for name, mechanism in parameters.plan().mechanisms.items()
    )


def _loss(
    name: str,
    mechanism: Mechanism,
    parameters: Parameters,
    unit: Unit,
    step: float,
    recordings: int,
) -> Losses:
    nominal = getattr(parameters, "recordings", 0)
    differ = 1 if unit is Unit.RECORDING else max(nominal, recordings)
    match mechanism:
        case BallotSum():
            law = counted_on(mechanism, parameters).law
            return difference_loss(law, differences_of(name, parameters)[unit], step)
        case VectorSum():
            law = counted_on(mechanism, parameters).law
            return difference_loss(law, spread(mechanism, unit, 1), step)
        case VoteSum():
            law = counted_on(mechanism, parameters).law
            return difference_loss(law, worst(mechanism, unit), step)
        case LaplaceLloyd() | GaussianLloyd():
            return clustering_loss(clustering_of(mechanism, parameters), differ, 0, step)
        case BestLaplaceLloyd() | BestGaussianLloyd():
            return loss(*worst_runs(mechanism, differ), step)
        case Selection():
            law_of = selection_law(mechanism.method, mechanism.epsilon, mechanism.repeats)
            few = mechanism.repeats + 1
            return loss(*worst_selection(law_of, few, differ, 1 / mechanism.epsilon), step)
    raise TypeError(f"no worst losses are known for {type(mechanism).__name__}: add them here")
