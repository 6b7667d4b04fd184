"""Pictures of several panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def panels_for(names: int, rows: int, height: float, **shared: Any) -> tuple[Any, Any]:
    """Return a picture with a column of panels for each data set, and its axes (rows, names).

    Args:
        names: Number of data sets.
        rows: Number of rows of panels.
        height: Height of the picture in inches.
        shared: Keyword arguments of `subplots` about shared axes.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(7.5, 5.4 * names), height), layout="constrained")
    return figure, figure.subplots(rows, names, squeeze=False, **shared)


def plain_logarithmic(axis: Any, ticks: Sequence[float]) -> None:
    """Make the x axis logarithmic, with plain numbers at the measured values."""
    axis.set_xscale("log")
    axis.set_xticks(ticks, [f"{tick:,.12g}" for tick in ticks])
    axis.minorticks_off()
