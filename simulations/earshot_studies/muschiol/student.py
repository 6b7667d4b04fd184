"""Students of votes against thresholds: Table 5.4 and section 5.4 of Muschiol (2021)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.costs import muschiol
from earshot_models.votes.costs.costs import Method, epsilon
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.estimate import Estimate, paired
from earshot_simulations.workers import in_parallel
from earshot_studies.kit.claims import Claim, claims_table
from earshot_studies.kit.outcome import Reproduction, Row, means
from earshot_studies.kit.pictures import bars, multiples
from earshot_studies.kit.printed import printed_figures
from earshot_studies.muschiol.ensemble import (
    BASELINE,
    OTHER_SOUND,
    TABLE_5_1,
    best_threshold,
    named,
    said,
)
from earshot_studies.muschiol.privacy import (
    ADAPTIVE,
    ANSWERED,
    GRID,
    MOST,
    ORDERS,
    TABLE_5_4,
    SampleVotes,
    Setting,
    rule,
    voting,
)
from earshot_studies.muschiol.taggers.ensembles import Scored, prepared
from earshot_studies.muschiol.taggers.school import School, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy, material
from earshot_studies.muschiol.tagging.metrics import scores
from earshot_studies.muschiol.work import TaggerWork

TEACHERS = 50
NOISE, CHECK_NOISE = 0.3, 0.6
"""Noises σ_e and σ_c of Table 5.4."""
SAMPLES = (800, 2000)
"""Numbers of answers that students learn from; as far apart as Muschiol's 2,000 and 5,000."""
PRINTED, SOUND, TRUE = "as printed", "soundly", "true labels"
CHECKS = ("", "0.4", "0.6")


class Lesson(NamedTuple):
    """A lesson for a student: the rule of its answers, and their number.

    Attributes:
        rule: Rule: `PRINTED`, `SOUND`, or `TRUE` for true labels.
        setting: Thresholds th_e and th_c.
        samples: Number of answers.
    """

    rule: str
    setting: Setting
    samples: int

    @property
    def name(self) -> str:
        """Lesson as text."""
        return ", ".join([self.rule, " + ".join(filter(None, self.setting)), str(self.samples)])


def lessons(full: bool) -> list[Lesson]:
    """List the lessons of Table 5.4, those of sound rules, and those of true labels.

    Args:
        full: Whether to list every check and number of samples for sound rules.
    """
    printed = [
        Lesson(PRINTED, (threshold, check), samples)
        for samples in SAMPLES
        for threshold in ("0.2", "0.4", ADAPTIVE)
        for check in CHECKS
    ]
    sound = [
        Lesson(SOUND, (threshold, check), samples)
        for samples in (SAMPLES if full else SAMPLES[1:])
        for threshold in ("0.2", "0.4", ADAPTIVE, GRID)
        for check in (CHECKS if full else ("", "0.6"))
    ]
    return [*printed, *sound, *(Lesson(TRUE, ("", ""), samples) for samples in SAMPLES)]


@dataclass(frozen=True)
class EnsembleAnswers:
    """The answers of an ensemble.

    Attributes:
        asked: Number of queries that were asked, from the first on.
        numbers: Indices of the answered queries, int64 (answers,).
        named: Labels that were named for them, bool (answers, labels).
        costs: Cost ε by column, of the queries asked and answered; it depends on the votes, so it
            is not a guarantee.
    """

    asked: int
    numbers: NDArray[np.int64]
    named: NDArray[np.bool_]
    costs: Row


def answers(lesson: Lesson, ensemble: SampleVotes, seed: int) -> EnsembleAnswers:
    """Answer queries until the lesson is complete, or queries run out.

    Args:
        lesson: Rule and number of the answers.
        ensemble: Votes of its teachers on the queries.
        seed: Seed of the noise.

    Raises:
        InvalidParametersError: Nothing was answered.
    """
    if lesson.rule == TRUE:
        numbers = np.arange(min(lesson.samples, len(ensemble.truth)))
        return EnsembleAnswers(len(numbers), numbers, ensemble.truth[numbers] == 1, {})
    ask = _as_printed if lesson.rule == PRINTED else _soundly
    passed, said = ask(lesson.setting, ensemble, seed)
    numbers = np.flatnonzero(passed)[: lesson.samples]
    if not len(numbers):
        raise InvalidParametersError(
            f"th_c={lesson.setting[1]}: none of {len(passed)} queries was answered; a lower th_c "
            "answers more"
        )
    # Without a check every query is answered; with one, queries go on until enough are.
    enough = len(numbers) == lesson.samples
    asked = int(numbers[-1]) + 1 if enough else len(passed)
    return EnsembleAnswers(
        asked, numbers, said[numbers], _costs(lesson, ensemble, asked, passed[:asked])
    )


Asked = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def _as_printed(setting: Setting, ensemble: SampleVotes, seed: int) -> Asked:
    """Return for every query whether it passes, and which labels are named."""
    own = rule(setting, NOISE, CHECK_NOISE)._replace(teachers=ensemble.teachers)
    generator = np.random.default_rng([seed, 0])
    passed = np.ones(len(ensemble.votes), dtype=np.bool_)
    if own.check is not None:
        checked = own.check_sigma * generator.standard_normal(len(passed))
        passed = ensemble.votes.max(axis=1) + checked >= own.check * own.teachers
    noisy = ensemble.votes + own.sigma * generator.standard_normal(ensemble.votes.shape)
    return passed, noisy > own.thresholds(ensemble.votes)[:, None]


def _soundly(setting: Setting, ensemble: SampleVotes, seed: int) -> Asked:
    own = voting(setting, NOISE, CHECK_NOISE, ensemble.teachers)
    found = own.outcomes(ensemble.cut, ensemble.teachers, np.random.default_rng([seed, 1]).bytes)
    return found[:, 0] != NONE, found == 1


def _costs(lesson: Lesson, ensemble: SampleVotes, asked: int, passed: NDArray[np.bool_]) -> Row:
    """Compute ε at Muschiol's δ: as claimed, or by the noise of sound rules."""
    if lesson.rule == PRINTED:
        own = rule(lesson.setting, NOISE, CHECK_NOISE)._replace(teachers=ensemble.teachers)
        claimed = muschiol.claim(own, ensemble.votes[:asked], passed)
        found: Row = {"claimed": claimed.dependent, "claimed_independent": claimed.independent}
        return found | {"q": claimed.q}
    return _of_noise(lesson, ensemble, asked, int(passed.sum()))


def _of_noise(lesson: Lesson, ensemble: SampleVotes, asked: int, answered: int) -> Row:
    own_voting = voting(lesson.setting, NOISE, CHECK_NOISE, ensemble.teachers)
    found: Row = {}
    for column, unit in (("left_out", Unit.PHONE), ("replaced", Unit.REPLACED_PHONE)):
        each = own_voting.divergences(
            ensemble.cut[:1], ensemble.teachers, ORDERS, Method.INDEPENDENT, unit
        )
        total = asked * each.asked[0] + answered * each.answered[0]
        found[column] = epsilon(total, ORDERS, muschiol.DELTA)[0]
    return found


def measured(study: TaggerStudy, teaching: Teaching, lesson: Lesson, seed: int) -> Row:
    """Train a student, and score it on test mixtures.

    Its threshold is the best of Muschiol's by macro F1 on validation mixtures.
    """
    given = answers(lesson, ensemble_of(study, teaching, seed), seed)
    school = _school(study, teaching, seed)
    mixed = school.material
    queries = mixed.queries.rows(given.numbers)
    student = school.taught(queries.power(), given.named.astype(np.int8), seed)
    likely = {
        side: Scored(student.probabilities(part.power())[None], part.truth)
        for side, part in (("validation", mixed.validation), ("test", mixed.test))
    }
    threshold = best_threshold(likely["validation"])
    test, validation = likely["test"], likely["validation"]
    found = scores(test.truth, named(test, threshold), test.mean())
    on_validation = scores(validation.truth, named(validation, threshold), validation.mean())
    right = scores(mixed.queries.truth[given.numbers], given.named)
    return {
        "seed": seed,
        "rule": lesson.rule,
        "th_e": lesson.setting[0],
        "th_c": lesson.setting[1],
        "samples": lesson.samples,
        "answered": len(given.numbers),
        "asked": given.asked,
        **given.costs,
        "mAP": found.mean_average_precision or 0.0,
        "macro_F1": found.macro_f1,
        "micro_F1": found.micro_f1,
        "never_named": found.never_named,
        "validation_mAP": on_validation.mean_average_precision or 0.0,
        "answers_F1": right.macro_f1,
        "answers_never_named": right.never_named,
    }


def beside(study: TaggerStudy, teaching: Teaching, seed: int) -> Iterator[Row]:
    """Yield the scores of the ensemble and the baseline themselves on the same test mixtures."""
    for name, teachers in (("ensemble", TEACHERS), ("baseline", BASELINE)):
        found = prepared(study, teachers, seed, teaching)
        threshold = best_threshold(found.validation)
        test = scores(found.test.truth, named(found.test, threshold), found.test.mean())
        yield {
            "seed": seed,
            "rule": name,
            "th_e": "",
            "th_c": "",
            "samples": 0,
            "mAP": test.mean_average_precision or 0.0,
            "macro_F1": test.macro_f1,
            "micro_F1": test.micro_f1,
            "never_named": test.never_named,
        }


@lru_cache(maxsize=1)
def ensemble_of(study: TaggerStudy, teaching: Teaching, seed: int) -> SampleVotes:
    """Return the votes of a seed's ensemble; cached, as a process teaches many students of it."""
    asked = prepared(study, TEACHERS, seed, teaching).queries
    return SampleVotes.of(asked.probabilities, asked.truth)


@lru_cache(maxsize=1)
def _school(study: TaggerStudy, teaching: Teaching, seed: int) -> School:
    return School(material(study, seed), teaching)


_OURS = dict(zip(ANSWERED, SAMPLES, strict=True))
_ROWS = printed_figures(__package__)["table_5_4"]
THEIRS: Mapping[tuple[Any, ...], tuple[float, float, float]] = {
    (PRINTED, threshold, check, _OURS[samples]): (precision, macro, micro)
    for samples, threshold, check, _, _, _, precision, macro, micro in _ROWS
}
"""Table 5.4's mAP, macro and micro F1, with its 2,000 and 5,000 samples under our numbers."""


def orderings(rows: Sequence[Row]) -> list[Claim]:
    """Return the claims of section 5.4 on students' mAP, with our estimates over seeds.

    Args:
        rows: Rows of every student of every seed.
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
    for setting in TABLE_5_4[ANSWERED[0]]:
        here, there = (PRINTED, *setting, many), (PRINTED, *setting, few)
        found.append(
            Claim(
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
            Claim(
                text,
                f"mAP, {many:,}: {_named(one)} − {_named(other)}",
                THEIRS[first][0] - THEIRS[second][0],
                less(first, second),
            )
        )
    best = (PRINTED, "0.2", "", many)
    found.append(
        Claim(
            "Micro F1 is above macro F1: labels differ",
            f"0.2, {many:,}: micro − macro F1",
            THEIRS[best][2] - THEIRS[best][1],
            paired(column(best, "micro_F1"), column(best, "macro_F1")),
        )
    )
    for name, teachers in (("ensemble", TEACHERS), ("baseline", BASELINE)):
        found.append(
            Claim(
                f"The student is below the {name}",
                f"mAP: {name} − 0.2, {many:,}",
                TABLE_5_1[teachers].precision - THEIRS[best][0],
                less((name, "", "", 0), best),
            )
        )
    found.append(
        Claim(
            "True labels teach more than answers (ours)",
            f"mAP, {many:,}: true labels − 0.2",
            None,
            less((TRUE, "", "", many), best),
        )
    )
    return found


def best_value(table: Sequence[Row]) -> tuple[Row, list[Row]]:
    """Return the sound rule best on validation, and the sound rules on the front of mAP and ε."""
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


def _note(work: TaggerWork, rows: Sequence[Row], table: Sequence[Row]) -> str:
    """Return the note in Markdown."""
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
    verdicts = claims_table(listed, "Muschiol", OTHER_SOUND)
    few, many = (f"{samples:,}" for samples in SAMPLES)
    cells: list[Row] = [
        {title: _shown(row, column) for title, column in shown.items()} for row in table
    ]
    return f"""# Students of votes against thresholds

After Table 5.4 and section 5.4 of Muschiol (2021). AudioSet and weights of ImageNet are out of
reach: orderings and differences can be compared, scores cannot.

{work.described}

{TEACHERS} teachers answer with noise of σ_e = .3 and σ_c = .6 (variances in votes², times the
number of teachers: 3.9 and 5.5 votes). A student learns from the first n answered queries, n =
{few} and {many} for Muschiol's 2,000 and 5,000; where a check answers too few of
{work.study.size.queries:,}, from as many as there are. Students are stopped, and their thresholds
chosen, on validation mixtures with their labels, which are public here.

## What holds

{verdicts}

**Best on validation among sound rules**: {_where(best)}, with mAP {said(best, "mAP")} on tests.
No other sound rule has a higher mAP at the same or a smaller ε than:

{front}

An ε of hundreds gives no protection, whatever δ: fifty teachers are too few for {many} answers of
twenty labels. `audioset-phones` has thousands of teachers at ε = 1.

## Table 5.4

{markdown_table(cells, list(shown))}

ε at δ = 10⁻⁸. *Claimed*, *by noise* and *q* are Muschiol's accounting, which does not hold. *Left
out* and *replaced*: a teacher who is left out, or whose one mixture is exchanged, by the noise of
sound rules: noise before a gap is searched, or a threshold from a public grid; of a teacher only
its {MOST} largest outputs count. "0.2" *soundly* differs from "0.2" *as printed* in that alone.
*{TRUE}*: students of the same queries with true labels; *ensemble*, *baseline*: the two themselves.

## Why ours differ

- Their students see 153 labels through answers that name few of them (their macro F1 is below half
  of their micro F1); ours see twenty.
- Adaptive thresholds name at least one label: their answers are never empty.
- Muschiol stops training, and chooses thresholds, on the test set.
"""


def _draw(table: Sequence[Row], path: Path) -> None:
    """Draw mAP by setting, ours beside Muschiol's, and against claimed and sound ε."""
    charts = [
        lambda axis: _draw_settings(axis, table, SAMPLES[0], "2,000"),
        lambda axis: _draw_settings(axis, table, SAMPLES[1], "5,000"),
        lambda axis: _draw_costs(axis, table),
    ]
    multiples(path, (16, 5.5), 3, charts)


def _draw_settings(axis: Any, table: Sequence[Row], samples: int, theirs: str) -> None:
    rows = [row for row in table if (row["rule"], row["samples"]) == (PRINTED, samples)]
    places = range(len(rows))
    bars(axis, places, rows, "mAP", 0.8, capsize=3, label=f"ours, {samples:,} answers")
    axis.plot(places, [float(row["theirs_mAP"]) for row in rows], "kx", label=f"theirs, {theirs}")
    for row in table:
        if row["rule"] in ("ensemble", TRUE) and row["samples"] in (0, samples):
            style = "--" if row["rule"] == TRUE else ":"
            axis.axhline(float(row["mAP"]), linestyle=style, color="grey", label=row["rule"])
    axis.set_xticks(places, [_named((str(r["th_e"]), str(r["th_c"]))) for r in rows], rotation=45)
    axis.set(title="mAP of students (5.4)", ylim=(0, 0.65))
    axis.legend(fontsize=8)


