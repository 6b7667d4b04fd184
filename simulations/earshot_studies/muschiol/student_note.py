"""The note and the picture of `audioset-student`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.ensemble_note import said
from earshot_studies.muschiol.ensemble_orderings import Ordering
from earshot_studies.muschiol.printed import ADAPTIVE, Setting
from earshot_studies.muschiol.settings import MOST
from earshot_studies.muschiol.students import PRINTED, SAMPLES, SOUND, TEACHERS, TRUE
from earshot_studies.muschiol.work import Work

_FEW: Mapping[Setting, tuple[float, float, float]] = {
    ("0.2", ""): (0.083, 0.082, 0.189),
    ("0.2", "0.4"): (0.088, 0.087, 0.191),
    ("0.2", "0.6"): (0.078, 0.076, 0.174),
    ("0.4", ""): (0.072, 0.062, 0.178),
    ("0.4", "0.4"): (0.074, 0.066, 0.183),
    ("0.4", "0.6"): (0.071, 0.063, 0.180),
    (ADAPTIVE, ""): (0.029, 0.030, 0.096),
    (ADAPTIVE, "0.4"): (0.062, 0.055, 0.161),
    (ADAPTIVE, "0.6"): (0.066, 0.059, 0.171),
}
_MANY: Mapping[Setting, tuple[float, float, float]] = {
    ("0.2", ""): (0.104, 0.097, 0.214),
    ("0.2", "0.4"): (0.102, 0.103, 0.208),
    ("0.2", "0.6"): (0.098, 0.093, 0.182),
    ("0.4", ""): (0.085, 0.074, 0.201),
    ("0.4", "0.4"): (0.096, 0.084, 0.206),
    ("0.4", "0.6"): (0.090, 0.082, 0.199),
    (ADAPTIVE, ""): (0.026, 0.030, 0.071),
    (ADAPTIVE, "0.4"): (0.065, 0.065, 0.159),
    (ADAPTIVE, "0.6"): (0.075, 0.072, 0.184),
}
THEIRS: Mapping[tuple[Any, ...], tuple[float, float, float]] = {
    (PRINTED, *setting, samples): values
    for samples, table in zip(SAMPLES, (_FEW, _MANY), strict=True)
    for setting, values in table.items()
}
"""mAP, macro and micro F1 of Table 5.4, 2,000 and 5,000 samples, where our fewer and more stand."""


_ORDERING = ("Muschiol", "difference", "theirs", "ours", "verdict")


def orderings(rows: Sequence[Row]) -> list[Ordering]:
    """What section 5.4 says of students' mAP, held against several seeds.

    Args:
        rows: of every student of every seed.
    """
    seeds = sorted({int(row["seed"]) for row in rows})
    values = {
        (row["seed"], row["rule"], row["th_e"], row["th_c"], row["samples"]): row for row in rows
    }

    def column(place: tuple[Any, ...], name: str = "mAP") -> list[float]:
        return [float(values[(seed, *place)][name]) for seed in seeds]

    def less(one: tuple[Any, ...], other: tuple[Any, ...]) -> Estimate:
        return paired(column(one), column(other))

    few, many = SAMPLES
    found = []
    for setting in _FEW:
        here, there = (PRINTED, *setting, many), (PRINTED, *setting, few)
        found.append(
            Ordering(
                "More samples teach more",
                f"mAP, {_named(setting)}: {many:,} − {few:,}",
                THEIRS[here][0] - THEIRS[there][0],
                less(here, there),
            )
        )
    pairs = [
        ("A check helps the student a little", ("0.2", "0.4"), ("0.2", "")),
        ("An adaptive threshold harms the student", ("0.2", ""), (ADAPTIVE, "")),
        ("… less so with a check", (ADAPTIVE, "0.6"), (ADAPTIVE, "")),
        ("A low threshold teaches more than .4", ("0.2", ""), ("0.4", "")),
        ("Adaptive + .6 costs hardly any accuracy", (ADAPTIVE, "0.6"), ("0.2", "")),
    ]
    for text, one, other in pairs:
        first, second = (PRINTED, *one, many), (PRINTED, *other, many)
        found.append(
            Ordering(
                text,
                f"mAP, {many:,}: {_named(one)} − {_named(other)}",
                THEIRS[first][0] - THEIRS[second][0],
                less(first, second),
            )
        )
    best = (PRINTED, "0.2", "", many)
    found.append(
        Ordering(
            "Micro F1 is above macro F1: labels differ",
            f"0.2, {many:,}: micro − macro F1",
            THEIRS[best][2] - THEIRS[best][1],
            paired(column(best, "micro_F1"), column(best, "macro_F1")),
        )
    )
    for name, theirs in (("ensemble", 0.186), ("baseline", 0.268)):
        found.append(
            Ordering(
                f"The student is below the {name}",
                f"mAP: {name} − 0.2, {many:,}",
                theirs - THEIRS[best][0],
                less((name, "", "", 0), best),
            )
        )
    found.append(
        Ordering(
            "True labels teach more than answers (ours)",
            f"mAP, {many:,}: true labels − 0.2",
            None,
            less((TRUE, "", "", many), best),
        )
    )
    return found


def best_value(table: Sequence[Row]) -> tuple[Row, list[Row]]:
    """Which rule that holds is the best on validation, and which none beats in mAP and ε."""
    sound = [row for row in table if row["rule"] == SOUND]
    best = max(sound, key=lambda row: float(row["validation_mAP"]))
    undominated = [
        row
        for row in sound
        if not any(
            float(other["mAP"]) > float(row["mAP"])
            and float(other["left_out"]) <= float(row["left_out"])
            for other in sound
        )
    ]
    return best, sorted(undominated, key=lambda row: float(row["left_out"]))


def note(work: Work, rows: Sequence[Row], table: Sequence[Row]) -> str:
    """Markdown."""
    listed = orderings(rows)
    best, undominated = best_value(table)
    front = "\n".join(
        f"- {_where(row)}: ε {float(row['left_out']):.0f} left out, {float(row['replaced']):.0f} "
        f"replaced; mAP {said(row, 'mAP')}"
        for row in undominated
    )
    shown = {
        "rule": "rule",
        "th_e": "th_e",
        "th_c": "th_c",
        "n": "samples",
        "answered": "answered",
        "asked": "asked",
        "claimed": "claimed",
        "by noise": "claimed_independent",
        "q": "q",
        "left out": "left_out",
        "replaced": "replaced",
        "mAP": "mAP",
        "theirs": "theirs_mAP",
        "macro F1": "macro_F1",
        "theirs ": "theirs_macro_F1",
        "micro F1": "micro_F1",
        "theirs  ": "theirs_micro_F1",
        "never named": "never_named",
    }
    verdicts = markdown_table([each.row() for each in listed], _ORDERING)
    few, many = (f"{samples:,}" for samples in SAMPLES)
    cells: list[Row] = [
        {title: _cell(row, column) for title, column in shown.items()} for row in table
    ]
    return f"""# Students of votes against thresholds

