"""`earshot budget`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.commands.options import AsJson, Labels
from earshot_server.commands.phase.hierarchy import asked as asked_hierarchy
from earshot_server.dashboard import prospects
from earshot_server.dashboard.spending import dearer_recording, limited_to
from earshot_server.dashboard.verdict import verdict
from earshot_server.dashboard.wording import byte_size, counted, real, whole
from earshot_server.phases.options import (
    CellOptions,
    Discovery,
    PhaseOptions,
    given,
    names,
    refuse_others,
)
from earshot_server.phases.proposal import Proposal, StepShare, proposed

app = App()

SECURE_SUM, LOCAL = (f"--discovery {route}" for route in Discovery)
_OWN = {SECURE_SUM: names(CellOptions) | {"finer"}, LOCAL: {"recordings"}}
"""Options that only one of the routes has."""
_UNITS = {
    Unit.PHONE: "one phone (its part against zeros)",
    Unit.RECORDING: "one recording",
    Unit.REPLACED_PHONE: "one phone (its part against another's)",
}


@app.default
def budget(
    *,
    asked: Annotated[PhaseOptions, Parameter(name="*")],
    labels: Labels = None,
    hierarchy: Path | None = None,
    unit: Unit | None = None,
    any_delta: bool = False,
    as_json: AsJson = False,
) -> None:
    """Split a privacy budget over the steps of a phase, and say what it buys.

    Args:
        hierarchy: JSON file of classes, and for each the choices that polls offer.
        unit: Unit of privacy that --epsilon protects; by default a phone, with --discovery local a
            recording.
        any_delta: Accept a δ of 1/phones or more.
    """
    route = asked.discovery or Discovery.SECURE_SUM
    chosen = given(asked, PhaseOptions(phones=asked.phones))
    refuse_others(chosen, f"--discovery {route}", _OWN)
    classes, choices = asked_hierarchy(labels, hierarchy)
    asked = replace(asked, discovery=route, labels=classes, choices=choices)
    unit = unit or (Unit.RECORDING if route is Discovery.LOCAL else Unit.PHONE)
    parameters, proposal = proposed(asked, unit, any_delta=any_delta)
    if as_json:
        said = {
            "wanted": {**vars(asked), "unit": unit, "any_delta": any_delta},
            "proposal": proposal,
            "verdict": verdict(parameters, proposal.refusals),
        }
        print(msgspec.json.encode(said).decode())
    else:
        lines = _lines(asked, unit, parameters, proposal)
        options = {**_shared(asked, chosen), "labels": labels, "hierarchy": hierarchy}
        print("\n".join([*lines, _start(options, proposal)]))


def _lines(
    asked: PhaseOptions, unit: Unit, parameters: Parameters, proposal: Proposal
) -> list[str]:
    """Describe the proposal, for a terminal."""
    return [
        f"{counted(asked.phones, 'phone')}, {parameters.honest_survivors} of them assumed to stay "
        "and be honest (--dropout, --corrupted)",
        f"ε = {_real(proposal.prices[unit.value].epsilon)} at δ = {real(asked.delta)}, for "
        f"{_UNITS[unit]}, is split like this:",
        *(_step(each) for each in proposal.steps),
        f"a phase costs, and {proposal.phases_a_year} of them in a year together",
        *(
            f"  {_UNITS[each]:<40}  ε = {_real(price.epsilon):<9}  "
            f"ε = {_real(price.yearly_epsilon)}"
            for each, price in ((each, proposal.prices[each.value]) for each in _UNITS)
        ),
        *_dearer(proposal),
        *([f"  {limited}"] if (limited := limited_to([parameters])) else []),
        *prospects.prototype_lines(parameters),
        f"each phone sends {byte_size(proposal.bytes.sent)} in a phase",
        *prospects.stored_lines(asked.phones, proposal.bytes),
        *prospects.large_inputs(parameters),
        *_sight(asked, parameters, proposal),
        *_refusals(proposal),
        verdict(parameters, proposal.refusals),
    ]


def _dearer(proposal: Proposal) -> list[str]:
    prices = {unit: _infinite(proposal.prices[unit.value].epsilon) for unit in LEDGER_UNITS}
    costs = {unit: Cost(epsilon, 0.0) for unit, epsilon in prices.items()}
    return [f"  {dearer}"] if (dearer := dearer_recording(costs)) else []


def _step(each: StepShare) -> str:
    line = f"  {each.step:<22}  {each.setting} {real(each.value):<9}  ε = {_real(each.epsilon):<9}"
    if each.deviation is None:
        return f"{line}  noise on the phone itself"
    return f"{line}  noise on an entry as large as {real(each.deviation)} phones"


def _sight(asked: PhaseOptions, parameters: Parameters, proposal: Proposal) -> list[str]:
    if proposal.needed is None:
        return []
    needed, shared = counted(proposal.needed, "phone"), proposal.environments
    alone = min(shared, parameters.honest_survivors // proposal.needed)
    if asked.discovery is Discovery.LOCAL:
        return [
            f"an environment is seen if {needed} or more heard it and nothing else",
            f"  {counted(shared, 'environment')} can be seen together, if every phone heard each "
            "of them equally",
        ]
    return [
        f"a label gets a clear prototype if {needed} or more labelled it and nothing else, and its "
        "recordings sound the same",
        f"  if phones labelled four equally, {2 * proposal.needed} are needed; if e, √e times as "
        "many",
        f"  {counted(alone, 'label')} can get one together, if every phone labelled only one; "
        f"{whole(shared)}, if every phone labelled each of them equally",
    ]


def _refusals(proposal: Proposal) -> list[str]:
    if not proposal.refusals:
        return [
            f"a default phone accepts this phase, {proposal.yearly_phases} times within a year and "
            f"{proposal.lifetime_phases} times in its life"
        ]
    return [
        "a default phone refuses this phase:",
        *(f"  {refusal.reason}" for refusal in proposal.refusals),
    ]


def _shared(asked: PhaseOptions, chosen: Collection[str]) -> dict[str, object]:
    """Return the options that `earshot phase start` also takes, except for ε."""
    shared: dict[str, object] = {
        "phones": asked.phones,
        "discovery": asked.discovery,
        "dropout": asked.dropout,
        "corrupted": asked.corrupted,
        "delta": asked.delta,
        "summation": None if asked.summation is SummationName.BELL else asked.summation,
    }
    if asked.discovery is Discovery.LOCAL:
        return shared | {"recordings": asked.recordings}
    shown = {"sums", "label_share", *chosen}
    own = dict.fromkeys(each.name for each in fields(PhaseOptions))
    return shared | {
        name.replace("_", "-"): getattr(asked, name)
        for name in own
        if name in shown & _OWN[SECURE_SUM]
    }


def _start(options: Mapping[str, object], proposal: Proposal) -> str:
    """Return the command that starts such a phase; options that are true become flags."""
    unit = Unit.RECORDING if options["discovery"] == Discovery.LOCAL.value else Unit.PHONE
    spent = {"epsilon": f"{proposal.prices[unit.value].epsilon:.6g}"}
    given = {name: value for name, value in {**options, **spent}.items() if value is not None}
    words = (
        word
        for name, value in given.items()
        for word in ([f"--{name}"] if value is True else [f"--{name}", str(value)])
    )
    return f"to start it: {shlex.join(['earshot', 'phase', 'start', *words])}"


def _real(epsilon: float | None) -> str:
    return real(_infinite(epsilon))


def _infinite(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon
