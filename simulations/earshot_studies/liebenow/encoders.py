"""Figures 9.1 and 9.2 of the thesis: linear accuracy of embeddings, and pictures of their space.

Figure 9.1 shows the accuracy of a linear classifier, on the left by training set, on the right by
pre-processing. Everything is measured on recordings that the encoder was not trained on: each is
trained once per fold, without the fold. Figure 9.2 shows an embedding space by PCA and by t-SNE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from earshot_client.encoder import Encoder, rate_of
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.splits import folds
from earshot_models.origins import SoundSource
from earshot_models.recipe import Recipe, train_encoder
from earshot_protocol.progress import Progress, silent
from earshot_simulations.probing.baseline import LogMelStatistics
from earshot_simulations.probing.measures import interval
from earshot_simulations.probing.probe import Probe, probe
from earshot_simulations.probing.seconds import (
    below_sentence,
    cut,
    embed,
    side_name,
)
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Reproduction, Row
from earshot_studies.liebenow.pictures import draw_embedding, projections, sample

LINEAR_ACCURACY = "liebenow-9.1"

BY_TRAINING_SET, BY_PREPROCESSING = "training set", "pre-processing"

COLUMNS = ("figure", "encoder", "second_accuracy", "interval_95", "clip_accuracy", "folds")


@dataclass(frozen=True)
class _Variant:
    """An encoder to compare.

    Attributes:
        figure: Half of the picture that shows it.
        name: Name below its bar.
        recipe: Recipe of its training; None for statistics without an encoder.
        own: Whether it is trained on the probed data set's other folds.
        others: Other data sets that it is trained on.
    """

    figure: str
    name: str
    recipe: Recipe | None
    own: bool = False
    others: tuple[Dataset, ...] = ()


def linear_accuracy(
    dataset: Dataset,
    others: Sequence[Dataset],
    folder: Path,
    recipe: Recipe,
    cache: Path | None = None,
    progress: Progress = silent,
) -> Reproduction:
    """Train, probe and compare encoders.

    Args:
        dataset: Labelled data set of at least two folds, speakers or groups.
        others: Other sound to train on; its labels are not read.
        folder: Folder that keeps every encoder; an interrupted call continues there.
        recipe: Recipe of all encoders, except for the settings that are compared.
        cache: Folder for decoded sound.
        progress: Callback for progress.
    """
    dataset.check_classes()
    rows: list[Row] = []
    below = ""
    for variant in _variants(dataset, others, recipe):
        encoder_for = _trained(variant, dataset, folder, cache, progress)
        found = probe(dataset, encoder_for, cache, progress)
        rows.append(_row(variant, found))
        below = below or below_sentence(found.seconds, "a trained encoder")
    note = _note(dataset, others, recipe, rows) + (f"\n{below}.\n" if below else "")
    return Reproduction(LINEAR_ACCURACY, rows, lambda path: _draw(rows, dataset, path), note)


def _variants(dataset: Dataset, others: Sequence[Dataset], recipe: Recipe) -> list[_Variant]:
    alone = replace(recipe, synthesized=0.0)
    plain = replace(alone, mask=0.0, augmentations=alone.augmentations.without("noise"))
    noisy = replace(plain, augmentations=replace(plain.augmentations, noise=1.0))
    sets = [
        _Variant(BY_TRAINING_SET, "none: log-mel statistics", None),
        _Variant(BY_TRAINING_SET, "synthesized", replace(recipe, synthesized=1.0)),
        *(_Variant(BY_TRAINING_SET, other.name, alone, others=(other,)) for other in others),
        _Variant(BY_TRAINING_SET, dataset.name, alone, own=True),
        _Variant(BY_TRAINING_SET, "all", recipe, own=True, others=tuple(others)),
    ]
    treatments = {
        "as is": plain,
        "noise added": noisy,
        "voice removed": replace(plain, voice_removed=True),
        "masks": replace(plain, mask=1.0),
    }
    return sets + [
        _Variant(BY_PREPROCESSING, name, treated, own=True) for name, treated in treatments.items()
    ]


def _trained(
    variant: _Variant,
    dataset: Dataset,
    folder: Path,
    cache: Path | None,
    progress: Progress,
) -> Callable[[str], Encoder]:
    """Train all encoders of a variant, and return the one for each held-out name."""
    if variant.recipe is None:
        statistics = LogMelStatistics()
        return lambda side: statistics
    slug = f"{variant.figure} {variant.name}".replace(" ", "-").replace(":", "")
    encoders: dict[str, LiteRtEncoder] = {}
    for training, test in folds(dataset):
        side = side_name(test)
        if encoders and not variant.own:
            encoders[side] = next(iter(encoders.values()))  # not trained on the data set
            continue
        sources = [SoundSource(other) for other in variant.others]
        if variant.own:
            # As much as all others together, because accuracy is measured on this sound.
            sources.append(SoundSource(training, max(1, len(sources))))
        place = folder / slug / (side if variant.own else "all")
        trained = f"training on {variant.name}" + (f" without {side}" if variant.own else "")

        def told(
            what: str, done: int, total: int, line: str | None = None, trained: str = trained
        ) -> None:
            progress(trained if what == "training" else what, done, total)

        made = train_encoder(sources, place, variant.recipe, slug, cache=cache, progress=told)
        encoders[side] = LiteRtEncoder.open(made.int8)
    return encoders.__getitem__


def _row(variant: _Variant, found: Probe) -> Row:
    seconds = np.array([fold.second_accuracy for fold in found.folds])
    mean, wide = interval(seconds)
    return {
        "figure": variant.figure,
        "encoder": variant.name,
        "second_accuracy": mean,
        "interval_95": wide,
        "clip_accuracy": float(np.mean([fold.clip_accuracy for fold in found.folds])),
        "folds": " ".join(f"{value:.3f}" for value in seconds),
    }


def _note(dataset: Dataset, others: Sequence[Dataset], recipe: Recipe, rows: Sequence[Row]) -> str:
    sources = ", ".join(other.name for other in others) or "none"
    return f"""# Linear accuracy by training set and by pre-processing

