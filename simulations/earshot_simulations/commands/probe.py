"""`earshot probe`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from earshot_models.commands.listing import list_dataset
from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.progress import Progress
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from earshot_models.datasets.dataset import Dataset
    from earshot_simulations.probing.contenders import Contender
    from earshot_simulations.probing.cost import EncoderCost
    from earshot_simulations.probing.probe import Probe

app = App()


@app.default
def probe(
    *,
    data: Path,
    kind: str | None = None,
    encoder: Annotated[
        list[str] | None,
        Parameter(
            help="Encoder file, or a shipped encoder by its name; {held} in it stands for the fold "
            f"or speaker that is held out. By default {DEFAULT_ENCODER}. May be repeated: all are "
            "compared to the first."
        ),
    ] = None,
    raw: bool = False,
    cache: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Measure encoders: kinds of sound, the same place again, both heard worse, and cost.

    Args:
        data: Folder of a data set; each class needs two files or more, since whole files are held
            out. Without classes, or with one, places alone are measured.
        kind: Kind of the data set; by default guessed.
        raw: Measure log-mel statistics, instead of an encoder or beside those given.
        cache: Folder that keeps decoded sound between runs.
        out: New folder for probe.json.
        overwrite: Replace this file where --out has it.
        as_json: Print probe.json, and nothing else.
    """
    from earshot_models.datasets.dataset import DatasetError
    from earshot_simulations.probing.contenders import open_contenders
    from earshot_simulations.probing.seconds import side_names

    dataset = list_dataset(data, kind)
    try:
        dataset.check_classes()
    except DatasetError as error:
        if len(dataset.labels) > 1:
            raise
        print(f"only places are measured, no kinds of sound: {error}", file=sys.stderr, flush=True)
    given = list(encoder or ()) or ([] if raw else [DEFAULT_ENCODER])
    contenders = open_contenders(given, raw, side_names(dataset))
    prepare_folder(out, ("probe.json",), overwrite)
    with shown() as progress:
        probes, costs = _measured(dataset, contenders, cache, progress)
    figures = _figures(contenders, probes, costs)
    if out is not None:
        (out / "probe.json").write_text(json.dumps(figures, indent=2), encoding="utf-8")
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        _print(contenders, probes, costs)


def _measured(
    dataset: Dataset, contenders: Sequence[Contender], cache: Path | None, progress: Progress
) -> tuple[list[Probe], list[EncoderCost | None]]:
    from earshot_simulations.probing.cost import cost
    from earshot_simulations.probing.figures import refuse_nothing
    from earshot_simulations.probing.probe import probe_several

    encoders = [contender.encoders.__getitem__ for contender in contenders]
    probes = probe_several(dataset, encoders, cache, progress)
    refuse_nothing(probes)
    costs = []
    for done, contender in enumerate(contenders, start=1):
        paths = list(contender.paths.values())
        costs.append(cost(paths[-1]) if paths else None)
        progress("cost of the encoders", done, len(contenders))
    return probes, costs


def _figures(
    contenders: Sequence[Contender], probes: Sequence[Probe], costs: Sequence[EncoderCost | None]
) -> dict[str, Any]:
    """Return one encoder's figures; of several, common ones, each one's and the differences."""
    from earshot_simulations.probing.figures import encoder_figures, paired_figures, sound_figures

    each = [
        {"label": contender.label, "file": contender.given}
        | encoder_figures(probe)
        | ({} if cost is None else {"cost": asdict(cost)})
        for contender, probe, cost in zip(contenders, probes, costs, strict=True)
    ]
    sound = sound_figures(probes[0])
    if len(probes) == 1:
        return sound | each[0]
    first = contenders[0].label
    paired = [
        paired_figures(contender.label, probe, first, probes[0])
        for contender, probe in zip(contenders[1:], probes[1:], strict=True)
    ]
    return sound | {"encoders": each, "paired": paired}


def _print(
    contenders: Sequence[Contender], probes: Sequence[Probe], costs: Sequence[EncoderCost | None]
) -> None:
    from earshot_simulations.probing import table

    labels = [contender.label for contender in contenders]
    blocks = [table.sound_lines(probes[0]), table.rate_lines(labels, probes)]
    if len(probes) > 1:
        blocks.append(f"{contender.label}: {contender.given}" for contender in contenders)
    blocks.append(table.measure_lines(labels, probes))
    if len(probes) > 1:
        blocks.append(table.difference_lines(labels, probes))
    blocks.append(table.cost_lines(labels, costs))
    print("\n\n".join(filter(None, ("\n".join(block) for block in blocks))))