def _draw_costs(axis: Any, table: Sequence[Row]) -> None:
    for kind, column, marker, label in (
        (PRINTED, "claimed", "o", "as printed, claimed by the votes"),
        (PRINTED, "claimed_independent", "s", "as printed, claimed by the noise"),
        (SOUND, "left_out", "^", "soundly, a teacher left out"),
        (SOUND, "replaced", "v", "soundly, a teacher replaced"),
    ):
        rows = [r for r in table if r["rule"] == kind and r["samples"] == SAMPLES[1]]
        costs = [float(row[column]) for row in rows]
        axis.plot(costs, [float(row["mAP"]) for row in rows], marker, label=label)
        if column in ("claimed", "left_out"):
            for cost, row in zip(costs, rows, strict=True):
                setting = _named((str(row["th_e"]), str(row["th_c"])))
                axis.annotate(setting, (cost, float(row["mAP"])), fontsize=6)
    axis.set(title=f"mAP against ε of {SAMPLES[1]:,} answers", xlabel="ε, δ = 10⁻⁸", xscale="log")
    axis.legend(fontsize=8)


def _named(setting: Setting) -> str:
    return " + ".join(filter(None, setting))


def _where(row: Row) -> str:
    return f"{_named((str(row['th_e']), str(row['th_c'])))}, {int(row['samples']):,} answers"


def _shown(row: Row, column: str) -> str:
    value = row[column]
    if column in ("answered", "asked", "claimed", "claimed_independent", "left_out", "replaced"):
        return "–" if value == "" or math.isnan(float(value)) else f"{float(value):,.0f}"
    if column == "samples":
        return f"{int(value):,}" if value else "–"
    return said(row, column)


NAME = "audioset-student"

_PLACE = ("rule", "th_e", "th_c", "samples")
_COLUMNS = (
    *("answered", "asked", "claimed", "claimed_independent", "q", "left_out", "replaced"),
    *("mAP", "macro_F1", "micro_F1", "never_named", "validation_mAP"),
    *("answers_F1", "answers_never_named"),
)


def reproduce(work: TaggerWork) -> Reproduction:
    """Make Table 5.4's students, and keep the rows of each."""
    rows = measured_rows(work)
    table = averaged(rows)
    return Reproduction(NAME, table, lambda path: _draw(table, path), _note(work, rows, table))


def measured_rows(work: TaggerWork) -> list[Row]:
    """Measure every student of every seed, and their ensembles and baselines."""
    for seed in work.reported:
        for teachers in (TEACHERS, BASELINE):
            work.ensemble(teachers, seed)
    jobs = [(seed, lesson) for seed in work.reported for lesson in lessons(work.full)]
    due = [job for job in jobs if not work.place(_name(job[1]), job[0]).is_file()]
    done = len(jobs) - len(due)
    work.progress("students", done, len(jobs))
    for (seed, lesson), row in zip(due, _taught(work, due), strict=True):
        work.kept(_name(lesson), seed, lambda row=row: [row])  # type: ignore[misc]
        done += 1
        work.progress("students", done, len(jobs))
    rows = [_kept(work, seed, lesson) for seed, lesson in jobs]
    for seed in work.reported:
        rows += work.kept(
            f"{NAME} beside",
            seed,
            lambda seed=seed: list(beside(work.study, work.teaching, seed)),  # type: ignore[misc]
        )
    return rows


def _taught(work: TaggerWork, due: Sequence[tuple[int, Lesson]]) -> Iterable[Row]:
    """Train and score students, in order, in one process or several."""
    tasks = ((work.study, work.teaching, lesson, seed) for seed, lesson in due)
    return in_parallel(measured, tasks, min(work.processes, len(due)))


def _kept(work: TaggerWork, seed: int, lesson: Lesson) -> Row:
    (row,) = work.kept(
        _name(lesson), seed, lambda: [measured(work.study, work.teaching, lesson, seed)]
    )
    return row


def _name(lesson: Lesson) -> str:
    return f"{NAME} {lesson.name}"


def averaged(rows: Sequence[Row]) -> list[Row]:
    """Compute means over seeds with half of their 95 % intervals, beside Muschiol's."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in _PLACE), []).append(row)
    found = []
    for place, group in groups.items():
        out: Row = dict(zip(_PLACE, place, strict=True)) | {"seeds": len(group)}
        printed = THEIRS.get(place, ("", "", ""))
        out |= dict(zip(("theirs_mAP", "theirs_macro_F1", "theirs_micro_F1"), printed, strict=True))
        filled = [{name: row.get(name, "") for name in _COLUMNS} for row in group]
        found.append(out | means(filled, _COLUMNS))
    return found
