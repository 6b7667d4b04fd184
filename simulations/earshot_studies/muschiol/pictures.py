"""Figures 5.13 to 5.16 of Muschiol (2021) on ensembles at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earshot_simulations.reporting.panels import plain_logarithmic
from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.printed import ADAPTIVE
from earshot_studies.muschiol.settings import CHECK_NOISES
from earshot_studies.muschiol.statements import SOUND

Rows = Sequence[Row]
_COLOURS = {"0.2": "#1f77b4", "0.4": "#2ca02c", "0.6": "#9467bd", ADAPTIVE: "#d62728"}
_SHADES = {"5.14": ("#c7e9c0", "#74c476", "#006d2c"), "5.15": ("#fcbba1", "#fb6a4a", "#99000d")}
_WITH_CHECK = {"5.14": "0.4 + 0.6", "5.15": f"{ADAPTIVE} + 0.6"}


def draw(rows: Rows, path: Path) -> None:
    """One picture of six panels.

    Args:
        rows: means over seeds with their intervals.
        path: of the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 9.5), layout="constrained")
    panels = figure.subplots(2, 3)
    _right(panels[0][0], rows)
    _costs(panels[0][1], rows, "claimed", "ε of 1,000 answers, as claimed (5.13b, 5.14b, 5.15b)")
    _costs(panels[0][2], rows, SOUND, "the same, soundly: exact outcomes, left out, v = 3")
    _traded(panels[1][0], rows)
    for axis, threshold in ((panels[1][1], "0.4"), (panels[1][2], ADAPTIVE)):
        _distribution(axis, rows, threshold)
    figure.savefig(path, dpi=110)


def _right(axis: Any, rows: Rows) -> None:
    for threshold, colour in _COLOURS.items():
        curve = _curve(rows, "5.13", threshold, "")
        for name, line in (("printed", "-"), ("sound", "--")):
            label = threshold if name == "printed" else f"{threshold}, soundly (v = 3)"
            _line(axis, curve, f"macro_f1_{name}", colour, line, label)
    for table in _WITH_CHECK:
        curve = _curve(rows, table, None, CHECK_NOISES[-1])
        colour = _SHADES[table][-1]
        _line(axis, curve, "macro_f1_printed", colour, ":", f"{_WITH_CHECK[table]}, σ_c .6")
    axis.set(title="macro F1 of answers (5.13a to 5.15a)", xlabel="σ_e", ylabel="macro F1")
    axis.set_ylim(0, 1.4 * axis.get_ylim()[1])
    axis.legend(fontsize=7, ncols=2, loc="upper center")


def _costs(axis: Any, rows: Rows, column: str, title: str) -> None:
    for threshold, colour in _COLOURS.items():
        _line(axis, _curve(rows, "5.13", threshold, ""), column, colour, "-", threshold)
    for table, shades in _SHADES.items():
        for noise, shade in zip(CHECK_NOISES, shades, strict=True):
            label = f"{_WITH_CHECK[table]}, σ_c {noise:g}"
            _line(axis, _curve(rows, table, None, noise), column, shade, ":", label)
    axis.set(title=title, xlabel="σ_e", ylabel="ε at δ = 10⁻⁸", yscale="log")
    ticks = (25, 50, 100, 200, 400, 800)
    axis.set_yticks(ticks, list(map(str, ticks)))
    axis.minorticks_off()
    axis.legend(fontsize=7, ncols=2)


def _traded(axis: Any, rows: Rows) -> None:
    for threshold, colour in _COLOURS.items():
        curve = _curve(rows, "5.13", threshold, "")
        for costs, name, line in (("claimed", "printed", "-"), (SOUND, "sound", "--")):
            label = f"{threshold}, {'as claimed' if costs == 'claimed' else 'soundly'}"
            points = [(float(row[costs]), float(row[f"macro_f1_{name}"])) for row in curve]
            axis.plot(*zip(*points, strict=True), line, color=colour, marker=".", label=label)
    axis.set(title="F1 against ε of 1,000 answers (5.13c)", xlabel="ε", ylabel="macro F1")
    plain_logarithmic(axis, (25, 50, 100, 200, 400, 800))
    axis.legend(fontsize=7, loc="lower right")


def _distribution(axis: Any, rows: Rows, threshold: str) -> None:
    import numpy as np

    bins = [row for row in rows if row["table"] == "5.16" and row["th_e"] == threshold]
    edges = np.array([float(row["q"]) for row in bins])
    width = edges[1] / edges[0]
    for column, colour, label in (
        ("answered_share", "#bbbbbb", "all samples"),
        ("sound_share", "#6baed6", "answered with a check at .6"),
    ):
        shares = [100 * float(row[column]) for row in bins]
        axis.bar(edges / width, shares, edges - edges / width, align="edge", color=colour,
                 label=label, edgecolor="white")  # fmt: skip
    axis.set(title=f"q at th {threshold}, σ_e .4, σ_c .6 (5.16)", xscale="log", xlabel="q")
    axis.set_xlim(1, 1e-4)
    axis.set_ylabel("% of samples")
    costs = axis.twinx()
    there = [row for row in bins if row["claimed"] != ""]
    middles = [float(row["q"]) / width**0.5 for row in there]
    costs.plot(middles, [float(row["claimed"]) for row in there], "r_", markersize=10,
               label="ε of 1,000 such, as claimed")  # fmt: skip
    costs.set_ylim(0)
    costs.set_ylabel("ε")
    both = [each.get_legend_handles_labels() for each in (axis, costs)]
    axis.legend(both[0][0] + both[1][0], both[0][1] + both[1][1], fontsize=7, loc="upper right")


def _curve(rows: Rows, table: str, threshold: str | None, check_noise: float | str) -> list[Row]:
    found = [
        row
        for row in rows
        if row["table"] == table
        and row["th_e"] == (row["th_e"] if threshold is None else threshold)
        and row["sigma_c"] == check_noise
    ]
    return sorted(found, key=lambda row: float(row["sigma_e"]))


def _line(axis: Any, curve: list[Row], column: str, colour: str, line: str, label: str) -> None:
    wide = [float(row[f"{column}_interval_95"] or 0.0) for row in curve]
    places = [float(row["sigma_e"]) for row in curve]
    heights = [float(row[column]) for row in curve]
    axis.errorbar(places, heights, yerr=wide, fmt=line, color=colour, label=label, capsize=2)
