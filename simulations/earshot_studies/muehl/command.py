"""Commands of the studies of Mühl (2021): votes under personal budgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_studies.kit.making import make
from earshot_studies.kit.options import described

if TYPE_CHECKING:
    from earshot_protocol.progress import Progress
    from earshot_studies.kit.outcome import Reproduction

_VOTES = "votes"
_LABELS, _ACCURACY = "personalized-labels", "personalized-accuracy"


def _table(name: str, shown: str, *without: str) -> Callable[..., None]:
    """Return the command that makes a table of Mühl (2021), without some of its options."""

    def table(
        *,
        data: Path,
        out: Path,
        votes: Path | None = None,
        processes: int | None = None,
        students: int = 1,
        teachers: int = 250,
        full: bool = False,
        overwrite: bool = False,
    ) -> None:
        from earshot_protocol.checks import whole
        from earshot_studies.muehl import tables
        from earshot_studies.muehl.cells import VotingWork
        from earshot_studies.muehl.data import open_subject
        from earshot_studies.muehl.votes import Ensembles

        subject = open_subject(data)
        ensembles = Ensembles(len(subject.private), teachers)
        usual = subject.processes if full else 5
        number = usual if processes is None else whole("processes", processes)
        whole("students", students)
        folder = votes or out / _VOTES

        def outcome(progress: Progress) -> Reproduction:
            work = VotingWork(subject, ensembles, folder, number, full, progress)
            if name == _LABELS:
                return tables.labels(work)
            return tables.accuracy(work, students)

        make(name, out, overwrite, outcome, keeps=folder, resumes=[_VOTES])

    described(table, shown, _OPTIONS, *without)
    return table


_OPTIONS = """
    Args:
        data: Folder of MNIST's IDX files, or of UCI Adult's tables.
        out: New folder for the CSV, the picture and the Markdown note.
        votes: Folder that keeps teachers' votes between runs; by default OUT/votes.
        processes: Voting processes of a cell; by default 5, or Mühl's number with --full (15 on
            MNIST, 50 on Adult).
        students: Students of a cell, each of the answers of another process.
        teachers: Teachers of an ensemble; noise stays that for 250.
        full: Also measure upsampling, which trains four times as many teachers.
        overwrite: Replace these files where --out has them.
    """

labels = _table(
    _LABELS, "Count labels that an ensemble gives under personal privacy budgets.", "students"
)
accuracy = _table(_ACCURACY, "Measure accuracy of students of labels under personal budgets.")
