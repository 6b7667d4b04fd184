"""`earshot pate tag`: what a published student hears in a folder of sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError

if TYPE_CHECKING:
    from earshot_models.tagging.recordings import TaggedRecordings

PAGE = "page.html"

_MOST_SHOWN = 20


def tag(
    student: Path,
    folder: Path,
    /,
    *,
    out: Path | None = None,
    page: bool = False,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Name what sounds in each file of a folder; those that cannot be read are listed.

    Args:
        student: File of a published tagger, .keras.
        folder: Folder of sound, searched with all sub-folders.
        out: New folder for tags.csv, tags.json and report.md.
        page: Write a page as well, on which the files are heard.
        overwrite: Replace the files of this command where --out has them.
        as_json: Print tags.json, and nothing else.
    """
    from earshot_models.tagging import tag_report

    if out is None and (page or not as_json):
        raise InvalidInputError("--out: name a new folder for the tags; only --json needs none")
    if out is not None:
        prepare_folder(out, (*tag_report.FILES, *([PAGE] if page else [])), overwrite)
    from earshot_models.tagging import recordings, tagger_file

    published = tagger_file.load(student)
    with shown() as progress:
        heard = recordings.tag_folder(published, folder, progress)
    written: tuple[Path, ...] = ()
    if out is not None:
        written = tag_report.write(heard, out)
        if page:
            from earshot_simulations.generation import tagged_page

            tagged_page.write(heard, folder, out / PAGE)
            written = (*written, out / PAGE)
    if as_json:
        figures = tag_report.figures(heard)
        print(json.dumps(figures, indent=1, ensure_ascii=False, allow_nan=False))
        return
    _print(heard, written)


def _print(heard: TaggedRecordings, written: tuple[Path, ...]) -> None:
    from earshot_models.tagging import tag_report

    figures = tag_report.figures(heard)
    for file in figures["files"][:_MOST_SHOWN]:
        print(f"{file['file']:<32} {tag_report.words(file)}")
    more = len(figures["files"]) - _MOST_SHOWN
    if more > 0:
        print(f"{'':<32} and {more} more files")
    for warning in tag_report.warnings(heard):
        print(warning)
    for path in written[2:]:
        print(f"{path.stem:<32} {path}")
