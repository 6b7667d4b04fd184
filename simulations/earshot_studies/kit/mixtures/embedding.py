"""Features of mixtures, made once and kept: for teachers, validation, queries and tests.

The public parts (encoder, statistics of the spectrum, their scale) are fitted without teachers'
data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_client.lite_rt_encoder import spectrum
from earshot_protocol import checks
from earshot_protocol.progress import Progress, silent
from earshot_protocol.spectrum import Spectrum
from earshot_studies.kit.kept import Kept
from earshot_studies.kit.mixtures.mixing import MixingRecipe, mix
from earshot_studies.kit.mixtures.sources import Side, Sources

_VERSION = 1
"""Cache format version; part of the key."""
_BATCH = 64
_PARTS = ("teachers", "validation", "queries", "test")


@dataclass(frozen=True)
class Size:
    """The numbers of mixtures.

    Attributes:
        teachers: Number of teachers.
        mixtures: Mixtures of a teacher.
        recordings: Recordings of each label that a teacher mixes from. They are dealt whole, so
            that the number of teachers that share one is known.
        validation, queries, test: Mixtures for thresholds, for the ensemble, and for students.
    """

    teachers: int = 50
    mixtures: int = 150
    recordings: int = 3
    validation: int = 1500
    queries: int = 6000
    test: int = 2000

    def __post_init__(self) -> None:
        for field in fields(self):
            checks.whole(field.name, getattr(self, field.name))
        checks.whole("teachers", self.teachers, 2)


@dataclass(frozen=True)
class Part:
    """Some mixtures.

    Attributes:
        features: Features on a public scale, float32 (…, features).
        truth: Labels of the mixtures, 0 or 1, int8 (…, labels).
    """

    features: NDArray[np.float32]
    truth: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.features)

    def rows(self, rows: slice | NDArray[np.integer]) -> Part:
        """Return some of the mixtures."""
        return Part(self.features[rows], self.truth[rows])


@dataclass(frozen=True)
class Mixtures:
    """All mixtures that a study of an ensemble needs.

    Attributes:
        labels: Names of the labels.
        teachers: Mixtures of each teacher, (teachers, mixtures, …).
        validation, queries, test: Mixtures of other recordings each.
        served: Number of teachers that share the most used recording of each label, int64
            (labels,).
    """

    labels: tuple[str, ...]
    teachers: Part
    validation: Part
    queries: Part
    test: Part
    served: NDArray[np.int64]


def dealt(
    sources: Sources, teachers: int, recordings: int, generator: np.random.Generator
) -> tuple[list[list[NDArray[np.int64]]], NDArray[np.int64]]:
    """Deal recordings to teachers as evenly as possible, and return the teachers' seconds.

    Args:
        sources: All sound.
        teachers: Number of teachers.
        recordings: Recordings for each label and teacher; all of a label if it has fewer.
        generator: Generator that deals the recordings.

    Returns:
        Indices of seconds by teacher and label, and by label the most teachers that share a
        recording.

    Raises:
        InvalidInputError: A label has no recordings.
    """
    found: list[list[NDArray[np.int64]]] = [[] for _ in range(teachers)]
    served = []
    for rows in sources.at(Side.TEACHERS):
        names = np.unique(sources.recording[rows])
        each = min(recordings, len(names))
        rounds = -(-teachers * each // len(names))
        # One order, repeated: the next few entries, which a teacher takes, are always distinct.
        order = np.tile(generator.permutation(names), rounds)[: teachers * each]
        for held, own in zip(found, order.reshape(teachers, each), strict=True):
            held.append(rows[np.isin(sources.recording[rows], own)])
        served.append(int(np.unique(order, return_counts=True)[1].max()))
    return found, np.array(served)


def features(
    encoder: Encoder,
    of: Spectrum,
    sound: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return an embedding and the mean of each log-mel band, float32 (mixtures, dimensions + 64).

    The embedding separates single sounds; the bands also separate mixed ones that lie in different
    bands.
    """
    rows = []
    for start in range(0, len(sound), _BATCH):
        part = sound[start : start + _BATCH]
        part = part - part.mean(axis=1, keepdims=True)
        rows.append(np.hstack([encoder.embed(part), spectrum(part, of).mean(axis=1)]))
    return np.concatenate(rows, dtype=np.float32)


def prepare(
    open_sources: Callable[[], Sources],
    encoder: Encoder,
    of: Spectrum,
    size: Size,
    recipe: MixingRecipe,
    seed: int,
    cache: Path,
    progress: Progress = silent,
) -> Mixtures:
    """Mix and embed, or read the result from the cache.

    Args:
        open_sources: Function that reads the sound; not called if everything is cached.
        encoder: Public encoder of the sound's rate.
        of: Spectrum that the encoder sees.
        size: Numbers of mixtures.
        recipe: Recipe by which sounds are mixed.
        seed: Seed of all randomness.
        cache: Folder with a file for each size, recipe, seed and encoder.
        progress: Callback after each teacher.

    Raises:
        InvalidInputError: A label has no sound for one of the sides.
    """

    def made() -> dict[str, NDArray[Any]]:
        whole = _made(open_sources(), encoder, of, size, recipe, seed, progress)
        arrays: dict[str, NDArray[Any]] = {"labels": np.array(whole.labels), "served": whole.served}
        for name in _PARTS:
            part: Part = getattr(whole, name)
            arrays[f"{name}_features"], arrays[f"{name}_truth"] = part.features, part.truth
        return arrays

    settings = [_VERSION, encoder.name, asdict(size), asdict(recipe), seed]
    kept = Kept(cache).arrays("mixtures", settings, made)
    parts = {name: Part(kept[f"{name}_features"], kept[f"{name}_truth"]) for name in _PARTS}
    return Mixtures(tuple(map(str, kept["labels"])), served=kept["served"], **parts)


def _made(
    sources: Sources,
    encoder: Encoder,
    of: Spectrum,
    size: Size,
    recipe: MixingRecipe,
    seed: int,
    progress: Progress,
) -> Mixtures:
    dealing, mixing = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    holdings, served = dealt(sources, size.teachers, size.recordings, dealing)

    def part(side: Side, held: Sequence[NDArray[np.int64]], count: int) -> Part:
        sound, truth = mix(sources, side, held, count, recipe, mixing)
        return Part(features(encoder, of, sound), truth)

    counts = {
        Side.VALIDATION: size.validation,
        Side.QUERIES: size.queries,
        Side.TEST: size.test,
    }
    total = size.teachers + len(counts)
    taught = []
    for done, held in enumerate(holdings, start=1):
        taught.append(part(Side.TEACHERS, held, size.mixtures))
        progress("mixing and embedding", done, total)
    others = {}
    for done, (side, count) in enumerate(counts.items(), start=size.teachers + 1):
        others[side] = part(side, sources.at(side), count)
        progress("mixing and embedding", done, total)
    mean = others[Side.VALIDATION].features.mean(axis=0)
    scale = np.maximum(others[Side.VALIDATION].features.std(axis=0), 1e-6)

    def scaled(part: Part) -> Part:
        return Part(((part.features - mean) / scale).astype(np.float32), part.truth)

    teachers = Part(
        np.stack([each.features for each in taught]), np.stack([each.truth for each in taught])
    )
    names = (Side.VALIDATION, Side.QUERIES, Side.TEST)
    validation, queries, test = (scaled(others[side]) for side in names)
    return Mixtures(sources.labels, scaled(teachers), validation, queries, test, served)
