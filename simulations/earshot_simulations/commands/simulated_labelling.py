"""`earshot simulate labelling`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_simulations.labelling.settings import Settings
from earshot_simulations.learning.settings import Agreement, Summation

_DEFAULT = Settings()


def labelling(
    phones: Annotated[int, typer.Option(help="Phones that take part.")] = _DEFAULT.phones,
    recordings: Annotated[
        int, typer.Option(help="Recordings of a phone, on average.")
    ] = _DEFAULT.recordings,
    scenes: Annotated[int, typer.Option(help="Scenes of generated data.")] = _DEFAULT.scenes,
    data: Annotated[
        str, typer.Option(help="blobs, soundscapes, or a folder of class/*.wav|ogg|flac.")
    ] = _DEFAULT.data,
    labelled: Annotated[
        float, typer.Option(help="Fraction of recordings that carry a label.")
    ] = _DEFAULT.labelled,
    samples: Annotated[
        int, typer.Option(help="How many recordings that no phone has heard are to be labelled.")
    ] = _DEFAULT.samples,
    epsilon: Annotated[
        float, typer.Option(help="ε of the phase, for a phone of weight 1.")
    ] = _DEFAULT.epsilon,
    delta: Annotated[float, typer.Option(help="δ of it.")] = _DEFAULT.delta,
    check_share: Annotated[
        float, typer.Option(help="Share of ε (in ρ) that asking who agrees gets.")
    ] = _DEFAULT.check_share,
    threshold: Annotated[
        float | None,
        typer.Option(help="How many must agree (T); by default, more than noise alone does."),
    ] = None,
    largest_weight: Annotated[
        int, typer.Option(help="How many votes a phone may make of one, at most.")
    ] = _DEFAULT.largest_weight,
    dropout: Annotated[
        float, typer.Option(help="Fraction of phones that vanish during the phase.")
    ] = _DEFAULT.dropout,
    corrupted: Annotated[
        float, typer.Option(help="Fraction for which noise and graph are made.")
    ] = _DEFAULT.corrupted,
    policy: Annotated[Agreement, typer.Option(help="What phones agree to.")] = _DEFAULT.policy,
    summation: Annotated[
        Summation, typer.Option(help="ideal replaces the cryptography, and nothing else.")
    ] = _DEFAULT.summation,
    jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(help="Of everything but keys.")] = _DEFAULT.seed,
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
    """Run one labelling phase over simulated phones: public samples get labels."""
    settings = Settings(
        phones=phones,
        recordings=recordings,
        scenes=scenes,
        data=data,
        labelled=labelled,
        samples=samples,
        epsilon=epsilon,
        delta=delta,
        check_share=check_share,
        threshold=threshold,
        largest_weight=largest_weight,
        dropout=dropout,
        corrupted=corrupted,
        policy=policy,
        summation=summation,
        jobs=jobs,
        seed=seed,
    )
    settings.check()

    from earshot_simulations.labelling.page import figures, headline, write
    from earshot_simulations.labelling.simulation import result, simulate
    from earshot_simulations.learning.files import FILES

    if out is not None:
        prepare_folder(out, FILES, overwrite)
    with shown() as progress:
        run = simulate(settings, progress)
    if out is not None:
        write(run, out)
    if as_json:
        print(json.dumps(result(run), indent=2, allow_nan=False))
        return
    print(headline(run))
    for name, value in figures(run.scores).items() if run.scores else ():
        print(f"{name:<22} {value}")
    if out is not None:
        print(f"{'report':<22} {out / 'report.html'}")
    if run.failure is not None:
        raise typer.Exit(1)
