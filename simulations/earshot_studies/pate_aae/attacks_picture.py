"""The picture of attacks on generators: areas of all attacks, and what was shown of each ε."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earshot_studies.kit.outcome import Row


def draw(rows: Sequence[Row], epsilon: float, path: Path) -> None:
    """Write the picture.

    Args:
        rows: of all generators, games and attacks.
        epsilon: that all generators are held against.
        path: of the PNG.
    """
    from matplotlib.figure import Figure

    attacks = list(dict.fromkeys(str(row["attack"]) for row in rows))
    generators = list(dict.fromkeys(str(row["generator"]) for row in rows))
    seeds = list(dict.fromkeys(int(row["seed"]) for row in rows))
    colours = {name: f"C{place}" for place, name in enumerate(generators)}
    figure: Any = Figure(figsize=(13, 5.5), layout="constrained")
    areas, shown = figure.subplots(1, 2, width_ratios=(2, 1))
    wide = 1 / (len(generators) * len(seeds) + 2)
    for place, generator in enumerate(generators):
        for game, seed in enumerate(seeds):
            own = [row for row in rows if row["generator"] == generator and row["seed"] == seed]
            beside = wide * (place * len(seeds) + game) - 0.5 + 1.5 * wide
            values = [float(row["area"]) for row in own]
            ends = [
                [value - float(row["area_low_95"]) for value, row in zip(values, own, strict=True)],
                [
                    float(row["area_high_95"]) - value
                    for value, row in zip(values, own, strict=True)
                ],
            ]
            areas.errorbar(
                [attacks.index(str(row["attack"])) + beside for row in own], values, yerr=ends,
                fmt="o", markersize=3, color=colours[generator],
                label=generator if game == 0 else None,
            )  # fmt: skip
            (stands,) = (row for row in own if row["stands"])
            shown.plot(
                place + 0.15 * (game - (len(seeds) - 1) / 2), float(stands["epsilon_at_least"]),
                "o", color=colours[generator],
            )  # fmt: skip
    areas.axhline(0.5, color="black", linewidth=1)
    areas.set_xticks(range(len(attacks)), [name.replace(": ", ":\n") for name in attacks])
    areas.tick_params(axis="x", labelsize=7)
    areas.set_title("area under the curve, by attack; a half is blind", fontsize=10)
    areas.set_ylim(0, 1.05)
    areas.legend(fontsize=7, loc="lower left")
    shown.axhline(epsilon, color="black", linestyle="--", linewidth=1)
    shown.set_xticks(range(len(generators)), [textwrap.fill(name, 15) for name in generators])
    shown.tick_params(axis="x", labelsize=7)
    shown.set_title(f"ε that was shown; dashed: {epsilon:g}, not to be exceeded", fontsize=10)
    figure.savefig(path, dpi=100)
