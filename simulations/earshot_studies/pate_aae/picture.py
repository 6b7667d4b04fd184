"""The picture of PATE-AAE: distances and accuracy by ε, and samples to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_studies.kit.outcome import Row
from earshot_studies.pate_aae import printed as theirs
from earshot_studies.pate_aae.answers import Noise
from earshot_studies.pate_aae.rows import ACCURACIES, Found
from earshot_studies.pate_aae.study import Size
from earshot_studies.pate_aae.systems import System

_COLOURS = {
    System.PRINTED: "#d62728",
    System.PUBLIC: "#1f77b4",
    System.PRIVATE: "#2ca02c",
    System.PATE_GAN: "#9467bd",
    System.DP_GAN: "#7f7f7f",
    System.PUBLIC_GAN: "#17becf",
    System.STARTED_PRIVATE: "#2ca02c",
    System.STARTED_PATE_GAN: "#9467bd",
    System.STARTED_DP_GAN: "#7f7f7f",
}
_STARTED = (
    System.PUBLIC_GAN,
    System.STARTED_PRIVATE,
    System.STARTED_PATE_GAN,
    System.STARTED_DP_GAN,
)
"""Dashed: those without have the same colours."""
_SAMPLES = 4


def shown(epsilons: Sequence[float]) -> tuple[float, ...]:
    """The budgets whose samples are drawn: the second smallest, as in Figure 4, and the largest."""
    ordered = sorted(epsilons)
    return tuple(dict.fromkeys((ordered[min(1, len(ordered) - 1)], ordered[-1])))


def draw(
    found: Found,
    size: Size,
    samples: Mapping[tuple[System, float], NDArray[np.float32]],
    path: Path,
) -> None:
    """Write the picture.

    Args:
        found: what was measured.
        size: for how many queries.
        samples: some of each system under some budgets, (samples, frames, bands).
        path: of the PNG.
    """
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(14, 16), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.9))
    distance, gaussian, printed = above.subplots(1, 3)
    _curves(distance, found.table, "fid")
    for system, own in theirs.FID.items():
        distance.plot(list(own), list(own.values()), ":", color=_COLOURS[system])
    real = float(np.mean([float(row["fid_real"]) for row in found.table]))
    distance.axhline(real, color="black", linewidth=1)
    distance.set_title("Fréchet distance to private clips\ndotted: theirs, in another embedding")
    distance.set_yscale("log")
    for axis, noise, words in (
        (gaussian, Noise.GAUSSIAN, "GNMax within the budget"),
        (printed, Noise.PRINTED, "LNMax at scale K/2ε, as printed"),
    ):
        _curves(axis, found.table, ACCURACIES[noise])
        for name, style in (("central", "--"), ("public", ":")):
            level = float(np.mean([float(each[name]) for each in found.references]))
            axis.axhline(level, color="black", linestyle=style, linewidth=1, label=name)
        axis.axhline(0.1, color="black", linewidth=0.5)
        axis.set_ylim(0, 1)
        axis.set_title(f"accuracy of students, K = {size.queries}\n{words}")
    # Below what one model of all data reaches.
    gaussian.legend(fontsize=7, handlelength=4, loc="upper left", bbox_to_anchor=(0, 0.96))
    _grid(below, samples)
    figure.savefig(path, dpi=100)


def _curves(axis: Any, table: Sequence[Row], name: str) -> None:
    for place, system in enumerate(System):
        rows = [row for row in table if row["system"] == system]
        rows.sort(key=lambda row: float(row["epsilon"]))
        # A little beside each other, so that intervals can be told apart.
        at = [float(row["epsilon"]) * 1.06 ** (place - 4) for row in rows]
        axis.errorbar(
            at, [float(row[name]) for row in rows],
            yerr=[float(row[f"{name}_interval_95"] or 0.0) for row in rows],
            marker="o", markersize=4, capsize=3, color=_COLOURS[system], label=str(system),
            linestyle="--" if system in _STARTED else "-",
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlabel("ε, both generator and labels")


def _grid(figure: Any, samples: Mapping[tuple[System, float], NDArray[np.float32]]) -> None:
    """Samples of a system in a row, budget after budget; time runs to the right."""
    epsilons = list(dict.fromkeys(epsilon for _, epsilon in samples))
    axes = figure.subplots(len(System), _SAMPLES * len(epsilons), squeeze=False)
    for row, system in zip(axes, System, strict=True):
        pictures = [each for epsilon in epsilons for each in samples[system, epsilon][:_SAMPLES]]
        for place, axis in enumerate(row):
            axis.set_xticks([])
            axis.set_yticks([])
            if place < len(pictures):
                axis.imshow(
                    pictures[place].T, origin="lower", aspect="auto", vmin=-1, vmax=1,
                    cmap="magma",
                )  # fmt: skip
        row[0].set_ylabel(str(system).replace(", from", ",\nfrom"), fontsize=8)
    for place, epsilon in enumerate(epsilons):
        axes[0][place * _SAMPLES].set_title(f"samples, ε = {epsilon:g}", loc="left", fontsize=9)
