"""Shared parts of the reproductions of Muschiol (2021): ensembles of taggers, and kept rows.

AudioSet is not available here: mixtures of real sounds with twenty labels replace its 153.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from earshot_protocol import checks
from earshot_protocol.progress import Progress, silent
from earshot_simulations.engine.processes import check_processes
from earshot_studies.kit.kept import Kept, rows_at
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.taggers.ensembles import EnsembleScores, prepared
from earshot_studies.muschiol.taggers.powers import contents
from earshot_studies.muschiol.taggers.school import NETWORKS, LearnerKind, Teaching
from earshot_studies.muschiol.taggers.study import TaggerStudy

_VERSION = 1
"""Cache format version; part of the key."""


@dataclass(frozen=True)
class TaggerWork:
    """The mixtures of a study, the training of its taggers, and its repetitions.

    Attributes:
        study: Study that makes the mixtures.
        seeds: Number of seeds, each with its own mixtures, networks and noise.
        teaching: Training of teachers and students.
        processes: Number of processes for training.
        full: Whether to include the slow measurements.
        progress: Callback that receives the progress.
    """

    study: TaggerStudy
    seeds: int = 5
    teaching: Teaching = NETWORKS
    processes: int = 1
    full: bool = False
    progress: Progress = silent

    def __post_init__(self) -> None:
        checks.whole("seeds", self.seeds)
        check_processes("processes", self.processes)

    @property
    def reported(self) -> range:
        """Seeds that are measured, from 1 on; settings were chosen with seed 0."""
        return range(1, self.seeds + 1)

    def ensemble(self, teachers: int, seed: int) -> EnsembleScores:
        """Return the output of an ensemble of this size, from the cache or after training."""
        return prepared(self.study, teachers, seed, self.teaching, self.processes, self.progress)

    def kept(self, name: str, seed: int, make: Callable[[], list[Row]]) -> list[Row]:
        """Return the kept rows of a seed, or make and keep them.

        Args:
            name: Name of the measurement, with all settings that are not the study's.
            seed: Seed of its mixtures.
            make: Function that measures the rows.
        """
        return rows_at(self.place(name, seed), make)

    def place(self, name: str, seed: int) -> Path:
        """Return the path of the kept rows of a seed; see `kept`."""
        study = self.study
        settings = [_VERSION, name, contents(study.data), asdict(study.size), asdict(study.recipe)]
        settings += [asdict(study.mel), asdict(self.teaching), seed]
        return Kept(study.cache).place(name.partition(" ")[0], settings)

    @property
    def described(self) -> str:
        """Description of the mixtures and taggers, for notes."""
        size, recipe = self.study.size, self.study.recipe
        tagger = "logistic regressions on the mean and deviation of each band"
        if self.teaching.kind is LearnerKind.SMALL:
            tagger = (
                "small convolutional networks, trained by Muschiol's recipe (balanced batches, "
                "mixup), stopped early and chosen by mAP on validation mixtures"
            )
        return (
            f"A mixture is one second of one to three real sounds ({recipe.mean:.2f} on average), "
            "drawn with a long tail (a label's chance falls with its rank as "
            f"rank^−{recipe.tail:g}), each up to {recipe.spread:g} dB louder or softer, with a "
            f"background that is {recipe.most_noise:g} to {recipe.least_noise:g} dB softer than "
            "all of them. Ten labels are environments (ESC-10), ten are spoken digits (Free "
            "Spoken Digits), alternating; the background is free sounds. Mel powers "
            f"({self.study.mel.frames} frames, {self.study.mel.bands} bands) of the sounds are "
            "added. Recordings of teachers, validation, queries and tests are disjoint: ESC folds "
            "1 and 2 (every eighth recording held back for validation), 3 and 4; digits by takes. "
            f"{size.mixtures:,} mixtures are divided among the teachers of an ensemble, whatever "
            "their number; the baseline has all. Teachers draw on the same recordings, so a vote "
            f"protects a *mixture*. There are {size.validation:,} mixtures for "
            f"validation, {size.queries:,} queries and {size.test:,} tests; {self.seeds} "
            f"{'seed' if self.seeds == 1 else 'seeds'}. Taggers are {tagger}. Settings were "
            "chosen with one further seed, which is not measured here."
        )
