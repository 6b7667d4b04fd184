"""The mixtures of a study of taggers, for teachers, validation, queries and tests."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

import numpy as np

from earshot_protocol import checks
from earshot_studies.kit.mixtures.mixing import MixingRecipe
from earshot_studies.kit.mixtures.sources import Side
from earshot_studies.muschiol.taggers.mixtures import LONG_TAIL, DrawnMixtures, draw
from earshot_studies.muschiol.taggers.powers import open_powers
from earshot_studies.muschiol.tagging.mel_power import MelSettings

HEARD = MelSettings(8000, 512, 256, 32, 1.0)
"""Spectrum of the taggers' input: 32 frames of 32 bands; larger ones gained nothing and took twice
as long."""


@dataclass(frozen=True)
class TaggerStudySize:
    """The numbers of mixtures.

    Attributes:
        mixtures: Mixtures of all teachers together, whatever their number.
        validation, queries, test: Mixtures for early stopping and thresholds, for the ensemble's
            answers, and for scores.
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
        labels: Names of the labels.
        pool: Mixtures of all teachers together, in random order.
        validation, queries, test: Mixtures of the other sides.
    """

    labels: tuple[str, ...]
    pool: DrawnMixtures
    validation: DrawnMixtures
    queries: DrawnMixtures
    test: DrawnMixtures

    def teacher(self, number: int, of: int) -> DrawnMixtures:
        """Return the mixtures of one teacher of several.

        Teachers share no mixture, and their numbers of mixtures differ by at most one.
        """
        return self.pool.rows(np.arange(number, len(self.pool), of))


@dataclass(frozen=True)
class TaggerStudy:
    """The source of sound, and the mixtures made of it.

    Attributes:
        data: Folder that holds `esc10`, `fsdd` and perhaps `free_sounds`.
        cache: Folder of all cached files.
        size: Numbers of mixtures.
        recipe: Recipe by which sounds are mixed.
        mel: Spectrum of the taggers' input.
    """

    data: Path
    cache: Path
    size: TaggerStudySize = field(default_factory=TaggerStudySize)
    recipe: MixingRecipe = LONG_TAIL
    mel: MelSettings = HEARD

    def material(self, seed: int) -> Material:
        """Draw the mixtures of one seed, the same at each call.

        Raises:
            DatasetError: Data are missing, or not laid out as `datasets` expects.
            UnreadableFileError: A file does not decode.
            InvalidInputError: A label lacks sound on a side, or teachers have only one recording
                of it.
            InvalidParametersError: There are fewer labels than a mixture has, or clips are not
                seconds.
        """
        powers = open_powers(self.data, self.mel, self.cache)
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
def material(study: TaggerStudy, seed: int) -> Material:
    """Return `TaggerStudy.material`, and cache the last result."""
    return study.material(seed)
