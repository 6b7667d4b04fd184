"""Picture of a phase's nights by two summations: a calendar, and nights against presence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earshot_protocol.secure_sum.interface import SummationName
from earshot_simulations.benchmarks.nights import COMPARED
from earshot_simulations.reporting.drawing import INK, LINE, PALETTE
from earshot_simulations.reporting.panels import panels_for

_WORDS = {
    SummationName.BELL: "one operator: four visits a sum",
    SummationName.TWO_OPERATORS: "two operators: one visit a sum",
}


def draw(rows: Sequence[dict[str, Any]], shown: float, path: Path) -> None:
    """Draw the nights of one presence as a calendar, and those of all as lines.

    Args:
        rows: Rows of `nights.benchmark`.
        shown: Presence of the calendar.
        path: PNG or SVG file.
    """
    figure, axes = panels_for(2, 1, 2.9)
    calendar, lines = axes.flat
    for place, (summation, colour) in enumerate(zip(COMPARED, PALETTE, strict=False)):
        own = [each for each in rows if each["summation"] == summation]
        (one,) = (each for each in own if each["present"] == shown)
        nights = one["nights_per_step"]
        for step in range(one["nights"] // nights):
            of_sum = step // one["steps"]
            calendar.barh(
                -place,
                nights,
                left=step * nights,
                height=0.45,
                color=colour,
                alpha=1 - 0.27 * of_sum,
                edgecolor="white",
            )
        calendar.text(
            0.3, 0.3 - place, f"{_WORDS[summation]}, {one['nights']} nights", color=INK, va="bottom"
        )
        lines.plot(
            [100 * each["present"] for each in own],
            [each["nights"] for each in own],
            "o-",
            color=colour,
            label=_WORDS[summation].partition(":")[0],
        )
    calendar.set_ylim(-1.4, 0.75)
    calendar.set_yticks([])
    calendar.set_xlabel(f"nights, if a phone visits in {100 * shown:g} of 100")
    lines.set_ylim(0, None)
    lines.set_xlabel("nights in 100 in which a phone visits")
    lines.set_ylabel("nights until all sums are done")
    lines.legend(frameon=False)
    for axis in axes.flat:
        axis.grid(axis="y" if axis is lines else "x", color=LINE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
