"""Figure 9.3 of the thesis: clustering on heard and unheard recordings, and with more of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from earshot_simulations.reporting.panels import panels_for, plain_logarithmic
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.phase import ARI_TEST, ARI_TRAIN
from earshot_studies.kit.outcome import Outcome
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
    NO_NOISE_AT_ALL,
    WITHOUT,
    Setup,
)

NAME_A, NAME_B = "liebenow-9.3a", "liebenow-9.3b"
RECORDINGS = "recordings"
FEW, MANY = (10, 30, 100, 300), (10, 20, 50, 100, 200, 500, 1000)
"""Recordings of a phone."""
_TITLES = {ARI_TRAIN: "training ARI", ARI_TEST: "testing ARI"}


def training_and_testing(setup: Setup) -> Outcome:
    """Figure 9.3a: the adjusted Rand index on what phones heard, and on what none did."""
    points: list[Point] = []
    for data in setup.data:
        for contender in CONTENDERS:
            quiet = setup.arm(contender, data, {NOISE: NO_NOISE}, **NO_NOISE_AT_ALL)
            points += [Point(setup.arm(contender, data, {NOISE: WITH_NOISE}), quiet), Point(quiet)]
        points.append(Point(setup.arm(WITHOUT, data, {NOISE: NO_NOISE})))
    found = compare(setup, points, (ARI_TRAIN, ARI_TEST))
    note = f"""# Training and testing accuracy of the clustering

After Figure 9.3a of Liebenow (2022), by the adjusted Rand index (ARI) of the published centroids
against the truth. Training is on recordings that phones took part with, testing on such as no phone
has; the thesis tests on all of them together, those of the phones included.

{setup.described} {BUDGETS_DESCRIBED}

{DESCRIBED}

{_table(found)}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and said to be within
noise where their interval contains 0. Without noise each route still has its form: few centroids a
phone, or cells around public starts. The last bar of each group is plain k-means on pooled
recordings. The heights of the thesis's bars are in its picture alone and are left out here. It says
of them that generalization works for the synthetic data set only, and hardly for its two of sound.
"""
    return Outcome(NAME_A, _rows(found), lambda path: _draw_bars(found, path), note)


def growing(setup: Setup, full: bool = False) -> Outcome:
    """Figure 9.3b: training accuracy by the number of recordings of a phone."""
    points: list[Point] = []
    for data in setup.data:
        for contender in CONTENDERS:
            for recordings in MANY if full else FEW:
                more = {RECORDINGS: recordings}
                labels: dict[str, str | float] = {**more, NOISE: NO_NOISE}
                quiet = setup.arm(contender, data, labels, **more, **NO_NOISE_AT_ALL)
                noisy = setup.arm(contender, data, {**labels, NOISE: WITH_NOISE}, **more)
                points += [Point(noisy, quiet), Point(quiet)]
    found = compare(setup, points, (ARI_TRAIN,))
    note = f"""# More recordings of a phone

After Figure 9.3b of Liebenow (2022): training accuracy (adjusted Rand index) by the number of
recordings of a phone, {", ".join(map(str, MANY if full else FEW))} on average. The thesis scales
its axis so that its three curves can be compared; here it is not scaled.

{setup.described} The number of recordings is what varies. {BUDGETS_DESCRIBED}

{DESCRIBED}

{_table(found)}

Intervals are Student's, at 95 %, over seeds; differences are paired by seed, and said to be within
noise where their interval contains 0. A phone of the local routes has only its own recordings
against its own noise, so it gains by each of them. In a secure sum the noise is shared by all
phones, and a phone's weight in it is the same however much it heard: more recordings make its
vector steadier, and nothing else. The thesis saw accuracy rise on sound and stagnate on its
synthetic data.
"""
    return Outcome(NAME_B, _rows(found), lambda path: _draw_lines(found, path), note)


def _rows(found: Sequence[Measured]) -> list[dict[str, str | float | int]]:
    return [each.row() for each in found]


def _table(found: Sequence[Measured]) -> str:
    rows = [each.described(_TITLES) for each in found]
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
