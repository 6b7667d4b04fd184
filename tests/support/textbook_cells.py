"""A phone's part in discovery and statistics phases, slowly, from docs/protocol.md alone."""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import mpmath

Rows = Sequence[Sequence[float]]
Table = list[list[int]]

STEPS = 2**12
"""Of a length of one."""


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def start_rows(start: dict[str, object]) -> list[list[float]]:
    """Public start centroids, of length one, as float32."""
    count, dimensions = int(str(start["count"])), int(str(start["dimensions"]))
    numbers = struct.unpack(f"<{count * dimensions}h", base64.b64decode(str(start["rows"])))
    rows = [numbers[i * dimensions : (i + 1) * dimensions] for i in range(count)]
    return [[float32(x / float(length(row))) for x in row] for row in rows]


def length(row: Sequence[float]) -> mpmath.mpf:
    return mpmath.sqrt(mpmath.fsum(mpmath.mpf(x) ** 2 for x in row))


def whole(row: Sequence[float], steps: int) -> list[int]:
    """The direction of a row in whole steps; zeros have none."""
    size = length(row)
    return [int(mpmath.nint(mpmath.mpf(x) / size * steps)) if size else 0 for x in row]


def nearest(row: Sequence[float], centroids: Rows) -> int:
    """The cell with the largest inner product, exactly; of equal ones the first."""
    point = whole(row, 2**24)
    inner = [
        sum(a * b for a, b in zip(point, whole(centroid, 2**24), strict=True))
        for centroid in centroids
    ]
    return inner.index(max(inner))


def on_sphere(row: Sequence[float]) -> list[int]:
    """A recording in steps of 2^-16, never longer than one."""
    steps, size = whole(row, 2**16), length(row)
    if sum(x * x for x in steps) > 2**32:
        return [int(mpmath.mpf(x) / size * 2**16) for x in row]
    return steps


def cells_input(points: Rows, centroids: Rows, room: int | None = None) -> Table:
    """What goes into a sum of cells that has room for so many; if not said, for these."""
    dimensions, rows = len(centroids[0]), len(centroids) if room is None else room
    counts, sums = [0] * rows, [[0] * dimensions for _ in range(rows)]
    for point in points:
        steps = on_sphere([float32(x) for x in point])
        cell = nearest(steps, centroids)
        counts[cell] += 1
        sums[cell] = [a + b for a, b in zip(sums[cell], steps, strict=True)]
    return rounded([[Fraction(x, 2**16) for x in row] for row in sums], counts)


class Split(NamedTuple):
    """How rows are split: the kind of each cell, and so many kinds in all."""

    centroids: Rows
    kinds: Sequence[int]
    count: int


def labels_input(
    points: Rows,
    labels: Sequence[int],
    names: int,
    dimensions: int,
    choices: Sequence[int] | None = None,
    rows: int | None = None,
    split: Split | None = None,
) -> Table:
    """What goes into the sum of labels; recordings of label -1 have none.

    Where choices have rows, too, `choices` says which row each recording's has, -1 for none, and
    there are so many rows in all. Each of them is `split` into as many as there are kinds. The last
    entry of a row counts its recordings.
    """
    kinds = 1 if split is None else split.count
    places = [
        (row, kind) for row in range(names if rows is None else rows) for kind in range(kinds)
    ]
    sums = {place: [0] * dimensions for place in places}
    counts = dict.fromkeys(places, 0)
    alone = {(label, kind): 0 for label in range(names) for kind in range(kinds)}
    for number, (point, label) in enumerate(zip(points, labels, strict=True)):
        if label < 0:
            continue
        steps = on_sphere([float32(x) for x in point])
        kind = 0 if split is None else split.kinds[nearest(steps, split.centroids)]
        own = [(label, kind)]
        if choices is not None and choices[number] >= 0:
            own.append((choices[number], kind))
        elif choices is not None:
            alone[label, kind] += 1
        for place in own:
            counts[place] += 1
            sums[place] = [a + b for a, b in zip(sums[place], steps, strict=True)]
    # A quarter of each vector counts it, and the rest is so much shorter.
    rest = mpmath.sqrt(15) / 4
    return rounded(
        [
            [*(rest * x / 2**16 for x in sums[place]), Fraction(counts[place], 4)]
            for place in places
        ],
        [*counts.values(), *alone.values()],
    )


def rounded(values: list[list[Fraction | mpmath.mpf]], counts: list[int]) -> Table:
    """Values over the norm of counts, in whole steps."""
    size = mpmath.sqrt(sum(count**2 for count in counts))
    unit = steps_of_one(sum(len(row) for row in values))
    return [
        [int(mpmath.nint(mpmath.mpmathify(x) / size * unit)) for x in row]
        if size
        else [0] * len(row)
        for row in values
    ]


def steps_of_one(entries: int) -> mpmath.mpf:
    return STEPS - mpmath.sqrt(entries) / 2 - mpmath.mpf(2) ** -20


@functools.cache
def poisson_table(rate: float) -> tuple[int, list[int]]:
    """The least number that can be drawn, and T of it and of each after it."""
    exact, mode, negligible = mpmath.mpf(rate), int(rate), mpmath.mpf(2) ** -160
    above, below = [mpmath.mpf(1)], [mpmath.mpf(1)]
    while above[-1] > negligible:
        above.append(above[-1] * exact / (mode + len(above)))
    while len(below) <= mode and below[-1] > negligible:
        below.append(below[-1] * (mode + 1 - len(below)) / exact)
    weights = below[:0:-1] + above
    whole_weight, seen, table = mpmath.fsum(weights), mpmath.mpf(0), []
    for weight in weights:
        seen += weight
        table.append(min(int(mpmath.floor(seen / whole_weight * 2**128)), 2**128 - 1))
    return mode + 1 - len(below), [*table[:-1], 2**128 - 1]


def share_bound(rate: float, probability: Fraction) -> int:
    """What the difference of two draws exceeds with no more than this probability."""
    least, table = poisson_table(rate)
    quarter = probability.numerator * 2**126 // probability.denominator
    largest = least + sum(entry < 2**128 - quarter for entry in table)
    smallest = least + sum(entry < quarter for entry in table)
    farthest = max(largest - Fraction(rate), Fraction(rate) - smallest, Fraction(0))
    return 2 * -(-farthest.numerator // farthest.denominator)


def with_confusion(
    counts: Sequence[int], radius: int, table: Sequence[Sequence[int]], labelled: Sequence[int]
) -> list[int]:
    """Counts and a confusion matrix behind them as a phone sends them, each over a root of 2."""
    norm = mpmath.sqrt(sum(count * count for count in counts))
    longer = norm if norm > radius else mpmath.mpf(radius)
    own = mpmath.sqrt(max(1, sum(each * each for each in labelled)))
    values = [count / longer for count in counts] + [each / own for row in table for each in row]
    unit = steps_of_one(len(values)) / mpmath.sqrt(2)
    return [int(mpmath.nint(value * unit)) for value in values]


def projected(counts: Sequence[int], radius: int) -> list[int]:
    """Counts as a phone sends them: scaled down to the radius if they are longer, in steps."""
    norm = mpmath.sqrt(sum(count * count for count in counts))
    longer = norm if norm > radius else mpmath.mpf(radius)
    unit = STEPS - mpmath.sqrt(len(counts)) / 2 - mpmath.mpf(2) ** -20
    return [int(mpmath.nint(count * unit / longer)) for count in counts]
