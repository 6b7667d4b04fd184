"""`earshot budget`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.commands.options import AsJson, Labels
from earshot_server.commands.phase.hierarchy import asked as asked_hierarchy
from earshot_server.dashboard import prospects
from earshot_server.dashboard.spending import dearer_recording
from earshot_server.dashboard.verdict import verdict
from earshot_server.dashboard.wording import counted, real
from earshot_server.phases.proposal import Discovery, Proposal, StepShare, Wanted, proposed

app = App()

_OWN = {
    Discovery.SECURE_SUM: {"cells", "most_cells", "sums", "label_share", "finer", "kinds"},
    Discovery.LOCAL: {"recordings"},
}
"""Options that only one of the routes has."""
_UNITS = {
    Unit.PHONE: "one phone (its part against zeros)",
    Unit.RECORDING: "one recording",
    Unit.REPLACED_PHONE: "one phone (its part against another's)",
}


@app.default
def budget(
    *,
    wanted: Annotated[Wanted, Parameter(name="*")],
    labels: Labels = None,
    hierarchy: Path | None = None,
    unit: Unit | None = None,
    as_json: AsJson = False,
) -> None:
    """Split a privacy budget over the steps of a phase, and say what it buys.

    Args:
        hierarchy: JSON file of classes, and for each the choices that polls offer.
        unit: Unit that is protected; by default a phone, with --discovery local a recording.
    """
    local = wanted.discovery is Discovery.LOCAL
    other = Discovery.SECURE_SUM if local else Discovery.LOCAL
    given = {each.name for each in fields(wanted) if getattr(wanted, each.name) != each.default}
    strange = sorted(f"--{name.replace('_', '-')}" for name in _OWN[other] & given)
    if strange:
        raise InvalidInputError(
            f"{', '.join(strange)}: not for --discovery {wanted.discovery}, but for --discovery "
            f"{other}; leave it out, or choose that"
        )
    classes, choices = asked_hierarchy(labels, hierarchy)
    wanted = replace(
        wanted,
        unit=unit or (Unit.RECORDING if local else Unit.PHONE),
        labels=classes,
        choices=choices,
    )
    parameters, proposal = proposed(wanted)
    if as_json:
        said = {
            "wanted": wanted,
            "proposal": proposal,
            "verdict": verdict(parameters, proposal.refusals),
        }
        print(msgspec.json.encode(said).decode())
    else:
        options = {
            **_shared(wanted),
            "labels": labels,
            "hierarchy": hierarchy,
            "cells": wanted.cells,
            "most-cells": wanted.most_cells,
        }
        print("\n".join([*_lines(wanted, parameters, proposal), _start(options, proposal)]))


def _lines(wanted: Wanted, parameters: Parameters, proposal: Proposal) -> list[str]:
    """Describe the proposal, for a terminal."""
    return [
        f"{counted(wanted.phones, 'phone')}, {parameters.honest_survivors} of them counted on to "
        "stay and be honest (--dropout, --corrupted)",
        f"ε = {_real(proposal.prices[wanted.unit.value].epsilon)} at δ = {real(wanted.delta)}, for "
        f"{_UNITS[wanted.unit]}, is split like this:",
        *(_step(each) for each in proposal.steps),
        f"a phase costs, and {proposal.phases_a_year} of them in a year together",
        *(
            f"  {_UNITS[unit]:<40}  ε = {_real(price.epsilon):<9}  "
            f"ε = {_real(price.yearly_epsilon)}"
            for unit, price in ((unit, proposal.prices[unit.value]) for unit in _UNITS)
        ),
        *_dearer(proposal),
        *prospects.prototype_lines(parameters),
        *_sight(wanted, proposal),
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
    return f"{line}  noise on an entry like that of {real(each.deviation)} phones"


def _sight(wanted: Wanted, proposal: Proposal) -> list[str]:
    if proposal.needed is None:
        return []
    needed, shared = counted(proposal.needed, "phone"), proposal.environments
    if wanted.discovery is Discovery.LOCAL:
        return [
            f"an environment is seen if {needed} or more heard it and nothing else",
            f"  {counted(shared, 'environment')} can be seen at once, if every phone heard all of "
            "them alike",
        ]
    return [
        f"a label gets a clear prototype if {needed} or more labelled it and nothing else, and it "
        "sounds alike",
        f"  of phones that labelled four alike, {2 * proposal.needed} are needed; of those that "
        "labelled e, √e times as many",
        f"  {counted(shared, 'label')} can get one at once, if every phone labelled all of them "
        "alike",
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


def _shared(wanted: Wanted) -> dict[str, object]:
    """Return the options that `earshot phase start` has as well, except for ε."""
    shared: dict[str, object] = {
        "phones": wanted.phones,
        "discovery": wanted.discovery.value,
        "dropout": wanted.dropout,
        "corrupted": wanted.corrupted,
        "delta": wanted.delta,
        "summation": None if wanted.summation is SummationName.BELL else wanted.summation.value,
    }
    if wanted.discovery is Discovery.LOCAL:
        return shared | {"recordings": wanted.recordings}
    return shared | {
        "sums": wanted.sums,
        "label-share": wanted.label_share,
        "finer": wanted.finer or None,
        "kinds": wanted.kinds if wanted.kinds > 1 else None,
    }


def _start(options: Mapping[str, object], proposal: Proposal) -> str:
    """Return the command that starts such a phase; an option that is true is a flag."""
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
