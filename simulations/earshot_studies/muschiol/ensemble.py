"""Ensembles of taggers: Tables 5.1 to 5.3 of Muschiol (2021), and Figures 5.6 to 5.11."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.costs.muschiol import raw_thresholds
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_studies.kit.claims import Claim, claims_table, verdicts
from earshot_studies.kit.outcome import Reproduction, Row, means, with_interval
from earshot_studies.kit.pictures import bars, curve, multiples
from earshot_studies.kit.printed import printed_figures
from earshot_studies.muschiol.taggers.ensembles import EnsembleScores, Scored, prepared
from earshot_studies.muschiol.taggers.school import LearnerKind
from earshot_studies.muschiol.tagging.metrics import TaggingScores, scores
from earshot_studies.muschiol.work import TaggerWork

BASELINE = 1
"""Number of teachers of the baseline: one that learned from all mixtures."""
TEACHERS = (10, 20, 50)
ADAPTIVE = "adaptive"
THRESHOLDS = ("0.2", "0.4", "0.6", ADAPTIVE)
CHECKS = ("0.4", "0.6")
HALF = "half"
"""Value of th_c for answering half of the mixtures, those with the largest m."""
BY_ITSELF = 0.5
"""Threshold above which a single teacher names a label; not stated by Muschiol."""

Three = tuple[float, float, float]
"""Macro means of precision, recall and F1."""
Named = NDArray[np.bool_]


class Overall(NamedTuple):
    """A row of Table 5.1; `precision` is mAP, `area` AUC."""

    precision: float
    area: float
    threshold: str
    together: Three

    @property
    def ranking(self) -> Mapping[str, float]:
        """Measures of averaged votes."""
        return {"mAP": self.precision, "AUC": self.area}


_PRINTED = printed_figures(__package__)
TABLE_5_1: Mapping[int, Overall] = {
    teachers: Overall(precision, area, threshold, (p, r, f1))
    for teachers, precision, area, threshold, p, r, f1 in _PRINTED["table_5_1"]
}
ALONE_5_1: Mapping[int, Three] = {
    teachers: (p, r, f1) for teachers, p, r, f1 in _PRINTED["alone_5_1"]
}
"""Macro means of single teachers, on average."""

TABLE_5_2: Mapping[tuple[int, str], Three] = {
    (teachers, threshold): (p, r, f1) for teachers, threshold, p, r, f1 in _PRINTED["table_5_2"]
}

PASSED: Mapping[tuple[int, str], float] = {
    (teachers, check): share for teachers, check, share in _PRINTED["passed_5_3"]
}
"""Share of the samples that is answered, by teachers and th_c (Table 5.3)."""

TABLE_5_3: Mapping[tuple[int, str, str], Three] = {
    (teachers, threshold, check): (p, r, f1)
    for teachers, threshold, check, p, r, f1 in _PRINTED["table_5_3"]
}


def measured(ensemble: Callable[[int], EnsembleScores]) -> Iterator[Row]:
    """Yield all three tables for the ensembles of one seed, on test mixtures.

    The best threshold of each is chosen on validation mixtures (Muschiol chose it on the test
    set). Rows of Table 5.3 also have the baseline's scores on the same answered mixtures, at its
    best threshold, and scores over all mixtures, where unanswered ones have no labels.

    Args:
        ensemble: Function from a number of teachers to their ensemble; 1 for the baseline.
    """
    baseline = ensemble(BASELINE)
    best = best_threshold(baseline.validation)
    alone_names = named(baseline.test, best)
    yield from _without_check(BASELINE, baseline)
    for teachers in TEACHERS:
        found = ensemble(teachers)
        yield from _without_check(teachers, found)
        for check in (*CHECKS, HALF):
            passed = _passed(found.test, check)
            for threshold in THRESHOLDS:
                if (teachers, threshold, check) not in TABLE_5_3 and check != HALF:
                    continue
                row = _row("5.3", teachers, threshold, check)
                row["answered"] = float(passed.mean())
                yield row | _checked(found.test, threshold, passed, alone_names)
    passed = _passed(baseline.test, HALF)
    row = _row("5.3", BASELINE, best, HALF) | {"answered": float(passed.mean())}
    yield row | _checked(baseline.test, best, passed, alone_names)


def _without_check(teachers: int, found: EnsembleScores) -> Iterator[Row]:
    """Yield the row of Table 5.1 for an ensemble, and those of Table 5.2."""
    best, truth = best_threshold(found.validation), found.test.truth
    overall = scores(truth, named(found.test, best), found.test.mean())
    row = _row("5.1", teachers, best, "") | _three(overall) | _likely(overall)
    if teachers > 1:
        each = [scores(truth, own > BY_ITSELF, own) for own in found.test.probabilities]
        for name, column in (*_MACRO.items(), ("mAP", "mean_average_precision")):
            values = [getattr(one, column) for one in each]
            row[f"alone_{name}"] = float(np.mean(values))
        ranked = [float(one.mean_average_precision or 0.0) for one in each]
        row["alone_mAP_deviation"] = float(np.std(ranked, ddof=1))
    yield row
    for threshold in THRESHOLDS:
        yield _row("5.2", teachers, threshold, "") | _three(
            scores(truth, named(found.test, threshold))
        )


def named(scored: Scored, threshold: str) -> Named:
    """Return the labels that an ensemble names without noise, bool (mixtures, labels).

    Args:
        scored: Output of the teachers.
        threshold: Share of the teachers, or `ADAPTIVE`: the middle of the widest gap.
    """
    mean = scored.mean()
    # The middle of a gap scales with the votes, so shares do as well.
    limits = raw_thresholds(mean)[:, None] if threshold == ADAPTIVE else float(threshold)
    above: Named = mean > limits
    return above


def best_threshold(validation: Scored) -> str:
    """Return the one of Muschiol's thresholds with the best macro F1 on validation mixtures."""
    found = {
        threshold: scores(validation.truth, named(validation, threshold)).macro_f1
        for threshold in THRESHOLDS
    }
    return max(found, key=lambda threshold: found[threshold])


