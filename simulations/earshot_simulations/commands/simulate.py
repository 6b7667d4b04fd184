"""`earshot simulate`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases import learning_budget
from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_server.commands.discovery_options import Cells, LabelShare, MostCells, Sums
from earshot_server.commands.routes import check_options, given
from earshot_server.discovery.route import Discovery
from earshot_simulations.adversary.adversary import Adversary
from earshot_simulations.commands.repeating import repeated
from earshot_simulations.commands.running import print_each, run_and_write, summarize
from earshot_simulations.commands.simulated_labelling import labelling
from earshot_simulations.learning.routes import Routes
from earshot_simulations.learning.settings import (
    NO_BUDGET,
    NO_NOISE,
    OPTIONS,
    SOUNDSCAPES,
    Agreement,
    Engine,
    Settings,
    Summation,
    named_numbers,
    whole_budget,
)
from earshot_simulations.populations import Heterogeneity

app = typer.Typer(add_completion=False)

_DEFAULT = Settings()


@app.callback(invoke_without_command=True)
def simulate(
    context: typer.Context,
    phones: Annotated[int, typer.Option(help="Phones that take part.")] = _DEFAULT.phones,
    recordings: Annotated[
        int, typer.Option(help="Recordings of a phone, on average; a public number.")
    ] = _DEFAULT.recordings,
    scenes: Annotated[int, typer.Option(help="Scenes of generated data.")] = _DEFAULT.scenes,
    data: Annotated[
        str, typer.Option(help="blobs, soundscapes, or a folder of class/*.wav|ogg|flac.")
    ] = _DEFAULT.data,
    encoder: Annotated[
        str | None,
        typer.Option(
            help=f"For sound: a shipped encoder by its name ({', '.join(SHIPPED_ENCODERS)}), or an "
            f"encoder file; by default {DEFAULT_ENCODER}. ./NAME is a file."
        ),
    ] = None,
    labelled: Annotated[
        float, typer.Option(help="Fraction of recordings that carry a label.")
    ] = _DEFAULT.labelled,
    heterogeneity: Annotated[
        str,
        typer.Option(
            help="How phones differ: concentration=α of the Dirichlet mix of scenes, "
            "quantity-skew=σ of the log-normal number of recordings, labelled-correlation=ρ within "
            "a phone."
        ),
    ] = "",
    adversary: Annotated[
        str,
        typer.Option(
            help="Fractions of phones that attack: poisoning=…,ballot-stuffing=…,wrong-shares=…,"
            "garbage=…,dropouts=…; equal fractions are the same phones."
        ),
    ] = "",
    dropout: Annotated[
        float, typer.Option(help="Fraction of phones that vanish during the phase.")
    ] = _DEFAULT.dropout,
    corrupted: Annotated[
        float,
        typer.Option(
            help="Fraction of phones an adversary may control; noise and graph are made for it."
        ),
    ] = _DEFAULT.corrupted,
    budget: Annotated[
        str | None,
        typer.Option(
            help="With --discovery local: clustering=ε,selection=ε,centroid-vote=ε,label-vote=ε "
            "per recording; the default depends on the data. Or none, for no noise at all."
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help=f"ε of the whole phase, per phone; by default {_DEFAULT.whole_epsilon:g}. With "
            "--discovery local per recording, in place of --budget."
        ),
    ] = _DEFAULT.epsilon,
    delta: Annotated[float, typer.Option(help="δ of it.")] = _DEFAULT.delta,
    label_share: LabelShare = _DEFAULT.label_share,
    cells: Cells = None,
    most_cells: MostCells = None,
    sums: Sums = _DEFAULT.sums,
    policy: Annotated[
        Agreement | None,
        typer.Option(
            help="What phones agree to: what a phone accepts by default; the same but for what a "
            "phase costs a phone as a whole, the default where discovery is local; or anything."
        ),
    ] = _DEFAULT.policy,
    discovery: Annotated[
        Routes | None,
        typer.Option(
            help="secure-sum protects phones; local, the thesis's, protects recordings; both run "
            "one after the other on a crowd that hears once. The first unless an option of the "
            "second is given."
        ),
    ] = None,
    summation: Annotated[
        Summation, typer.Option(help="ideal replaces the cryptography, and nothing else.")
    ] = _DEFAULT.summation,
    engine: Annotated[
        Engine,
        typer.Option(help="Where phones run: in processes of this machine, or on a Ray cluster."),
    ] = _DEFAULT.engine,
    address: Annotated[
        str | None,
        typer.Option(help="HOST:PORT of the Ray cluster; by default one is started here."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes of this machine.")] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(help="Of everything but keys.")] = _DEFAULT.seed,
    dimensions: Annotated[
        int | None,
        typer.Option(
            help="Of the projection in which sound is clustered; by default "
            f"{_DEFAULT.projected}, with --discovery local {learning_budget.DIMENSIONS}."
        ),
    ] = None,
    local_centroids: Annotated[
        int, typer.Option(help="Centroids that a phone computes (k).")
    ] = _DEFAULT.local_centroids,
    top_local_centroids: Annotated[
        int, typer.Option(help="Of those, how many it publishes (k*).")
    ] = _DEFAULT.top_local_centroids,
    top_global_centroids: Annotated[
        int, typer.Option(help="Global centroids that the first vote keeps (g*).")
    ] = _DEFAULT.top_global_centroids,
    selection_method: Annotated[
        SelectionMethod,
        typer.Option("--selection", help="How a phone chooses which centroids it publishes."),
    ] = _DEFAULT.selection_method,
    clustering_runs: Annotated[
        int, typer.Option(help="How often a phone clusters, on average, to keep the best.")
    ] = _DEFAULT.clustering_runs,
    centroid_votes: Annotated[
        int, typer.Option(help="Ones in a ballot of the first vote.")
    ] = _DEFAULT.centroid_votes,
    label_votes: Annotated[
        int | None,
        typer.Option(help="Ones in a ballot of the second vote; by default one a kept centroid."),
    ] = _DEFAULT.label_votes,
    repeat: Annotated[
        Path | None,
        typer.Option(
            help="Do the run of this result.json again, and say whether it came out the same."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="New folder for result.json and report.html; of both routes for one report.html, "
            "and for both files of each in folders local and secure-sum."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print result.json, or those of both routes, and nothing else."
        ),
    ] = False,
) -> None:
    """Run one phase over simulated phones, every phone with its real cryptography.

    By default a discovery phase, by secure sums; with --discovery local a learning phase, the
    thesis's: phones cluster and publish, and two votes keep and name what is found. With
    --discovery both each of them, on a crowd that hears once.
    """
    if context.invoked_subcommand is not None:
        return
    if repeat is not None:
        where = {"engine": engine, "address": address, "jobs": jobs}
        repeated(context, repeat, where, out, overwrite, as_json)
        return
    chosen = dict(locals())  # every setting is an option of its name
    options = {field.name: chosen[field.name] for field in fields(Settings)}
    routes = _routes(context, discovery, budget)
    options["heterogeneity"] = named_numbers(Heterogeneity, heterogeneity)
    options["adversary"] = named_numbers(Adversary, adversary)
    if budget is not None:
        silent = budget.strip() == NO_BUDGET
        if epsilon is not None and (silent or routes is not Routes.BOTH):
            raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
        options |= {"epsilon": NO_NOISE} if silent else {}
        options["budget"] = None if silent else whole_budget(budget)
    asked = {route: _settings(options, route) for route in routes.each}
    for settings in asked.values():
        settings.check()

    from earshot_simulations.learning.reading import REAL_SOUND, try_it
    from earshot_simulations.learning.run import result

    runs = run_and_write(asked, out, overwrite)
    results = {route: result(run) for route, run in runs.items()}
    if as_json:
        print_each(results)
    else:
        summarize(results, out)
        if data == SOUNDSCAPES and encoder is None:
            unheard = ". ".join(REAL_SOUND[route] for route in asked)
            print(
                f"{'real sound':<22} The encoder knows these scenes. {unheard}. Try yours, "
                f"FOLDER/CLASS/*.wav: {try_it(routes)}"
            )
    if any(run.interrupted for run in runs.values()):
        raise typer.Exit(1)


app.command("labelling")(labelling)


def _routes(context: typer.Context, discovery: Routes | None, budget: str | None) -> Routes:
    """How environments are found: as is said, or as the options that are given mean it."""
    said = given(context)
    if budget is not None and budget.strip() == NO_BUDGET:
        said -= {"budget"}
    local = said & OPTIONS[Discovery.LOCAL]
    chosen = discovery or (Routes.LOCAL if local else Routes.SECURE_SUM)
    if chosen is not Routes.BOTH:
        check_options(context, said, Discovery(chosen), OPTIONS, "--discovery ")
    return chosen


def _settings(options: Mapping[str, Any], route: Discovery) -> Settings:
    """Those of one route: of both, each has its own part of what is given."""
    own = dict(options, discovery=route)
    if route is Discovery.SECURE_SUM:
        own["budget"] = None
    elif own["budget"] is not None:
        own["epsilon"] = None
    return Settings(**own)
