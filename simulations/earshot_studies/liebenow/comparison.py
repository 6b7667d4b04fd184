"""Measurements of each arm of a sweep, compared with the same arm without noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.sweeps.estimate import Estimate, estimate, paired
from earshot_simulations.sweeps.phase import EPSILONS
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Arm, measured
from earshot_studies.kit.outcome import Row
from earshot_studies.liebenow.contenders import CONTENDERS, WITHOUT, ReproductionSetup

NOISE, WITH_NOISE, NO_NOISE = "noise", "as budgeted", "none"
"""Name of a column, and its two values."""

NOTHING_PROMISED = 1e5
"""Smallest ε that tables show as ∞."""

_OTHER = "no noise"

LOOKS = {each.name: (each.colour, each.marker) for each in (*CONTENDERS, WITHOUT)}


@dataclass(frozen=True)
class Point:
    """One arm of a comparison.

    Attributes:
        arm: Arm that is measured.
        quiet: The same arm without noise, with the same data for each seed; None for no comparison.
    """

    arm: Arm
    quiet: Arm | None = None


@dataclass(frozen=True)
class Measured:
    """The measurements of a point.

    Attributes:
        labels: Labels of the arm.
        figures: Figures over the arm's seeds, by name.
        gained: Gains over the same arm without noise, paired by seed, by name; usually below 0.
        spent: Budget ε of the whole phase by unit, where a bound is known.
    """

    labels: Mapping[str, str | float]
    figures: Mapping[str, Estimate]
    gained: Mapping[str, Estimate]
    spent: Mapping[Unit, float]

    def row(self, other: str = _OTHER) -> Row:
        """Return the row of the CSV; `other` is the name of the quiet arm."""
        beside = f"minus_{other.replace(' ', '_')}"
        row: Row = dict(self.labels)
        for name, found in self.figures.items():
            row["seeds"] = found.seeds
            row[name] = found.mean
            row[f"{name}_interval_95"] = _known(found.wide)
            gained = self.gained.get(name)
            row[f"{name}_{beside}"] = "" if gained is None else gained.mean
            row[f"{name}_{beside}_interval_95"] = _known(gained.wide if gained else None)
        for unit, column in EPSILONS.items():
            row[column] = _known(self.spent.get(unit))
        return row

    def described(self, titles: Mapping[str, str], other: str = _OTHER) -> dict[str, Any]:
        """Return the row of the note's table: means and differences, with their intervals."""
        row = {name: _short(value) for name, value in self.labels.items()}
        for name, found in self.figures.items():
            row[titles[name]] = str(found)
            gained = self.gained.get(name)
            row[f"{titles[name]}, against {other}"] = "" if gained is None else _judged(gained)
        row["ε per recording, per phone"] = ", ".join(
            _short(spent if spent < NOTHING_PROMISED else math.inf) for spent in self.spent.values()
        )
        return row


def compare(
    setup: ReproductionSetup, points: Sequence[Point], names: Sequence[str]
) -> list[Measured]:
    """Measure all points, and compare them with their quiet arms.

    Args:
        setup: Setup of the reproduction.
        points: Points to measure.
        names: Names of the figures to return.
    """
    quiet = [point.quiet for point in points if point.quiet is not None]
    arms = [*(point.arm for point in points), *quiet]
    found = measured(arms, setup.file, setup.processes, setup.progress)
    others = iter(found[len(points) :])
    return [
        _measured(point, figures, None if point.quiet is None else next(others), names)
        for point, figures in zip(points, found, strict=False)
    ]


def _measured(
    point: Point,
    figures: tuple[Figures, ...],
    quiet: tuple[Figures, ...] | None,
    names: Sequence[str],
) -> Measured:
    def column(rows: Iterable[Figures], name: str) -> list[float]:
        return [float(row[name] or 0.0) for row in rows]

    return Measured(
        point.arm.labels,
        {name: estimate(column(figures, name)) for name in names},
        {}
        if quiet is None
        else {name: paired(column(figures, name), column(quiet, name)) for name in names},
        {
            unit: float(figures[0][name] or 0.0)
            for unit, name in EPSILONS.items()
            if name in figures[0]
        },
    )


def draw_curves(axis: Any, points: Iterable[Measured], x: str, name: str) -> None:
    """Draw one curve per mechanism, dotted where it has no noise.

    A point of infinite x becomes a horizontal line.

    Args:
        axis: Axis of matplotlib.
        points: Points of one panel.
        x: Name of the label in which the points differ.
        name: Name of the figure that is drawn.
    """
    curves: dict[tuple[str, bool], list[Measured]] = {}
    for point in points:
        labels = point.labels
        quiet = labels.get(NOISE) == NO_NOISE or math.isinf(float(labels[x]))
        curves.setdefault((str(labels["mechanism"]), quiet), []).append(point)
    for (mechanism, quiet), curve in curves.items():
        colour, marker = LOOKS[mechanism]
        label = f"{mechanism}, no noise" if quiet else mechanism
        label = mechanism if mechanism == WITHOUT.name else label
        places = [float(point.labels[x]) for point in curve]
        heights = [point.figures[name].mean for point in curve]
        if all(map(math.isinf, places)):
            line = "--" if mechanism == WITHOUT.name else ":"
            axis.axhline(heights[0], color=colour, linestyle=line, linewidth=1.4, label=label)
            continue
        wide = [point.figures[name].wide or 0.0 for point in curve]
        style: dict[str, Any] = {"color": colour, "marker": marker, "capsize": 3, "markersize": 5}
        if quiet:
            style |= {"linestyle": ":", "marker": None, "capsize": 0, "elinewidth": 0}
        axis.errorbar(places, heights, yerr=wide, label=label, **style)


def draw_legend(figure: Any, axis: Any) -> None:
    """Draw one legend for all panels, below them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)


def _known(value: float | None) -> float | str:
    return "" if value is None else value


def _judged(gained: Estimate) -> str:
    if gained.wide is None:
        return f"{gained.mean:+.3f} (one seed)"
    said = "" if gained.clear else " (within noise)"
    return f"{gained.mean:+.3f} ± {gained.wide:.3f}{said}"


def _short(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return "∞" if math.isinf(value) else f"{value:g}"
