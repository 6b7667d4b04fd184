"""`earshot reproduce audioset-student`: students of Muschiol (2021), and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from earshot_simulations.engine.quiet import let_cancelled_jobs_go
from earshot_studies.kit.outcome import Outcome, Row, means
from earshot_studies.muschiol.ensemble_tables import BASELINE
from earshot_studies.muschiol.student_note import THEIRS, draw, note
from earshot_studies.muschiol.students import TEACHERS, Lesson, beside, lessons, measured
from earshot_studies.muschiol.taggers.school import Kind
from earshot_studies.muschiol.work import Work

NAME = "audioset-student"
FILES = (f"{NAME}.keras",)
"""What is written beside the table: the best student, for `earshot pate tag`."""

_PLACE = ("rule", "th_e", "th_c", "samples")
_COLUMNS = (
    *("answered", "asked", "claimed", "claimed_independent", "q", "left_out", "replaced"),
    *("mAP", "macro_F1", "micro_F1", "never_named", "validation_mAP"),
    *("answers_F1", "answers_never_named"),
)


def reproduce(work: Work) -> Outcome:
    """Table 5.4's students; what was measured of each is kept, and the best is published."""
    rows = measured_rows(work)
    table = averaged(rows)
    if work.out is not None and work.teaching.kind is Kind.SMALL:
        from earshot_studies.muschiol.published import publish

        (name,) = FILES
        publish(work, table, work.out / name)
    return Outcome(NAME, table, lambda path: draw(table, path), note(work, rows, table))


def measured_rows(work: Work) -> list[Row]:
    """Of every student of every seed, and of their ensembles and baselines."""
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


def _taught(work: Work, due: Sequence[tuple[int, Lesson]]) -> Iterable[Row]:
    """In order, one after another or several at a time."""
    from joblib import Parallel, delayed

    if work.processes == 1 or len(due) < 2:
        return (measured(work.study, work.teaching, lesson, seed) for seed, lesson in due)
    let_cancelled_jobs_go()
    parallel = Parallel(n_jobs=work.processes, return_as="generator", batch_size=1)
    found: Iterable[Row] = parallel(
        delayed(measured)(work.study, work.teaching, lesson, seed) for seed, lesson in due
    )
    return found


def _kept(work: Work, seed: int, lesson: Lesson) -> Row:
    (row,) = work.kept(
        _name(lesson), seed, lambda: [measured(work.study, work.teaching, lesson, seed)]
    )
    return row


def _name(lesson: Lesson) -> str:
    return f"{NAME} {lesson.name}"


def averaged(rows: Sequence[Row]) -> list[Row]:
    """Means over seeds with half of their 95 % intervals, and Muschiol's beside them."""
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
