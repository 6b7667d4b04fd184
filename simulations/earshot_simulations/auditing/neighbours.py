"""Distances of neighbours' ballots, as phones really send them.

All small data sets are tried, or random ones where there are too many. A difference is a vector;
the worst is the longest in L1, and of equals the longest in L2.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.ballots import label_votes, top_votes

Vector = npt.NDArray[np.int64]
Differences = dict[Unit, Vector]
"""Worst difference of the sums of neighbours, in each unit."""

CHOICES: tuple[tuple[str, ...], ...] = ((), ("tram", "siren"), ("garden",))
"""Choices of the first labels of audited phases with choices; further labels have none."""

_MOST = 2000


def hierarchy_of(parameters: Parameters) -> LabelHierarchy:
    """Return the labels of an audited phase, with its choices if it has any."""
    labels = LabelHierarchy.flat(parameters.labels)
    return with_choices(parameters.labels) if parameters.hierarchy else labels


def with_choices(labels: tuple[str, ...]) -> LabelHierarchy:
    """Return labels with `CHOICES`: none for the first, some for the next ones."""
    choices = itertools.chain(CHOICES, itertools.repeat(()))
    return LabelHierarchy(dict(zip(labels, choices, strict=False)))


@functools.cache
def of_centroid_votes(votes: int) -> Differences:
    """Return the distances of ballots for candidates, see `top_votes`."""
    return _of_ballots(lambda counts: top_votes(counts, votes), (2 * votes + 1,))


@functools.cache
def of_label_votes(votes: int) -> Differences:
    """Return the distances of ballots for labels of centroids, see `label_votes`."""
    return _of_ballots(lambda counts: label_votes(counts, votes), (2 * votes + 1, 2))


def worst(differences: Iterable[Vector]) -> Vector:
    """Return the longest of some vectors in L1, and of equals in L2."""
    return max(differences, key=lambda each: (np.abs(each).sum(), np.square(each).sum()))


def _of_ballots(ballot: Callable[[Vector], Vector], shape: tuple[int, ...]) -> Differences:
    tables = [table.reshape(shape) for table in _tables(int(np.prod(shape)))]
    cast = [ballot(table) for table in tables]
    recording = worst(
        (before - ballot(more)).ravel()
        for table, before in zip(tables, cast, strict=True)
        for more in _with_one_more(table)
    )
    full = worst(each.ravel() for each in cast)
    others = (full - each.ravel() for each in cast)
    return {Unit.RECORDING: recording, Unit.PHONE: full, Unit.REPLACED_PHONE: worst(others)}


def _tables(entries: int, levels: int = 3) -> Iterator[Vector]:
    if levels**entries <= _MOST:
        yield from (np.array(each) for each in itertools.product(range(levels), repeat=entries))
        return
    generator = np.random.default_rng(0)
    yield from generator.integers(0, levels, (_MOST, entries))
    # Disjoint ballots are rare among random ones.
    halves = np.arange(entries) < entries // 2
    yield from (halves.astype(np.int64), (~halves).astype(np.int64))


def _with_one_more(table: Vector) -> Iterator[Vector]:
    for at in np.ndindex(table.shape):
        more = table.copy()
        more[at] += 1
        yield more
