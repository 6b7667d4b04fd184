"""What tagging a folder leaves behind: a table, figures, and what they are worth in words."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from earshot_models.tagging.recordings import Heard, Tagged
from earshot_models.tagging.tagger_file import Card

TABLE, FIGURES, REPORT = "tags.csv", "tags.json", "report.md"
FILES = (TABLE, FIGURES, REPORT)

_MOST_LISTED = 20
"""Unreadable files that the report names; the table has all of them."""


def figures(heard: Heard) -> dict[str, Any]:
    """All figures, by the names of `tags.json`; what is not known is null."""
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
            "unit": cost.unit.value,
            "mechanism": cost.mechanism,
        },
        "stated_by": card.stated_by,
        "trained": card.trained,
    }


def write(heard: Heard, folder: Path) -> tuple[Path, ...]:
    """Write table, figures and report into a folder that is there; their paths."""
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


def table(heard: Heard) -> str:
    """One line a file: what is named, what of it may be noise, why not, and every probability."""
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


def report(heard: Heard) -> str:
    """In words, as Markdown."""
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
        "its pieces has, so that a long file gets more false names than a short one.",
        "",
        "## Labels",
        "",
        "| label | files | pieces | false alarms to be expected | |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(found["labels"], key=lambda row: -row["pieces"]):
        expected = row["false_alarms_expected"]
        shown = "not known" if expected is None else f"{expected:.1f}"
        verdict = "**may be noise**" if row["may_be_noise"] and row["pieces"] else ""
        lines.append(f"| {row['label']} | {row['files']} | {row['pieces']} | {shown} | {verdict} |")
    lines += ["", *_worth(card), "", "## Where the tagger is from", "", *_origin(card), ""]
    if unreadable:
        lines += ["## Files that cannot be read", ""]
        lines += [f"- {file.name}: {file.error}" for file in unreadable[:_MOST_LISTED]]
        if len(unreadable) > _MOST_LISTED:
            lines.append(f"- and {len(unreadable) - _MOST_LISTED} more, in {TABLE}")
        lines.append("")
    return "\n".join(lines)


def _worth(card: Card) -> list[str]:
    if not card.evidence:
        return [
            "**Nobody has said how often this tagger is wrong**, so that any of these names may be "
            "noise. Listen before you rely on one."
        ]
    clips = f"{card.evidence[0].clips} public clips"
    return [
        f"False alarms are those to be expected if none of the labels were in any piece, from "
        f"{clips} on which the tagger was checked. A label that is named no oftener than that "
        "may be noise altogether; of the others, as many names as are to be expected still are. "
        "Your sound is not theirs: where it is noisier, more are wrong."
    ]


def _origin(card: Card) -> list[str]:
    if card.cost is None:
        cost = (
            "The file does not say what its training cost those whose data it learned from. "
            "**Do not take it for private.**"
        )
    else:
        cost = (
            f"Those whose data it learned from paid ε = {card.cost.epsilon:g} at δ = "
            f"{card.cost.delta:g} (unit: {card.cost.unit.value}), by {card.cost.mechanism}."
        )
    return [
        f"{card.trained}",
        "",
        cost,
        "",
        f"So says {card.stated_by}; nothing in the file proves it.",
    ]


def _file(heard: Heard, file: Tagged) -> dict[str, Any]:
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
