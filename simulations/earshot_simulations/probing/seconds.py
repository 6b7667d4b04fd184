"""The seconds of a data set, embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_models import audio
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.splits import folds
from earshot_models.datasets.waveforms import waveforms
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import WINDOW

Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, total: int) -> None:
    """Tell nobody."""


HOP = WINDOW // 2
"""Samples between two windows; every other one belongs to the disjoint seconds."""


@dataclass(frozen=True)
class Seconds:
    """Windows of labelled clips, half a second apart; silent ones are left out.

    Attributes:
        sound: float32 (windows, 8000).
        label: int64 (windows,), index into `labels`.
        clip: int64 (windows,), index of the clip.
        disjoint: bool (windows,), whether it is one of the clip's seconds that do not overlap.
        clip_labels: int64 (clips,).
        sides: int64 (clips,), on which side of the folds a clip is tested.
        labels: names of the classes.
        names: of the sides.
        silent: seconds that were left out.
        unreadable: what is wrong with each file that was left out.
    """

    sound: NDArray[np.float32]
    label: NDArray[np.int64]
    clip: NDArray[np.int64]
    disjoint: NDArray[np.bool_]
    clip_labels: NDArray[np.int64]
    sides: NDArray[np.int64]
    labels: tuple[str, ...]
    names: tuple[str, ...]
    silent: int
    unreadable: tuple[str, ...] = ()


def cut(dataset: Dataset, cache: Path | None = None, progress: Progress = no_progress) -> Seconds:
    """Cut all labelled clips of a data set, and note in which of its folds each is tested.

    A clip shorter than a second lies in the middle of a second of silence. Files that do not
    decode are left out.

    Args:
        dataset: with labels, and of at least two folds, speakers or groups.
        cache: folder for decoded sound.
        progress: told after each file.

    Raises:
        InvalidInputError: if a clip has no label, all are silent, a class has no file that
            decodes, or there is but one fold.
    """
    if any(clip.label is None for clip in dataset.clips):
        raise InvalidInputError(f"{dataset.name} has clips without a label: they cannot be probed")
    folds(dataset)  # refuses before files are read what cannot be held out
    decoded = waveforms(dataset, cache, partial(progress, "reading"))
    numbers = [number for number, wrong in enumerate(decoded.unreadable) if not wrong]
    dataset = _readable(dataset, decoded.unreadable)
    sides = [test for _, test in folds(dataset)]
    side_of = {clip: side for side, part in enumerate(sides) for clip in part.clips}
    sound, index, disjoint, silent = [], [], [], 0
    for number, place in enumerate(numbers):
        windows = audio.windows(decoded.clip(place), HOP)
        loud = audio.loud(windows)
        whole = np.arange(len(windows)) % 2 == 0
        silent += int((~loud & whole).sum())
        sound.append(windows[loud])
        index += [number] * int(loud.sum())
        disjoint.append(whole[loud])
    clip = np.array(index, dtype=np.int64)
    if not len(clip):
        raise InvalidInputError(f"all sound of {dataset.name} is silent")
    clip_labels = np.array([dataset.labels.index(each.label or "") for each in dataset.clips])
    return Seconds(
        np.concatenate(sound),
        clip_labels[clip],
        clip,
        np.concatenate(disjoint),
        clip_labels,
        np.array([side_of[each] for each in dataset.clips]),
        dataset.labels,
        tuple(map(side_name, sides)),
        silent,
        tuple(filter(None, decoded.unreadable)),
    )


def _readable(dataset: Dataset, unreadable: Sequence[str]) -> Dataset:
    """The data set without the files that something is wrong with."""
    bad = {clip: wrong for clip, wrong in zip(dataset.clips, unreadable, strict=True) if wrong}
    if not bad:
        return dataset
    empty = sorted(set(dataset.labels) - {clip.label for clip in dataset.clips if clip not in bad})
    if empty:
        why = [wrong for clip, wrong in bad.items() if clip.label in empty]
        raise InvalidInputError(f"no file of {', '.join(empty)} decodes: {'; '.join(why[:3])}")
    return dataset.where(lambda clip: clip not in bad)


def embed(encoder: Encoder, sound: NDArray[np.float32]) -> NDArray[np.float32]:
    """Embeddings of windows, float32 (windows, dimensions); offsets are removed as on a phone."""
    return encoder.embed(sound - sound.mean(axis=1, keepdims=True))


def side_name(part: Dataset) -> str:
    """What all clips of a side share: a fold, a group, or the first group of several."""
    first = part.clips[0]
    if first.fold is not None:
        return str(first.fold)
    return first.group
