"""Division of records among teachers: disjoint parts that split no source.

All records of one owner, place or recording must go to one teacher: a source given to t teachers
can change t ballots (upsampling, section 5.2 of Mühl (2021)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

Places = NDArray[np.int64]


def partitions(
    sources: NDArray[np.integer], teachers: int, generator: np.random.Generator
) -> list[Places]:
    """Divide all records into disjoint parts of about equal size, with each source in one of them.

    Sources are dealt out in turn, the largest first and equal ones in random order, each to the
    teacher with the fewest records.

    Args:
        sources: Source of each record, (records,); all different if records are unrelated.
        teachers: Number of parts, none of them empty.
        generator: Source of the order.

    Returns:
        Indices of each teacher's records, ascending.

    Raises:
        InvalidParametersError: There is no teacher, or there are more teachers than sources.
        InvalidInputError: Sources are not a vector of whole numbers.
    """
    which, sizes = _numbered(sources)
    checks.whole("teachers", teachers)
    if teachers > len(sizes):
        raise InvalidParametersError(
            f"teachers={teachers}: there are only {len(sizes)} sources, and each teacher needs its "
            "own"
        )
    order = generator.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    if sizes.max() == sizes.min():
        # Same result as the queue of `_shared_out`, but faster.
        teacher_of = np.empty(len(sizes), np.int64)
        teacher_of[order] = np.arange(len(sizes)) % teachers
    else:
        teacher_of = _shared_out(sizes, order, teachers)
    return [np.flatnonzero(teacher_of[which] == teacher) for teacher in range(teachers)]


def _numbered(sources: NDArray[np.integer]) -> tuple[Places, Places]:
    """Return the index of each record's source, and the number of records of each source."""
    given = np.asarray(sources)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise InvalidInputError("sources: must be a vector of whole numbers, one for each record")
    _, which, sizes = np.unique(given, return_inverse=True, return_counts=True)
    return which, sizes


def _shared_out(sizes: Places, order: Sequence[int] | Places, teachers: int) -> Places:
    import heapq

    teacher_of = np.empty(len(sizes), np.int64)
    queue = [(0, teacher) for teacher in range(teachers)]
    for source in order:
        has, teacher = queue[0]
        teacher_of[source] = teacher
        heapq.heapreplace(queue, (has + int(sizes[source]), teacher))
    return teacher_of
