"""Tables 6.4 to 6.7 of Mühl (2021): labels, and accuracy of students."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Reproduction, Row
from earshot_studies.kit.printed import printed_figures
from earshot_studies.muehl.cells import (
    DELTA,
    Accounting,
    InfluenceVariant,
    TableCell,
    VotingWork,
    closed_form,
    right_labels,
    student_accuracy,
)
from earshot_studies.muehl.votes import QUARTERS, TEACHERS

LABELS, ACCURACY = "personalized-labels", "personalized-accuracy"

_COLOURS = {
    InfluenceVariant.UPSAMPLING: "#4c78a8",
    InfluenceVariant.VANISHING: "#f58518",
    InfluenceVariant.WEIGHTING: "#54a24b",
    InfluenceVariant.EQUAL: "#888888",
}
_PRINTED = printed_figures(__package__)


def theirs(
    table: str, data: str, variant: InfluenceVariant, higher: float, quarters: int
) -> float | str:
    """Return the number of Mühl (2021) in a cell, "" if it is empty.

    Args:
        table: Name of the table, "labels" or "accuracy".
        data: Name of the data, "mnist" or "adult".
        variant: Way in which influence differs.
        higher: Higher budget ε.
        quarters: Quarters of the owners who have it.
    """
    number: float | str = _PRINTED[table][data][variant]
    if isinstance(number, list):
        number = number[_PRINTED["higher"].index(higher)][quarters - 1]
    return number


def labels(work: VotingWork) -> Reproduction:
    """Count each cell's labels by their accounting, by exact outcomes, and by the noise alone."""
    name = work.subject.name
    right = work.teachers() == np.concatenate(
        [work.subject.public.labels, work.subject.test.labels]
    )
    rows: list[Row] = []
    base = 0.0
    quality = ""
    for cell in work.cells(tuple(Accounting)):
        counts = {each: np.array(cell.labels(each), dtype=float) for each in Accounting}
        mean = {each: float(count.mean()) for each, count in counts.items()}
        each_process = counts[Accounting.THEIRS]
        if cell.variant is InfluenceVariant.EQUAL:
            base = mean[Accounting.THEIRS]
            quality = _quality(work, cell, float(right.mean()))
        answers = cell.answers[Accounting.THEIRS]
        rows.append(
            {
                **_named(cell, work),
                "theirs": _printed("labels", name, cell),
                "ours_by_theirs": round(mean[Accounting.THEIRS], 1),
                "deviation": round(float(each_process.std()), 1) if work.processes > 1 else "",
                "closed_form": round(closed_form(base, cell.plan, DELTA)),
                "ours_sound": round(mean[Accounting.SOUND], 1),
                "ours_public": round(mean[Accounting.PUBLIC], 1),
                "most_spent_lower": round(max(each.spent[0] for each in answers), 4),
                "most_spent_higher": round(max(each.spent[1] for each in answers), 4),
                "labels_right": round(right_labels(work, answers), 4),
            }
        )  # fmt: skip
    note = f"""# Labels until the first owner's budget is spent

After Table {"6.4" if name == "mnist" else "6.5"} of Mühl (2021), on {name}:
{work.ensembles.teachers} teachers, {len(work.subject.private):,} private records,
{len(work.subject.public):,} public samples, voting processes a cell: {work.processes}
(theirs: {work.subject.processes}), δ = {DELTA:g}, lower budget ε = 1. {_noise(work)} {quality}

- *ours_by_theirs*: Theorem 6 of Papernot et al. (2018) for each group, σ over its owners' impact,
  integer orders 2 to 50, ε = R + ln(1/δ)/(λ − 1). It bounds one direction only.
- *ours_sound*: the exact laws of what is published, in both directions, with the tight conversion,
  in the first three processes; for upsampling with more than two classes, the answers by the noise
  alone, since several votes of one owner may move to several classes and it is not proven which
  move is worst. It depends on votes, so the point at which it stopped is itself private.
- *ours_public*: by the noise alone, which depends only on answers, so the stop is public.
  *closed_form*: the ratio of labels by the noise alone, times the baseline by their accounting.
- A teacher that vanishes pays only when it votes, and the process stops when the *first* owner's
  budget is spent, not when a group's mean is. No owner of any cell spent more than its budget: the
  columns *most_spent* have the largest ε by their accounting.
- Labels end with the public samples where budgets outlast them: {_most(rows)}.

{markdown_table(rows, list(rows[0]))}

What differs from Mühl (2021): groups are whole teachers ({_shares(work)} of the owners), teachers
of upsampling learn from one group each, and all processes share one ensemble. With a quarter of the
owners, vanishing gives fewer labels than the baseline at {_fewer(rows, "ours_by_theirs", base)}
(theirs: {_fewer(rows, "theirs", rows[0]["theirs"])}). There, few teachers vote, so noise is scaled
down with them, and an owner who votes rarely pays much each time. The first owner to spend its
budget, on queries where teachers disagree, ends the process for all.
"""
    return Reproduction(LABELS, rows, _drawing(rows, "ours_by_theirs", "labels"), note)


