"""PATE-AAE (Yang et al., Interspeech 2021), Table 1 and Figure 5, on spoken digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from earshot_protocol import checks
from earshot_protocol.progress import Progress
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.engine.quiet import let_cancelled_jobs_go
from earshot_simulations.generation import public_embedding
from earshot_simulations.generation.public_embedding import PublicEmbedding
from earshot_simulations.reproductions import pate_aae_note, pate_aae_picture
from earshot_simulations.reproductions.outcome import Outcome
from earshot_simulations.reproductions.pate_aae_rows import Found, averaged
from earshot_simulations.spoken.split import Split, open_sounds, open_split
from earshot_simulations.spoken.study import Cell, Size, Study
from earshot_simulations.spoken.systems import Makers, System

NAME = "pate-aae"

_DIGITS, _SOUNDS = "fsdd", "free_sounds"


def opened(
    data: Path,
    work: Path,
    size: Size,
    progress: Progress,
    speaker: str | None = None,
    makers: Makers | None = None,
    recipes: Mapping[System, str] | None = None,
) -> Study:
    """The study of a folder's digits, with everything that can be refused refused.

    Args:
        data: folder that holds `fsdd` and `free_sounds`.
        work: folder of what is kept.
        size: how much is trained and asked.
        progress: told what is done.
        speaker: the public one; the first by name where None.
        makers: of the generators; those of `spoken.generators` where None.
        recipes: how these train, in words; needed with makers of one's own.

    Raises:
        DatasetError, InvalidInputError, InvalidParametersError: see `open_split`, `Study`.
    """

    def told(done: int, total: int) -> None:
        progress("reading sound", done, total)

    split = open_split(data / _DIGITS, speaker, work / "sound", told)
    size.check(len(split.private))
    if makers is None or recipes is None:
        from earshot_simulations.spoken import generators

        own = generators.Recipe(teachers=generators.critics(size.teachers))
        makers, recipes = generators.makers(own), own.described
    embedding = _embedding(data / _SOUNDS, split, work, told)
    return Study(split, embedding, size, makers, recipes, work, progress)


def reproduce(study: Study, seeds: int, processes: int = 1) -> Outcome:
    """Every system under every budget, so many times.

    Args:
        study: what to measure.
        seeds: repetitions, each with its own teachers, generators and noise.
        processes: that train.

    Raises:
        InvalidParametersError: no seeds or processes, or more of these than this machine can use.
    """
    numbers = range(1, checks.whole("seeds", seeds) + 1)
    _measure(study, numbers, check_processes("processes", processes))
    references: list[Cell] = [study.references(seed) for seed in numbers]
    cells = [cell for seed in numbers for system in System for cell in study.cells(system, seed)]
    found = Found(cells, references, averaged(cells))
    shown = {
        (system, epsilon): study.pictures(system, epsilon, 1)
        for system in System
        for epsilon in pate_aae_picture.shown(study.size.epsilons)
    }
    return Outcome(
        NAME,
        found.table,
        lambda path: pate_aae_picture.draw(found, study.size, shown, path),
        pate_aae_note.note(found, study),
    )


def _measure(study: Study, seeds: range, processes: int) -> None:
    """Let cells be kept: a part of a seed at a time, of systems that learn from the same start."""
    from joblib import Parallel, delayed

    parts = [
        (seed, tuple(system for system in System if system.started is started))
        for seed in seeds
        for started in (False, True)
    ]
    measured: Iterable[int] = (_part(study, *part) for part in parts)
    if processes > 1:
        let_cancelled_jobs_go()
        silent = replace(study, progress=_silent)
        parallel = Parallel(n_jobs=processes, return_as="generator_unordered", batch_size=1)
        measured = parallel(delayed(_part)(silent, *part) for part in parts)
    done, total = 0, len(seeds) * len(System)
    study.progress("systems", done, total)
    for number in measured:
        done += number
        study.progress("systems", done, total)


def _part(study: Study, seed: int, systems: tuple[System, ...]) -> int:
    """How many systems were measured."""
    if not systems[0].started:
        study.references(seed)
    for system in systems:
        study.cells(system, seed)
    return len(systems)


def _silent(what: str, done: int, total: int, line: str | None = None) -> None:
    """Of a process whose words nobody hears."""


def _embedding(
    data: Path, split: Split, work: Path, told: Callable[[int, int], None]
) -> PublicEmbedding:
    """Fitted on public sound and on the public speaker's digits."""
    sounds = open_sounds(data, work / "sound", told)
    digits = [f"digit {split.classes[label]}" for label in split.public.labels]
    pictures = np.concatenate([sounds.pictures, split.public.pictures])
    return public_embedding.kept(work, pictures, [*sounds.names, *digits])
