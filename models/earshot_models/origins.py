"""Sound to learn from: read or synthesized, and dealt into what is learned from and what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio, soundscapes
from earshot_models import augmentations as augment
from earshot_models.augmentations import Augmentations
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.waveforms import waveforms
from earshot_models.pools import Pool
from earshot_models.voice_removal import remove_voice
from earshot_protocol.checks import positive
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import SAMPLE_RATE

Progress = Callable[[int, int, str], None]
"""Called with what is done, all that is to be done, and a line on it."""

_SYNTHESIZED = 150
"""Seconds of each scene."""

_PUBLIC_SECONDS, _PUBLIC_HOPS = 6000, 4
"""Seconds in all, and in how many places of a second one may start."""

_LEAST_SECONDS = 150
"""At least as many as an embedding has numbers: fewer give too few principal components."""


@dataclass(frozen=True)
class Source:
    """Sound to learn from.

    Attributes:
        dataset: its clips; their labels are not read.
        share: of a batch, relative to the other sources.
    """

    dataset: Dataset
    share: float = 1.0

    def __post_init__(self) -> None:
        positive("share", self.share)


@dataclass(frozen=True)
class Seconds:
    """Seconds of recordings.

    Attributes:
        seconds: float32 (seconds, rate).
        recordings: integers (seconds,), which recording each was cut from.
    """

    seconds: NDArray[np.float32]
    recordings: NDArray[np.integer]


def read(
    sources: Sequence[Source],
    synthesized: float,
    seed: int,
    *,
    rate: int = SAMPLE_RATE,
    voice_removed: bool = False,
    cache: Path | None = None,
    progress: Progress = lambda done, total, line: None,
) -> list[Pool]:
    """All sound at one rate, the synthesized last.

    Args:
        sources: at least one, unless all is synthesized.
        synthesized: share of synthesized sound in a batch, 0 to 1.
        seed: of the synthesized.
        rate: samples per second.
        voice_removed: whether `remove_voice` treats all sound but the synthesized one.
        cache: folder for decoded sound.
        progress: told about every file.

    Raises:
        InvalidInputError: there is no sound.
        InvalidParametersError: what is synthesized leaves no share to the sources.
        UnreadableFileError: some files do not decode.
    """
    if not sources and synthesized < 1:
        raise InvalidInputError("there must be sound to learn from, or synthesized=1")
    if sources and synthesized == 1:
        raise InvalidParametersError("synthesized=1 leaves no share to the other sound")
    total = sum(source.share for source in sources)
    pools = [
        _read(source.dataset, (1 - synthesized) * source.share / total, rate, cache, progress)
        for source in sources
    ]
    if voice_removed:
        pools = [_without_voice(pool, progress) for pool in pools]
    return [*pools, _synthesized(synthesized, seed, rate)] if synthesized else pools


def sides(
    pools: Sequence[Pool], fraction: float, augmentations: Augmentations, seed: int, rate: int
) -> tuple[list[Pool], Seconds]:
    """Training sound, and seconds of held-out recordings of every origin.

    Args:
        pools: all sound.
        fraction: of the recordings to hold out, at least one of each pool.
        augmentations: make two views of a recording that has but one second.
        seed: chooses the recordings.
        rate: of the held-out seconds, samples per second.
    """
    generator = np.random.default_rng([seed, 1])
    kept: list[Pool] = []
    seconds, recordings, first = [], [], 0
    for pool in pools:
        numbers = np.unique(pool.recordings)
        count = max(1, round(fraction * len(numbers)))
        out = np.isin(pool.recordings, generator.choice(numbers, count, replace=False))
        training = list(compress(pool.sounds, ~out))
        kept.append(replace(pool, sounds=training, recordings=first + pool.recordings[~out]))
        held_out = compress(pool.sounds, out)
        for sound, recording in zip(held_out, pool.recordings[out], strict=True):
            heard = audio.resample(sound, pool.rate, rate)
            cut = _two_seconds(heard, rate, augmentations, generator)
            seconds.append(cut)
            recordings += [first + int(recording)] * len(cut)
        first += len(pool.recordings)
    return kept, Seconds(np.concatenate(seconds), np.array(recordings))


def public_seconds(pools: Sequence[Pool], seed: int, rate: int) -> Seconds:
    """Of what was trained on, in the same shares: all but the network follows from them.

    Args:
        pools: as `sides` makes them: no two share the number of a recording.
        seed: chooses the seconds.
        rate: of them, samples per second.

    Returns:
        At least as many as an embedding has numbers.

    Raises:
        InvalidInputError: there is too little sound.
    """
    generator = np.random.default_rng([seed, 2])
    total = sum(pool.share for pool in pools)
    hop = rate // _PUBLIC_HOPS
    seconds, recordings = [], []
    for pool in pools:
        heard = (audio.resample(sound, pool.rate, rate) for sound in pool.sounds)
        cut = [audio.seconds(sound, hop, rate) for sound in heard]
        of = np.repeat(pool.recordings, list(map(len, cut)))
        wanted = round(_PUBLIC_SECONDS * pool.share / total)
        chosen = generator.permutation(len(of))[:wanted]
        seconds.append(np.concatenate(cut)[chosen])
        recordings.append(of[chosen])
    public = np.concatenate(seconds)
    if len(public) < _LEAST_SECONDS:
        raise InvalidInputError(
            f"{len(public)} seconds of sound are not enough to learn from: {_LEAST_SECONDS} are "
            "needed"
        )
    return Seconds(public, np.concatenate(recordings))


def summary(pool: Pool) -> dict[str, Any]:
    """What makes a run on this sound another one."""
    return {
        "name": pool.name,
        "share": pool.share,
        "clips": len(pool.sounds),
        "samples": sum(map(len, pool.sounds)),
    }


def _read(
    dataset: Dataset, share: float, rate: int, cache: Path | None, progress: Progress
) -> Pool:
    def report(done: int, total: int) -> None:
        progress(done, total, f"reading {dataset.name}")

    decoded = waveforms(dataset, cache, report, rate)
    # A clip that was cut from a recording shares its number with the others.
    names = [clip.recording or str(clip.path) for clip in dataset.clips]
    recordings = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return Pool(decoded.all(), recordings, share, dataset.name, rate)


def _synthesized(share: float, seed: int, rate: int) -> Pool:
    """Seconds of all scenes, each a recording of its own."""
    generator = np.random.default_rng([seed, 3])
    scenes = [
        soundscapes.synthesize(scene, _SYNTHESIZED, generator, rate) for scene in soundscapes.SCENES
    ]
    seconds = list(np.concatenate(scenes))
    return Pool(seconds, np.arange(len(seconds)), share, "synthesized", rate)


def _without_voice(pool: Pool, progress: Progress) -> Pool:
    sounds = []
    for done, sound in enumerate(pool.sounds, start=1):
        sounds.append(remove_voice(sound, pool.rate))
        progress(done, len(pool.sounds), f"removing voices of {pool.name}")
    return replace(pool, sounds=sounds)


def _two_seconds(
    clip: NDArray[np.float32],
    rate: int,
    augmentations: Augmentations,
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    """The seconds of a clip, so that each can find another: two views where there is but one."""
    cut = audio.seconds(clip, rate=rate)
    if len(cut) != 1:
        return cut
    alone = augment.Variant()
    return np.stack([augment.view(cut[0], augmentations, alone, rate, generator) for _ in range(2)])
