"""A picture with every measure of every encoder and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earshot_simulations.probing.measures import interval
from earshot_simulations.probing.probe import Probe
from earshot_simulations.probing.sections import Section, sections

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours of Okabe and Ito, which colour-blind readers can tell apart; markers differ as well."""

_MARKERS = "osD^vPX"
_COLUMNS = 3
_SPREAD = 0.62
"""Share of the space between two rows that the encoders of one row take up."""


def draw_comparison(labels: Sequence[str], probes: Sequence[Probe], path: Path) -> None:
    """Write a picture with a panel for each section and a row for each measure.

    Args:
        labels: Labels of the encoders.
        probes: Probes on the same sound.
        path: Path of the picture.
    """
    from matplotlib.figure import Figure

    values = [probe.values() for probe in probes]
    shown = sections({name for each in values for name in each})
    rows = -(-len(shown) // _COLUMNS)
    columns = min(len(shown), _COLUMNS)
    heights = [
        max(len(section.rows) for section in shown[start : start + columns])
        for start in range(0, len(shown), columns)
    ]
    size = 0.16 + 0.12 * len(probes)
    figure = Figure(
        figsize=(4.9 * columns, 1.4 + sum(1.1 + max(size, 0.3) * height for height in heights)),
        layout="constrained",
    )
    panels = figure.subplots(rows, columns, squeeze=False, height_ratios=heights).ravel()
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    for panel, section in zip(panels, shown, strict=False):
        _draw_section(panel, section, labels, values, probes[0].chance())
    handles = {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(4, len(handles)),
    )
    over = len(probes[0].seconds.names)
    figure.suptitle(f"{probes[0].dataset}: means and 95 % intervals over {over} held-out sides")
    figure.savefig(path, dpi=110)


def _draw_section(
    axes: Any,
    section: Section,
    labels: Sequence[str],
    values: Sequence[dict[str, Any]],
    chance: dict[str, float],
) -> None:
    names = list(section.rows)
    offsets = np.linspace(-_SPREAD / 2, _SPREAD / 2, len(labels)) if len(labels) > 1 else [0.0]
    for number, (label, own, offset) in enumerate(zip(labels, values, offsets, strict=True)):
        places = [place for place, name in enumerate(names) if name in own]
        found = [interval(own[names[place]]) for place in places]
        axes.errorbar(
            [mean for mean, _ in found],
            [place + offset for place in places],
            xerr=[wide for _, wide in found],
            fmt=_MARKERS[number % len(_MARKERS)],
            color=_COLOURS[number % len(_COLOURS)],
            markersize=5,
            capsize=2.5,
            linewidth=1.2,
            label=label,
        )
    for place, name in enumerate(names):
        if name in chance:
            axes.plot(
                [chance[name]] * 2, [place - 0.4, place + 0.4], ":", color="#666666", label="chance"
            )
        if place % 2:
            axes.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", zorder=0)
    axes.set_yticks(range(len(names)), section.rows.values())
    axes.set_ylim(len(names) - 0.5, -0.5)
    low = min((float(each.min()) for own in values for name, each in own.items() if name in names))
    axes.set_xlim(min(0.0, low - 0.05), 1.02)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(section.title, fontsize=10)
