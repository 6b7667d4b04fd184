"""`earshot simulate`."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated

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
from earshot_simulations.commands.running import run_and_write, summarize
from earshot_simulations.commands.simulated_labelling import labelling
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
        Discovery | None,
        typer.Option(
            help="secure-sum protects phones; local, the thesis's, protects recordings. The first "
            "unless an option of the second is given."
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
        Path | None, typer.Option(help="New folder for result.json and report.html.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace these two files where --out has them.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print result.json, and nothing else.")
    ] = False,
) -> None:
    """Run one phase over simulated phones, every phone with its real cryptography.

    By default a discovery phase, by secure sums; with --discovery local a learning phase, the
    thesis's: phones cluster and publish, and two votes keep and name what is found.
    """
    if context.invoked_subcommand is not None:
        return
    if repeat is not None:
        where = {"engine": engine, "address": address, "jobs": jobs}
        repeated(context, repeat, where, out, overwrite, as_json)
        return
    chosen = dict(locals())  # every setting is an option of its name
    options = {field.name: chosen[field.name] for field in fields(Settings)}
    options["discovery"] = _route(context, discovery, budget)
    if budget is not None:
        if epsilon is not None:
            raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
        silent = budget.strip() == NO_BUDGET
        options |= {"epsilon": NO_NOISE} if silent else {}
        options["budget"] = None if silent else whole_budget(budget)
    options["heterogeneity"] = named_numbers(Heterogeneity, heterogeneity)
    options["adversary"] = named_numbers(Adversary, adversary)
    settings = Settings(**options)
    settings.check()

    from earshot_simulations.learning.reading import REAL_SOUND, try_it
    from earshot_simulations.learning.run import result

    run = run_and_write(settings, out, overwrite)
    if as_json:
        print(json.dumps(result(run), indent=2, allow_nan=False))
    else:
        summarize(result(run), out)
        if data == SOUNDSCAPES and encoder is None:
            unheard = REAL_SOUND[settings.discovery]
            print(
                f"{'real sound':<22} The encoder knows these scenes. {unheard}. Try yours, "
                f"FOLDER/CLASS/*.wav: {try_it(settings.discovery)}"
            )
    if run.interrupted:
        raise typer.Exit(1)


app.command("labelling")(labelling)


def _route(context: typer.Context, discovery: Discovery | None, budget: str | None) -> Discovery:
    """How environments are found: as is said, or as the options that are given mean it."""
    said = given(context)
    if budget is not None and budget.strip() == NO_BUDGET:
        said -= {"budget"}
    local = said & OPTIONS[Discovery.LOCAL]
    chosen = discovery or (Discovery.LOCAL if local else Discovery.SECURE_SUM)
    check_options(context, said, chosen, OPTIONS, "--discovery ")
    return chosen
