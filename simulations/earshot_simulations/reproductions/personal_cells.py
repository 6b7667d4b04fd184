"""The cells of Tables 6.4 to 6.7: one voting process after another, and a student for some."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from earshot_models.datasets.table import Table
from earshot_protocol.errors import EarshotError
from earshot_protocol.progress import Progress
from earshot_protocol.voting.winners import NONE
from earshot_simulations.reproductions.personal_data import Subject
from earshot_simulations.reproductions.personal_labels import Accounting, Answered, answered
from earshot_simulations.reproductions.personal_plan import Plan, Variant, plan
from earshot_simulations.reproductions.personal_printed import HIGHER
from earshot_simulations.reproductions.personal_votes import Ensembles, VoteFolder

DELTA = 1e-5
_FEW_SOUND = 3
"""Processes whose exact cost is worked out: most of the work, and it differs little."""
_MOST_LABELS = 2000
"""Of a student, in Mühl (2021)."""
_STUDENTS = "students.json"


class OverspentError(EarshotError):
    """An owner whose budget was exceeded: a mistake of this program, never of its input."""


@dataclass(frozen=True)
class Cell:
    """One place in a table, and what came of its processes.

    Attributes:
        variant, higher, quarters: which.
        plan: who votes how.
        answers: of each accounting, one for each process.
    """

    variant: Variant
    higher: float
    quarters: int
    plan: Plan
    answers: dict[Accounting, list[Answered]]

    def labels(self, accounting: Accounting) -> list[int]:
        """How many each process gave."""
        return [each.labels for each in self.answers[accounting]]


@dataclass(frozen=True)
class Work:
    """What to work on and how much of it.

    Attributes:
        subject: the data.
        ensembles: who learns from what.
        votes: folder of votes and of what students reached; kept between runs.
        processes: voting processes of a cell.
        upsampled: whether to train what upsampling needs beyond one ensemble.
        progress: told what is done.
    """

    subject: Subject
    ensembles: Ensembles
    votes: Path
    processes: int
    upsampled: bool
    progress: Progress

    @property
    def folder(self) -> VoteFolder:
        """Where votes are kept."""
        subject = self.subject
        return VoteFolder(
            self.votes, self.ensembles, subject.private, subject.asked, subject.teacher,
            subject.recipe,
        )  # fmt: skip

    def cells(self, accountings: tuple[Accounting, ...]) -> Iterator[Cell]:
        """The baseline, then all others; trains teachers that are missing.

        Args:
            accountings: by which to stop.

        Raises:
            OverspentError: an owner's budget was exceeded.
        """
        variants = [Variant.VANISHING, Variant.WEIGHTING]
        if self.upsampled:
            variants.insert(0, Variant.UPSAMPLING)
        wanted = [(Variant.EQUAL, 1.0, 2)]
        wanted += [(v, higher, q) for v in variants for higher in HIGHER for q in (1, 2, 3)]
        for done, (variant, higher, quarters) in enumerate(wanted):
            yield self._cell(variant, higher, quarters, accountings)
            self.progress("cells", done + 1, len(wanted))

    def teachers(self) -> npt.NDArray[np.int8]:
        """What the first ensemble answers, int8 (teachers, public and test)."""
        return self.folder.votes([(0, t) for t in range(self.ensembles.teachers)], self.progress)

    def _cell(
        self,
        variant: Variant,
        higher: float,
        quarters: int,
        accountings: tuple[Accounting, ...],
    ) -> Cell:
        public = self.subject.public
        chosen = plan(variant, higher, quarters, self.ensembles, self.subject.mechanism)
        votes = self.folder.votes(chosen.wanted, self.progress)[:, : len(public)]
        answers: dict[Accounting, list[Answered]] = {each: [] for each in accountings}
        for process in range(self.processes):
            here = tuple(
                each for each in accountings if each is not Accounting.SOUND or process < _FEW_SOUND
            )
            generator = np.random.default_rng([self.ensembles.seed, 0xCE11, process])
            found = answered(chosen, votes, len(public.classes), DELTA, here, generator)
            for accounting, each in found.items():
                checked(each, chosen)
                answers[accounting].append(each)
        return Cell(variant, higher, quarters, chosen, answers)


def checked(answers: Answered, plan: Plan) -> Answered:
    """The same, if every owner stayed within its own budget.

    Raises:
        OverspentError: one did not.
    """
    for spent, budget, group in zip(answers.spent, plan.budgets, ("lower", "higher"), strict=True):
        if spent > budget:
            raise OverspentError(
                f"an owner of the {group} budget spent {spent}, more than {budget}"
            )
    return answers


def student_accuracy(work: Work, cell: Cell, accounting: Accounting, process: int) -> float:
    """How many of the test's rows a student gets right that learned from a process's answers.

    What was found is kept in the folder of votes.

    Args:
        work: with data and folder.
        cell: whose answers.
        accounting: by which they were stopped.
        process: which.
    """
    file = work.votes / _STUDENTS
    kept: dict[str, float] = json.loads(file.read_text()) if file.exists() else {}
    answers = cell.answers[accounting][process]
    there = np.flatnonzero(answers.winners != NONE)[:_MOST_LABELS]
    key = f"{accounting} {cell.variant} {cell.higher:g} {cell.quarters} {process} {len(there)}"
    if key not in kept:
        test = work.subject.test
        lesson = Table(
            work.subject.public.rows[answers.queries[there]],
            answers.winners[there],
            test.classes,
        )
        right = work.subject.student(lesson, process)(test.rows) == test.labels
        kept[key] = float(np.mean(right))
        new = file.with_suffix(".new")
        new.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        os.replace(new, file)
    return kept[key]


def right_labels(work: Work, answers: Sequence[Answered]) -> float:
    """Which part of the answers is the true label."""
    truth = work.subject.public.labels
    right = [
        (each.winners == truth[each.queries])[each.winners != NONE]
        for each in answers
        if each.labels
    ]
    return float(np.mean(np.concatenate(right))) if right else float("nan")
