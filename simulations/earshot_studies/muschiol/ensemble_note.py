"""The note of `audioset-ensemble`: theirs, ours, and which orderings hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol import recipes as audioset_recipes
from earshot_studies.muschiol.ensemble_orderings import CONFIRMED, REFUTED, UNDECIDED, Ordering
from earshot_studies.muschiol.ensemble_tables import BASELINE, BY_ITSELF, HALF
from earshot_studies.muschiol.work import Work


def note(
    work: Work,
    table: Sequence[Row],
    recipes: Sequence[Row],
    found: Sequence[Ordering],
    gains: Sequence[Ordering],
) -> str:
    """Markdown.

    Args:
        work: what was done.
        table: means over seeds of Tables 5.1 to 5.3.
        recipes: of recipes; none for linear taggers.
        found: orderings of the tables.
        gains: of parts of the recipe.
    """
    return f"""# Ensembles of taggers

After Tables 5.1, 5.2 and 5.3 and section 5.1 of Muschiol (2021). AudioSet and weights of ImageNet
are out of reach: orderings and differences can be compared, scores cannot.

{work.described}

No noise anywhere: what is private here is nothing. ± is half of a 95 % interval (Student's t, over
seeds; orderings by differences of one seed, so that what its mixtures share cancels).

## What holds

{_counted([*found, *gains])}

{markdown_table([each.row() for each in found], _ORDERING)}

*Undecided*: zero is within the interval. "No gain" is confirmed where the interval ends below .01.

## Table 5.1: averaged votes, and teachers by themselves

{_table([row for row in table if row["table"] == "5.1"], _RANKING)}

The threshold of an ensemble is the best of .2, .4, .6 and adaptive by macro F1 on *validation*
mixtures; Muschiol chose it where it scored. A single teacher names what it finds likelier than
{BY_ITSELF:g} (Muschiol does not say).

## Table 5.2: thresholds

{_table([row for row in table if row["table"] == "5.2"], _THRESHOLDS)}

**Precision of labels that nobody names.** 0/0 counts as 0 here, so precision falls where ensembles
fall silent. Muschiol does not say what it counts. Reported is a precision of .880 at a recall of
.053 with 50 teachers, and that rare labels are not named at all (Figure A.6); both cannot be unless
such labels count as 1, or are left out. *If one* counts them as 1, *of named* leaves them out, and
with either a precision that "rises with more teachers" may be silence that is counted as right.

## Table 5.3: with a check

{_table([row for row in table if row["table"] == "5.3"], _CHECKED)}

*P / R / F1* are of the answered mixtures. *Baseline there*: of the same mixtures, at its own best
threshold; Muschiol compares with the baseline on everything. *Everything*: of all mixtures, with
no names where there is no answer. *{HALF}*: the half of all mixtures with the largest m, so that
all answer equally many; the baseline its own half.

## Parts of the recipe
{_recipes(recipes, gains)}
## Why ours differ

- 153 labels of AudioSet with errors of their own, 274,383 clips and 10 s of sound there; 20 labels
  that are right, {work.study.size.mixtures:,} mixtures and 1 s here.
- Networks start from ImageNet there, at random here; ResNets of 11 million weights there, a network
  of thirty thousand here. Stopping and thresholds are chosen on validation mixtures of other
  recordings here, on the test set there.
- Teachers of one seed draw on the same recordings (some labels have three), so that more mixtures
  of them are less new than more clips of AudioSet.
- The most frequent label is about ten times as frequent as the rarest here, thousands of times
  there: balanced batches have less to mend, and tell taggers wrong frequencies all the same.
- The text of chapter 6 (mAP .44, .27 and .25) does not fit its tables (.268, .186, at most .104).
"""


_ORDERING = ("Muschiol", "difference", "theirs", "ours", "verdict")
_RANKING = {
    "teachers": "teachers",
    "mAP": "mAP",
    "theirs: mAP": "theirs_mAP",
    "AUC": "AUC",
    "theirs: AUC": "theirs_AUC",
    "threshold": "th_e",
    "P": "P",
    "R": "R",
    "F1": "F1",
    "theirs: P / R / F1": "theirs_P_R_F1",
    "alone: P": "alone_P",
    "alone: R": "alone_R",
    "alone: F1": "alone_F1",
    "theirs, alone": "theirs_alone_P_R_F1",
}
_THRESHOLDS = {
    "teachers": "teachers",
    "th": "th_e",
    "P": "P",
    "R": "R",
    "F1": "F1",
    "theirs: P / R / F1": "theirs_P_R_F1",
    "never named": "never_named",
    "P if one": "P_if_one",
    "P of named": "P_of_named",
    "micro P": "micro_P",
    "micro F1": "micro_F1",
}
_CHECKED = {
    "teachers": "teachers",
    "th_e": "th_e",
    "th_c": "th_c",
    "answered": "answered",
    "theirs": "theirs_answered",
    "P": "P",
    "R": "R",
    "F1": "F1",
    "theirs: P / R / F1": "theirs_P_R_F1",
    "baseline there: P": "baseline_P",
    "R ": "baseline_R",
    "F1 ": "baseline_F1",
    "everything: F1": "asked_F1",
}


def said(row: Row, column: str) -> str:
    """A mean with its interval, or what else stands in a column."""
    value = row[column]
    if column == "teachers":
        return "baseline" if value == BASELINE else str(value)
    if value == "" or isinstance(value, str):
        return value or "–"
    wide = row.get(f"{column}_interval_95", "")
    return f"{float(value):.3f}" + ("" if wide == "" else f" ± {float(wide):.3f}")


def _table(rows: Sequence[Row], columns: dict[str, str]) -> str:
    shown: list[Row] = [
        {title: said(row, column) for title, column in columns.items()} for row in rows
    ]
    return markdown_table(shown, list(columns))


def _counted(found: Sequence[Ordering]) -> str:
    numbers = Counter(each.verdict for each in found)
    listed = ", ".join(
        f"{numbers[verdict]} {verdict}" for verdict in (CONFIRMED, REFUTED, UNDECIDED)
    )
    refuted = [f"{each.said} ({each.what})" for each in found if each.verdict == REFUTED]
    against = "; ".join(refuted) or "none"
    return f"Of {len(found)} orderings {listed}. Refuted: {against}."


def _recipes(recipes: Sequence[Row], gains: Sequence[Ordering]) -> str:
    if not recipes:
        return "\nLinear taggers have no recipe.\n"
    columns = {"recipe": "th_e", "mAP": "mAP", "AUC": "AUC", "F1": "F1"}
    columns["most / least frequent label"] = "most_over_least"
    return f"""
{_table(recipes, columns)}

{markdown_table([each.row() for each in gains], _ORDERING)}

The mean of {recipes[0]["teachers"]} teachers of {audioset_recipes.OF}, whose single mAP varies from
teacher to teacher as Table 5.1's CSV says (Figure 5.6: "similar"). The last column is Figure 5.9:
how much oftener the most frequent label is in a thousand batches than the rarest. Learning rates,
batch sizes and networks (5.4, 5.5, 5.10, 5.12) are settings here, and were not compared.
"""
