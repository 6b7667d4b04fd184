"""What embeddings are worth: to a linear classifier, to their neighbours, to a clustering.

All on one fold: fitted on its training side, measured on clips of recordings, places or speakers
that the training side does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models.recipe import PROJECTIONS
from earshot_simulations.probing.seconds import Seconds

PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Inverse strengths of the probe's regularization; chosen on the training side alone."""

NEIGHBOURS = 10

_INNER_FOLDS = 3
_KMEANS_SEEDS = 5


@dataclass(frozen=True)
class FoldMeasures:
    """Of one fold.

    Attributes:
        second_accuracy: linear probe, on seconds that do not overlap.
        clip_accuracy: linear probe, on the mean log-probability of a clip's windows; a clip that is
            silent throughout counts as wrong.
        neighbour_accuracy: vote of the ten nearest training windows by cosine, on seconds.
        ari: adjusted Rand index of k-means on the held-out seconds, k = classes; mean over seeds.
        ari_twice: the same with twice as many clusters.
        silhouette: of the true classes of the held-out seconds, by cosine.
        confusion: int64 (classes, classes), truth by row, of the seconds.
        penalty: the one that was chosen.
    """

    second_accuracy: float
    clip_accuracy: float
    neighbour_accuracy: float
    ari: float
    ari_twice: float
    silhouette: float
    confusion: NDArray[np.int64]
    penalty: float


def measure(seconds: Seconds, embeddings: NDArray[np.floating], side: int) -> FoldMeasures:
    """Measure one fold.

    Args:
        seconds: what was embedded.
        embeddings: (windows, dimensions).
        side: held out.
    """
    from sklearn.metrics import confusion_matrix, silhouette_score

    held_out = seconds.sides[seconds.clip] == side
    tested = held_out & seconds.disjoint
    truth = seconds.label[tested]
    penalty = _best_penalty(seconds, embeddings, ~held_out)
    log_odds = _probe(
        embeddings[~held_out], seconds.label[~held_out], penalty, embeddings[held_out]
    )
    guessed = log_odds[tested[held_out]].argmax(axis=1)
    classes = len(seconds.labels)
    return FoldMeasures(
        float(np.mean(guessed == truth)),
        _clip_accuracy(seconds, held_out, log_odds, side),
        _neighbour_accuracy(
            embeddings[~held_out], seconds.label[~held_out], embeddings[tested], truth
        ),
        _ari(embeddings[tested], truth, classes),
        _ari(embeddings[tested], truth, 2 * classes),
        float(silhouette_score(embeddings[tested], truth, metric="cosine")),
        confusion_matrix(truth, guessed, labels=range(classes)),
        penalty,
    )


def projected_ari(
    seconds: Seconds,
    embeddings: NDArray[np.floating],
    project: Callable[[NDArray[np.floating], int], NDArray[np.floating]],
    side: int,
) -> dict[int, float]:
    """What the private steps have to cluster: `ari_twice`, by the dimensions projected to.

    Args:
        seconds: what was embedded.
        embeddings: (windows, dimensions).
        project: of the encoder.
        side: held out.
    """
    tested = (seconds.sides[seconds.clip] == side) & seconds.disjoint
    truth, clusters = seconds.label[tested], 2 * len(seconds.labels)
    return {
        dimensions: _ari(project(embeddings[tested], dimensions), truth, clusters)
        for dimensions in PROJECTIONS
    }


def interval(values: NDArray[np.floating]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval by Student's t, over folds.

    Args:
        values: one per fold, at least two.
    """
    from scipy import stats

    count = len(values)
    wide = stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
    return float(np.mean(values)), float(wide)


def _probe(
    embeddings: NDArray[np.floating],
    labels: NDArray[np.int64],
    penalty: float,
    tested: NDArray[np.floating],
) -> NDArray[np.float64]:
    """Log-probabilities (tested, classes) of a linear classifier.

    Coordinates are not standardised: embeddings are of unit length, and on principal components it
    would make as much of what hardly varies as of what does.
    """
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(C=penalty, max_iter=2000).fit(embeddings, labels)
    logs = np.full((len(tested), int(labels.max()) + 1), -np.inf)
    logs[:, probe.classes_] = probe.predict_log_proba(tested)
    return logs


def _best_penalty(
    seconds: Seconds, embeddings: NDArray[np.floating], training: NDArray[np.bool_]
) -> float:
    """By cross-validation over sides of the training side, or clips of it where there is one."""
    sides = seconds.sides[seconds.clip]
    groups = sides if len(np.unique(sides[training])) >= 2 else seconds.clip % _INNER_FOLDS
    scores = np.zeros(len(PENALTIES))
    for group in np.unique(groups[training])[:_INNER_FOLDS]:
        inner = training & (groups != group)
        out = training & (groups == group) & seconds.disjoint
        for place, penalty in enumerate(PENALTIES):
            logs = _probe(embeddings[inner], seconds.label[inner], penalty, embeddings[out])
            scores[place] += np.mean(logs.argmax(axis=1) == seconds.label[out])
    return PENALTIES[int(scores.argmax())]


def _clip_accuracy(
    seconds: Seconds, held_out: NDArray[np.bool_], log_odds: NDArray[np.float64], side: int
) -> float:
    clips = np.flatnonzero(seconds.sides == side)
    of = seconds.clip[held_out]
    right = 0
    for clip in clips:
        own = log_odds[of == clip]
        right += bool(len(own)) and int(own.mean(axis=0).argmax()) == seconds.clip_labels[clip]
    return right / len(clips)


def _neighbour_accuracy(
    known: NDArray[np.floating],
    labels: NDArray[np.int64],
    tested: NDArray[np.floating],
    truth: NDArray[np.int64],
) -> float:
    from sklearn.neighbors import KNeighborsClassifier

    neighbours = KNeighborsClassifier(NEIGHBOURS, metric="cosine", algorithm="brute")
    return float(neighbours.fit(known, labels).score(tested, truth))


def _ari(embeddings: NDArray[np.floating], truth: NDArray[np.int64], clusters: int) -> float:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    scores = [
        adjusted_rand_score(
            truth, KMeans(clusters, n_init=5, random_state=seed).fit_predict(embeddings)
        )
        for seed in range(_KMEANS_SEEDS)
    ]
    return float(np.mean(scores))