After Table 5.4 and section 5.4 of Muschiol (2021). AudioSet and weights of ImageNet are out of
reach: orderings and differences can be compared, scores cannot.

{work.described}

{TEACHERS} teachers answer with noise of σ_e = .3 and σ_c = .6 (variances in votes², times the
number of teachers: 3.9 and 5.5 votes). A student learns from the first n answered queries, n =
{few} and {many} for Muschiol's 2,000 and 5,000; where a check answers too few of
{work.study.size.queries:,}, from as many as there are. Students are stopped, and their thresholds
chosen, by validation mixtures with their labels, which are public here.

## What holds

{verdicts}

**Best on validation among rules that hold**: {_where(best)}, with mAP {said(best, "mAP")} on tests.
No other has more mAP for the same ε or less than:

{front}

An ε of hundreds protects nobody, whatever δ: fifty teachers are too few for {many} answers of
twenty labels. What noise must be for an ε that protects, and how many teachers it needs, is in
`audioset-privacy`.

## Table 5.4

{markdown_table(cells, list(shown))}

ε at δ = 10⁻⁸. *Claimed*, *by noise* and *q* are Muschiol's accounting, which does not hold. *Left
out* and *replaced*: a teacher who is left out, or whose one mixture is exchanged, by the noise of
rules that hold: noise before a gap is looked for, or a threshold from a public grid; of a teacher
only its {MOST} largest outputs count. "0.2" *soundly* differs from "0.2" *as printed* in that
alone. *{TRUE}*: what the same queries teach with labels that are right; *ensemble*, *baseline*:
themselves.

