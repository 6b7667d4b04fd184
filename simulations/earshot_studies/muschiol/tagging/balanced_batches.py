"""Balanced batches (Muschiol 2021, section 4.4.2): the order of examples.

Labels take turns in a shuffled cycle, and so do the examples of each label. Rare labels come as
often as frequent ones, except that examples of one label may have others too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError


class Cycle:
    """A cycle through a list, reshuffled each time; used alone, the order without balance.

    Args:
        places: Places to go through, at least one.
        generator: Source of the order.
    """

    def __init__(self, places: NDArray[np.integer], generator: np.random.Generator) -> None:
        if not len(places):
            raise InvalidInputError("no examples: at least one is needed")
        self._places = np.asarray(places, dtype=np.int64)
        self._generator = generator
        self._left: list[int] = []

    def next(self) -> int:
        """Return the next place."""
        if not self._left:
            self._left = self._generator.permutation(self._places).tolist()
        return self._left.pop()

    def draw(self, count: int) -> NDArray[np.int64]:
        """Return the next examples, int64 (count,)."""
        return np.array([self.next() for _ in range(count)], dtype=np.int64)


class Balanced:
    """A cycle through the labels, and through the examples of each.

    Examples without any label form a group of their own: Muschiol has none, but an ensemble may
    name no label, and a student must learn that too.

    Args:
        present: Labels of each example, bool (examples, labels).
        generator: Source of the order.

    Raises:
        InvalidInputError: There are no examples.
    """

    def __init__(self, present: NDArray[np.bool_], generator: np.random.Generator) -> None:
        groups = [np.flatnonzero(column) for column in np.asarray(present, dtype=bool).T]
        groups.append(np.flatnonzero(~np.asarray(present).any(axis=1)))
        self._examples = [Cycle(group, generator) for group in groups if len(group)]
        self._labels = Cycle(np.arange(len(self._examples)), generator)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Return the next examples, int64 (count,)."""
        turns = (self._examples[self._labels.next()] for _ in range(count))
        return np.array([examples.next() for examples in turns], dtype=np.int64)
