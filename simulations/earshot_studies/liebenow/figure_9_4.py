"""Figure 9.4 of the thesis: right names by the fraction of recordings that are labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from earshot_simulations.reporting.panels import panels_for
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.phase import CENTROID_NAMES, NAMES
from earshot_studies.kit.outcome import Outcome
from earshot_studies.liebenow.comparison import (
    NO_NOISE,
    NOISE,
    WITH_NOISE,
    Measured,
    Point,
    compare,
    draw_curves,
    draw_legend,
)
from earshot_studies.liebenow.contenders import (
    BUDGETS_DESCRIBED,
    CONTENDERS,
    DESCRIBED,
    NO_NOISE_AT_ALL,
    Setup,
)

NAME = "liebenow-9.4"
LABELLED = "labelled"
FEW = (0.0, 0.03, 0.1, 0.3, 1.0)
MANY = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Fractions of the recordings."""
_TITLES = {CENTROID_NAMES: "centroids named rightly", NAMES: "recordings named rightly"}


def reproduce(setup: Setup, full: bool = False) -> Outcome:
    """Figure 9.4, as the thesis counts and as a user would."""
    points: list[Point] = []
    for data in setup.data:
        for contender in CONTENDERS:
            for labelled in MANY if full else FEW:
                part = {LABELLED: labelled}
                labels: dict[str, str | float] = {**part, NOISE: NO_NOISE}
                quiet = setup.arm(contender, data, labels, **part, **NO_NOISE_AT_ALL)
                noisy = setup.arm(contender, data, {**labels, NOISE: WITH_NOISE}, **part)
                points += [Point(noisy, quiet), Point(quiet)]
    found = compare(setup, points, tuple(_TITLES))
    rows = [each.described(_TITLES) for each in found]
    note = f"""# Right names by the fraction of labelled recordings

After Figure 9.4 of Liebenow (2022), which counts centroids: of those that were published, how many
have the name of the recording next to them. The lower row of the picture counts what a user sees:
how many held-out recordings get their right name from the centroid next to them. A centroid that
has no name, because no label's votes stand clear of the noise, counts as wrong in both.

{setup.described} The fraction that is labelled is what varies. {BUDGETS_DESCRIBED}

{DESCRIBED}

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and said to be within
noise where their interval contains 0. Of its curves the thesis says that accuracy hardly changes
between 1.0 and 0.3, deteriorates below, and is 0.0 without labels, "since the voting consists of
only noise". Naming by noise is right one time in ten, not never, and that is what the printed
mechanism does here. 0.0 is what the corrected local route does, which leaves such centroids
unnamed. Secure-sum publishes the most frequent label of every cell, with a p-value that says
whether it may be noise. That label is what is counted here: without labels it is right by chance.
"""
    return Outcome(
        NAME, [each.row() for each in found], lambda path: _draw(found, setup.labels, path), note
    )


def _draw(found: Sequence[Measured], labels: Mapping[str, int], path: Path) -> None:
    names = list(dict.fromkeys(str(each.labels["data"]) for each in found))
    figure, panels = panels_for(len(names), 2, 7.6, sharex=True, sharey=True)
    for row, (metric, title) in zip(panels, _TITLES.items(), strict=True):
        for axis, data in zip(row, names, strict=True):
            points = [each for each in found if each.labels["data"] == data]
            draw_curves(axis, points, LABELLED, metric)
            axis.axhline(1 / labels[data], color="#888888", linewidth=1)
            axis.set_ylim(-0.03, 1.03)
        row[0].set_ylabel(f"fraction of {title}")
    for axis, data in zip(panels[0], names, strict=True):
        axis.set_title(str(data))
    for axis in panels[-1]:
        axis.set_xlabel("fraction of recordings that are labelled (grey: chance)")
    draw_legend(figure, panels[0][0])
    figure.savefig(path, dpi=110)
