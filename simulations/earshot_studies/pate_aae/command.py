"""Commands of the studies of private students of spoken digits, and of generators' training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from earshot_studies.kit.making import WORK, make

if TYPE_CHECKING:
    from earshot_protocol.progress import Progress
    from earshot_studies.kit.outcome import Reproduction


def private_digits(
    *,
    data: Path,
    out: Path,
    speaker: str | None = None,
    seeds: int = 5,
    teachers: int = 200,
    queries: int = 200,
    epsilon: list[float] | None = None,
    delta: float = 1e-5,
    processes: int = 2,
    work: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Train private students of generated spoken digits, by generator and ε.

    Args:
        data: Folder that holds fsdd and free_sounds.
        out: New folder for the CSV, the picture and the Markdown note.
        speaker: Speaker whose clips are public; by default the first by name.
        seeds: Number of repetitions, each with its own teachers, generators and noise.
        teachers: Number of teachers, each with its own part of the private clips.
        queries: Number of generated clips that are answered.
        epsilon: Budget ε; may be repeated. The default is the paper's values.
        delta: Budget δ, the same for every ε.
        processes: Number of processes for training.
        work: Folder that keeps cells between runs; by default OUT/work.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_simulations.engine.processes import check_processes
    from earshot_studies.pate_aae import table_1
    from earshot_studies.pate_aae.study import EPSILONS, StudySize

    count = checks.whole("seeds", seeds)
    check_processes("processes", processes)
    size = StudySize(teachers, queries, delta=delta, epsilons=tuple(epsilon or EPSILONS))
    folder = work or out / WORK

    def outcome(progress: Progress) -> Reproduction:
        study = table_1.opened(data, folder, size, progress, speaker)
        return table_1.reproduce(study, count, processes)

    make(table_1.NAME, out, overwrite, outcome, keeps=folder)


def noisy_gradients(
    *, out: Path, trials: int = 100_000, seed: int = 0, overwrite: bool = False
) -> None:
    """Audit generators trained by noisy gradients: the cost of their noise, and planted faults.

    Args:
        out: New folder for the CSV, the picture and the Markdown note.
        trials: Trials of real steps on each of two data sets.
        seed: Seed of the trials.
        overwrite: Replace these files where --out has them.
    """
    from earshot_protocol import checks
    from earshot_studies.pate_aae import audited_training

    checks.whole("trials", trials, 1000, 10**8)
    checks.whole("seed", seed, 0)
    make(
        audited_training.NAME,
        out,
        overwrite,
        lambda progress: audited_training.reproduce(trials, seed, progress),
        resumes=(),
    )