def accuracy(work: VotingWork, students: int) -> Reproduction:
    """Measure students' accuracy in each cell, on answers by their accounting and exact outcomes.

    Args:
        work: Work to do.
        students: Students of each cell, each on the answers of another process.
    """
    name = work.subject.name
    rows: list[Row] = []
    kinds = (Accounting.THEIRS, Accounting.SOUND)
    for cell in work.cells(kinds):
        row: Row = {
            **_named(cell, work),
            "theirs": _printed("accuracy", name, cell),
        }  # fmt: skip
        for kind in kinds:
            number = min(students, len(cell.answers[kind]))
            reached = [
                100 * student_accuracy(work, cell, kind, process)
                for process in range(number)
                if cell.answers[kind][process].labels >= 2
            ]
            row[f"{kind}_labels"] = round(float(np.mean(cell.labels(kind)[:number])), 1)
            row[f"{kind}_accuracy"] = round(float(np.mean(reached)), 2) if reached else ""
            row[f"{kind}_students"] = len(reached)
        rows.append(row)
    note = f"""# Accuracy of students

After Table {"6.6" if name == "mnist" else "6.7"} of Mühl (2021), on {name}: the percentage of
{len(work.subject.test):,} held-out records that are classified correctly. A student learns only
from the answers until the first owner's budget was spent, 2,000 at most; by their accounting, and
by exact outcomes (*sound*), which give more answers for the same budgets. Teachers:
{work.ensembles.teachers}. {_noise(work)}

{markdown_table(rows, list(rows[0]))}

One standard error of {len(work.subject.test):,} records is about
{100 * np.sqrt(0.9 * 0.1 / len(work.subject.test)):.1f} points at 90 %; all cells share one test.

Unlike in Mühl (2021), groups are whole teachers; teachers, noise and students are drawn anew.
Differences within that error are not significant.
"""
    return Reproduction(ACCURACY, rows, _drawing(rows, "theirs_accuracy", "accuracy in %"), note)


def _printed(table: str, data: str, cell: TableCell) -> str:
    """Return one of their cells as printed."""
    number = theirs(table, data, cell.variant, cell.higher, cell.quarters)
    return number if isinstance(number, str) else f"{number:g}"


def _named(cell: TableCell, work: VotingWork) -> Row:
    return {
        "data": work.subject.name,
        "variant": str(cell.variant),
        "higher": cell.higher,
        "share": "" if cell.variant is InfluenceVariant.EQUAL else cell.quarters / QUARTERS,
        "processes": work.processes,
    }


def _quality(work: VotingWork, cell: TableCell, teachers: float) -> str:
    name = work.subject.name
    theirs = {table: _PRINTED[table][name] for table in ("teachers", "rejected", "right")}
    answers = cell.answers[Accounting.THEIRS]
    asked = sum(len(each.queries) for each in answers)
    rejected = 1 - sum(each.labels for each in answers) / max(1, asked)
    return (
        f"Teachers are right in {100 * teachers:.1f} % (theirs: {theirs['teachers']}), "
        f"{100 * rejected:.1f} % of the baseline's queries are rejected (theirs, all variants: "
        f"{theirs['rejected']}), and {100 * right_labels(work, answers):.1f} % of its labels "
        f"are right (theirs: {theirs['right']})."
    )


def _noise(work: VotingWork) -> str:
    rule, teachers = work.subject.mechanism, work.ensembles.teachers
    said = (
        f"Noise of σ = {rule.sigma:g}, the threshold {rule.threshold:g} and its noise of σ = "
        f"{rule.check_sigma:g} are those of Table 6.3, for {TEACHERS} teachers"
    )
    if teachers != TEACHERS:
        said += (
            f"; beside the votes of {teachers}, they are {TEACHERS / teachers:.2g} times as large"
        )
    return f"{said}."


def _fewer(rows: Sequence[Row], column: str, base: str | float) -> str:
    """List the budgets R at which vanishing at a quarter has fewer labels than a baseline."""
    vanishing = [
        row for row in rows
        if (row["variant"], row["share"]) == (InfluenceVariant.VANISHING, 1 / QUARTERS)
    ]  # fmt: skip
    found = [f"{row['higher']:g}" for row in vanishing if float(row[column]) < float(base)]
    return f"R = {', '.join(found)}" if found else "no R"


def _most(rows: Sequence[Row]) -> str:
    return f"{max(float(row['ours_sound']) for row in rows):,.0f} at most"


def _shares(work: VotingWork) -> str:
    ends = work.ensembles.ends[: QUARTERS - 1]
    return ", ".join(f"{100 * end / work.ensembles.teachers:.1f} %" for end in ends)


def _drawing(rows: Sequence[Row], column: str, what: str) -> Callable[[Path], None]:
    def draw(path: Path) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 4.2), layout="constrained")
        axes = figure.subplots(1, QUARTERS - 1, sharey=True)
        base = next(row for row in rows if row["variant"] == InfluenceVariant.EQUAL)
        for quarters, axis in enumerate(axes, start=1):
            axis.axhline(float(base[column]), color=_COLOURS[InfluenceVariant.EQUAL], linewidth=1)
            for variant, colour in _COLOURS.items():
                curve = [
                    row for row in rows
                    if row["variant"] == variant and row["share"] == quarters / QUARTERS
                ]  # fmt: skip
                for source, style in ((column, "-o"), ("theirs", "--x")):
                    known = [row for row in curve if _number(row[source])]
                    axis.plot(
                        [row["higher"] for row in known],
                        [float(row[source]) for row in known],
                        style, color=colour, markersize=4,
                        label=variant if source == column and known else None,
                    )  # fmt: skip
            axis.set_title(f"{100 * quarters // QUARTERS} % have the higher budget")
            axis.set_xlabel("ε of the higher budget")
        axes[0].set_ylabel(what)
        axes[0].legend()
        figure.suptitle(f"{base['data']}: ours (lines) and theirs (dashed); the lower budget is 1")
        figure.savefig(path, dpi=110)

    return draw


def _number(value: object) -> bool:
    try:
        return bool(np.isfinite(float(str(value))))
    except ValueError:
        return False
