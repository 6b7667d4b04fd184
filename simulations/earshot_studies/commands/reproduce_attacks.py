"""`earshot reproduce pate-gan-attacks`: black-box attacks on generators of spoken digits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands.reproducing import SHARED, WORK, Out, Overwrite, written

NAME = "pate-gan-attacks"
HELP = "What attackers learn of a clip from samples of generators, private, planted and printed."


def command(
    out: Out,
    data: Annotated[Path, typer.Option(help="Folder that holds fsdd.")] = SHARED,
    speaker: Annotated[
        str | None,
        typer.Option(help="Who is not attacked; by default the first speaker by name."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Games, each of its own clips and generators.")] = 3,
    trials: Annotated[int, typer.Option(help="Generators of each kind in a game.")] = 40,
    work: Annotated[
        Path | None,
        typer.Option(help=f"Folder that keeps games between runs; by default OUT/{WORK}."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Run it, or go on where it was stopped."""
    from earshot_protocol import checks
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.pate_aae import attacks as pate_gan_attacks

    count = checks.whole("seeds", seeds)
    prepare_folder(out, files_of(NAME), overwrite, resumes=[WORK])
    folder = work or out / WORK
    with resumable(folder) as progress:
        attacked = pate_gan_attacks.opened(data, folder, trials, progress, speaker)
        outcome = pate_gan_attacks.reproduce(attacked, count)
    written(outcome, out)
