"""Figures 9.3, 9.4 and 9.6 of the thesis: accuracy by recordings, by labels and by ε."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from earshot_simulations.phases.settings import BLOBS, NO_BUDGET, whole_budget
from earshot_simulations.reporting.panels import panels_for, plain_logarithmic
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.phase import ARI_TEST, ARI_TRAIN, CENTROID_NAMES, NAMES
from earshot_simulations.sweeps.sweep import Arm
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.liebenow.comparison import (
    LOOKS,
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
    LOCAL,
    NO_NOISE_AT_ALL,
    PRINTED,
    SECURE_SUM,
    WITHOUT,
    ComparedEncoder,
    ReproductionSetup,
)

HEARD, GROWING = "liebenow-9.3a", "liebenow-9.3b"
RECORDINGS = "recordings"
FEW_RECORDINGS, MANY_RECORDINGS = (10, 30, 100, 300), (10, 20, 50, 100, 200, 500, 1000)
"""Numbers of recordings of a phone."""
_CLUSTERING = {ARI_TRAIN: "training ARI", ARI_TEST: "testing ARI"}


def training_and_testing(setup: ReproductionSetup) -> Reproduction:
    """Make Figure 9.3a: the adjusted Rand index on phones' recordings and on held-out ones."""
    points: list[Point] = []
    for data in setup.data:
        for contender in CONTENDERS:
            quiet = setup.arm(contender, data, {NOISE: NO_NOISE}, **NO_NOISE_AT_ALL)
            points += [Point(setup.arm(contender, data, {NOISE: WITH_NOISE}), quiet), Point(quiet)]
        points.append(Point(setup.arm(WITHOUT, data, {NOISE: NO_NOISE})))
    found = compare(setup, points, (ARI_TRAIN, ARI_TEST))
    note = f"""# Training and testing accuracy of the clustering

After Figure 9.3a of Liebenow (2022), by the adjusted Rand index (ARI) of the published centroids
against the truth. Training accuracy is on recordings of the phones, testing accuracy on recordings
that no phone has; the thesis tests on both together.

{setup.described} {BUDGETS_DESCRIBED}

{DESCRIBED}

{_table(found)}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and called within
noise where their interval contains 0. Without noise each route keeps its method: few centroids per
phone, or cells around public starts. The last bar of each group is plain k-means on pooled
recordings. The thesis gives the heights of its bars only in a picture, so they are left out here.
It states that generalization works for the synthetic data set only, and hardly for its two data
sets of sound.
"""
    return Reproduction(HEARD, _rows(found), lambda path: _draw_bars(found, path), note)


