"""`earshot phase start`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import to_builtins

from earshot_protocol.api import StartPhase
from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases import discovery_budget, labelling_budget, learning_budget
from earshot_protocol.phases.parameters import hierarchy_of
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_server.commands.discovery_options import Cells, LabelShare, MostCells, Sums
from earshot_server.commands.options import DEFAULT_DATA, DEFAULT_SERVER, AsJson, Data, Server
from earshot_server.commands.phase import prospects
from earshot_server.commands.phase.hierarchy import asked as asked_hierarchy
from earshot_server.commands.phase.kinds import LABELLING, chosen, parameters_of
from earshot_server.commands.phase.places import NOTHING, newest, of_phase
from earshot_server.commands.phase.samples import Samples, of_file, unnamed
from earshot_server.discovery.route import Discovery
from earshot_server.operator_client import OperatorClient, ServerError, read_token
from earshot_server.phases.forecast import forecast

_DATE = "%Y-%m-%d"
_SHIPPED = ", ".join(SHIPPED_ENCODERS)
_Operator = Callable[[], OperatorClient | None]
"""The server's operator, once somebody asks; None for a dry run where there is no server."""


def start(
    context: typer.Context,
    phones: Annotated[int, typer.Option(help="Phones that are wanted.")],
    server: Server = DEFAULT_SERVER,
    data: Data = DEFAULT_DATA,
    discovery: Annotated[
        Discovery | None,
        typer.Option(
            help="How environments are found: secure-sum, the default, protects phones; local, "
            "the thesis's, protects recordings, and no phone takes part by default."
        ),
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Count contacts per environment instead.")
    ] = False,
    samples: Annotated[
        Path | None,
        typer.Option(
            help="Let phones label these instead: a .npy file of embeddings (samples, dimensions) "
            "in the encoder's projection."
        ),
    ] = None,
    samples_of: Annotated[
        str | None,
        typer.Option(help="As --samples: the environments that this phase could not name."),
    ] = None,
    least_phones: Annotated[
        int | None, typer.Option(help="What is enough when the gathering ends; default: all.")
    ] = None,
    gather_hours: Annotated[float, typer.Option(help="How long phones may join.")] = 24.0,
    step_hours: Annotated[
        float, typer.Option(help="How long a step waits for phones that have not answered.")
    ] = 24.0,
    labels: Annotated[
        str | None,
        typer.Option(help="Classes of environments, by commas; default: everyday ones."),
    ] = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option(help="JSON file: classes, and for each the choices that polls offer."),
    ] = None,
    dropout: Annotated[float, typer.Option(help="Largest fraction that may vanish.")] = 0.2,
    corrupted: Annotated[
        float, typer.Option(help="Fraction of phones an adversary may control.")
    ] = 0.05,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help=f"ε of the whole phase, per phone; by default {discovery_budget.EPSILON:g}. With "
            "--discovery local per recording, in place of --budget."
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="δ of it.")] = discovery_budget.DELTA,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="With --samples: how many phones must agree on an answer (T), noise included; by "
            "default, more than noise alone does."
        ),
    ] = None,
    check_share: Annotated[
        float,
        typer.Option(
            help="With --samples: share of ε (in ρ) that asking who agrees gets: above 0, below 1."
        ),
    ] = labelling_budget.CHECK_SHARE,
    largest_weight: Annotated[
        int,
        typer.Option(
            help="With --samples: how many votes a phone whose own budget bears it may make of "
            "one, at most."
        ),
    ] = 1,
    label_share: LabelShare = discovery_budget.LABEL_SHARE,
    cells: Cells = None,
    most_cells: MostCells = None,
    sums: Sums = discovery_budget.SUMS,
    budget: Annotated[
        str,
        typer.Option(
            help="ε per recording. With --discovery local: clustering=…,selection=…,"
            "centroid-vote=…,label-vote=…; with --statistics: histogram=…"
        ),
    ] = "",
    recordings: Annotated[
        int,
        typer.Option(
            help="With --discovery local: recordings of a phone, on average; a public number."
        ),
    ] = learning_budget.RECORDINGS,
    contacts: Annotated[
        int, typer.Option(help="With --statistics: the most contacts that a phone counts.")
    ] = 8,
    since: Annotated[
        datetime | None,
        typer.Option(
            "--from", formats=[_DATE], help="With --statistics: the first day (UTC) that counts."
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(formats=[_DATE], help="With --statistics: the day after the last one."),
    ] = None,
    places_of: Annotated[
        str | None,
        typer.Option(
            help="With --statistics: the phase by whose environments contacts are counted that "
            f"nobody labelled; {NOTHING}: they are not; by default, the newest."
        ),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            help=f"Whose embeddings phones hold: a shipped one by its name ({_SHIPPED}), or the "
            "file of another."
        ),
    ] = DEFAULT_ENCODER,
    dimensions: Annotated[
        int | None,
        typer.Option(
            help="Of the points that phones sort, by default "
            f"{discovery_budget.DIMENSIONS}; with --discovery local, that they cluster, by default "
            f"{learning_budget.DIMENSIONS}."
        ),
    ] = None,
    local_centroids: Annotated[
        int, typer.Option(help="With --discovery local: centroids a phone computes (k).")
    ] = learning_budget.LOCAL_CENTROIDS,
    top_local_centroids: Annotated[
        int, typer.Option(help="Of those, published (k*).")
    ] = learning_budget.TOP_LOCAL_CENTROIDS,
    top_global_centroids: Annotated[
        int, typer.Option(help="Centroids the vote keeps (g*).")
    ] = learning_budget.TOP_GLOBAL_CENTROIDS,
    selection_method: Annotated[
        SelectionMethod,
        typer.Option("--selection", help="How a phone chooses which centroids it publishes."),
    ] = SelectionMethod.NOISY_MAX,
    clustering_runs: Annotated[
        int, typer.Option(help="How often a phone clusters, on average, to keep the best.")
    ] = 1,
    centroid_votes: Annotated[
        int, typer.Option(help="Ones in a ballot of the first vote.")
    ] = learning_budget.CENTROID_VOTES,
    label_votes: Annotated[
        int | None,
        typer.Option(help="Ones in a ballot of the second vote; by default one a kept centroid."),
    ] = None,
    name: Annotated[str, typer.Option(help="What people call the phase; not unique.")] = "",
    cohort: Annotated[
        str, typer.Option(help="NAME,NAME: gather phones of these cohorts only; default: all.")
    ] = "",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Start it though default phones refuse it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost and find; start nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start a phase: it gathers phones, then runs. Prints its identifier.

    What it costs and can find is said on standard error; with --dry-run, which works without a
    server, on standard output.
    """
    kind = chosen(context, discovery, statistics)
    classes, choices = asked_hierarchy(labels, hierarchy)
    agreed = hierarchy_of(classes, choices)
    chosen_samples = None if kind != LABELLING else _samples(samples, samples_of, server, data)
    parameters = parameters_of(
        kind,
        # Options are named as the parameters that they set, but for these.
        context.params
        | {
            "labels": classes,
            "hierarchy": agreed.digest if choices else b"",
            "step_seconds": step_hours * 3600,
            "chosen_samples": chosen_samples,
        },
    )
    parameters.check()
    operator = functools.cache(functools.partial(_operator, server, data, dry_run))
    if isinstance(parameters, StatisticsParameters):
        places = _places(places_of, agreed, operator)
        parameters = msgspec.structs.replace(parameters, places=places)
        parameters.check()
    asked = StartPhase(
        parameters=parameters,
        least_phones=least_phones,
        gather_seconds=gather_hours * 3600,
        choices=choices,
        name=name,
        anyway=anyway,
        cohorts=tuple(each.strip() for each in cohort.split(",") if each.strip()),
    )
    _foretell_and_start(asked, operator, dry_run, as_json)


def _samples(file: Path | None, phase: str | None, server: str, data: Path) -> Samples:
    """What is to be labelled: of a file, or what another phase could not name."""
    if file is not None and phase is not None:
        raise InvalidInputError("--samples and --samples-of: give one of them")
    if file is not None:
        return of_file(file)
    operator, named = OperatorClient(server, read_token(data)), str(phase)
    return unnamed(named, operator.export(operator.find(named)).ending)


def _places(
    phase: str | None, hierarchy: LabelHierarchy, operator: _Operator
) -> AgreedPlaces | None:
    """By which contacts are counted that nobody labelled: of a phase, or of the newest."""
    server = None if phase == NOTHING else operator()
    if phase is None and server is not None:
        return newest(server, hierarchy)
    if phase in (None, NOTHING):
        return None
    if server is None:
        raise InvalidInputError(f"--places-of {phase}: a server that knows the phase is needed")
    return of_phase(phase, server.export(server.find(phase)).ending, hierarchy)


def _foretell_and_start(
    asked: StartPhase, operator: _Operator, dry_run: bool, as_json: bool
) -> None:
    foreseen = forecast(asked)
    server = operator()
    lines, found = prospects.lines(asked, foreseen), {}
    if server is not None:
        enrolled, free = prospects.enrolled(asked, server.cohorts())
        lines += prospects.phone_lines(asked, enrolled, free)
        found = {"enrolled": enrolled, "free": free}
    if not as_json:
        typer.echo("\n".join(lines), err=not dry_run)
    started = None if dry_run or server is None else server.start(asked)
    if as_json:
        typer.echo(json.dumps({"phase": started, "forecast": to_builtins(foreseen)} | found))
    elif started is not None:
        typer.echo(started)
    if dry_run and foreseen.refusals and not asked.anyway:
        raise typer.Exit(1)


def _operator(server: str, data: Path, dry_run: bool) -> OperatorClient | None:
    """The server's operator; None for a dry run where there is no server to ask."""
    try:
        operator = OperatorClient(server, read_token(data))
        operator.cohorts()
    except ServerError as error:
        if not dry_run:
            raise
        typer.echo(f"enrolled phones are not known: {error}", err=True)
        return None
    return operator
