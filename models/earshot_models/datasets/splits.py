"""Two sides of a data set that share no recording, location or speaker."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from earshot_models.datasets.dataset import Clip, Dataset
from earshot_protocol.checks import probability, whole
from earshot_protocol.errors import InvalidInputError

_FEW_GROUPS = 10


def folds(dataset: Dataset, count: int = 5, seed: int = 0) -> list[tuple[Dataset, Dataset]]:
    """What to train and what to test on, each clip being tested on once.

    The data set's own folds where it has them; each group alone where there are at most ten, as of
    speakers; else `count` sets of whole groups.

    Args:
        dataset: of at least two folds or groups.
        count: of sets of groups, at least 2.
        seed: deals the groups out.

    Returns:
        (training, test) pairs.

    Raises:
        InvalidInputError: if there is only one fold or group.
        InvalidParametersError: if `count` is below 2.
    """
    whole("count", count, 2)
    own = {clip.fold for clip in dataset.clips}
    groups = sorted({clip.group for clip in dataset.clips})
    if None not in own and len(own) > 1:
        side: dict[Clip, object] = {clip: clip.fold for clip in dataset.clips}
    elif 1 < len(groups) <= _FEW_GROUPS:
        side = {clip: clip.group for clip in dataset.clips}
    else:
        dealt = _deal(dataset, min(count, len(groups)), seed)
        side = {clip: dealt[clip.group] for clip in dataset.clips}
    sides = sorted(set(side.values()), key=str)
    if len(sides) < 2:
        raise InvalidInputError(f"{dataset.name} has one group only, which cannot be split")
    return [
        (
            dataset.where(lambda clip, held=held: side[clip] != held),  # type: ignore[misc]
            dataset.where(lambda clip, held=held: side[clip] == held),  # type: ignore[misc]
        )
        for held in sides
    ]


def split(
    dataset: Dataset, fraction: float, generator: np.random.Generator
) -> tuple[Dataset, Dataset]:
    """Hold out whole groups, so that no recording is on both sides.

    Class by class, random groups are held out until at least `fraction` of the class's clips are
    (rounded to a whole clip, at least one); a group that holds the last training clips of a class
    is never taken.

    Args:
        dataset: of any number of classes.
        fraction: of each class to hold out, above 0 and below 1.
        generator: chooses the groups.

    Returns:
        The training and the held-out side, each in the order of the clips.

    Raises:
        InvalidParametersError: if `fraction` is out of range.
        InvalidInputError: if a class cannot be on both sides, since all its clips share a group.
    """
    probability("fraction", fraction)
    sizes = Counter(clip.label or "" for clip in dataset.clips)
    groups: dict[str, Counter[str]] = {}
    for clip in dataset.clips:
        groups.setdefault(clip.group, Counter())[clip.label or ""] += 1
    chosen = _choose(groups, sizes, fraction, generator)
    held_out = tuple(clip for clip in dataset.clips if clip.group in chosen)
    missing = set(sizes) - {clip.label or "" for clip in held_out}
    if missing:
        raise InvalidInputError(
            f"nothing can be held out of {', '.join(sorted(missing))} without taking a class's "
            "last training clips: each class needs clips from at least two recordings of its own"
        )
    rest = tuple(clip for clip in dataset.clips if clip.group not in chosen)
    return replace(dataset, clips=rest), replace(dataset, clips=held_out)


def _choose(
    groups: dict[str, Counter[str]],
    sizes: Counter[str],
    fraction: float,
    generator: np.random.Generator,
) -> set[str]:
    chosen: set[str] = set()
    taken: Counter[str] = Counter()
    order = [sorted(groups)[i] for i in generator.permutation(len(groups))]
    for label in sorted(sizes):
        wanted = max(1, round(fraction * sizes[label]))
        for group in order:
            if taken[label] >= wanted:
                break
            inside = groups[group]
            if label not in inside or group in chosen:
                continue
            if all(taken[other] + inside[other] < sizes[other] for other in inside):
                chosen.add(group)
                taken += inside
    return chosen


def _deal(dataset: Dataset, count: int, seed: int) -> dict[str, int]:
    """Each group to the set that has the fewest clips of its classes so far, large ones first."""
    inside: dict[str, Counter[str]] = {}
    for clip in dataset.clips:
        inside.setdefault(clip.group, Counter())[clip.label or ""] += 1
    order = [sorted(inside)[i] for i in np.random.default_rng(seed).permutation(len(inside))]
    order.sort(key=lambda group: -sum(inside[group].values()))
    held: list[Counter[str]] = [Counter() for _ in range(count)]
    dealt = {}
    for group in order:
        load = [(sum(each[label] for label in inside[group]), sum(each.values())) for each in held]
        dealt[group] = load.index(min(load))
        held[dealt[group]] += inside[group]
    return dealt