def growing(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Make Figure 9.3b: training accuracy by the number of recordings of a phone."""
    numbers = MANY_RECORDINGS if full else FEW_RECORDINGS
    points: list[Point] = []
    for data in setup.data:
        for contender in CONTENDERS:
            for recordings in numbers:
                more = {RECORDINGS: recordings}
                labels: dict[str, str | float] = {**more, NOISE: NO_NOISE}
                quiet = setup.arm(contender, data, labels, **more, **NO_NOISE_AT_ALL)
                noisy = setup.arm(contender, data, {**labels, NOISE: WITH_NOISE}, **more)
                points += [Point(noisy, quiet), Point(quiet)]
    found = compare(setup, points, (ARI_TRAIN,))
    note = f"""# More recordings of a phone

After Figure 9.3b of Liebenow (2022): training accuracy (adjusted Rand index) by the number of
recordings of a phone, on average {", ".join(map(str, numbers))}. The thesis scales
its axis so that its three curves can be compared; here it is not scaled.

{setup.described} Only the number of recordings varies. {BUDGETS_DESCRIBED}

{DESCRIBED}

{_table(found)}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and called within
noise where their interval contains 0. A phone of the local routes has only its own recordings
against its own noise, so it gains from each of them. In a secure sum all phones share the noise,
and a phone's weight does not depend on its number of recordings: more of them only reduce the
variance of its vector. In the thesis accuracy rose on sound and stagnated on its synthetic data.
"""
    return Reproduction(GROWING, _rows(found), lambda path: _draw_lines(found, path), note)


def _rows(found: Sequence[Measured]) -> list[dict[str, str | float | int]]:
    return [each.row() for each in found]


def _table(found: Sequence[Measured]) -> str:
    rows = [each.described(_CLUSTERING) for each in found]
    return markdown_table(rows, list(rows[0]))


def _draw_bars(found: Sequence[Measured], path: Path) -> None:
    names = list(dict.fromkeys(each.labels["data"] for each in found))
    figure, (panels,) = panels_for(len(names), 1, 4.6, sharey=True)
    for axis, data in zip(panels, names, strict=True):
        bars = [each for each in found if each.labels["data"] == data]
        for place, bar in enumerate(bars):
            quiet = bar.labels[NOISE] == NO_NOISE
            colour, _ = LOOKS[str(bar.labels["mechanism"])]
            for offset, name in ((-0.2, ARI_TRAIN), (0.2, ARI_TEST)):
                value = bar.figures[name]
                axis.bar(
                    place + offset, value.mean, 0.38, yerr=value.wide or None, capsize=3,
                    color=colour, alpha=0.45 if quiet else 1.0,
                    hatch="//" if name == ARI_TEST else None, edgecolor="white", linewidth=0,
                )  # fmt: skip
        labels = [
            f"{bar.labels['mechanism']}{', ε = ∞' if bar.labels[NOISE] == NO_NOISE else ''}"
            for bar in bars
        ]
        axis.set_xticks(range(len(bars)), labels, rotation=30, ha="right", fontsize=9)
        axis.axhline(0, color="#888888", linewidth=1)
        axis.set_title(str(data))
    panels[0].set_ylabel("adjusted Rand index (0 is chance)")
    panels[0].set_ylim(-0.05, 1.03)
    figure.suptitle("Training (plain) and testing (hatched); pale: without noise")
    figure.savefig(path, dpi=110)


def _draw_lines(found: Sequence[Measured], path: Path) -> None:
    names = list(dict.fromkeys(each.labels["data"] for each in found))
    ticks = sorted({float(each.labels[RECORDINGS]) for each in found})
    figure, (panels,) = panels_for(len(names), 1, 4.8, sharey=True)
    for axis, data in zip(panels, names, strict=True):
        draw_curves(
            axis, [each for each in found if each.labels["data"] == data], RECORDINGS, ARI_TRAIN
        )
        plain_logarithmic(axis, ticks)
        axis.set_ylim(-0.05, 1.03)
        axis.set_xlabel("recordings of a phone, on average")
        axis.axhline(0, color="#888888", linewidth=1)
        axis.set_title(str(data))
    panels[0].set_ylabel("training ARI (0 is chance)")
    draw_legend(figure, panels[0])
    figure.savefig(path, dpi=110)


NAMING = "liebenow-9.4"
LABELLED = "labelled"
FEW_LABELLED = (0.0, 0.03, 0.1, 0.3, 1.0)
MANY_LABELLED = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Fractions of the recordings that are labelled."""
_NAMING = {CENTROID_NAMES: "centroids named rightly", NAMES: "recordings named rightly"}


def naming(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Make Figure 9.4, by named centroids as in the thesis, and by named recordings."""
    points: list[Point] = []
    for data in setup.data:
        for contender in CONTENDERS:
            for labelled in MANY_LABELLED if full else FEW_LABELLED:
                part = {LABELLED: labelled}
                labels: dict[str, str | float] = {**part, NOISE: NO_NOISE}
                quiet = setup.arm(contender, data, labels, **part, **NO_NOISE_AT_ALL)
                noisy = setup.arm(contender, data, {**labels, NOISE: WITH_NOISE}, **part)
                points += [Point(noisy, quiet), Point(quiet)]
    found = compare(setup, points, tuple(_NAMING))
    rows = [each.described(_NAMING) for each in found]
    note = f"""# Right names by the fraction of labelled recordings

After Figure 9.4 of Liebenow (2022), which counts centroids: the fraction of the published ones that
have the name of the nearest recording. The lower row of the picture counts what a user sees: the
fraction of held-out recordings that get their right name from the nearest centroid. A centroid
without a name, because no label's votes are clear of the noise, counts as wrong in both.

{setup.described} Only the labelled fraction varies. {BUDGETS_DESCRIBED}

{DESCRIBED}

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and called within
noise where their interval contains 0. The thesis states that accuracy hardly changes between 1.0
and 0.3, deteriorates below, and is 0.0 without labels, "since the voting consists of only noise".
Naming by noise is right one time in ten, not never, as the printed mechanism shows here. The
corrected local route reaches 0.0, as it leaves such centroids unnamed. Secure-sum publishes
prototypes of every label, with p-values for their being noise. All are counted here: without labels
their names are right by chance.
"""
    return Reproduction(
        NAMING,
        [each.row() for each in found],
        lambda path: _draw_naming(found, setup.labels, path),
        note,
    )


def _draw_naming(found: Sequence[Measured], labels: Mapping[str, int], path: Path) -> None:
    names = list(dict.fromkeys(str(each.labels["data"]) for each in found))
    figure, panels = panels_for(len(names), 2, 7.6, sharex=True, sharey=True)
    for row, (metric, title) in zip(panels, _NAMING.items(), strict=True):
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


PRIVACY = "liebenow-9.6"
OPERATION, EPSILON = "operation", "epsilon"
WHOLE = "whole phase"
"""Operation to which the ε of the secure sums belongs."""

OPERATIONS = {
    "clustering": ("local clustering", ARI_TEST),
    "selection": ("local top centroids", ARI_TEST),
    "centroid_vote": ("centroid vote", ARI_TEST),
    "label_vote": ("label vote", NAMES),
}
"""Titles of the rows and the figures measured in them, by the operation's name in `Budget`."""

_BLOBS = {False: (0.1, 0.3, 1.0, 3.0), True: (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0)}
_SOUND = {False: (1.0, 10.0, 100.0, 1000.0), True: (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4)}
_PHONE = {False: (0.5, 1.0, 2.0, 4.0, 8.0), True: (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)}
_TRADED = {ARI_TEST: "testing ARI", NAMES: "right names"}


def privacy(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Make Figure 9.6 in eight panels, or in four without sound."""
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
    rows = [each.described(_TRADED) for each in found]
    note = f"""# Privacy and utility

After Figure 9.6 of Liebenow (2022): rows are the private operations of a phase, in the order of the
thesis, and columns are data. The thesis has two acoustic data sets on the left and its synthetic
one on the right; here blobs come first, then sound if there is any. It does not say how much the
other three operations spent: here they have no noise, so each panel shows one operation alone. The
first three rows show the adjusted Rand index on recordings that no phone heard, the last one the
fraction of those that get their right name.

{setup.described}

{DESCRIBED}
Secure-sum has none of these four operations: its curve shows the whole phase, with the same phases
in all rows, and its ε is the total of a *phone*. The ε of the others is what one operation spends
of a *recording*'s budget (for local top centroids, on each of two choices).

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and called within
noise where their interval contains 0. The thesis states that ε in [0, 1] gives a reasonable
trade-off on synthetic data and destroys all utility on sound, that there the axis had to be
logarithmic, and that local top centroids hardly depend on ε; it gives their heights only in its
pictures. On blobs the first two rows of "as printed" and of "local, corrected" differ only in that
the latter merges candidates of one environment after the vote. In the votes for centroids and for
labels the printed noise is close to none: its curves show this, not a better mechanism.
"""
    return Reproduction(
        PRIVACY,
        [each.row() for each in found],
        lambda path: _draw_privacy(found, setup.labels, path),
        note,
    )


def _quiet(setup: ReproductionSetup, contender: ComparedEncoder, data: str) -> Arm:
    labels: dict[str, str | float] = {OPERATION: WHOLE, EPSILON: math.inf}
    return setup.arm(contender, data, labels, **NO_NOISE_AT_ALL)


def _draw_privacy(found: Sequence[Measured], labels: Mapping[str, int], path: Path) -> None:
    names = list(dict.fromkeys(str(each.labels["data"]) for each in found))
    figure, panels = panels_for(len(names), len(OPERATIONS), 13, sharey="row")
    for row, (operation, metric) in zip(panels, OPERATIONS.values(), strict=True):
        for axis, data in zip(row, names, strict=True):
            shown = [
                each
                for each in found
                if each.labels["data"] == data and each.labels[OPERATION] in (operation, WHOLE)
            ]
            # Curves first, so that the legend lists them before the lines without noise.
            shown.sort(key=lambda each: math.isinf(float(each.labels[EPSILON])))
            draw_curves(axis, shown, EPSILON, metric)
            chance = 1 / labels[data] if metric == NAMES else 0.0
            axis.axhline(chance, color="#888888", linewidth=1)
            axis.set_xscale("log")
            axis.set_ylim(-0.05, 1.03)
            axis.set_title(f"{operation}, {data}")
        row[0].set_ylabel(f"{_TRADED[metric]} (grey: chance)")
    for axis in panels[-1]:
        axis.set_xlabel("ε of the operation per recording; secure-sum: of the phase per phone")
    draw_legend(figure, panels[0][0])
    figure.savefig(path, dpi=110)
