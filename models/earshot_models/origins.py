"""Training and held-out sound, read from data sets or synthesized."""

from __future__ import annotations

from collections.abc import Sequence
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
from earshot_models.datasets.waveforms import readable, waveforms
from earshot_models.pools import Pool
from earshot_models.voice_removal import remove_voice
from earshot_protocol.checks import positive
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.spectrum import SAMPLE_RATE

_SYNTHESIZED = 150
"""Seconds of each synthesized scene."""

_PUBLIC_SECONDS, _PUBLIC_HOPS = 6000, 4
"""Total seconds of public sound, and possible starts per second."""

_LEAST_SECONDS = 150
"""Least seconds of public sound: more than an embedding has dimensions, for its principal
components."""


@dataclass(frozen=True)
class SoundSource:
    """A source of sound to learn from.

    Attributes:
        dataset: Data set whose clips are used; their labels are not read.
        share: Share of a batch, relative to the other sources.
    """

    dataset: Dataset
    share: float = 1.0

    def __post_init__(self) -> None:
        positive("share", self.share)


@dataclass(frozen=True)
class Seconds:
    """Seconds of recordings.

    Attributes:
        seconds: Samples, float32 (seconds, rate).
        recordings: Recording that each second was cut from, integers (seconds,).
    """

    seconds: NDArray[np.float32]
    recordings: NDArray[np.integer]


def read(
    sources: Sequence[SoundSource],
    synthesized: float,
    seed: int,
    *,
    rate: int = SAMPLE_RATE,
    voice_removed: bool = False,
    cache: Path | None = None,
    progress: Progress = silent,
) -> list[Pool]:
    """Read all sound at one rate; synthesized sound comes last.

    Files that cannot be read are left out and listed in `Pool.unreadable`.

    Args:
        sources: Sources of sound; at least one unless all is synthesized.
        synthesized: Share of synthesized sound in a batch, 0 to 1.
        seed: Seed of the synthesized sound.
        rate: Samples per second.
        voice_removed: Remove voices (`remove_voice`) from all sound except the synthesized.
        cache: Folder for decoded sound.
        progress: Callback after every file.

    Raises:
        InvalidInputError: There is no sound, or no file of a class can be read.
        InvalidParametersError: `synthesized` is 1 although there are sources.
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
    """Split sound into training sound and seconds of held-out recordings of every origin.

    Args:
        pools: All sound.
        fraction: Fraction of the recordings to hold out; at least one of each pool is.
        augmentations: Augmentations that make two views of a recording with a single second.
        seed: Seed of the choice of recordings.
        rate: Samples per second of the held-out seconds.
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
    """Draw seconds of the training sound in the shares of its pools.

    Everything except the network is computed from them.

    Args:
        pools: Pools as `sides` returns them, with distinct numbers of recordings.
        seed: Seed of the choice of seconds.
        rate: Samples per second of the seconds.

    Returns:
        At least 150 seconds.

    Raises:
        InvalidInputError: There is too little sound.
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
    """Return facts that identify a pool, to detect a run on other sound."""
    return {
        "name": pool.name,
        "share": pool.share,
        "clips": len(pool.sounds),
        "samples": sum(map(len, pool.sounds)),
    }


def _read(
    dataset: Dataset, share: float, rate: int, cache: Path | None, progress: Progress
) -> Pool:
    decoded = waveforms(dataset, cache, progress, rate)
    # A clip that was cut from a recording shares its number with the others.
    names = [
        clip.recording or str(clip.path) for clip in readable(dataset, decoded.unreadable).clips
    ]
    recordings = np.unique(names, return_inverse=True)[1].astype(np.int64)
    heard = [decoded.clip(number) for number, wrong in enumerate(decoded.unreadable) if not wrong]
    unreadable = tuple(filter(None, decoded.unreadable))
    return Pool(heard, recordings, share, dataset.name, rate, unreadable)


def _synthesized(share: float, seed: int, rate: int) -> Pool:
    """Synthesize seconds of all scenes, each a recording of its own."""
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
        progress(f"removing voices of {pool.name}", done, len(pool.sounds))
    return replace(pool, sounds=sounds)


def _two_seconds(
    clip: NDArray[np.float32],
    rate: int,
    augmentations: Augmentations,
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    """Return the seconds of a clip; of a single second two views, so that retrieval has a pair."""
    cut = audio.seconds(clip, rate=rate)
    if len(cut) != 1:
        return cut
    alone = augment.Variant()
    return np.stack([augment.view(cut[0], augmentations, alone, rate, generator) for _ in range(2)])
