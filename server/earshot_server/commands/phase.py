"""`earshot phase`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from earshot_protocol.api import StartPhase
from earshot_protocol.environments import DEFAULT_ENVIRONMENTS
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.parameters import Parameters, parse_budget
from earshot_protocol.phases.statistics import HISTOGRAM, StatisticsParameters
from earshot_server.api.views import Phases, PhaseView
from earshot_server.commands.options import DEFAULT_DATA, DEFAULT_SERVER, AsJson, Data, Server
from earshot_server.dashboard.outcomes import words_for
from earshot_server.operator_client import OperatorClient, read_token

app = typer.Typer(add_completion=False, no_args_is_help=True)

_LABELS = ",".join(DEFAULT_ENVIRONMENTS)
_DEFAULT_BUDGET = {"clustering": 1.0, "selection": 0.25, "centroid-vote": 0.5, "label-vote": 0.5}
_DEFAULT_EPSILON = 0.5
Phase = Annotated[str, typer.Argument(help="Identifier of the phase, as `list` shows it.")]


@app.callback()
def phase() -> None:
    """Start, list, show, stop and export phases."""


@app.command()
def start(
    context: typer.Context,
    phones: Annotated[int, typer.Option(help="Phones that are wanted.")],
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    statistics: Annotated[
        bool, typer.Option(help="Count contacts per environment instead of learning.")
    ] = False,
    least_phones: Annotated[
        int | None, typer.Option(help="What is enough when the gathering ends; default: all.")
    ] = None,
    gather_hours: Annotated[float, typer.Option(help="How long phones may join.")] = 24.0,
    step_hours: Annotated[
        float, typer.Option(help="How long a step waits for phones that have not answered.")
    ] = 24.0,
    labels: Annotated[str, typer.Option(help="Classes of environments, by commas.")] = _LABELS,
    dropout: Annotated[float, typer.Option(help="Largest fraction that may vanish.")] = 0.2,
    corrupted: Annotated[
        float, typer.Option(help="Fraction of phones an adversary may control.")
    ] = 0.05,
    budget: Annotated[
        str,
        typer.Option(
            help="ε per recording: clustering=…,selection=…,centroid-vote=…,label-vote=…; with "
            "--statistics: histogram=…"
        ),
    ] = "",
    recordings: Annotated[
        int, typer.Option(help="Recordings of a phone, on average; a public number.")
    ] = 100,
    contacts: Annotated[
        int, typer.Option(help="With --statistics: the most contacts that a phone counts.")
    ] = 20,
    encoder: Annotated[str, typer.Option(help="Whose embeddings are clustered.")] = "contrast-1",
    dimensions: Annotated[int, typer.Option(help="Of the points that phones cluster.")] = 8,
    local_centroids: Annotated[int, typer.Option(help="Centroids a phone computes (k).")] = 6,
    top_local_centroids: Annotated[int, typer.Option(help="Of those, published (k*).")] = 2,
    top_global_centroids: Annotated[int, typer.Option(help="Centroids the vote keeps (g*).")] = 10,
    centroid_votes: Annotated[int, typer.Option(help="Ones in a ballot of the first vote.")] = 3,
    label_votes: Annotated[int, typer.Option(help="Ones in a ballot of the second vote.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Start a phase: it gathers phones, then runs. Prints its identifier."""
    # Options are named as the parameters that they set, but for these.
    given = context.params | {
        "labels": tuple(name.strip() for name in labels.split(",")),
        "step_seconds": step_hours * 3600,
    }
    kind: type[Parameters]
    if statistics:
        kind = StatisticsParameters
        given["epsilon"] = parse_budget(budget, [HISTOGRAM]).get(HISTOGRAM, _DEFAULT_EPSILON)
    else:
        kind = PhaseParameters
        spent = _DEFAULT_BUDGET | parse_budget(budget, Budget.names())
        given |= {"geometry": Geometry.SPHERICAL, "budget": Budget(*spent.values())}
    parameters = kind(**{name: given[name] for name in kind.__struct_fields__ if name in given})
    parameters.check()
    asked = StartPhase(
        parameters=parameters, least_phones=least_phones, gather_seconds=gather_hours * 3600
    )
    started = OperatorClient(server, read_token(data)).start(asked)
    typer.echo(json.dumps({"phase": started}) if as_json else started)


@app.command("list")
def list_phases(
    server: Server = DEFAULT_SERVER, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """All phases, newest first."""
    phases = OperatorClient(server, read_token(data)).phases()
    if as_json:
        _print(Phases(phases=phases))
        return
    for phase in phases:
        typer.echo(_line(phase))


@app.command()
def show(
    phase: Phase,
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """One phase: where it stands, how many phones have answered, and its result."""
    everything = OperatorClient(server, read_token(data)).export(phase)
    if as_json:
        _print(everything)
        return
    typer.echo(_line(everything.phase))
    for step in everything.phase.steps:
        typer.echo(f"  {step.step:<32} {step.answered} of {step.expected}")
    if isinstance(everything.ending, Failed):
        typer.echo(f"  failed: {everything.ending.reason}")
    elif everything.ending is not None:
        for line in words_for(everything.phase.parameters).lines(everything.ending):
            typer.echo(f"  {line}")


@app.command()
def stop(phase: Phase, server: Server = DEFAULT_SERVER, data: Data = DEFAULT_DATA) -> None:
    """End a phase without a result; its phones are told."""
    OperatorClient(server, read_token(data)).stop(phase)


@app.command()
def export(
    phase: Phase,
    out: Annotated[Path | None, typer.Option(help="A file; default: standard output.")] = None,
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
) -> None:
    """Everything about a phase as JSON: parameters, steps, result, privacy spent."""
    everything = OperatorClient(server, read_token(data)).export(phase)
    exported = msgspec.json.format(msgspec.json.encode(everything), indent=2).decode()
    if out is None:
        typer.echo(exported)
        return
    try:
        out.write_text(exported + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"cannot write {out}: {error.strerror}") from error


def _print(body: object) -> None:
    typer.echo(msgspec.json.encode(body).decode())


def _line(phase: PhaseView) -> str:
    return (
        f"{phase.phase}  {phase.parameters.kind:<10}  {phase.status:<9}  "
        f"{phase.joined} of {phase.wanted} phones  {phase.step}"
    )
