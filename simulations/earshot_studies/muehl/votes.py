"""Votes of ensembles with personal budgets, by teachers that are trained once for all settings.

Records are divided into four quarters at random. A teacher learns from records of one quarter
alone, so each share of owners with the higher budget is a number of quarters. For upsampling, copy
c of a quarter is one more disjoint partition of its records among teachers of its own. Every
setting is a choice of (copy, teacher) from the same five copies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.files import replace_file, replacement
from earshot_protocol.progress import Progress
from earshot_studies.kit.kept import digest
from earshot_studies.muehl.table import Table

QUARTERS = 4
TEACHERS = 250
"""Teachers of one copy in Mühl (2021)."""
_SETTINGS = "votes.json"

Fit = Callable[[Table, int], Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]]]
"""Training of a teacher: records and a seed → a function from rows to classes."""


@dataclass(frozen=True)
class Ensembles:
    """The assignment of records to teachers.

    Attributes:
        records: Number of private records.
        teachers: Teachers of one copy, in which every record is with one teacher.
        seed: Seed of the partitions.
    """

    records: int
    teachers: int = TEACHERS
    seed: int = 0

    def __post_init__(self) -> None:
        if not QUARTERS <= self.teachers <= self.records:
            raise InvalidParametersError(
                f"teachers={self.teachers}: must be from {QUARTERS} to the number of records, "
                f"{self.records}"
            )

    @property
    def ends(self) -> tuple[int, ...]:
        """Ends of each quarter's teachers, in every copy; of 250: 63, 125, 188, 250."""
        return tuple(-(-self.teachers * quarter // QUARTERS) for quarter in range(1, QUARTERS + 1))

    def quarter(self, teacher: int) -> int:
        """Return the quarter whose records a teacher learns from, 0 to 3."""
        return int(np.searchsorted(self.ends, teacher, side="right"))

    def part(self, copy: int, teacher: int) -> npt.NDArray[np.int64]:
        """Return the records of one teacher; the copies count from 0."""
        if copy == 0:
            return self._first[teacher]
        quarter = self.quarter(teacher)
        start, end = (0, *self.ends)[quarter], self.ends[quarter]
        records = np.concatenate(self._first[start:end])
        mixed = np.random.default_rng([self.seed, copy, quarter]).permutation(records)
        return np.array_split(mixed, end - start)[teacher - start]

    @cached_property
    def _first(self) -> list[npt.NDArray[np.int64]]:
        mixed = np.random.default_rng([self.seed, 0]).permutation(self.records)
        return np.array_split(mixed, self.teachers)


@dataclass(frozen=True)
class VoteFolder:
    """A folder that keeps votes, one file per teacher, so that no teacher is trained twice.

    Attributes:
        path: Path of the folder.
        ensembles: Assignment of records to teachers.
        private: Records that teachers learn from.
        rows: Rows that teachers vote on, (queries, …).
        fit: Function that trains a teacher.
        recipe: Recipe of teachers, as text; votes of another recipe are refused.
    """

    path: Path
    ensembles: Ensembles
    private: Table
    rows: npt.NDArray[np.float32]
    fit: Fit
    recipe: str

    def votes(self, wanted: Sequence[tuple[int, int]], progress: Progress) -> npt.NDArray[np.int8]:
        """Return teachers' answers, int8 (teachers, queries); train those that have not voted yet.

        Args:
            wanted: Pair (copy, teacher) of each teacher.
            progress: Callback that receives the number of teachers that have voted.

        Raises:
            InvalidInputError: The folder is of another recipe, or damaged.
        """
        self._check()
        answers = np.empty((len(wanted), len(self.rows)), np.int8)
        for place, (copy, teacher) in enumerate(wanted):
            file = self.path / f"copy-{copy + 1}" / f"teacher-{teacher + 1:04d}.npy"
            if not file.exists():
                part = self.private.at(self.ensembles.part(copy, teacher))
                seed = copy * self.ensembles.teachers + teacher
                _save(file, self.fit(part, seed)(self.rows).astype(np.int8))
            answers[place] = self._read(file)
            progress("teachers", place + 1, len(wanted))
        return answers

    def _read(self, file: Path) -> npt.NDArray[np.int8]:
        try:
            answers: npt.NDArray[np.int8] = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InvalidInputError(f"{file} is damaged ({error}): remove it") from error
        if answers.shape != self.rows.shape[:1] or answers.dtype != np.int8:
            raise InvalidInputError(f"{file} holds no votes on {len(self.rows)} rows: remove it")
        return answers

    def _check(self) -> None:
        settings: dict[str, Any] = {
            "recipe": self.recipe,
            "teachers": self.ensembles.teachers,
            "seed": self.ensembles.seed,
            "data": digest(self.rows, self.private.rows),
        }
        file = self.path / _SETTINGS
        if file.exists():
            if json.loads(file.read_text(encoding="utf-8")) != settings:
                raise InvalidInputError(
                    f"{self.path} holds votes of other teachers: use another folder"
                )
            return
        self.path.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(settings, indent=1))


def _save(file: Path, answers: npt.NDArray[np.int8]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacement(file) as draft:
        np.save(draft, answers)
