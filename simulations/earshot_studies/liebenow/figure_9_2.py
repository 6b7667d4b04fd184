"""Figure 9.2 of the thesis: an embedding space by PCA and by t-SNE."""

from __future__ import annotations

from pathlib import Path

from earshot_client.encoder import Encoder, rate_of
from earshot_models.datasets.dataset import Dataset
from earshot_simulations.probing.pictures import draw_embedding, projections, sample
from earshot_simulations.probing.seconds import (
    Progress,
    below_sentence,
    cut,
    embed,
    no_progress,
    refuse_without_kinds,
)
from earshot_studies.kit.outcome import Outcome, Row

NAME = "liebenow-9.2"


def reproduce(
    dataset: Dataset,
    encoder: Encoder,
    cache: Path | None = None,
    progress: Progress = no_progress,
) -> Outcome:
    """Embed the seconds of a data set and lay them out.

    Args:
        dataset: labelled.
        encoder: whose space is shown.
        cache: folder for decoded sound.
        progress: told how far each piece of work is.
    """
    from sklearn.metrics import silhouette_score

    refuse_without_kinds(dataset)
    seconds = cut(dataset, cache, progress, rate_of(encoder))
    shown = sample(seconds)
    embeddings, label = embed(encoder, seconds.sound[shown]), seconds.label[shown]
    progress("PCA and t-SNE", 0, 1)
    placed = projections(embeddings)
    progress("PCA and t-SNE", 1, 1)
    rows: list[Row] = []
    for index, of in enumerate(label):
        row: Row = {"label": seconds.labels[of]}
        for projection in placed:
            for axis, value in zip("xyz", projection.points[index], strict=False):
                row[f"{projection.name} {axis}"] = round(float(value), 5)
        rows.append(row)
    silhouette = float(silhouette_score(embeddings, label, metric="cosine"))
    explained = placed[0].explained
    below = f"\n{below_sentence(seconds, encoder.name)}.\n" if seconds.below else ""
    note = f"""# The embedding space

After Figure 9.2 of Liebenow (2022): {len(shown)} seconds of {dataset.name}, embedded by
`{encoder.name}`; on the left by PCA (two components carry {explained:.0%} of the variance), then by
t-SNE on cosine distances in two and in three dimensions. Colours are the true classes, which the
encoder was not told. Silhouette of the classes by cosine: {silhouette:.3f}.
{below}
The thesis saw small islands in its t-SNE pictures and blamed them for clusters that did not
generalize. t-SNE keeps neighbours and not distances: it shows islands in any data, so
`earshot probe` has the measures that count.
"""
    return Outcome(
        NAME, rows, lambda path: draw_embedding(placed, label, seconds.labels, path), note
    )
