"""Accuracy of both routes by the number of phones, and of discovery by ε per phone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from earshot_protocol.phases.discovery_budget import DELTA, usual_cells
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.learning_budget import affordable
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.phases.run import NOISELESS
from earshot_simulations.phases.settings import SOUNDSCAPES, Discovery
from earshot_simulations.reporting.panels import panels_for, plain_logarithmic
from earshot_simulations.reporting.tables import markdown_table
from earshot_simulations.sweeps.phase import ARI_TEST, CLEAR_NAMES, NAMES, SIMULATED
from earshot_simulations.sweeps.sweep import Arm
from earshot_studies.kit.outcome import Reproduction
from earshot_studies.liebenow.at_once.phase import AT_ONCE
from earshot_studies.liebenow.comparison import Measured, Point, compare
from earshot_studies.liebenow.contenders import ComparedEncoder, ReproductionSetup

GROWING_CROWD = "growing-crowd"
_PHONES = "phones"
FEW, MANY = (250, 500, 1_000), (250, 500, 1_000, 2_000, 4_000)
"""Numbers of phones in a phase."""
FEWER_SEEDS = 5
"""Largest number of phases for a crowd of more than a thousand phones."""
_LARGE = 1_000
_ROUTES = (
    ComparedEncoder("local", AT_ONCE, Discovery.LOCAL, "#4c78a8", "o"),
    ComparedEncoder("secure-sum", AT_ONCE, Discovery.SECURE_SUM, "#54a24b", "D"),
)
_TITLES = {
    ARI_TEST: "clustering (ARI), held out",
    NAMES: "right name, held out",
    CLEAR_NAMES: "right name, clear of the noise",
}


def growing_crowd(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Measure phases of growing crowds, on points and sound; soundscapes replace missing sound."""
    points = []
    # Soundscapes are only a substitute: synthesizing every second takes hours in large crowds.
    for data in setup.data if setup.sound else (*setup.data, SOUNDSCAPES):
        for route in _ROUTES:
            for phones in MANY if full else FEW:
                arm = setup.arm(route, data, {_PHONES: phones}, phones=phones)
                if phones > _LARGE:
                    arm = replace(arm, phases=arm.phases[:FEWER_SEEDS])
                points.append(Point(arm))
    found = compare(setup, points, tuple(_TITLES))
    rows = [each.described(_TITLES) for each in found]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    note = f"""# Accuracy by number of phones

Learning phases (*local*, the thesis's route: publications of phones, discovery by OPTICS, and two
votes) with the usual settings, beside discovery phases (*secure-sum*) of the same crowds at their
usual ε per phone. On the local route a name that noise may have chosen is not published, and a
recording nearest to an unnamed centroid counts as wrong. Crowds of more than {_LARGE:,} phones have
{FEWER_SEEDS} seeds at most.

{setup.described} The phones' inputs and the server's work are the product's. Plain addition
replaces the secure sum, whose result is identical, and the noise of all shares is drawn in one
step.

{markdown_table(rows, columns)}

Intervals are Student's, at 95 %, over seeds.
"""
    return Reproduction(
        GROWING_CROWD, [each.row() for each in found], lambda path: _draw_growing(found, path), note
    )


def _draw_growing(found: Sequence[Measured], path: Path) -> None:
    figure, panels = panels_for(2, 1, 4.8, sharex=True)
    data = list(dict.fromkeys(each.labels["data"] for each in found))
    for axis, metric in zip(panels[0], (ARI_TEST, NAMES), strict=True):
        for route in _ROUTES:
            for name, style in zip(data, ("--", "-", ":"), strict=False):
                curve = [
                    each
                    for each in found
                    if (each.labels["data"], each.labels["mechanism"]) == (name, route.name)
                ]
                axis.errorbar(
                    [float(each.labels[_PHONES]) for each in curve],
                    [each.figures[metric].mean for each in curve],
                    yerr=[each.figures[metric].wide or 0.0 for each in curve],
                    color=route.colour,
                    linestyle=style,
                    marker=route.marker,
                    markersize=4,
                    capsize=3,
                    label=f"{route.name}, {name}",
                )
        axis.set_ylabel(_TITLES[metric])
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("phones")
        plain_logarithmic(axis, sorted({float(each.labels[_PHONES]) for each in found}))
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)


