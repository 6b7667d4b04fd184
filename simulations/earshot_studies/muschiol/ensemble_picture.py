"""Tables 5.1 to 5.3 of Muschiol (2021) as a picture, ours beside Muschiol's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from earshot_studies.kit.outcome import Row
from earshot_studies.muschiol.ensemble_orderings import Ordering
from earshot_studies.muschiol.ensemble_tables import (
    BASELINE,
    CHECKS,
    TABLE_5_1,
    TABLE_5_2,
    TABLE_5_3,
    TEACHERS,
    THRESHOLDS,
)

_SIZES = (BASELINE, *TEACHERS)
_NAMES = ("baseline", "10", "20", "50")
_COLOURS = dict(zip(THRESHOLDS, ("#1f77b4", "#2ca02c", "#9467bd", "#d62728"), strict=True))


def draw(table: Sequence[Row], gains: Sequence[Ordering], path: Path) -> None:
    """Six panels.

    Args:
        table: means over seeds, with their intervals.
        gains: of parts of the recipe; none for linear taggers.
        path: of the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 9.5), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    _ranking(panels[0], table)
    for axis, place, column, title in (
        (panels[1], 0, "P", "macro precision, by th_e (5.2)"),
        (panels[2], 1, "R", "macro recall (5.2)"),
        (panels[3], 2, "F1", "macro F1 (5.2)"),
    ):
        _by_threshold(axis, table, place, column, title)
    _checked(panels[4], table)
    _gains(panels[5], gains)
    figure.savefig(path, dpi=110)


def _ranking(axis: Any, table: Sequence[Row]) -> None:
    places = np.arange(len(_SIZES))
    for column, colour in (("mAP", "#1f77b4"), ("AUC", "#ff7f0e")):
        rows = [_row(table, "5.1", size) for size in _SIZES]
        axis.errorbar(
            places,
            [float(row[column]) for row in rows],
            [_wide(row, column) for row in rows],
            fmt="o-",
            color=colour,
            capsize=3,
            label=column,
        )
        printed = [TABLE_5_1[size].ranking[column] for size in _SIZES]
        axis.plot(places, printed, "x:", color=colour, label=f"{column}, Muschiol's")
    axis.set_xticks(places, _NAMES)
    axis.set(title="of averaged votes (5.1)", xlabel="teachers", ylim=(0, 1))
    axis.legend(fontsize=8)


def _by_threshold(axis: Any, table: Sequence[Row], place: int, column: str, title: str) -> None:
    places = np.arange(len(_SIZES))
    for threshold, colour in _COLOURS.items():
        rows = [_row(table, "5.2", size, threshold) for size in _SIZES]
        axis.errorbar(
            places,
            [float(row[column]) for row in rows],
            [_wide(row, column) for row in rows],
            fmt="o-",
            color=colour,
            capsize=3,
            label=threshold,
        )
        printed = [TABLE_5_2[size, threshold][place] for size in _SIZES]
        axis.plot(places, printed, "x:", color=colour, alpha=0.6)
        if column == "P":
            ones = [float(row["P_if_one"]) for row in rows]
            axis.plot(places, ones, "--", color=colour, alpha=0.6)
    axis.set_xticks(places, _NAMES)
    axis.set(title=title, xlabel="teachers", ylim=(0, 1 if column == "P" else None))
    axis.plot([], [], "x:", color="grey", label="Muschiol's")
    if column == "P":
        axis.plot([], [], "--", color="grey", label="never named counts 1")
    axis.legend(fontsize=8)


def _checked(axis: Any, table: Sequence[Row]) -> None:
    cells = [(size, check) for check in CHECKS for size in TEACHERS]
    places = np.arange(len(cells))
    for offset, column, label in (
        (-0.25, "F1", "ensemble, on what it answers"),
        (0.0, "baseline_F1", "baseline, on the same"),
        (0.25, "asked_F1", "ensemble, on everything"),
    ):
        rows = [_row(table, "5.3", size, "0.2", check) for size, check in cells]
        axis.bar(
            places + offset,
            [float(row[column] or 0.0) for row in rows],
            0.25,
            yerr=[_wide(row, column) for row in rows],
            capsize=2,
            label=label,
        )
    printed = [TABLE_5_3[size, "0.2", check][2] for size, check in cells]
    axis.plot(places - 0.25, printed, "kx", label="Muschiol's ensemble")
    axis.set_xticks(places, [f"{size}\nth_c {check}" for size, check in cells], fontsize=8)
    axis.set(title="macro F1 with a check, th_e 0.2 (5.3)")
    axis.legend(fontsize=8)


def _gains(axis: Any, gains: Sequence[Ordering]) -> None:
    if not gains:
        axis.axis("off")
        return
    places = np.arange(len(gains))[::-1]
    means = [each.ours.mean for each in gains]
    axis.errorbar(means, places, xerr=[each.ours.wide or 0.0 for each in gains], fmt="o", capsize=3)
    axis.axvline(0, color="grey", linewidth=1)
    labels = [fill(f"{each.said}: {each.what}", 30) for each in gains]
    axis.set_yticks(places, labels, fontsize=7)
    axis.set(title="parts of the recipe (5.7 to 5.11)", xlabel="difference")


def _row(
    table: Sequence[Row], name: str, teachers: int, threshold: str = "", check: str = ""
) -> Row:
    for row in table:
        if (row["table"], row["teachers"], row["th_c"]) == (name, teachers, check) and (
            not threshold or row["th_e"] == threshold
        ):
            return row
    raise KeyError((name, teachers, threshold, check))


def _wide(row: Row, column: str) -> float:
    return float(row[f"{column}_interval_95"] or 0.0)
