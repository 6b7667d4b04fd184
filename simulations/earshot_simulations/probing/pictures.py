"""Pictures of an embedding space (thesis, Figure 9.2), and of what a probe confuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_simulations.probing.probe import Probe

_MOST_POINTS = 2000


def draw(probe: Probe, folder: Path) -> list[Path]:
    """Write `embedding.png` (PCA and t-SNE) and `confusion.png` into a folder.

    Args:
        probe: with its embeddings.
        folder: there already.
    """
    seconds = np.flatnonzero(probe.seconds.disjoint)
    generator = np.random.default_rng(0)
    shown = generator.permutation(seconds)[:_MOST_POINTS]
    embedding, confusion = folder / "embedding.png", folder / "confusion.png"
    draw_embedding(
        probe.embeddings[shown], probe.seconds.label[shown], probe.seconds.labels, embedding
    )
    _draw_confusion(probe, confusion)
    return [embedding, confusion]


def draw_embedding(
    embeddings: NDArray[np.floating],
    label: NDArray[np.integer],
    labels: tuple[str, ...],
    path: Path,
) -> None:
    """PCA in two dimensions, t-SNE in two and in three, side by side."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    plt = _pyplot()
    figure = plt.figure(figsize=(16, 5.4), layout="constrained")
    projections = (
        ("PCA", PCA(2, random_state=0), 2),
        ("t-SNE", TSNE(2, metric="cosine", init="random", random_state=0), 2),
        ("t-SNE in three dimensions", TSNE(3, metric="cosine", init="random", random_state=0), 3),
    )
    for place, (title, projection, dimensions) in enumerate(projections, start=1):
        points = projection.fit_transform(embeddings)
        axes = figure.add_subplot(1, 3, place, projection="3d" if dimensions == 3 else None)
        for index, name in enumerate(labels):
            own = points[label == index]
            axes.scatter(*own.T, s=6, color=_colour(plt, index), label=name)
        axes.set_title(title)
        axes.set_xticks([])
        axes.set_yticks([])
        if dimensions == 3:
            axes.set_zticks([])
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(10, len(labels)), markerscale=3
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_confusion(probe: Probe, path: Path) -> None:
    plt = _pyplot()
    counts = np.sum([fold.confusion for fold in probe.folds], axis=0)
    fractions = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    labels = probe.seconds.labels
    size = 2.5 + 0.5 * len(labels)
    figure, axes = plt.subplots(figsize=(size + 1, size), layout="constrained")
    image = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("the probe says")
    axes.set_ylabel("it is")
    axes.set_title("Single seconds of held-out recordings")
    for (row, column), fraction in np.ndenumerate(fractions):
        if fraction >= 0.005:
            colour = "white" if fraction > 0.5 else "black"
            axes.text(
                column, row, f"{fraction:.0%}", ha="center", va="center", color=colour, fontsize=8
            )
    figure.colorbar(image, ax=axes, shrink=0.8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _colour(plt: Any, index: int) -> Any:
    return plt.get_cmap("tab10" if index < 10 else "tab20")(index % 20)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
