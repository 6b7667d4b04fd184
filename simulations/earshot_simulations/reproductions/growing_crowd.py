"""Whether either route finds more, the more phones take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from earshot_simulations.phases.settings import SOUNDSCAPES, Discovery
from earshot_simulations.reproductions.comparison import (
    Measured,
    Point,
    compare,
    panels_for,
    plain_logarithmic,
)
from earshot_simulations.reproductions.contenders import Contender, Setup
from earshot_simulations.reproductions.outcome import Outcome, markdown_table
from earshot_simulations.study.phase import AT_ONCE
from earshot_simulations.sweeps.phase import ARI_TEST, CLEAR_NAMES, NAMES

NAME = "growing-crowd"
PHONES = "phones"
FEW, MANY = (250, 500, 1_000), (250, 500, 1_000, 2_000, 4_000)
"""Phones of a phase."""
FEWER_SEEDS = 5
"""Phases of a crowd beyond a thousand phones."""
_LARGE = 1_000
_ROUTES = (
    Contender("local", AT_ONCE, Discovery.LOCAL, "#4c78a8", "o"),
    Contender("secure-sum", AT_ONCE, Discovery.SECURE_SUM, "#54a24b", "D"),
)
_TITLES = {
    ARI_TEST: "clustering (ARI), held out",
    NAMES: "right name, held out",
    CLEAR_NAMES: "right name, clear of the noise",
}


def reproduce(setup: Setup, full: bool = False) -> Outcome:
    """Measure learning phases of growing crowds, on points and sound; or soundscapes without."""
    points = []
    # Every second of a soundscape is synthesized anew, which takes hours in large crowds.
    for data in setup.data if setup.sound else (*setup.data, SOUNDSCAPES):
        for route in _ROUTES:
            for phones in MANY if full else FEW:
                arm = setup.arm(route, data, {PHONES: phones}, phones=phones)
                if phones > _LARGE:
                    arm = replace(arm, phases=arm.phases[:FEWER_SEEDS])
                points.append(Point(arm))
    found = compare(setup, points, tuple(_TITLES))
    rows = [each.described(_TITLES) for each in found]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    note = f"""# Whether a crowd helps

Learning phases (*local*, the thesis's route: what phones publish, discovery by OPTICS, and two
votes) with the usual settings, beside discovery phases (*secure-sum*) of the same crowds at their
usual ε per phone. On the local route a name that noise may have chosen is not published, and a
recording nearest to an unnamed centroid counts as wrong. Crowds beyond {_LARGE:,} phones have
{FEWER_SEEDS} seeds at most.

{setup.described} What phones put in, and what the server makes of it, is the product's; instead of
the secure sum, whose result is the same bit for bit, plain addition is used, and the noise of all
shares is drawn at once.

{markdown_table(rows, columns)}

Intervals are Student's, at 95 %, over seeds.
"""
    return Outcome(NAME, [each.row() for each in found], lambda path: _draw(found, path), note)


def _draw(found: Sequence[Measured], path: Path) -> None:
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
                    [float(each.labels[PHONES]) for each in curve],
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
        plain_logarithmic(axis, sorted({float(each.labels[PHONES]) for each in found}))
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)
