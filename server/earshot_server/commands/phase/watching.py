"""`earshot phase begin`, `list`, `show`, `stop` and `export`."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.messages import Failed
from earshot_server.api.views import Cohorts, Phases, PhaseView, Spent
from earshot_server.commands.options import DEFAULT, AsJson, OperatorConnection, refuse_existing
from earshot_server.dashboard import refusals
from earshot_server.dashboard.outcomes import nothing_clear, words_for
from earshot_server.dashboard.sentences import helped, trust, waiting
from earshot_server.dashboard.spending import limited_to
from earshot_server.dashboard.wording import from_now, printable, real
from earshot_server.records import MOST_TRIES

Phase = Annotated[
    str,
    Parameter(
        help="Identifier of the phase, as `list` or the dashboard shows it; its first digits are "
        "enough."
    ),
]


def begin(
    phase: Phase, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """Begin a phase with the phones that have joined, before its gathering is over."""
    client = connection.operator()
    view = client.begin(client.find(phase))
    if as_json:
        _print(view)
    else:
        print(f"begins with {view.joined} phones: {view.phase}")


def list_phases(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """List the newest phases, at most 100, and the privacy that phones have spent in all."""
    client = connection.operator()
    phases = client.phases()
    if as_json:
        _print(Phases(phases=phases))
        return
    for phase in phases:
        print(_line(phase))
    spent = client.privacy()
    if any(cost.epsilon != 0 for cost in spent.total):
        _total("a phone that took part in all of them has spent", spent.total)
        for cohort, costs in spent.cohorts.items():
            _total(f"one of the cohort {cohort}, in all that it could join,", costs)
        if limited := limited_to(phase.parameters for phase in phases):
            print(limited)


def show(
    phase: Phase, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """Show one phase: its steps, how many phones have answered, and its result."""
    client = connection.operator()
    everything = client.export(client.find(phase))
    if as_json:
        _print(everything)
        return
    print(_line(everything.phase))
    if everything.phase.cohorts:
        print(f"  cohorts: {', '.join(everything.phase.cohorts)}")
    plan, now = everything.phase.parameters.plan(), time.time()
    for step in everything.phase.steps:
        if not plan.asks_helper(step.step):
            print(f"  {step.step:<32} {step.answered} of {step.expected}")
        elif step.answered or everything.ending is not None:
            print(f"  {step.step:<32} {helped(step)}")
        else:
            print(f"  {step.step:<32} {waiting(everything.phase.helper, step, now)}")
    print(f"  {trust(everything.phase.parameters)}")
    trouble = everything.phase.trouble
    if trouble is not None:
        again = from_now(trouble.next_try, now)
        print(
            f"  in trouble: {trouble.reason}, {trouble.attempts} of {MOST_TRIES} tries; "
            f"the next one {again}; the driver's log has the details"
        )
    for row in refusals.rows(everything.phase.refusals):
        refused = "phone has refused" if row.phones == 1 else "phones have refused"
        print(f"  {row.phones} {refused} by {row.rule}: {row.meaning}")
    if isinstance(everything.ending, Failed):
        print(f"  {everything.phase.status}: {everything.ending.reason}")
    elif everything.ending is not None:
        nothing = nothing_clear(everything.ending)
        words = words_for(everything.phase.parameters)
        for line in [nothing] if nothing else words.lines(everything.ending):
            print(f"  {line}")


def cohorts(*, connection: OperatorConnection = DEFAULT, as_json: AsJson = False) -> None:
    """List the cohorts that phones belong to, and how many phones each has."""
    known = connection.operator().cohorts()
    if as_json:
        _print(Cohorts(cohorts=known))
        return
    for cohort in known:
        name = cohort.name or "(none)"
        print(f"{name:<32}  {cohort.phones} phones, {cohort.free} of them in no phase")


def stop(
    phase: Phase, /, *, connection: OperatorConnection = DEFAULT, as_json: AsJson = False
) -> None:
    """End a phase without a result; its phones learn of it. One that is over stays as it is."""
    client = connection.operator()
    came = client.stop(client.find(phase))
    if as_json:
        _print(came)
    elif came.stopped:
        print(f"stopped: {_line(came.phase)}")
    else:
        over = came.phase
        when = "" if over.finished is None else f" {from_now(over.finished, time.time())}"
        why = f": {over.failure}" if over.failure else ""
        print(f"phase {over.phase} had already ended: {over.status}{when}{why}")


def export(
    phase: Phase,
    /,
    *,
    out: Path | None = None,
    overwrite: bool = False,
    connection: OperatorConnection = DEFAULT,
) -> None:
    """Write everything about a phase as JSON: parameters, steps, result, privacy spent.

    Args:
        out: File to write; by default standard output.
        overwrite: Replace the file if it exists.
    """
    refuse_existing(out, overwrite)
    client = connection.operator()
    everything = client.export(client.find(phase))
    exported = msgspec.json.format(msgspec.json.encode(everything), indent=2).decode()
    if out is None:
        print(exported)
        return
    try:
        replace_file(out, exported + "\n")
    except OSError as error:
        raise InvalidInputError(f"cannot write {out}: {error.strerror}") from error


def _print(body: object) -> None:
    print(msgspec.json.encode(body).decode())


def _total(whose: str, costs: tuple[Spent, ...]) -> None:
    said = "; ".join(
        f"ε = {real(math.inf if cost.epsilon is None else cost.epsilon)}, δ = {real(cost.delta)} "
        f"per {cost.unit} ({cost.method})"
        for cost in costs
    )
    print(f"{whose} {said}")


def _line(phase: PhaseView) -> str:
    name = f"  “{printable(phase.name)}”" if phase.name else ""
    return (
        f"{phase.phase}  {phase.parameters.kind:<10}  {phase.status:<9}  "
        f"{phase.joined} of {phase.wanted} phones  {phase.step}{name}"
    )