## Why ours differ

- Their students see 153 labels through answers that name few of them (their macro F1 is below half
  of their micro F1); ours see twenty.
- Adaptive thresholds name one label at least: with them silence is never an answer.
- Muschiol stops training, and chooses thresholds, on the test set.
"""


def draw(table: Sequence[Row], path: Path) -> None:
    """MAP by setting, ours beside Muschiol's; and mAP against ε, as claimed and as it holds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 5.5), layout="constrained")
    panels = figure.subplots(1, 3)
    for axis, samples, name in (
        (panels[0], SAMPLES[0], "2,000"),
        (panels[1], SAMPLES[1], "5,000"),
    ):
        rows = [row for row in table if (row["rule"], row["samples"]) == (PRINTED, samples)]
        places = range(len(rows))
        axis.bar(
            places,
            [float(row["mAP"]) for row in rows],
            yerr=[_wide(row) for row in rows],
            capsize=3,
            label=f"ours, {samples:,} answers",
        )
        axis.plot(places, [float(row["theirs_mAP"]) for row in rows], "kx", label=f"theirs, {name}")
        for row in table:
            if row["rule"] in ("ensemble", TRUE) and row["samples"] in (0, samples):
                style = "--" if row["rule"] == TRUE else ":"
                axis.axhline(float(row["mAP"]), linestyle=style, color="grey", label=row["rule"])
        axis.set_xticks(
            places, [_named((str(r["th_e"]), str(r["th_c"]))) for r in rows], rotation=45
        )
        axis.set(title="mAP of students (5.4)", ylim=(0, 0.65))
        axis.legend(fontsize=8)
    axis = panels[2]
    for rule, column, marker, label in (
        (PRINTED, "claimed", "o", "as printed, claimed by the votes"),
        (PRINTED, "claimed_independent", "s", "as printed, claimed by the noise"),
        (SOUND, "left_out", "^", "soundly, a teacher left out"),
        (SOUND, "replaced", "v", "soundly, a teacher replaced"),
    ):
        rows = [r for r in table if r["rule"] == rule and r["samples"] == SAMPLES[1]]
        costs = [float(row[column]) for row in rows]
        axis.plot(costs, [float(row["mAP"]) for row in rows], marker, label=label)
        if column in ("claimed", "left_out"):
            for cost, row in zip(costs, rows, strict=True):
                setting = _named((str(row["th_e"]), str(row["th_c"])))
                axis.annotate(setting, (cost, float(row["mAP"])), fontsize=6)
    axis.set(title=f"mAP against ε of {SAMPLES[1]:,} answers", xlabel="ε, δ = 10⁻⁸", xscale="log")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def _named(setting: Setting) -> str:
    return " + ".join(filter(None, setting))


def _where(row: Row) -> str:
    return f"{_named((str(row['th_e']), str(row['th_c'])))}, {int(row['samples']):,} answers"


def _wide(row: Row) -> float:
    return float(row["mAP_interval_95"] or 0.0)


def _cell(row: Row, column: str) -> str:
    value = row[column]
    if column in ("answered", "asked", "claimed", "claimed_independent", "left_out", "replaced"):
        return "–" if value == "" or math.isnan(float(value)) else f"{float(value):,.0f}"
    if column == "samples":
        return f"{int(value):,}" if value else "–"
    return said(row, column)
