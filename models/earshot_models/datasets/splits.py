"""Splits of a data set into two sides that share no recording, location or speaker."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from earshot_models.datasets.dataset import Clip, Dataset
from earshot_protocol.checks import probability, whole
from earshot_protocol.errors import InvalidInputError

_FEW_GROUPS = 10
_OTHERS = (
    "each class needs clips from at least two recordings of its own, or, if files are named as "
    "FOLD-ID-TAKE like those of ESC, from at least two folds"
)


def folds(dataset: Dataset, count: int = 5, seed: int = 0) -> list[tuple[Dataset, Dataset]]:
    """Return pairs of sides to train and to test on, so that each clip is tested on once.

    The data set's own folds are used if it has them; each group alone if there are at most ten,
    such as speakers; otherwise `count` sets of whole groups.

    Args:
        dataset: Data set with at least two folds or groups.
        count: Number of sets of groups, at least 2.
        seed: Seed that deals out the groups.

    Returns:
        (training, test) pairs.

    Raises:
        InvalidInputError: All clips are of one fold or group; the message names it.
        InvalidParametersError: The `count` is below 2.
    """
    whole("count", count, 2)
    own = {clip.fold for clip in dataset.clips}
    groups = {clip.group for clip in dataset.clips}
    if None not in own:
        sides: dict[Clip, object] = {clip: clip.fold for clip in dataset.clips}
    elif 1 < len(groups) <= _FEW_GROUPS:
        sides = {clip: clip.group for clip in dataset.clips}
    else:
        dealt = _deal(dataset, min(count, len(groups)), seed)
        sides = {clip: dealt[clip.group] for clip in dataset.clips}
    names = sorted(set(sides.values()), key=str)
    if len(names) < 2:
        only = f"fold {names[0]}" if None not in own else f"group {min(groups)}"
        raise InvalidInputError(
            f"all sound of {dataset.name} is of {only}, and held-out sound needs another: {_OTHERS}"
        )
    return [
        _sides(dataset, {clip for clip in dataset.clips if sides[clip] == name}) for name in names
    ]


def split(
    dataset: Dataset, fraction: float, generator: np.random.Generator
) -> tuple[Dataset, Dataset]:
    """Hold out whole groups, so that no recording is on both sides.

    If the data set has folds of its own, these are the groups, as in `folds`. Class by class,
    random groups are held out until at least `fraction` of the class's clips are (rounded to a
    whole clip, at least one); a group that holds the last training clips of a class is never taken.

    Args:
        dataset: Data set with any number of classes.
        fraction: Fraction of each class to hold out, above 0 and below 1.
        generator: Source of randomness that chooses the groups.

    Returns:
        The training and the held-out side, each in the order of the clips.

    Raises:
        InvalidParametersError: The `fraction` is out of range.
        InvalidInputError: A class cannot be on both sides, since all its clips share a group.
    """
    probability("fraction", fraction)
    own = all(clip.fold is not None for clip in dataset.clips)
    group_of = {clip: f"fold {clip.fold}" if own else clip.group for clip in dataset.clips}
    sizes = Counter(clip.label or "" for clip in dataset.clips)
    groups = _classes_by_group(group_of)
    order = [sorted(groups)[i] for i in generator.permutation(len(groups))]
    chosen: set[str] = set()
    taken: Counter[str] = Counter()
    for label in sorted(sizes):
        wanted = max(1, round(fraction * sizes[label]))
        for group in order:
            classes = groups[group]
            if (
                taken[label] < wanted
                and label in classes
                and group not in chosen
                and all(taken[other] + classes[other] < sizes[other] for other in classes)
            ):
                chosen.add(group)
                taken += classes
    missing = sizes.keys() - taken.keys()
    if missing:
        groups_there = sorted(group for group in groups if missing & groups[group].keys())
        only = f"; all their clips are of {groups_there[0]}" if len(groups_there) == 1 else ""
        raise InvalidInputError(
            f"nothing can be held out of {', '.join(sorted(missing))} without taking a class's "
            f"last training clips{only}, and held-out sound needs another group: {_OTHERS}"
        )
    return _sides(dataset, {clip for clip, group in group_of.items() if group in chosen})


def _sides(dataset: Dataset, held_out: set[Clip]) -> tuple[Dataset, Dataset]:
    """Return the clips that are not held out, and those that are."""
    return (
        dataset.where(lambda clip: clip not in held_out),
        dataset.where(lambda clip: clip in held_out),
    )


def _classes_by_group(group_of: Mapping[Clip, str]) -> dict[str, Counter[str]]:
    """Count the clips of each class in each group."""
    classes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for clip, group in group_of.items():
        classes[group][clip.label or ""] += 1
    return classes


def _deal(dataset: Dataset, count: int, seed: int) -> dict[str, int]:
    """Assign groups, large ones first, to the set with the fewest clips of their classes."""
    groups = _classes_by_group({clip: clip.group for clip in dataset.clips})
    order = [sorted(groups)[i] for i in np.random.default_rng(seed).permutation(len(groups))]
    order.sort(key=lambda group: -groups[group].total())
    sets: list[Counter[str]] = [Counter() for _ in range(count)]
    dealt = {}
    for group in order:
        load = [(sum(each[label] for label in groups[group]), each.total()) for each in sets]
        dealt[group] = load.index(min(load))
        sets[dealt[group]] += groups[group]
    return dealt
