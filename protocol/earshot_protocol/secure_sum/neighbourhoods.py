"""The neighbours of all phones at once, for whoever works on many: a table and its mirror."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from earshot_protocol.secure_sum.graph import Graph

Members = npt.NDArray[np.bool_]
"""Shape (phones,): which of them are meant."""
Phones = npt.NDArray[np.integer]
"""Some of them, by number."""
Places = npt.NDArray[np.uint8]
"""Places among neighbours, of whom there are 254 at most."""


class Neighbourhoods:
    """Who stands where in whose neighbourhood; five bytes for each pair of neighbours.

    Args:
        graph: of the sum.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @cached_property
    def table(self) -> npt.NDArray[np.uint32]:
        """The neighbours of each phone, ascending; uint32 of shape (phones, degree)."""
        return self._graph.table()

    @cached_property
    def back(self) -> Places:
        """Where in its neighbour's row each phone stands itself, from 0; like `table`.

        Rows ascend, so all pairs are in order already; ordered by the neighbour instead, stably,
        they are the same pairs seen from the other side, row by row.
        """
        degree = self.table.shape[1]
        mirrored = np.argsort(self.table, axis=None, kind="stable")
        back = np.empty(self.table.size, dtype=np.uint8)
        back[mirrored] = np.tile(np.arange(degree, dtype=np.uint8), len(self.table))
        return back.reshape(self.table.shape)

    def rows(self, phones: Phones, members: Members) -> Iterator[npt.NDArray[np.uint32]]:
        """The neighbours of each of these phones that are members, ascending."""
        table = self.table[phones]
        around = members[table]
        ends = np.cumsum(np.count_nonzero(around, axis=1))
        return iter(np.split(table[around], ends[:-1]) if len(phones) else ())

    def counts(self, members: Members) -> npt.NDArray[np.intp]:
        """How many neighbours of each phone are members."""
        return np.asarray(np.count_nonzero(members[self.table], axis=1))

    def places(self, members: Members) -> Places:
        """Of each neighbour that is a member its place among them, from 1; like `table`."""
        return np.cumsum(members[self.table], axis=1, dtype=np.uint8)