def _passed(scored: Scored, check: str) -> Named:
    """Return which mixtures are answered, bool (mixtures,)."""
    most = scored.mean().max(axis=1)
    passed: Named = np.zeros(len(most), dtype=np.bool_)
    if check == HALF:
        passed[np.argsort(-most, kind="stable")[: len(most) // 2]] = True
    else:
        passed |= most >= float(check)
    return passed


def _checked(scored: Scored, threshold: str, passed: Named, baseline: Named) -> Row:
    """Score the answers; return {} unless a label is in some answered mixtures but not in all."""
    names, answered = named(scored, threshold), scored.truth[passed].astype(bool)
    if not len(answered) or not (answered.any(axis=0) & ~answered.all(axis=0)).any():
        return {}
    found = _three(scores(answered, names[passed]))
    same = scores(scored.truth[passed], baseline[passed])
    asked = scores(scored.truth, names & passed[:, None])
    for name, column in _MACRO.items():
        found[f"baseline_{name}"] = getattr(same, column)
        found[f"asked_{name}"] = getattr(asked, column)
    return found


def _row(table: str, teachers: int, threshold: str, check: str) -> Row:
    return {"table": table, "teachers": teachers, "th_e": threshold, "th_c": check}


_MACRO = {"P": "macro_precision", "R": "macro_recall", "F1": "macro_f1"}
_MICRO = {"micro_P": "micro_precision", "micro_R": "micro_recall", "micro_F1": "micro_f1"}


def _three(found: TaggingScores) -> Row:
    """Return means, and macro precision with never-named labels counted as 1, or left out."""
    row: Row = {name: getattr(found, column) for name, column in {**_MACRO, **_MICRO}.items()}
    spoken = found.measured - found.never_named
    row["never_named"] = found.never_named
    row["P_if_one"] = found.macro_precision + found.never_named / found.measured
    row["P_of_named"] = found.macro_precision * found.measured / spoken if spoken else ""
    return row


def _likely(found: TaggingScores) -> Row:
    return {"mAP": found.mean_average_precision or 0.0, "AUC": found.area or 0.0}


def no_gain(said: str, what: str, ours: Estimate) -> Claim:
    """Return the claim that mAP gains nothing, or less than `_WORTH`."""
    return Claim(
        said,
        what,
        None,
        ours,
        holds=(-math.inf, math.nextafter(_WORTH, 0)),
        unless=(-math.inf, 0.0),
    )


OTHER_SOUND = "20 labels of mixtures and small networks, not AudioSet"
"""Difference from Muschiol's tables that explains other numbers."""
_WORTH = 0.01
"""Gain of mAP that is worth having."""

Cell = tuple[str, int, str, str, str]
"""Table, teachers, th_e, th_c and column; th_e is empty in Table 5.1, which has one for each."""


class _Seeds:
    def __init__(self, rows: Sequence[Row]) -> None:
        self._seeds = sorted({int(row["seed"]) for row in rows})
        self._values: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            # Each has one threshold there, the best on validation.
            one = row["table"] == "5.1" or (row["table"], row["teachers"]) == ("5.3", BASELINE)
            threshold = "" if one else row["th_e"]
            key = (row["seed"], row["table"], row["teachers"], threshold, row["th_c"])
            self._values[key] = row

    def __call__(self, cell: Cell) -> list[float]:
        """Return the value of each seed; NaN where nothing was answered or named."""
        *place, column = cell
        values = (self._values[(seed, *place)].get(column, "") for seed in self._seeds)
        return [math.nan if value == "" else float(value) for value in values]

    def less(self, cell: Cell, other: Cell) -> Estimate:
        """Return cell − other, seed by seed."""
        return paired(self(cell), self(other))


_PLACES = {"P": 0, "R": 1, "F1": 2}
_WHOLE = {"P": "precision", "R": "recall", "F1": "F1"}


def orderings(rows: Sequence[Row]) -> list[Claim]:
    """Return all claims on the tables.

    Args:
        rows: Rows of `measured`, each with its seed.
    """
    seeds = _Seeds(rows)
    return [
        *_by_ranking(seeds),
        *_by_teachers(seeds),
        *_by_threshold(seeds),
        *_by_check(seeds),
    ]


def _by_ranking(seeds: _Seeds) -> list[Claim]:
    """Return claims on Table 5.1: mAP, AUC, and teachers by themselves."""
    found = []
    for column in ("mAP", "AUC"):
        for few, many in ((BASELINE, 10), (10, 20), (20, 50)):
            said = f"Raw {column} falls with more teachers"
            if few == BASELINE:
                said = f"Raw {column}: the baseline is above ensembles"
            found.append(
                Claim(
                    said,
                    f"{_who(few)} − {many}",
                    TABLE_5_1[few].ranking[column] - TABLE_5_1[many].ranking[column],
                    seeds.less(("5.1", few, "", "", column), ("5.1", many, "", "", column)),
                )
            )
    for column, place in _PLACES.items():
        cells = [("5.1", teachers, "", "", f"alone_{column}") for teachers in (10, 50)]
        found.append(
            Claim(
                f"A single teacher's {_WHOLE[column]} falls with its number of mixtures",
                "one of 10 − one of 50",
                ALONE_5_1[10][place] - ALONE_5_1[50][place],
                seeds.less(cells[0], cells[1]),
            )
        )
    for teachers in TEACHERS:
        found.append(
            Claim(
                "Together they are better than one by one",
                f"F1, {teachers}: ensemble − teacher",
                TABLE_5_1[teachers].together[2] - ALONE_5_1[teachers][2],
                seeds.less(("5.1", teachers, "", "", "F1"), ("5.1", teachers, "", "", "alone_F1")),
            )
        )
    return found


def _by_teachers(seeds: _Seeds) -> list[Claim]:
    """Return claims on Table 5.2 that compare numbers of teachers at one threshold."""
    found = []
    for threshold in ("0.2", "0.4", "0.6"):
        for column, sign in (("P", 1), ("R", -1), ("F1", -1)):
            few, many = (10, 50) if sign < 0 else (50, 10)
            found.append(
                Claim(
                    f"{_WHOLE[column].capitalize()} {'rises' if sign > 0 else 'falls'} with "
                    "more teachers",
                    f"th {threshold}: {few} − {many}",
                    _printed(few, threshold, column) - _printed(many, threshold, column),
                    seeds.less(_cell(few, threshold, column), _cell(many, threshold, column)),
                )
            )
        for column, name in (
            ("P_if_one", "with never-named labels counted as 1"),
            ("P_of_named", "over named labels"),
            ("micro_P", "over all names (micro)"),
        ):
            found.append(
                Claim(
                    f"The same for precision {name}",
                    f"th {threshold}: 50 − 10",
                    None,
                    seeds.less(_cell(50, threshold, column), _cell(10, threshold, column)),
                )
            )
        found.append(
            Claim(
                "Ensembles are more precise than the baseline at a fixed threshold",
                f"th {threshold}: 50 − baseline",
                _printed(50, threshold, "P") - _printed(BASELINE, threshold, "P"),
                seeds.less(_cell(50, threshold, "P"), _cell(BASELINE, threshold, "P")),
            )
        )
    found.append(
        Claim(
            "More teachers leave more labels never named (A.6)",
            "labels never named, th 0.4: 50 − baseline",
            None,
            seeds.less(_cell(50, "0.4", "never_named"), _cell(BASELINE, "0.4", "never_named")),
        )
    )
    return found


def _by_threshold(seeds: _Seeds) -> list[Claim]:
    """Return claims on Table 5.2 that compare thresholds."""
    found = []
    for teachers in (BASELINE, *TEACHERS):
        for column, high, low in (("P", "0.6", "0.2"), ("R", "0.2", "0.6")):
            found.append(
                Claim(
                    f"{_WHOLE[column].capitalize()} {'rises' if column == 'P' else 'falls'} "
                    "with the threshold",
                    f"{_who(teachers)}: {high} − {low}",
                    _printed(teachers, high, column) - _printed(teachers, low, column),
                    seeds.less(_cell(teachers, high, column), _cell(teachers, low, column)),
                )
            )
    for teachers in TEACHERS:
        for other in ("0.4", ADAPTIVE):
            found.append(
                Claim(
                    "F1 is best at the low threshold",
                    f"{teachers}: 0.2 − {other}",
                    _printed(teachers, "0.2", "F1") - _printed(teachers, other, "F1"),
                    seeds.less(_cell(teachers, "0.2", "F1"), _cell(teachers, other, "F1")),
                )
            )
    found.append(
        Claim(
            "An adaptive threshold is less precise than a fixed one",
            "P, 50: 0.2 − adaptive",
            _printed(50, "0.2", "P") - _printed(50, ADAPTIVE, "P"),
            seeds.less(_cell(50, "0.2", "P"), _cell(50, ADAPTIVE, "P")),
        )
    )
    found.append(
        Claim(
            "… but names rare labels (A.6)",
            "labels never named, 50: 0.2 − adaptive",
            None,
            seeds.less(_cell(50, "0.2", "never_named"), _cell(50, ADAPTIVE, "never_named")),
        )
    )
    return found


def _by_check(seeds: _Seeds) -> list[Claim]:
    """Return claims on Table 5.3: the gain of not answering."""
    found = []
    for teachers in TEACHERS:
        for check in ("0.4", "0.6"):
            found.append(
                Claim(
                    "F1 of answers rises with a check",
                    f"{teachers}, th 0.2: th_c {check} − none",
                    TABLE_5_3[teachers, "0.2", check][2] - _printed(teachers, "0.2", "F1"),
                    seeds.less(("5.3", teachers, "0.2", check, "F1"), _cell(teachers, "0.2", "F1")),
                )
            )
    for check in ("0.4", "0.6"):
        found.append(
            Claim(
                "More teachers answer less",
                f"answered, th_c {check}: 10 − 50",
                PASSED[10, check] - PASSED[50, check],
                seeds.less(
                    ("5.3", 10, "0.2", check, "answered"), ("5.3", 50, "0.2", check, "answered")
                ),
            )
        )
    for teachers in TEACHERS:
        best, own = ("5.1", BASELINE, "", "", "F1"), ("5.3", teachers, "0.2", "0.6")
        theirs = TABLE_5_3[teachers, "0.2", "0.6"][2] - TABLE_5_2[BASELINE, "0.2"][2]
        for what, difference, printed in (
            ("its answers − the baseline's on everything", ((*own, "F1"), best), theirs),
            ("both on what it answers", ((*own, "F1"), (*own, "baseline_F1")), None),
            ("both on everything, no names without an answer", ((*own, "asked_F1"), best), None),
            (
                "both on their own better half",
                (("5.3", teachers, "0.2", HALF, "F1"), ("5.3", BASELINE, "", HALF, "F1")),
                None,
            ),
        ):
            found.append(
                Claim(
                    "With a check an ensemble is above the baseline",
                    f"F1, {teachers}, 0.2 + 0.6: {what}",
                    printed,
                    seeds.less(*difference),
                )
            )
    return found


def _cell(teachers: int, threshold: str, column: str) -> Cell:
    return "5.2", teachers, threshold, "", column


def _printed(teachers: int, threshold: str, column: str) -> float:
    return TABLE_5_2[teachers, threshold][_PLACES[column]]


def _who(teachers: int) -> str:
    return "baseline" if teachers == BASELINE else str(teachers)


ALL, NO_MIXUP, SHUFFLED = "as it is", "without mixup", "without balanced batches"
WEIGHTED, ADAPTED = "with a weighted loss", "with adaptive weights"
RECIPES: Mapping[str, Mapping[str, bool]] = {
    ALL: {},
    NO_MIXUP: {"mixup": False},
    SHUFFLED: {"balanced": False},
    WEIGHTED: {"weighted": True},
    ADAPTED: {"adaptive": True},
}
RECIPES_NAME = "audioset-recipes"
OF = 10
"""Size of the ensemble whose teachers are measured; Muschiol shows those of ten."""
_FEW, _MORE = 2, 10
"""Numbers of teachers trained by each recipe, by default and with --full."""
_BATCHES, _BATCH = 1000, 32
"""Number and size of the batches whose labels are counted (Figure 5.9)."""


def of_seed(work: TaggerWork, seed: int) -> list[Row]:
    """Return each recipe's mean scores over a few teachers of ten, on test mixtures.

    Args:
        work: Work of networks; linear taggers have no recipe.
        seed: Seed of mixtures and networks, the same for all recipes.
    """
    balance = {True: 0.0, False: 0.0}
    pool = work.study.material(seed).teacher(0, OF)
    for balanced in balance:
        balance[balanced] = most_over_least(pool.truth, balanced, seed)
    rows: list[Row] = []
    for name, changes in RECIPES.items():
        teaching = replace(work.teaching, **changes)  # type: ignore[arg-type]
        found = prepared(
            work.study,
            OF,
            seed,
            teaching,
            work.processes,
            work.progress,
            first=_MORE if work.full else _FEW,
        ).test
        each = [scores(found.truth, own > 0.5, own) for own in found.probabilities]
        row: Row = {
            "seed": seed,
            "recipe": name,
            "teachers": len(each),
            "mAP": float(np.mean([one.mean_average_precision or 0.0 for one in each])),
            "AUC": float(np.mean([one.area or 0.0 for one in each])),
            "F1": float(np.mean([one.macro_f1 for one in each])),
            "most_over_least": balance[teaching.balanced],
        }
        rows.append(row)
    return rows


def most_over_least(
    truth: np.ndarray[tuple[int, ...], np.dtype[np.int8]], balanced: bool, seed: int
) -> float:
    """Return the frequency of the most frequent label over the rarest's, in a thousand batches.

    Args:
        truth: Labels of a teacher's mixtures, (mixtures, labels).
        balanced: Whether labels take turns.
        seed: Seed of their order.
    """
    from earshot_studies.muschiol.tagging.balanced_batches import Balanced, Cycle

    generator = np.random.default_rng(seed)
    there = truth.astype(bool)
    order: Cycle | Balanced = (
        Balanced(there, generator) if balanced else Cycle(np.arange(len(there)), generator)
    )
    counts = there[order.draw(_BATCHES * _BATCH)].sum(axis=0)
    return float(counts.max() / counts[counts > 0].min())


def gains(rows: Sequence[Row]) -> list[Claim]:
    """Return claims of Figures 5.7, 5.8 and 5.11: gains by parts of the recipe.

    Args:
        rows: Rows of `of_seed`, of all seeds.
    """
    seeds = sorted({int(row["seed"]) for row in rows})
    values = {(row["seed"], row["recipe"]): row for row in rows}

    def less(one: str, other: str, column: str) -> Estimate:
        first, second = (
            [float(values[seed, name][column]) for seed in seeds] for name in (one, other)
        )
        return paired(first, second)

    return [
        Claim("Mixup helps (5.7)", "mAP: with − without", None, less(ALL, NO_MIXUP, "mAP")),
        Claim("Mixup helps (5.7)", "AUC: with − without", None, less(ALL, NO_MIXUP, "AUC")),
        Claim(
            "Balanced batches help (5.8)", "mAP: with − without", None, less(ALL, SHUFFLED, "mAP")
        ),
        Claim("… and cost some AUC (5.8)", "AUC: without − with", None, less(SHUFFLED, ALL, "AUC")),
        no_gain(
            "A weighted loss does not help (Definition 13)",
            "mAP: with − without",
            less(WEIGHTED, ALL, "mAP"),
        ),
        no_gain(
            "Adaptive weights do not help (5.11)", "mAP: with − without", less(ADAPTED, ALL, "mAP")
        ),
    ]


def _note(
    work: TaggerWork,
    table: Sequence[Row],
    recipes: Sequence[Row],
    found: Sequence[Claim],
    gains: Sequence[Claim],
) -> str:
    """Return the note in Markdown.

    Args:
        work: Work that was done.
        table: Means over seeds, of Tables 5.1 to 5.3.
        recipes: Means of recipes; none for linear taggers.
        found: Orderings of the tables.
        gains: Gains by parts of the recipe.
    """
    return f"""# Ensembles of taggers

After Tables 5.1, 5.2 and 5.3 and section 5.1 of Muschiol (2021). AudioSet and weights of ImageNet
are out of reach: orderings and differences can be compared, scores cannot.

{work.described}

No noise is added: nothing is private here. ± is half of a 95 % interval (Student's t, over seeds;
orderings by differences within a seed, so that effects of its mixtures cancel).

## What holds

{verdicts([*found, *gains])}

{claims_table(found, "Muschiol", OTHER_SOUND)}

*Undecided*: zero is within the interval. "No gain" is confirmed where the interval ends below .01.

## Table 5.1: averaged votes, and teachers by themselves

{_table([row for row in table if row["table"] == "5.1"], _RANKING)}

The threshold of an ensemble is the best of .2, .4, .6 and adaptive by macro F1 on *validation*
mixtures; Muschiol chose it on the test set. A single teacher names labels above a probability of
{BY_ITSELF:g} (not stated by Muschiol).

## Table 5.2: thresholds

{_table([row for row in table if row["table"] == "5.2"], _THRESHOLDS)}

The precision of labels that are never named counts as 0 here. *If one* counts it as 1, *of named*
leaves it out. Muschiol does not state it, but reports a precision of .880 at a recall of .053 and
that rare labels are never named (Figure A.6), which needs one of the two; with either, a precision
that "rises with more teachers" may be missing names that are counted as right.

## Table 5.3: with a check

{_table([row for row in table if row["table"] == "5.3"], _CHECKED)}

*P / R / F1* are of the answered mixtures. *Baseline there*: of the same mixtures, at its own best
threshold; Muschiol compares with the baseline on everything. *Everything*: of all mixtures, with
no names where there is no answer. *{HALF}*: the half of all mixtures with the largest m, so that
all answer equally many; the baseline answers its own half.

## Parts of the recipe
{_recipes(recipes, gains)}
## Why ours differ

- There: 153 labels of AudioSet with errors, 274,383 clips of 10 s, ResNets of 11 million weights
  that start from ImageNet, stopping and thresholds chosen on the test set. Here: 20 labels that are
  right, {work.study.size.mixtures:,} mixtures of 1 s, a network of thirty thousand weights that
  starts at random, stopping and thresholds chosen on other recordings.
- Teachers of one seed draw on the same recordings, so more mixtures are less new than more clips.
- The most frequent label is ten times as frequent as the rarest here, thousands of times there:
  balanced batches have less effect.
- The text of chapter 6 (mAP .44, .27 and .25) does not fit its tables (.268, .186, at most .104).
"""


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
    """Format a mean with its interval, and other values as text."""
    value = row[column]
    if column == "teachers":
        return "baseline" if value == BASELINE else str(value)
    if value and isinstance(value, str):
        return value
    return with_interval(row, column)


def _table(rows: Sequence[Row], columns: dict[str, str]) -> str:
    shown: list[Row] = [
        {title: said(row, column) for title, column in columns.items()} for row in rows
    ]
    return markdown_table(shown, list(columns))


def _recipes(recipes: Sequence[Row], gains: Sequence[Claim]) -> str:
    if not recipes:
        return "\nLinear taggers have no recipe.\n"
    columns = {"recipe": "th_e", "mAP": "mAP", "AUC": "AUC", "F1": "F1"}
    columns["most / least frequent label"] = "most_over_least"
    return f"""
{_table(recipes, columns)}

{claims_table(gains, "Muschiol", OTHER_SOUND)}

The mean of {recipes[0]["teachers"]} teachers of {OF}; the CSV has the deviation of a single
teacher's mAP (Table 5.1; Figure 5.6: "similar"). The last column is Figure 5.9: the frequency of
the most frequent label over the rarest's, in a thousand batches. Learning rates, batch sizes and
networks (5.4, 5.5, 5.10, 5.12) are settings here, and were not compared.
"""


_SIZES = (BASELINE, *TEACHERS)
_NAMES = ("baseline", "10", "20", "50")
_COLOURS = dict(zip(THRESHOLDS, ("#1f77b4", "#2ca02c", "#9467bd", "#d62728"), strict=True))


def _draw(table: Sequence[Row], gains: Sequence[Claim], path: Path) -> None:
    """Draw six panels.

    Args:
        table: Means over seeds, with their intervals.
        gains: Gains by parts of the recipe; none for linear taggers.
        path: Path of the picture.
    """
    charts = [
        lambda axis: _draw_ranking(axis, table),
        lambda axis: _draw_by_threshold(axis, table, "P", "macro precision, by th_e (5.2)"),
        lambda axis: _draw_by_threshold(axis, table, "R", "macro recall (5.2)"),
        lambda axis: _draw_by_threshold(axis, table, "F1", "macro F1 (5.2)"),
        lambda axis: _draw_checked(axis, table),
        lambda axis: _draw_gains(axis, gains),
    ]
    multiples(path, (16, 9.5), 3, charts)


def _draw_ranking(axis: Any, table: Sequence[Row]) -> None:
    places = np.arange(len(_SIZES))
    for column, colour in (("mAP", "#1f77b4"), ("AUC", "#ff7f0e")):
        rows = [_cell_of(table, "5.1", size) for size in _SIZES]
        look = {"fmt": "o-", "color": colour, "capsize": 3}
        curve(axis, places, rows, column, label=column, **look)
        printed = [TABLE_5_1[size].ranking[column] for size in _SIZES]
        axis.plot(places, printed, "x:", color=colour, label=f"{column}, Muschiol's")
    axis.set_xticks(places, _NAMES)
    axis.set(title="of averaged votes (5.1)", xlabel="teachers", ylim=(0, 1))
    axis.legend(fontsize=8)


def _draw_by_threshold(axis: Any, table: Sequence[Row], column: str, title: str) -> None:
    places = np.arange(len(_SIZES))
    for threshold, colour in _COLOURS.items():
        rows = [_cell_of(table, "5.2", size, threshold) for size in _SIZES]
        look = {"fmt": "o-", "color": colour, "capsize": 3}
        curve(axis, places, rows, column, label=threshold, **look)
        printed = [TABLE_5_2[size, threshold][_PLACES[column]] for size in _SIZES]
        axis.plot(places, printed, "x:", color=colour, alpha=0.6)
        if column == "P":
            ones = [float(row["P_if_one"]) for row in rows]
            axis.plot(places, ones, "--", color=colour, alpha=0.6)
    axis.set_xticks(places, _NAMES)
    axis.set(title=title, xlabel="teachers", ylim=(0, 1 if column == "P" else None))
    axis.plot([], [], "x:", color="grey", label="Muschiol's")
    if column == "P":
        axis.plot([], [], "--", color="grey", label="never named counts 1")
    axis.legend(fontsize=8)


def _draw_checked(axis: Any, table: Sequence[Row]) -> None:
    cells = [(size, check) for check in CHECKS for size in TEACHERS]
    places = np.arange(len(cells))
    for offset, column, label in (
        (-0.25, "F1", "ensemble, on what it answers"),
        (0.0, "baseline_F1", "baseline, on the same"),
        (0.25, "asked_F1", "ensemble, on everything"),
    ):
        rows = [_cell_of(table, "5.3", size, "0.2", check) for size, check in cells]
        bars(axis, places + offset, rows, column, 0.25, capsize=2, label=label)
    printed = [TABLE_5_3[size, "0.2", check][2] for size, check in cells]
    axis.plot(places - 0.25, printed, "kx", label="Muschiol's ensemble")
    axis.set_xticks(places, [f"{size}\nth_c {check}" for size, check in cells], fontsize=8)
    axis.set(title="macro F1 with a check, th_e 0.2 (5.3)")
    axis.legend(fontsize=8)


def _draw_gains(axis: Any, gains: Sequence[Claim]) -> None:
    if not gains:
        axis.axis("off")
        return
    places = np.arange(len(gains))[::-1]
    means = [each.ours.mean for each in gains]
    axis.errorbar(means, places, xerr=[each.ours.wide or 0.0 for each in gains], fmt="o", capsize=3)
    axis.axvline(0, color="grey", linewidth=1)
    labels = [fill(f"{each.said}: {each.what}", 30) for each in gains]
    axis.set_yticks(places, labels, fontsize=7)
    axis.set(title="parts of the recipe (5.7 to 5.11)", xlabel="difference")


def _cell_of(
    table: Sequence[Row], name: str, teachers: int, threshold: str = "", check: str = ""
) -> Row:
    for row in table:
        if (row["table"], row["teachers"], row["th_c"]) == (name, teachers, check) and (
            not threshold or row["th_e"] == threshold
        ):
            return row
    raise KeyError((name, teachers, threshold, check))


NAME = "audioset-ensemble"

_PLACE = ("table", "teachers", "th_e", "th_c")
_COLUMNS = (
    *("mAP", "AUC", "P", "R", "F1", "micro_P", "micro_R", "micro_F1"),
    *("never_named", "P_if_one", "P_of_named"),
    *("alone_P", "alone_R", "alone_F1", "alone_mAP", "alone_mAP_deviation"),
    *("answered", "baseline_P", "baseline_R", "baseline_F1", "asked_P", "asked_R", "asked_F1"),
    "most_over_least",
)
_THEIRS = (
    *("theirs_mAP", "theirs_AUC", "theirs_th_e", "theirs_P_R_F1"),
    *("theirs_alone_P_R_F1", "theirs_answered"),
)


def reproduce(work: TaggerWork) -> Reproduction:
    """Make Tables 5.1 to 5.3, and Figures 5.6 to 5.11; keep each seed's rows."""
    rows, recipes = [], []
    for seed in work.reported:
        rows += work.kept(NAME, seed, lambda seed=seed: _of_seed(work, seed))  # type: ignore[misc]
        if work.teaching.kind is not LearnerKind.LINEAR:
            name = f"{RECIPES_NAME} {work.full}"
            recipes += work.kept(
                name,
                seed,
                lambda seed=seed: of_seed(work, seed),  # type: ignore[misc]
            )
    table = _averaged(rows)
    found, gained = orderings(rows), gains(recipes) if recipes else []
    by_recipe = _by_recipe(recipes)
    return Reproduction(
        NAME,
        [*table, *by_recipe],
        lambda path: _draw(table, gained, path),
        _note(work, table, by_recipe, found, gained),
    )


def _of_seed(work: TaggerWork, seed: int) -> list[Row]:
    rows = measured(lambda teachers: work.ensemble(teachers, seed))
    return [{"seed": seed} | row for row in rows]


def _averaged(rows: Sequence[Row]) -> list[Row]:
    """Compute means over seeds with half of their 95 % intervals; list thresholds that differ."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        chosen = row["table"] == "5.1" or (row["teachers"] == BASELINE and row["table"] == "5.3")
        key = tuple(row[name] for name in _PLACE if name != "th_e" or not chosen)
        groups.setdefault(key, []).append(row)
    found = []
    for group in groups.values():
        place: Row = {name: group[0][name] for name in _PLACE}
        place["th_e"] = ", ".join(sorted({str(row["th_e"]) for row in group}))
        found.append(_mean(group, place) | _theirs(place))
    return found


def _by_recipe(rows: Sequence[Row]) -> list[Row]:
    found = []
    for name in RECIPES:
        group = [row for row in rows if row["recipe"] == name]
        if group:
            place: Row = {"table": "recipe", "teachers": group[0]["teachers"]}
            found.append(_mean(group, place | {"th_e": name, "th_c": ""}))
    return found


def _mean(group: Sequence[Row], place: Row) -> Row:
    """Return the means of a group of rows, in all columns of the CSV."""
    filled = [{name: row.get(name, "") for name in _COLUMNS} for row in group]
    theirs: Row = dict.fromkeys(_THEIRS, "")
    return {**place, "seeds": len(group), **theirs, **means(filled, _COLUMNS)}


def _theirs(place: Row) -> Row:
    """Return Muschiol's numbers for a row."""
    teachers, threshold, check = int(place["teachers"]), str(place["th_e"]), str(place["th_c"])
    if place["table"] == "5.1":
        printed, alone = TABLE_5_1[teachers], ALONE_5_1.get(teachers)
        return {
            "theirs_mAP": printed.precision,
            "theirs_AUC": printed.area,
            "theirs_th_e": printed.threshold,
            "theirs_P_R_F1": _slashed(printed.together),
            "theirs_alone_P_R_F1": "" if alone is None else _slashed(alone),
        }
    if place["table"] == "5.2":
        return {"theirs_P_R_F1": _slashed(TABLE_5_2[teachers, threshold])}
    three = TABLE_5_3.get((teachers, threshold, check))
    if three is None:
        return {}
    return {"theirs_P_R_F1": _slashed(three), "theirs_answered": PASSED[teachers, check]}


def _slashed(values: Three) -> str:
    return " / ".join(f"{value:.3f}" for value in values)
