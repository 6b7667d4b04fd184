"""Two sides of a data set that share no recording, location or speaker."""

from __future__ import annotations

from collections import Counter, defaultdict

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
    groups = {clip.group for clip in dataset.clips}
    if None not in own and len(own) > 1:
        sides: dict[Clip, object] = {clip: clip.fold for clip in dataset.clips}
    elif 1 < len(groups) <= _FEW_GROUPS:
        sides = {clip: clip.group for clip in dataset.clips}
    else:
        dealt = _deal(dataset, min(count, len(groups)), seed)
        sides = {clip: dealt[clip.group] for clip in dataset.clips}
    names = sorted(set(sides.values()), key=str)
    if len(names) < 2:
        raise InvalidInputError(f"{dataset.name} has one group only, which cannot be split")
    return [
        _sides(dataset, {clip for clip in dataset.clips if sides[clip] == name}) for name in names
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
    groups = _classes_by_group(dataset)
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
        raise InvalidInputError(
            f"nothing can be held out of {', '.join(sorted(missing))} without taking a class's "
            "last training clips: each class needs clips from at least two recordings of its own"
        )
    return _sides(dataset, {clip for clip in dataset.clips if clip.group in chosen})


def _sides(dataset: Dataset, held_out: set[Clip]) -> tuple[Dataset, Dataset]:
    """All but some clips, and these."""
    return (
        dataset.where(lambda clip: clip not in held_out),
        dataset.where(lambda clip: clip in held_out),
    )


def _classes_by_group(dataset: Dataset) -> dict[str, Counter[str]]:
    """How many clips of each class a group has."""
    classes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for clip in dataset.clips:
        classes[clip.group][clip.label or ""] += 1
    return classes


def _deal(dataset: Dataset, count: int, seed: int) -> dict[str, int]:
    """Each group to the set that has the fewest clips of its classes so far, large ones first."""
    groups = _classes_by_group(dataset)
    order = [sorted(groups)[i] for i in np.random.default_rng(seed).permutation(len(groups))]
    order.sort(key=lambda group: -groups[group].total())
    sets: list[Counter[str]] = [Counter() for _ in range(count)]
    dealt = {}
    for group in order:
        load = [(sum(each[label] for label in groups[group]), each.total()) for each in sets]
        dealt[group] = load.index(min(load))
        sets[dealt[group]] += groups[group]
    return dealt
