"""Results of tagging a folder: a table, figures, and a report on their worth in words."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from earshot_models.tagging.recordings import Tagged, TaggedRecordings
from earshot_models.tagging.tagger_file import TaggerCard
from earshot_models.votes.rules.rule import TeacherUnit

TABLE, FIGURES, REPORT = "tags.csv", "tags.json", "report.md"
FILES = (TABLE, FIGURES, REPORT)

_MOST_LISTED = 20
"""Most unreadable files that the report names; the table has all of them."""
_UNITS = {each.unit: each.value for each in TeacherUnit}


def figures(heard: TaggedRecordings) -> dict[str, Any]:
    """Return all figures, by the names of `tags.json`; unknown ones are null."""
    card = heard.tagger.card
    expected, doubtful = heard.expected(), heard.doubtful()
    counts = heard.counts
    labels = [
        {
            "label": name,
            "threshold": card.thresholds[at],
            "files": sum(bool(file.counts[at]) for file in heard.files),
            "pieces": int(counts[at]),
            "false_alarms_expected": None if expected is None else float(expected[at]),
            "may_be_noise": None if doubtful is None else bool(doubtful[at]),
        }
        for at, name in enumerate(card.labels)
    ]
    cost = card.cost
    return {
        "pieces": heard.pieces,
        "seconds_of_a_piece": card.mel.seconds,
        "files": [_file(heard, file) for file in heard.files],
        "labels": labels,
        "cost": None
        if cost is None
        else {
            "epsilon": cost.epsilon,
            "delta": cost.delta,
            "unit": str(_UNITS.get(cost.unit, cost.unit)),
            "mechanism": cost.mechanism,
        },
        "stated_by": card.stated_by,
        "trained": card.trained,
    }


def write(heard: TaggedRecordings, folder: Path) -> tuple[Path, ...]:
    """Write table, figures and report into an existing folder, and return their paths."""
    texts = (
        table(heard),
        json.dumps(figures(heard), indent=1, ensure_ascii=False, allow_nan=False),
        report(heard),
    )
    written = []
    for name, text in zip(FILES, texts, strict=True):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return tuple(written)


def table(heard: TaggedRecordings) -> str:
    """Return one line per file: names, those that may be noise, a note, and all probabilities."""
    card, doubtful = heard.tagger.card, heard.doubtful()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "seconds", "named", "may be noise", "note", *card.labels])
    for file in heard.files:
        named = np.flatnonzero(file.counts)
        doubted = [at for at in named if doubtful is not None and doubtful[at]]
        likely = [f"{value:.3f}" if file.pieces else "" for value in file.probabilities]
        writer.writerow(
            [
                file.name,
                f"{file.seconds:.2f}",
                "; ".join(card.labels[at] for at in named),
                "; ".join(card.labels[at] for at in doubted),
                _note(file),
                *likely,
            ]
        )
    return text.getvalue()


def report(heard: TaggedRecordings) -> str:
    """Return the report in words, as Markdown."""
    card, found = heard.tagger.card, figures(heard)
    unreadable = [file for file in heard.files if file.error]
    silent = [file for file in heard.files if not file.error and not file.pieces]
    named = [file for file in heard.files if file.counts.any()]
    rest = len(heard.files) - len(unreadable) - len(silent) - len(named)
    lines = [
        "# Tags",
        "",
        f"{len(heard.files)} files, of which {len(named)} have a label, {rest} none above its "
        f"threshold, {len(silent)} are silent and {len(unreadable)} cannot be read. They were "
        f"heard in {heard.pieces} pieces of {card.mel.seconds:g} s; a file has a label if one of "
        "its pieces has it, so a long file gets more false names than a short one.",
        "",
        *(line for warning in warnings(heard) for line in (f"**{warning}**", "")),
        "## Labels",
        "",
        "| label | files | pieces | expected false alarms | |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(found["labels"], key=lambda row: -row["pieces"]):
        expected = row["false_alarms_expected"]
        shown = "not known" if expected is None else f"{expected:.1f}"
        verdict = "**may be noise**" if row["may_be_noise"] and row["pieces"] else ""
        lines.append(f"| {row['label']} | {row['files']} | {row['pieces']} | {shown} | {verdict} |")
    lines += ["", *_worth(card), "", "## Origin of the tagger", "", origin(card), ""]
    if unreadable:
        lines += ["## Files that cannot be read", ""]
        lines += [f"- {file.name}: {file.error}" for file in unreadable[:_MOST_LISTED]]
        if len(unreadable) > _MOST_LISTED:
            lines.append(f"- and {len(unreadable) - _MOST_LISTED} more, in {TABLE}")
        lines.append("")
    return "\n".join(lines)


def warnings(heard: TaggedRecordings) -> list[str]:
    """Return warnings that no reader may miss: names that may be noise, and missing privacy."""
    card = heard.tagger.card
    found = []
    if not card.evidence:
        found.append(
            "It is not stated how often this tagger is wrong: any of these names may be noise."
        )
    rows = figures(heard)["labels"]
    doubted = [row["label"] for row in rows if row["may_be_noise"] and row["pieces"]]
    if doubted:
        found.append(f"May be noise, named no more often than by mistake: {', '.join(doubted)}.")
    if card.cost is None:
        found.append(
            "The tagger's file does not state what its training cost those whose data it learned "
            "from: do not take it for private."
        )
    return found


def origin(card: TaggerCard) -> str:
    """Return a text on a tagger's training and cost, and on who states them."""
    cost = ""
    if card.cost is not None:
        unit = _UNITS.get(card.cost.unit, card.cost.unit)
        cost = (
            f" Those whose data it learned from paid ε = {card.cost.epsilon:g} at δ = "
            f"{card.cost.delta:g} (unit: {unit}), by {card.cost.mechanism}."
        )
    return f"{card.trained}{cost} Stated by {card.stated_by}; nothing in the file proves it."


def words(file: Mapping[str, Any]) -> str:
    """Return the names in a file of `figures`, with the tagger's probabilities."""
    names = (f"{each['label']} {each['probability']:.2f}" for each in file["named"])
    return ", ".join(names) or str(file["note"])


def _worth(card: TaggerCard) -> list[str]:
    if not card.evidence:
        return ["Listen before you rely on a name."]
    clips = f"{card.evidence[0].clips} public clips"
    return [
        f"False alarms are those expected if no label were in any piece, judging by {clips} on "
        "which the tagger was checked. A label that is named no more often than that may be "
        "noise altogether; of the other labels' names, as many as expected are still noise. "
        "Your sound differs from those clips: where it is noisier, more names are wrong."
    ]


def _file(heard: TaggedRecordings, file: Tagged) -> dict[str, Any]:
    card = heard.tagger.card
    named = np.flatnonzero(file.counts)
    return {
        "file": file.name,
        "seconds": file.seconds,
        "pieces": file.pieces,
        "named": [
            {
                "label": card.labels[at],
                "probability": float(file.probabilities[at]),
                "from": float(file.starts[at]),
                "pieces": int(file.counts[at]),
            }
            for at in sorted(named, key=lambda at: -file.probabilities[at])
        ],
        "note": _note(file),
    }


def _note(file: Tagged) -> str:
    if file.error:
        return file.error
    if not file.pieces:
        return "silent"
    return "" if file.counts.any() else "nothing above its threshold"
