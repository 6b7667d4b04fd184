"""`earshot probe`."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER

if TYPE_CHECKING:
    from earshot_client.encoder import Encoder

app = typer.Typer(add_completion=False)

_MOST_FILES = 10


@app.callback(invoke_without_command=True)
def probe(
    data: Annotated[Path, typer.Option(help="Folder of a labelled data set.")],
    kind: Annotated[str | None, typer.Option(help="Its kind; guessed by default.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Encoder file, or a shipped encoder by its name; {held} in it stands for the fold "
            f"or speaker that is held out. By default {DEFAULT_ENCODER}."
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option(help="Measure log-mel statistics in place of an encoder.")
    ] = False,
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps decoded sound between runs.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="New folder for probe.json and pictures.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print probe.json, and nothing else.")
    ] = False,
) -> None:
    """Measure an encoder on labelled sound: linear probe, neighbours, clusters, cost."""
    if raw and encoder is not None:
        raise InvalidInputError("--raw measures no encoder: leave out one of --raw and --encoder")
    from earshot_client.encoder import encoder_path
    from earshot_models.datasets.opening import open_dataset
    from earshot_simulations.probing.probe import probe as measure

    dataset = open_dataset(data, kind)
    if out is not None:
        prepare_folder(out, ("probe.json", "the pictures"), overwrite)

    def path(side: str) -> Path:
        return encoder_path(None if encoder is None else encoder.replace("{held}", side))

    with shown() as progress:
        probed = measure(dataset, lambda side: _encoder(path(side), raw), cache, progress)
        figures = probed.figures()
        if not raw:
            from earshot_simulations.probing.cost import cost

            progress("cost of the encoder", 0, 1)
            figures["cost"] = asdict(cost(path(probed.seconds.names[-1])))
            progress("cost of the encoder", 1, 1)
        if out is not None:
            from earshot_simulations.probing.pictures import draw

            progress("pictures", 0, 1)
            draw(probed, out)
            (out / "probe.json").write_text(json.dumps(figures, indent=2))
            progress("pictures", 1, 1)
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        _summarize(figures)


@lru_cache(maxsize=1)
def _encoder(path: Path, raw: bool) -> Encoder:
    from earshot_client.lite_rt_encoder import LiteRtEncoder
    from earshot_simulations.probing.baseline import LogMelStatistics

    return LogMelStatistics() if raw else LiteRtEncoder.open(path)


def _summarize(figures: dict[str, Any]) -> None:
    from earshot_simulations.probing.probe import MEASURES

    print(f"{figures['encoder']} on {figures['dataset']}: {figures['seconds']} seconds")
    bad = figures["unreadable"]
    if bad["count"]:
        print(f"{'left out':<20} {bad['count']} unreadable files")
        for file in bad["files"][:_MOST_FILES]:
            print(f"{'':<20} {file}")
        if bad["count"] > _MOST_FILES:
            print(f"{'':<20} and {bad['count'] - _MOST_FILES} more, in --json")
    print(f"{'held out':<20} {'  '.join(figures['held_out'])}")
    for name in MEASURES:
        of = figures[name]
        folds = "  ".join(f"{value:.3f}" for value in of["folds"])
        print(f"{name:<20} {of['mean']:.3f} ± {of['interval_95']:.3f}   {folds}")
    if "ari_twice_by_dimensions" in figures:
        by = figures["ari_twice_by_dimensions"]
        shown_by = ", ".join(f"{value:.3f} in {of}" for of, value in by.items())
        print(f"{'projected':<20} ari_twice {shown_by} dimensions")
    if "cost" in figures:
        cost = figures["cost"]
        print(
            f"{'cost':<20} {cost['bytes']} bytes, {cost['cpu_ms']:.2f} ms of CPU per second "
            f"({cost['spectrum_ms']:.2f} of it for the spectrum), {cost['resident_mb']:.0f} MB"
        )
