"""Commands of the studies of Muschiol (2021): taggers of urban sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_studies.kit.making import WORK, make

if TYPE_CHECKING:
    from earshot_protocol.progress import Progress
    from earshot_studies.kit.outcome import Reproduction


class TeacherChoice(StrEnum):
    """Kinds of teachers: the values of `taggers.school.LearnerKind`, imported where needed."""

    LINEAR = "linear"
    SMALL = "small"


def _taggers(module: str, shown: str, more: str) -> Callable[..., None]:
    """Return the command that runs a study of this package on ensembles of taggers.

    Args:
        module: Name of the study's module.
        shown: Help text of the command.
        more: What --full adds, beside seeds.
    """

    def taggers(
        *,
        data: Path,
        out: Path,
        teachers: TeacherChoice = TeacherChoice.SMALL,
        seeds: int | None = None,
        full: bool = False,
        processes: int = 2,
        cache: Path | None = None,
        overwrite: bool = False,
    ) -> None:
        from earshot_studies.muschiol.taggers.school import LearnerKind, Teaching
        from earshot_studies.muschiol.taggers.study import TaggerStudy
        from earshot_studies.muschiol.work import TaggerWork

        folder = cache or out / WORK
        found = import_module(f"{__package__}.{module}")
        study, teaching = TaggerStudy(data, folder), Teaching(LearnerKind(teachers.value))
        count = seeds if seeds is not None else 10 if full else 5
        work = TaggerWork(study, count, teaching, processes, full)

        def outcome(progress: Progress) -> Reproduction:
            made: Reproduction = found.reproduce(replace(work, progress=progress))
            return made

        make(found.NAME, out, overwrite, outcome, keeps=folder)

    taggers.__doc__ = f"{shown}\n{_OPTIONS.format(more=more)}"
    return taggers


_OPTIONS = """
    Args:
        data: Folder that holds esc10, fsdd and perhaps free_sounds.
        out: New folder for the CSV, the picture and the Markdown note.
        teachers: Kind of teachers: small networks, or linear ones, which are faster.
        seeds: Repetitions, each with its own mixtures and taggers; by default 5, or 10 with --full.
        full: Use ten seeds, and {more}.
        processes: Number of processes for training.
        cache: Folder that keeps ensembles between runs; by default OUT/work.
        overwrite: Replace these files where --out has them.
    """

ensemble = _taggers(
    "ensemble",
    "Score ensembles that tag all sounds: 10, 20, 50 teachers and a baseline.",
    "ten taggers by each recipe instead of two",
)
student = _taggers(
    "student",
    "Train students on answers of fifty taggers, by threshold and check, with costs.",
    "students of every check and number of answers",
)


def privacy(
    *,
    data: Path,
    out: Path,
    teachers: TeacherChoice = TeacherChoice.SMALL,
    seeds: int | None = None,
    queries: int = 2000,
    full: bool = False,
    processes: int = 2,
    cache: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Compare costs of votes against thresholds: claimed on AudioSet, sound, and cheapest.

    Args:
        data: Folder that holds esc10, fsdd and perhaps free_sounds.
        out: New folder for the CSV, the picture and the Markdown note.
        teachers: Kind of teachers: small networks, those of audioset-ensemble (give its --cache),
            or linear ones, in a tenth of the time.
        seeds: Ensembles, each with its own mixtures and noise; by default 5, or 10 with --full.
        queries: Maximum number of mixtures from which costs are computed.
        full: Use ten ensembles.
        processes: Number of processes for training.
        cache: Folder that keeps ensembles between runs; by default OUT/work.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_simulations.engine.processes import check_processes
    from earshot_studies.muschiol import privacy

    count = checks.whole("seeds", seeds if seeds is not None else 10 if full else 5)
    checks.whole("queries", queries)
    check_processes("processes", processes)
    work = cache or out / WORK

    def outcome(progress: Progress) -> Reproduction:
        return privacy.reproduce(
            privacy.on_mixtures(data, work, teachers.value, queries, count, processes, progress)
        )

    make(privacy.NAME, out, overwrite, outcome, keeps=work)


def phones(
    *,
    data: Path,
    out: Path,
    phones: int = 3000,
    samples: int = 500,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    seeds: int = 5,
    real: int | None = None,
    overwrite: bool = False,
) -> None:
    """Label with thousands of phones as teachers: a secure sum beside a curator of the same ε.

    Args:
        data: Folder that holds esc10, fsdd and perhaps free_sounds.
        out: New folder for the CSV, the picture and the Markdown note.
        phones: Phones, which are the teachers.
        samples: Samples that they vote on, in one sum.
        epsilon: Cost ε of a phone that is left out.
        delta: Parameter δ of the same guarantee.
        seeds: Crowds, each with its own mixtures and noise.
        real: Crowds whose sums use real cryptography, by default all; the other sums are sampled
            from their distribution.
        overwrite: Replace these files where --out has them.
    """
    from earshot_studies.muschiol import phones as study

    work = out / WORK

    def outcome(progress: Progress) -> Reproduction:
        return study.reproduce(
            study.PhonesPlan(
                data,
                work,
                phones=phones,
                samples=samples,
                epsilon=epsilon,
                delta=delta,
                seeds=seeds,
                real=real,
                progress=progress,
            )
        )

    make(study.NAME, out, overwrite, outcome, keeps=work)
