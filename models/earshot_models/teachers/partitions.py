"""Division of records among teachers: disjoint parts that split no source.

Everything from one owner, place or recording must go to one teacher, or else it can turn as many
ballots as teachers have met it: t of them for something that was given to t teachers (upsampling,
section 5.2 of Mühl (2021)).
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
        sources: Source of each record, (records,); all different if each record is on its own.
        teachers: Number of parts, none of which stays empty.
        generator: Source of the order.

    Returns:
        Places of each teacher's records, ascending.

    Raises:
        InvalidParametersError: if there is no teacher, or there are more teachers than sources.
        InvalidInputError: if sources are not a vector of whole numbers.
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
        # Taking turns gives the same result as the queue below.
        teacher_of = np.empty(len(sizes), np.int64)
        teacher_of[order] = np.arange(len(sizes)) % teachers
    else:
        teacher_of = _shared_out(sizes, order, teachers)
    return [np.flatnonzero(teacher_of[which] == teacher) for teacher in range(teachers)]


def upsampled(
    sources: NDArray[np.integer],
    copies: NDArray[np.integer],
    size: int,
    generator: np.random.Generator,
) -> list[Places]:
    """Divide records into overlapping parts: a source goes to as many teachers as it has copies.

    Copy after copy, the sources with at least that many are divided among teachers of their own, so
    that no teacher meets a record twice.

    Args:
        sources: Source of each record, (records,), as in `partitions`.
        copies: Copies of each record, (records,), at least 1, the same for all records of a source.
        size: Approximate number of records that a teacher learns from.
        generator: Source of the order.

    Returns:
        Places of each teacher's records, first those of the first copy.

    Raises:
        InvalidParametersError: if the size is below 1, or exceeds the records of some copy.
        InvalidInputError: if not every record has a number of copies, or one source has two.
    """
    which, sizes = _numbered(sources)
    numbers = np.asarray(copies)
    if numbers.shape != which.shape or numbers.dtype.kind not in "iu" or (numbers < 1).any():
        raise InvalidInputError("copies: must be a whole number, at least 1, for each record")
    of_source = np.zeros(len(sizes), np.int64)
    of_source[which] = numbers
    if (of_source[which] != numbers).any():
        raise InvalidInputError("copies: must be the same for all records of a source")
    checks.whole("size", size)
    parts: list[Places] = []
    for copy in range(1, int(numbers.max()) + 1):
        places = np.flatnonzero(numbers >= copy)
        if len(places) < size:
            raise InvalidParametersError(
                f"size={size}: only {len(places)} records have {copy} copies; choose smaller "
                "parts, or give more records that many"
            )
        teachers = max(1, round(len(places) / size))
        parts += [places[own] for own in partitions(sources[places], teachers, generator)]
    return parts


def checked_groups(groups: NDArray[np.integer], budgets: int, least: int = 2) -> Places:
    """Return each owner's budget group, if no group is so small that it points at its members.

    Raises:
        InvalidInputError: if the groups are not a vector of places among the budgets, or a group
            has fewer than `least` members.
    """
    which = np.asarray(groups)
    if which.ndim != 1 or which.dtype.kind not in "iu" or not len(which):
        raise InvalidInputError("groups: must be a vector of whole numbers, one for each owner")
    if not 0 <= which.min() <= which.max() < budgets:
        raise InvalidInputError(f"groups: must be from 0 to {budgets - 1}, one for each budget")
    members = np.bincount(which, minlength=budgets)
    small = np.flatnonzero(members < least)
    if len(small):
        raise InvalidInputError(
            f"group {small[0]} has {members[small[0]]} members: at least {least} are needed, as "
            "it is public who has which budget"
        )
    return which.astype(np.int64)


def _numbered(sources: NDArray[np.integer]) -> tuple[Places, Places]:
    """Return the place of each record's source among all, and each source's number of records."""
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
