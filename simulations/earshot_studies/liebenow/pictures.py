"""Pictures of an embedding space (thesis, Figure 9.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_simulations.probing.seconds import ClipWindows

_MOST_POINTS = 2000


def sample(seconds: ClipWindows) -> NDArray[np.int64]:
    """Return indices of the windows for a picture: seconds that do not overlap, at most 2,000."""
    whole = np.flatnonzero(seconds.disjoint)
    return np.sort(np.random.default_rng(0).permutation(whole)[:_MOST_POINTS])


@dataclass(frozen=True)
class Projection:
    """Embeddings laid out for a picture.

    Attributes:
        name: Name of the method.
        points: Points, (embeddings, 2 or 3).
        explained: Fraction of the variance explained; 0 where that is meaningless.
    """

    name: str
    points: NDArray[np.floating]
    explained: float = 0.0


def projections(embeddings: NDArray[np.floating]) -> list[Projection]:
    """Return PCA in two dimensions, and t-SNE in two and three, on one thread as probes do.

    Args:
        embeddings: Embeddings, (seconds, dimensions), of more than 3 seconds.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    pca = PCA(2, random_state=0).fit(embeddings)
    explained = float(pca.explained_variance_ratio_.sum())
    projected = [Projection("PCA", pca.transform(embeddings), explained)]
    perplexity = min(30.0, (len(embeddings) - 1) / 3)
    for dimensions in (2, 3):
        tsne = TSNE(
            dimensions, metric="cosine", init="random", random_state=0, perplexity=perplexity
        )
        with threadpool_limits(1):
            projected.append(Projection(f"t-SNE {dimensions}D", tsne.fit_transform(embeddings)))
    return projected


def draw_embedding(
    placed: Sequence[Projection],
    label: NDArray[np.integer],
    labels: tuple[str, ...],
    path: Path,
) -> None:
    """Draw projections side by side, with a colour for each label."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.3 * len(placed), 5.4), layout="constrained")
    for place, projection in enumerate(placed, start=1):
        solid = projection.points.shape[1] == 3
        axes: Any = figure.add_subplot(1, len(placed), place, projection="3d" if solid else None)
        for index, name in enumerate(labels):
            own = projection.points[label == index]
            colour = colormaps["tab10" if index < 10 else "tab20"](index % 20)
            axes.scatter(*own.T, s=6, color=colour, label=name)
        axes.set_title(projection.name)
        axes.set_xticks([])
        axes.set_yticks([])
        if solid:
            axes.set_zticks([])
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(10, len(labels)), markerscale=3
    )
    figure.savefig(path, dpi=110)
