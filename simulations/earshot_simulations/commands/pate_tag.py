"""`earshot pate tag`: what a published student hears in a folder of sound."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError

_MOST_SHOWN = 20


def tag(
    student: Annotated[Path, typer.Argument(help="File of a published tagger, .keras.")],
    folder: Annotated[Path, typer.Argument(help="Folder of sound, searched to its depth.")],
    out: Annotated[
        Path | None, typer.Option(help="New folder for tags.csv, tags.json and report.md.")
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the files of this command where --out has them."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print tags.json, and nothing else.")
    ] = False,
) -> None:
    """Name what sounds in each file of a folder; those that cannot be read are listed."""
    # TensorFlow says much at its start that no user can act on.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from earshot_models.tagging import tag_report

    if out is None and not as_json:
        raise InvalidInputError("--out: name a new folder for the tags, or add --json")
    if out is not None:
        prepare_folder(out, tag_report.FILES, overwrite)
    from earshot_models.tagging import recordings, tagger_file

    published = tagger_file.load(student)
    with shown() as progress:
        heard = recordings.tag_folder(published, folder, progress)
    written = () if out is None else tag_report.write(heard, out)
    figures = tag_report.figures(heard)
    if as_json:
        print(json.dumps(figures, indent=1, ensure_ascii=False, allow_nan=False))
        return
    for file in figures["files"][:_MOST_SHOWN]:
        names = ", ".join(f"{each['label']} {each['probability']:.2f}" for each in file["named"])
        print(f"{file['file']:<32} {names or file['note']}")
    more = len(figures["files"]) - _MOST_SHOWN
    if more > 0:
        print(f"{'':<32} and {more} more files")
    doubted = [row["label"] for row in figures["labels"] if row["may_be_noise"] and row["pieces"]]
    if doubted:
        print(f"{'may be noise':<32} {', '.join(doubted)}")
    if not published.card.evidence:
        print(f"{'may be noise':<32} any of them: nobody has said how often this tagger is wrong")
    print(f"{'report':<32} {written[-1]}")
