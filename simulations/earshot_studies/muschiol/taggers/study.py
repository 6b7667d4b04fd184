"""What a study of taggers mixes: for teachers, for thresholds, for students and for tests."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

import numpy as np

from earshot_models.datasets.waveforms import Progress
from earshot_models.tagging.mel_power import MelSettings
from earshot_protocol import checks
from earshot_studies.kit.mixtures.mixing import Recipe
from earshot_studies.kit.mixtures.sources import Side
from earshot_studies.muschiol.taggers.mixtures import LONG_TAIL, Mixtures, draw
from earshot_studies.muschiol.taggers.powers import open_powers

HEARD = MelSettings(8000, 512, 256, 32, 1.0)
"""What taggers of a study hear: 32 frames of 32 bands; more made none better and took twice as
long."""


@dataclass(frozen=True)
class Size:
    """How much is mixed.

    Attributes:
        mixtures: of all teachers together, whatever their number.
        validation, queries, test: mixtures for early stopping and thresholds, for the ensemble's
            answers, for scores.
    """

    mixtures: int = 12_000
    validation: int = 1000
    queries: int = 12_000
    test: int = 2000

    def __post_init__(self) -> None:
        for each in fields(self):
            checks.whole(each.name, getattr(self, each.name))


@dataclass(frozen=True)
class Material:
    """Mixtures of one seed; those of different sides share no recording.

    Attributes:
        labels: their names.
        pool: of all teachers together, in no order.
        validation, queries, test: of all others.
    """

    labels: tuple[str, ...]
    pool: Mixtures
    validation: Mixtures
    queries: Mixtures
    test: Mixtures

    def teacher(self, number: int, of: int) -> Mixtures:
        """Of one of so many teachers: theirs alone, the same number for all but one."""
        return self.pool.rows(np.arange(number, len(self.pool), of))


@dataclass(frozen=True)
class Study:
    """Where sound comes from, and what is mixed of it.

    Attributes:
        data: folder that holds `esc10`, `fsdd` and perhaps `free_sounds`.
        cache: folder of all that is kept.
        size: how much is mixed.
        recipe: how sounds are mixed.
        mel: what taggers hear.
    """

    data: Path
    cache: Path
    size: Size = field(default_factory=Size)
    recipe: Recipe = LONG_TAIL
    mel: MelSettings = HEARD

    def material(self, seed: int, progress: Progress = lambda done, total: None) -> Material:
        """Mixtures of one seed, drawn again at each call, always the same.

        Raises:
            DatasetError: data are missing, or not laid out as `datasets` expects.
            UnreadableFileError: a file does not decode.
            InvalidInputError: a label lacks sound on a side, or teachers have one recording of it.
            InvalidParametersError: fewer labels than a mixture has, or clips that are no seconds.
        """
        powers = open_powers(self.data, self.mel, self.cache, progress)
        sides = {
            Side.TEACHERS: self.size.mixtures,
            Side.VALIDATION: self.size.validation,
            Side.QUERIES: self.size.queries,
            Side.TEST: self.size.test,
        }
        drawn = (
            draw(powers, side, count, self.recipe, np.random.default_rng([seed, side]))
            for side, count in sides.items()
        )
        return Material(powers.labels, *drawn)


@lru_cache(maxsize=1)
def material(study: Study, seed: int) -> Material:
    """As `Study.material`, but what was asked for last is still there."""
    return study.material(seed)