PHONE_UNIT = "phone-unit"
MANY_PHONES, FEW_PHONES = (300, 1_000, 3_000, 10_000, 30_000), (300, 1_000, 3_000)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets ε per phone, each for a whole phase."""
ALSO_LOCAL = {1_000: 2.0, 3_000: 1.0, 10_000: 0.5}
"""Budget ε per phone at which the local route is compared, by the number of phones."""
DROPOUT = 0.05

_SUMS = ComparedEncoder("secure-sum", AT_ONCE, Discovery.SECURE_SUM, "#54a24b", "D")
_START = ComparedEncoder("public centroids only", AT_ONCE, Discovery.SECURE_SUM, "#888888", "x")
_LOCAL = ComparedEncoder(
    "local route, same ε per phone", SIMULATED, Discovery.LOCAL, "#4c78a8", "o"
)
_COLOURS = ("#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c")


def phone_unit(setup: ReproductionSetup, full: bool = False) -> Reproduction:
    """Compare every budget in every crowd with no noise, and the public start centroids with it."""
    data = setup.data[-1]
    points: list[Point] = []
    for phones in MANY_PHONES if full else FEW_PHONES:
        for epsilon in EPSILONS:
            cells = usual_cells(phones, epsilon, DELTA)
            crowd = {"phones": phones, "cells": cells, "dropout": DROPOUT}
            labels: dict[str, str | float] = {"phones": phones, "epsilon": epsilon, "cells": cells}
            quiet = {**labels, "epsilon": math.inf}
            without = setup.arm(_SUMS, data, quiet, **crowd, epsilon=NOISELESS)
            points += [
                Point(setup.arm(_SUMS, data, labels, **crowd, epsilon=epsilon), without),
                Point(setup.arm(_START, data, labels, **crowd, epsilon=epsilon, sums=0), without),
            ]
        if phones in ALSO_LOCAL:
            points.append(Point(_local(setup, data, phones), without))
        points.append(Point(without))
    found = compare(setup, points, tuple(_TITLES))
    rows = [each.described(_TITLES) for each in found]
    note = f"""# Discovery by ε per phone

Discovery by secure sum: ε is that of a whole phase (two sums of cells, one of labels) per *phone*
(zero-out), at δ = {DELTA:g}, as the phone counts it. ε = ∞ is the same without noise, with
the same cells, phones and data; differences are paired by seed. "Public centroids only" names the
cells of the start centroids and moves none. Cells are those of the start centroids; their number
may grow. "Local route, same ε per phone" is the thesis's route, where each phone clusters and
publishes, with the budget at which a phone with the average number of recordings pays the same. It
has clear names only, and its difference is to the secure sums without noise.

{setup.described} {DROPOUT:.0%} of the phones vanish during the phase. The phones' inputs and the
server's work are the product's. Plain addition replaces the secure sum, whose result is identical,
and the noise of all shares is drawn in one step.

A recording gets the name of the nearest prototype of a label. It is *clear* where noise alone would
name any prototype in at most one of twenty phases.

{markdown_table(rows, list(rows[0]))}

Intervals are Student's, at 95 %, over seeds; "within noise" means that the interval contains 0.
"""
    return Reproduction(
        PHONE_UNIT, [each.row() for each in found], lambda path: _draw_unit(found, path), note
    )


def _local(setup: ReproductionSetup, data: str, phones: int) -> Arm:
    """Return the local route with the usual budget, scaled down to the phase's ε per phone."""
    epsilon = ALSO_LOCAL[phones]
    labels: dict[str, str | float] = {"phones": phones, "epsilon": epsilon, "cells": ""}
    crowd: dict[str, Any] = {"phones": phones, "dropout": DROPOUT}
    usual = setup.arm(_LOCAL, data, labels, **crowd).phases[0].any_parameters()
    budget = affordable(cast(PhaseParameters, usual), epsilon, Unit.PHONE).budget
    return setup.arm(_LOCAL, data, labels, **crowd, budget=budget)


def _draw_unit(found: Sequence[Measured], path: Path) -> None:
    figure, panels = panels_for(2, 1, 4.8, sharex=True)
    crowds = sorted({float(each.labels["phones"]) for each in found})
    for axis, metric in zip(panels[0], (ARI_TEST, NAMES), strict=True):
        for colour, phones in zip(_COLOURS[-len(crowds) :], crowds, strict=False):
            of_crowd = [each for each in found if each.labels["phones"] == phones]
            _curve(axis, of_crowd, metric, colour, f"{phones:,.0f} phones")
        local = [each for each in found if each.labels["mechanism"] == _LOCAL.name]
        axis.plot(
            [float(each.labels["epsilon"]) for each in local],
            [each.figures[metric].mean for each in local],
            _LOCAL.marker,
            color=_LOCAL.colour,
            markerfacecolor="none",
            label=f"local route, same ε: {', '.join(f'{n:,}' for n in ALSO_LOCAL)} phones",
        )
        start = [each for each in found if each.labels["mechanism"] == _START.name]
        _line(axis, start[-1], metric, "x:", "public centroids only, most phones")
        quiet = [each for each in found if math.isinf(float(each.labels["epsilon"]))]
        _line(axis, quiet[-1], metric, "k:", "no noise (ε = ∞)")
        axis.set_ylabel(_TITLES[metric])
        axis.set_ylim(0, 1)
        axis.set_xlabel("ε of a phase, per phone")
        plain_logarithmic(axis, EPSILONS)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)


def _curve(axis: Any, found: Sequence[Measured], metric: str, colour: str, label: str) -> None:
    curve = [
        each
        for each in found
        if each.labels["mechanism"] == _SUMS.name and not math.isinf(float(each.labels["epsilon"]))
    ]
    axis.errorbar(
        [float(each.labels["epsilon"]) for each in curve],
        [each.figures[metric].mean for each in curve],
        yerr=[each.figures[metric].wide or 0.0 for each in curve],
        color=colour,
        marker="o",
        markersize=4,
        capsize=3,
        label=label,
    )


def _line(axis: Any, found: Measured, metric: str, style: str, label: str) -> None:
    axis.axhline(
        found.figures[metric].mean,
        color="#e45756" if style[0] == "x" else "#333333",
        linestyle=style[1],
        linewidth=1.4,
        label=label,
    )
