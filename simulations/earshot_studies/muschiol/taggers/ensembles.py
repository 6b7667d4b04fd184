"""Outputs of the teachers of an ensemble of taggers, kept on disk.

Teachers learn from disjoint mixtures of the same recordings: a vote protects a mixture, but not a
recording. All ensembles of a seed share one pool, so fewer teachers have more mixtures each, and
one teacher, the baseline, has them all.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.files import replacement
from earshot_protocol.progress import Progress, silent
from earshot_simulations.workers import in_parallel
from earshot_studies.kit.kept import Kept
from earshot_studies.kit.mixtures.sources import Side
from earshot_studies.muschiol.taggers.powers import contents
from earshot_studies.muschiol.taggers.school import NETWORKS, LearnerKind, School, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy, material

FEWEST = 10
"""Fewest mixtures that a teacher learns from."""

_VERSION = 1
"""Cache format version; part of the key."""
_AT_ONCE = {LearnerKind.LINEAR: 50, LearnerKind.SMALL: 1}
"""Teachers that are trained before anything is kept."""
_SIDES = (Side.VALIDATION, Side.QUERIES, Side.TEST)


@dataclass(frozen=True)
class Scored:
    """The output of an ensemble for some mixtures.

    Attributes:
        probabilities: Each teacher's probabilities, float32 (teachers, mixtures, labels) in [0, 1].
        truth: Labels in each mixture, 0 or 1, int8 (mixtures, labels).
    """

    probabilities: NDArray[np.float32]
    truth: NDArray[np.int8]

    def mean(self) -> NDArray[np.float64]:
        """Return m, the mean over teachers, (mixtures, labels)."""
        found: NDArray[np.float64] = self.probabilities.mean(axis=0, dtype=np.float64)
        return found


@dataclass(frozen=True)
class EnsembleScores:
    """The output of an ensemble for all mixtures that are not the teachers'.

    Attributes:
        labels: Names of the labels.
        validation, queries, test: Mixtures of other recordings each, in the order of the study's
            `Material`.
    """

    labels: tuple[str, ...]
    validation: Scored
    queries: Scored
    test: Scored


def prepared(
    study: TaggerStudy,
    teachers: int,
    seed: int,
    teaching: Teaching = NETWORKS,
    processes: int = 1,
    progress: Progress = silent,
    *,
    first: int | None = None,
) -> EnsembleScores:
    """Train an ensemble and compute its output, or read that from the cache.

    An interruption loses the teachers that are being trained, one to fifty in each process; the
    next call continues with all others.

    Args:
        study: Study that makes the mixtures.
        teachers: Number of teachers; 1 for a baseline that learns from all mixtures.
        seed: Seed of mixtures and teachers.
        teaching: Training of each teacher.
        processes: Number of processes for training; the result does not depend on it.
        progress: Callback after each teacher, or each fifty linear ones.
        first: Train only this many first teachers; all by default.

    Raises:
        InvalidParametersError: A teacher would have fewer than ten mixtures, or the study's
            settings do not fit; see `TaggerStudy.material`.
        DatasetError, UnreadableFileError, InvalidInputError: The sound cannot be used; see
            `TaggerStudy.material`.
    """
    checks.whole("teachers", teachers)
    if study.size.mixtures < FEWEST * teachers:
        raise InvalidParametersError(
            f"teachers={teachers}: too many for {study.size.mixtures:,} mixtures; each teacher "
            f"needs {FEWEST} of its own, so there can be at most {study.size.mixtures // FEWEST}"
        )
    trained = teachers if first is None else checks.whole("first", first, 1, teachers)
    path = _place(study, teachers, seed, teaching, first)
    if not path.is_file():
        folder = path.with_suffix("")
        ensemble = _Ensemble(study, teachers, seed, teaching, folder)
        ensemble.train(trained, processes, progress)
        if not path.is_file():  # two runs may train the same one
            _gather(study, seed, folder, path)
        shutil.rmtree(folder, ignore_errors=True)
    with np.load(path) as kept:
        sides = (
            Scored(kept[f"{side.name}_probabilities"], kept[f"{side.name}_truth"])
            for side in _SIDES
        )
        return EnsembleScores(tuple(map(str, kept["labels"])), *sides)


def _place(
    study: TaggerStudy, teachers: int, seed: int, teaching: Teaching, first: int | None
) -> Path:
    settings = [_VERSION, contents(study.data), asdict(study.size), asdict(study.recipe)]
    settings += [asdict(study.mel), asdict(teaching), teachers, seed]
    settings += [] if first is None else [first]
    return Kept(study.cache).place("ensemble", settings, ".npz")


@dataclass(frozen=True)
class _Ensemble:
    """An ensemble in training, with a file, complete or missing, for each few teachers."""

    study: TaggerStudy
    teachers: int
    seed: int
    teaching: Teaching
    folder: Path

    def train(self, teachers: int, processes: int, progress: Progress) -> None:
        """Train this many first teachers, except those already kept."""
        material(self.study, self.seed)  # reports invalid sound early, and caches powers
        at_once = _AT_ONCE[self.teaching.kind]
        due = [
            range(first, min(first + at_once, teachers))
            for first in range(0, teachers, at_once)
            if not self._file(first).is_file()
        ]
        done = teachers - sum(map(len, due))
        what = f"{self.teachers} teachers, seed {self.seed}"
        progress(what, done, teachers)
        tasks = ((each,) for each in due)
        for number in in_parallel(self.some, tasks, min(processes, len(due)), ordered=False):
            done += number
            progress(what, done, teachers)

    def some(self, numbers: range) -> int:
        """Train these teachers, keep their output, and return their number."""
        school = _school(self.study, self.seed, self.teaching)
        found = []
        for number in numbers:
            own = school.material.teacher(number, self.teachers)
            entropy = [self.seed, self.teachers, number]
            chance = int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)
            found.append(school.asked(school.taught(own.power(), own.truth, chance)))
        self.folder.mkdir(parents=True, exist_ok=True)  # another run may have removed it
        with replacement(self._file(numbers.start)) as draft:
            np.save(draft, np.stack(found), allow_pickle=False)
        return len(numbers)

    def _file(self, first: int) -> Path:
        return self.folder / f"{first:05d}.npy"


@lru_cache(maxsize=1)
def _school(study: TaggerStudy, seed: int, teaching: Teaching) -> School:
    """Return the school of a seed; cached, as a process trains many teachers in it."""
    return School(material(study, seed), teaching)


def _gather(study: TaggerStudy, seed: int, folder: Path, path: Path) -> None:
    """Collect all teachers in one file, by sides."""
    whole = np.concatenate([np.load(each) for each in sorted(folder.glob("?????.npy"))])
    mixed = material(study, seed)
    parts = (mixed.validation, mixed.queries, mixed.test)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    arrays = {"labels": np.array(mixed.labels)}
    for side, part, rows in zip(_SIDES, parts, np.split(whole, ends, axis=1), strict=True):
        arrays[f"{side.name}_probabilities"], arrays[f"{side.name}_truth"] = rows, part.truth
    with replacement(path) as draft:
        np.savez(draft, allow_pickle=False, **arrays)
