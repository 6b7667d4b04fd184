"""The seconds of a data set, cut into windows and embedded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_client.encoder import Encoder
from earshot_models import audio
from earshot_models.datasets.dataset import Clip, Dataset, Unheard
from earshot_models.datasets.splits import folds
from earshot_models.datasets.waveforms import Waveforms, readable, waveforms
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.sound_reading import UnreadableFileError
from earshot_protocol.spectrum import NARROW

HOPS = 2
"""Windows that begin in a second; every other one belongs to the disjoint seconds."""

NO_LABEL = -1

NO_HALF = -1
"""Half of a window across the middle of its clip."""


@dataclass(frozen=True)
class ClipWindows:
    """Windows of clips, half a second apart, without silent ones.

    Attributes:
        sound: Sound, float32 (windows, rate).
        label: Index into `labels`, int64 (windows,); -1 where there are none.
        clip: Index of the clip, int64 (windows,).
        disjoint: Whether a window is one of the clip's disjoint seconds, bool (windows,).
        half: Half of its clip in which a window lies, 0 or 1, int64 (windows,); `NO_HALF` if in
            neither, or if the clip is too short for two seconds.
        clip_labels: Label of each clip, int64 (clips,).
        recordings: Number of the recording that each clip was cut from, int64 (clips,).
        groups: Number of each clip's recording, location, artist or speaker, int64 (clips,).
        sides: Side of the folds on which a clip is tested, int64 (clips,).
        labels: Names of the classes; empty if there are fewer than two.
        names: Names of the sides.
        silent: Number of silent seconds, which are left out.
        too_short: Number of clips too short for two seconds.
        unreadable: Error of each unreadable file.
        unheard: Sound files that were left out without being read.
        unheard_classes: Classes all of whose files were left out without being read.
        below: Number of files with fewer samples per second than `sound`, which were upsampled.
    """

    sound: NDArray[np.float32]
    label: NDArray[np.int64]
    clip: NDArray[np.int64]
    disjoint: NDArray[np.bool_]
    half: NDArray[np.int64]
    clip_labels: NDArray[np.int64]
    recordings: NDArray[np.int64]
    groups: NDArray[np.int64]
    sides: NDArray[np.int64]
    labels: tuple[str, ...]
    names: tuple[str, ...]
    silent: int = 0
    too_short: int = 0
    unreadable: tuple[str, ...] = ()
    unheard: tuple[Unheard, ...] = ()
    unheard_classes: tuple[str, ...] = ()
    below: int = 0

    @property
    def rate(self) -> int:
        """Samples per second of the sound."""
        return int(self.sound.shape[1])

    def tested(self, side: int) -> NDArray[np.bool_]:
        """Return which windows are a side's disjoint seconds, bool (windows,)."""
        return np.asarray((self.sides[self.clip] == side) & self.disjoint)


def cut(
    dataset: Dataset,
    cache: Path | None = None,
    progress: Progress = silent,
    rate: int = NARROW.rate,
) -> ClipWindows:
    """Cut all clips of a data set for encoders of one rate, as `cut_at`."""
    return cut_at([rate], dataset, cache, progress)[rate]


def cut_at(
    rates: Iterable[int],
    dataset: Dataset,
    cache: Path | None = None,
    progress: Progress = silent,
) -> dict[int, ClipWindows]:
    """Cut all clips of a data set, each with the fold in which it is tested.

    A clip shorter than a second is centred in a second of silence. Files that do not decode are
    left out. The windows are the same at every rate, and silent if they are at 8 kHz, so figures of
    two encoders are always for the same seconds.

    Args:
        rates: Rates of the sound, samples per second.
        dataset: Data set of at least two folds, speakers or groups; all of its clips have a label,
            or none; a single label counts as none.
        cache: Folder for decoded sound.
        progress: Callback after each file.

    Returns:
        Windows by rate, which differ only in `sound` and `below`.

    Raises:
        InvalidInputError: Only some clips have a label, all of a side are silent, a class or all
            but one side has no file that decodes, or there is only one fold.
    """
    kinds = dataset.labels if len(dataset.labels) > 1 else ()
    if kinds:
        dataset.check_classes()
    # Before files are read: it raises an error for sides that cannot be held out, and sides then do
    # not depend on which files decode.
    sides = [test for _, test in folds(dataset)]
    side_of = {clip: side_name(side) for side in sides for clip in side.clips}
    _refuse_unlearned(dataset, side_of if kinds else {})
    decoded = {
        rate: waveforms(dataset, cache, progress, rate) for rate in sorted({NARROW.rate, *rates})
    }
    unreadable = [
        next(filter(None, wrong), "")
        for wrong in zip(*(each.unreadable for each in decoded.values()), strict=True)
    ]
    numbers = [number for number, wrong in enumerate(unreadable) if not wrong]
    dataset = readable(dataset, unreadable)
    clips, kept = dataset.clips, set(dataset.clips)
    names = [side_name(side) for side in sides if not kept.isdisjoint(side.clips)]
    audible, index, disjoint, half, silent, too_short = [], [], [], [], 0, 0
    for number, place in enumerate(numbers):
        loud = audio.loud(_windows(decoded[NARROW.rate].clip(place), NARROW.rate))
        whole = np.arange(len(loud)) % HOPS == 0
        halves = _halves(len(loud))
        silent += int((~loud & whole).sum())
        too_short += bool((halves == NO_HALF).all())
        audible.append(loud)
        index += [number] * int(loud.sum())
        disjoint.append(whole[loud])
        half.append(halves[loud])
    clip = np.array(index, dtype=np.int64)
    clip_sides = np.array([names.index(side_of[each]) for each in clips])
    mute = [names[side] for side in set(range(len(names))) - set(clip_sides[clip])]
    if mute or len(names) < 2:
        what = (
            f"all sound of {', '.join(mute)} is silent"
            if mute
            else "all but one side is unreadable"
        )
        raise InvalidInputError(f"{dataset.name}: {what}, so it cannot be held out")
    labels = [kinds.index(each.label) if each.label in kinds else NO_LABEL for each in clips]
    clip_labels = np.array(labels)
    found = ClipWindows(
        np.empty((0, 0), dtype=np.float32),
        clip_labels[clip],
        clip,
        np.concatenate(disjoint),
        np.concatenate(half),
        clip_labels,
        _numbered(f"{each.group}\0{each.recording or each.path}" for each in clips),
        _numbered(each.group for each in clips),
        clip_sides,
        kinds,
        tuple(names),
        silent,
        too_short,
        tuple(filter(None, unreadable)),
        dataset.unheard,
        dataset.unheard_classes,
    )
    own = [_recorded_rate(each.path) for each in clips]
    return {
        rate: replace(
            found,
            sound=_sound(decoded[rate], rate, numbers, audible),
            below=sum(each < rate for each in own),
        )
        for rate in rates
    }


