"""Picture of the cost of phases of growing crowds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earshot_protocol.errors import InvalidInputError
from earshot_simulations.benchmarks.phase import series
from earshot_simulations.reporting.drawing import PALETTE
from earshot_simulations.reporting.panels import panels_for, plain_logarithmic
from earshot_simulations.sweeps.rows import Figures

SUFFIXES = (".png", ".svg")

_PANELS = (
    ("minutes by the clock", 60.0, {"seconds": "o-"}),
    ("peak memory, GB", 1e9 / 2**20, {"peak_memory_mb": "o-"}),
    ("a phone's CPU, ms", 1.0, {"phone_cpu_ms": "o-"}),
    (
        "a phone's kB up, down (dashed)",
        1e3,
        {"phone_bytes_up": "o-", "phone_bytes_down": "o--"},
    ),
)
"""Titles, units, and figures with their lines."""
_BY_K = "by k alone"


def check_picture(path: Path) -> None:
    """Check that a picture can be written to this file.

    Raises:
        InvalidInputError: The suffix is not one of `SUFFIXES`, or the folder does not exist.
    """
    if path.suffix not in SUFFIXES:
        raise InvalidInputError(f"{path}: a picture's name ends in {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{path.parent}: there is no such folder; make it first")


def draw(rows: Sequence[Figures], path: Path) -> None:
    """Draw time, memory and the cost of a phone against the number of phones, one line per series.

    A phone's figures are drawn from 0, with the smallest crowd's figure scaled by k alone.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator

    every = series(rows)
    sizes = sorted({*map(_phones, rows)})
    figure, axes = panels_for(2, 2, 5.6)
    for axis, (title, unit, figures) in zip(axes.flat, _PANELS, strict=True):
        for name, style in figures.items():
            for colour, (label, found) in zip(PALETTE, every.items(), strict=False):
                values = [float(each[name] or 0) / unit for each in found]
                axis.plot([*map(_phones, found)], values, style, color=colour, label=label)
                if name.startswith("phone_") and len(found) > 1:
                    _draw_by_k_alone(axis, found, values[0], colour)
        plain_logarithmic(axis, sizes)
        axis.set_xlabel("phones")
        axis.set_ylabel(title)
        if any(name.startswith("phone_") for name in figures):
            axis.set_ylim(0, 1.1 * axis.dataLim.ymax)
        else:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter("")
        axis.grid(axis="y", linewidth=0.4)
    handles, names = axes[1][0].get_legend_handles_labels()
    each = dict(zip(names, handles, strict=True))
    if _BY_K in each:  # in the colour of every series
        each[_BY_K] = Line2D([], [], color="black", linestyle=":")
    figure.legend(each.values(), each.keys(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


def _draw_by_k_alone(axis: Any, rows: Sequence[Figures], first: float, colour: str) -> None:
    """Draw the smallest crowd's figure, scaled by k."""
    degrees = [float(each["neighbours"] or 0) for each in rows]
    if all(degrees):
        alone = [first * degree / degrees[0] for degree in degrees]
        axis.plot([*map(_phones, rows)], alone, ":", color=colour, label=_BY_K)


def _phones(each: Figures) -> float:
    return float(each["phones"] or 0)
