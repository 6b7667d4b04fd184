"""Balanced batches (Muschiol 2021, section 4.4.2): which example comes next.

Labels take turns in a shuffled cycle, and so do the examples of each label. Rare labels come as
often as frequent ones, but for what the examples of others bring with them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError


class Order(Protocol):
    """What examples come one after the other, without an end."""

    def draw(self, count: int) -> NDArray[np.int64]:
        """The next ones, int64 (count,)."""


class Cycle:
    """Goes round a list, shuffled anew each time; by itself, the order without balance.

    Args:
        places: of what, at least one.
        generator: of the order.
    """

    def __init__(self, places: NDArray[np.integer], generator: np.random.Generator) -> None:
        if not len(places):
            raise InvalidInputError("no examples: at least one is needed")
        self._places = np.asarray(places, dtype=np.int64)
        self._generator = generator
        self._left: list[int] = []

    def next(self) -> int:
        """The next place."""
        if not self._left:
            self._left = self._generator.permutation(self._places).tolist()
        return self._left.pop()

    def draw(self, count: int) -> NDArray[np.int64]:
        """See `Order`."""
        return np.array([self.next() for _ in range(count)], dtype=np.int64)


class Balanced:
    """Goes round the labels, and round the examples of each.

    Examples without any label take part like those of one label more: Muschiol has none, but
    what an ensemble answers may be "none of these", and a student must learn that too.

    Args:
        present: which labels each example has, bool (examples, labels).
        generator: of the order.

    Raises:
        InvalidInputError: no examples.
    """

    def __init__(self, present: NDArray[np.bool_], generator: np.random.Generator) -> None:
        groups = [np.flatnonzero(column) for column in np.asarray(present, dtype=bool).T]
        groups.append(np.flatnonzero(~np.asarray(present).any(axis=1)))
        self._examples = [Cycle(group, generator) for group in groups if len(group)]
        self._labels = Cycle(np.arange(len(self._examples)), generator)

    def draw(self, count: int) -> NDArray[np.int64]:
        """See `Order`."""
        turns = (self._examples[self._labels.next()] for _ in range(count))
        return np.array([examples.next() for examples in turns], dtype=np.int64)
