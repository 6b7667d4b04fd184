"""Figure 9.6 of the thesis: what the ε of each private operation does to what is found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from earshot_simulations.phases.local import NO_BUDGET, whole_budget
from earshot_simulations.phases.settings import BLOBS
from earshot_simulations.reproductions.comparison import (
    Measured,
    Point,
    compare,
    draw_curves,
    draw_legend,
    panels_for,
)
from earshot_simulations.reproductions.contenders import (
    DESCRIBED,
    LOCAL,
    NO_NOISE_AT_ALL,
    PRINTED,
    SECURE_SUM,
    WITHOUT,
    Contender,
    Setup,
)
from earshot_simulations.reproductions.outcome import Outcome, markdown_table
from earshot_simulations.sweeps.phase import ARI_TEST, NAMES
from earshot_simulations.sweeps.sweep import Arm

NAME = "liebenow-9.6"
OPERATION, EPSILON = "operation", "epsilon"
WHOLE = "whole phase"
"""What the ε of the secure sums is for."""

OPERATIONS = {
    "clustering": ("local clustering", ARI_TEST),
    "selection": ("local top centroids", ARI_TEST),
    "centroid_vote": ("centroid vote", ARI_TEST),
    "label_vote": ("label vote", NAMES),
}
"""Names in `Budget`, what the rows are called, and what is measured in them."""

_BLOBS = {False: (0.1, 0.3, 1.0, 3.0), True: (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0)}
_SOUND = {False: (1.0, 10.0, 100.0, 1000.0), True: (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)}
_PHONE = {False: (0.5, 1.0, 2.0, 4.0, 8.0), True: (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)}
_TITLES = {ARI_TEST: "testing ARI", NAMES: "right names"}


def reproduce(setup: Setup, full: bool = False) -> Outcome:
    """All eight panels; four where there is no sound."""
    points: list[Point] = []
    for data in setup.data:
        for contender in (PRINTED, LOCAL):
            quiet = _quiet(setup, contender, data)
            points.append(Point(quiet))
            for field, (operation, _) in OPERATIONS.items():
                for epsilon in (_BLOBS if data == BLOBS else _SOUND)[full]:
                    labels: dict[str, str | float] = {OPERATION: operation, EPSILON: epsilon}
                    budget = msgspec.structs.replace(whole_budget(NO_BUDGET), **{field: epsilon})
                    points.append(Point(setup.arm(contender, data, labels, budget=budget), quiet))
        quiet = _quiet(setup, SECURE_SUM, data)
        points.append(Point(quiet))
        for epsilon in _PHONE[full]:
            labels = {OPERATION: WHOLE, EPSILON: epsilon}
            points.append(Point(setup.arm(SECURE_SUM, data, labels, epsilon=epsilon), quiet))
        labels = {OPERATION: WHOLE, EPSILON: math.inf}
        points.append(Point(setup.arm(WITHOUT, data, labels)))
    found = compare(setup, points, (ARI_TEST, NAMES))
    rows = [each.described(_TITLES) for each in found]
    note = f"""# Privacy and utility

After Figure 9.6 of Liebenow (2022): rows are the private operations of a phase, in the order of the
thesis, columns are data. The thesis has two acoustic data sets on the left and its synthetic one on
the right; here the order is blobs, then sound where there is some. It does not say what the other
three operations spent meanwhile: here they have no noise, so each panel shows one operation alone.
The first three rows show the adjusted Rand index on recordings that no phone heard, the last one
the fraction of those that get their right name.

{setup.described}

{DESCRIBED} It has none of these four operations: its curve is that of the whole phase, in all
rows the same phases, and its ε is all that a *phone* spends, where that of the others is what one
operation spends of a *recording*'s budget (for local top centroids, on each of two choices).

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and said to be within
noise where their interval contains 0. The thesis says of its curves that ε in [0, 1] gives a
reasonable trade-off on synthetic data and destroys all utility on sound, that there the axis had to
be logarithmic, and that local top centroids hardly depend on ε; their heights are in its pictures
alone. On blobs the first two rows of "as printed" and of "local, corrected" differ in nothing but
that the latter merges candidates of one environment after the vote. In the vote for
centroids and in that for labels the printed noise is as good as none, which is what its curves
show, and no merit of theirs.
"""
    return Outcome(
        NAME, [each.row() for each in found], lambda path: _draw(found, setup.labels, path), note
    )


def _quiet(setup: Setup, contender: Contender, data: str) -> Arm:
    labels: dict[str, str | float] = {OPERATION: WHOLE, EPSILON: math.inf}
    return setup.arm(contender, data, labels, **NO_NOISE_AT_ALL)


def _draw(found: Sequence[Measured], labels: Mapping[str, int], path: Path) -> None:
    names = list(dict.fromkeys(str(each.labels["data"]) for each in found))
    figure, panels = panels_for(len(names), len(OPERATIONS), 13, sharey="row")
    for row, (operation, metric) in zip(panels, OPERATIONS.values(), strict=True):
        for axis, data in zip(row, names, strict=True):
            shown = [
                each
                for each in found
                if each.labels["data"] == data and each.labels[OPERATION] in (operation, WHOLE)
            ]
            # Curves first: a horizontal line of no noise stands behind its name in the legend.
            shown.sort(key=lambda each: math.isinf(float(each.labels[EPSILON])))
            draw_curves(axis, shown, EPSILON, metric)
            chance = 1 / labels[data] if metric == NAMES else 0.0
            axis.axhline(chance, color="#888888", linewidth=1)
            axis.set_xscale("log")
            axis.set_ylim(-0.05, 1.03)
            axis.set_title(f"{operation}, {data}")
        row[0].set_ylabel(f"{_TITLES[metric]} (grey: chance)")
    for axis in panels[-1]:
        axis.set_xlabel("ε of the operation per recording; secure-sum: of the phase per phone")
    draw_legend(figure, panels[0][0])
    figure.savefig(path, dpi=110)