def below_sentence(seconds: ClipWindows, encoder: str) -> str:
    """Return a sentence on files below an encoder's rate; empty if there are none."""
    if not seconds.below:
        return ""
    return (
        f"{seconds.below} files have fewer samples per second than the {seconds.rate:,} that "
        f"{encoder} hears: they were resampled, without anything in the upper band"
    )


def _sound(
    decoded: Waveforms, rate: int, numbers: Sequence[int], audible: Sequence[NDArray[np.bool_]]
) -> NDArray[np.float32]:
    """Return the audible windows of clips, float32 (windows, rate)."""
    rows = []
    for place, loud in zip(numbers, audible, strict=True):
        clip = decoded.clip(place)
        # Rounding may have left one sample fewer than at 8 kHz.
        missing = (len(loud) - 1) * (rate // HOPS) + rate - len(clip)
        if len(loud) > 1 and missing > 0:
            clip = np.pad(clip, (0, missing))
        rows.append(_windows(clip, rate)[: len(loud)][loud])
    return np.concatenate(rows)


def _windows(clip: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    return audio.windows(clip, rate // HOPS, rate)


def _recorded_rate(path: Path) -> float:
    """Return the rate of a file; infinite if it can no longer be read."""
    try:
        return audio.recorded_rate(path)
    except UnreadableFileError:
        return np.inf


def _refuse_unlearned(dataset: Dataset, side_of: Mapping[Clip, str]) -> None:
    """Refuse classes that lie on one side: held out, they could not have been learned."""
    sides: dict[str, set[str]] = {}
    for clip, side in side_of.items():
        sides.setdefault(clip.label or "", set()).add(side)
    alone = sorted(label for label, own in sides.items() if len(own) < 2)
    if alone:
        raise InvalidInputError(
            f"{dataset.name}: all clips of {', '.join(alone)} are held out together, so that "
            "nothing is left to learn them from: give each class clips of at least two recordings, "
            "or folds"
        )


def _halves(count: int) -> NDArray[np.int64]:
    """Return the half of its clip in which each of this many windows lies, int64 (count,).

    The middle is rounded down to half a second, so that no window has to be cut again.
    """
    start, middle = np.arange(count), (count + 1) // 2
    halves = np.where(start >= middle, 1, np.where(start + 2 <= middle, 0, NO_HALF))
    return halves if 0 in halves else np.full(count, NO_HALF)


def _numbered(names: Iterable[str]) -> NDArray[np.int64]:
    return np.unique(list(names), return_inverse=True)[1].astype(np.int64)


def embed(encoder: Encoder, sound: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return embeddings of windows, float32 (windows, dimensions).

    The mean of each window is subtracted, as on a phone.
    """
    return encoder.embed(sound - sound.mean(axis=1, keepdims=True))


def side_names(dataset: Dataset) -> list[str]:
    """Return the names of the sides that are held out in turn; reads no file."""
    return [side_name(test) for _, test in folds(dataset)]


def side_name(part: Dataset) -> str:
    """Return the name of a side: its fold, its group, or the first of its groups."""
    first = part.clips[0]
    if first.fold is not None:
        return str(first.fold)
    return first.group
