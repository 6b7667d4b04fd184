"""Pictures of several charts, and charts of means with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from earshot_studies.kit.outcome import Row

Chart = Callable[[Any], None]
"""Function that draws one chart on its axes."""


def multiples(
    path: Path, inches: tuple[float, float], columns: int, charts: Sequence[Chart], dpi: int = 110
) -> None:
    """Draw charts row by row, and write the picture.

    Args:
        path: Path of the picture.
        inches: Width and height of the picture.
        columns: Charts side by side.
        charts: Charts, as many as fill all rows.
        dpi: Dots per inch.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, layout="constrained")
    grid = figure.subplots(math.ceil(len(charts) / columns), columns, squeeze=False)
    for axis, chart in zip(grid.flat, charts, strict=True):
        chart(axis)
    figure.savefig(path, dpi=dpi)


def curve(axis: Any, places: Any, rows: Sequence[Row], name: str, **look: Any) -> None:
    """Draw a column of `outcome.means` at some places, as a line with its intervals."""
    axis.errorbar(places, *_means(rows, name), **look)


def bars(axis: Any, places: Any, rows: Sequence[Row], name: str, width: float, **look: Any) -> None:
    """Draw a column of `outcome.means` at some places, as bars with their intervals."""
    heights, wide = _means(rows, name)
    axis.bar(places, heights, width, yerr=wide, **look)


def _means(rows: Sequence[Row], name: str) -> tuple[list[float], list[float]]:
    """Return means and halves of their intervals; NaN, which is not drawn, where there is none."""
    means, wide = (
        [math.nan if row[column] == "" else float(row[column]) for row in rows]
        for column in (name, f"{name}_interval_95")
    )
    return means, wide