After Figure 9.1 of Liebenow (2022), on {dataset.name} in place of TAU. Other sound: {sources}.

Each encoder was trained without labels for {recipe.schedule.steps} batches of {recipe.batch} pairs
({recipe.objective}), once for every fold and without it, exported as int8, and probed on that
fold: logistic regression on embeddings of single seconds, with a penalty chosen on the other folds.
The interval is Student's, at 95 %, over folds. Clips are judged by the mean over their seconds.

{markdown_table(rows, COLUMNS)}

The left half of the picture compares training sets under the whole recipe, the right half
pre-processing on {dataset.name} alone: "as is" has neither noise nor masks, and each of the others
adds one thing. Voices are removed by REPET-SIM (Rafii and Pardo 2012), while the thesis used a
trained separator. In the thesis no pre-processing was better than none.
"""


def _draw(rows: Sequence[Row], dataset: Dataset, path: Path) -> None:
    from matplotlib.figure import Figure

    halves = [
        [row for row in rows if row["figure"] == figure]
        for figure in (BY_TRAINING_SET, BY_PREPROCESSING)
    ]
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True, width_ratios=[len(half) for half in halves])
    chance = 1 / len(dataset.labels)
    for axis, half, title in zip(axes, halves, ("Training set", "Pre-processing"), strict=True):
        places = range(len(half))
        heights = [float(row["second_accuracy"]) for row in half]
        axis.bar(places, heights, yerr=[float(row["interval_95"]) for row in half], capsize=4,
                 color="#4c78a8")  # fmt: skip
        for place, height in zip(places, heights, strict=True):
            axis.text(place, 0.02, f"{height:.3f}", ha="center", color="white", fontsize=9)
        axis.axhline(chance, color="#888888", linestyle=":", linewidth=1)
        axis.set_xticks(places, [str(row["encoder"]) for row in half], rotation=25, ha="right")
        axis.set_title(title)
        axis.set_ylim(0, 1)
    axes[0].set_ylabel("linear accuracy, held-out seconds")
    figure.suptitle(f"{dataset.name}: linear accuracy by encoder (dotted: chance)")
    figure.savefig(path, dpi=110)


EMBEDDING_SPACE = "liebenow-9.2"


def embedding_space(
    dataset: Dataset,
    encoder: Encoder,
    cache: Path | None = None,
    progress: Progress = silent,
) -> Reproduction:
    """Embed the seconds of a data set, and show their space.

    Args:
        dataset: Labelled data set.
        encoder: Encoder whose space is shown.
        cache: Folder for decoded sound.
        progress: Callback for progress.
    """
    from sklearn.metrics import silhouette_score

    dataset.check_classes()
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
`{encoder.name}`, are shown on the left by PCA (two components carry {explained:.0%} of the
variance), then by t-SNE on cosine distances in two and in three dimensions. Colours are the true
classes, which the encoder does not use. The silhouette of the classes by cosine distance is
{silhouette:.3f}.
{below}
The thesis saw small islands in its t-SNE pictures and blamed them for clusters that did not
generalize. t-SNE keeps neighbours, not distances, and shows islands in any data; `earshot probe`
measures the space itself.
"""
    return Reproduction(
        EMBEDDING_SPACE,
        rows,
        lambda path: draw_embedding(placed, label, seconds.labels, path),
        note,
    )
