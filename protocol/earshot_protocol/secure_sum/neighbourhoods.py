"""Neighbours of all phones, for work on many phones together: a table and its mirror."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from earshot_protocol.secure_sum.graph import Graph

Members = npt.NDArray[np.bool_]
"""Membership of each phone, shape (phones,)."""
Phones = npt.NDArray[np.integer]
"""Numbers of some phones."""
Places = npt.NDArray[np.uint8]
"""Places among neighbours, of which there are at most 254."""


class Neighbourhoods:
    """Places of all phones in one another's neighbourhoods; five bytes for each pair of neighbours.

    Args:
        graph: Graph of the sum.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def table(self) -> npt.NDArray[np.uint32]:
        """Neighbours of each phone, ascending; uint32 of shape (phones, degree)."""
        return self._graph.table()

    @cached_property
    def back(self) -> Places:
        """Place of each phone in its neighbour's row, from 0; shaped like `table`.

        Rows ascend, so all pairs are in order already; ordered by the neighbour instead, stably,
        they are the same pairs seen from the other side, row by row.
        """
        degree = self.table.shape[1]
        mirrored = np.argsort(self.table, axis=None, kind="stable")
        back = np.empty(self.table.size, dtype=np.uint8)
        back[mirrored] = np.tile(np.arange(degree, dtype=np.uint8), len(self.table))
        return back.reshape(self.table.shape)

    def rows(self, phones: Phones, members: Members) -> Iterator[npt.NDArray[np.uint32]]:
        """Return, for each of these phones, its neighbours that are members, ascending."""
        table = self.table[phones]
        around = members[table]
        ends = np.cumsum(np.count_nonzero(around, axis=1))
        return iter(np.split(table[around], ends[:-1]) if len(phones) else ())

    def counts(self, members: Members) -> npt.NDArray[np.intp]:
        """Count the neighbours of each phone that are members."""
        return np.asarray(np.count_nonzero(members[self.table], axis=1))

    def places(self, members: Members) -> Places:
        """Return each member's place among a phone's member neighbours, from 1; like `table`."""
        return np.cumsum(members[self.table], axis=1, dtype=np.uint8)
