"""A tagged folder as a page to listen on: every file beside the labels a student found in it."""

from __future__ import annotations

from pathlib import Path

from earshot_models.tagging import tag_report
from earshot_models.tagging.recordings import TaggedRecordings
from earshot_simulations.generation import page
from earshot_simulations.generation.page import Listening
from earshot_simulations.reporting.words import counted

MOST_SOUNDS = 60
"""Most files on a page; more would take minutes to draw."""


def write(heard: TaggedRecordings, folder: Path, path: Path) -> None:
    """Write the page: files with a label first, the most certain before all others.

    Args:
        heard: Labels of the files.
        folder: Folder of the tagged files.
        path: Path of the page.

    Raises:
        UnreadableFileError: A file that was read before does not decode any more.
    """
    found = tag_report.figures(heard)
    readable = [file for file in found["files"] if file["pieces"]]
    readable.sort(key=lambda file: -max((each["probability"] for each in file["named"]), default=0))
    sounds = [
        page.sound_of(folder / file["file"], file["file"], tag_report.words(file))
        for file in readable[:MOST_SOUNDS]
    ]
    named = sum(bool(file["named"]) for file in found["files"])
    page.write(
        Listening(
            kicker="Tags",
            headline=f"{counted(named, 'file')} of {len(found['files'])} have a label.",
            warnings=tag_report.warnings(heard),
            origin=tag_report.origin(heard.tagger.card),
            sounds=sounds,
            facts=[
                (row["label"], f"{counted(row['files'], 'file')}{_expected(row)}")
                for row in found["labels"]
                if row["files"]
            ],
            unseen=len(readable) - len(sounds),
        ),
        path,
    )


def _expected(row: dict[str, object]) -> str:
    expected = row["false_alarms_expected"]
    if expected is None:
        return ""
    return f"; {row['pieces']} pieces, {expected:.1f} false alarms expected"
