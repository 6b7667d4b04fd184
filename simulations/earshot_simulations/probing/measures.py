"""Measures of how well embeddings separate classes: a linear probe, neighbours, a clustering.

All are on one fold: fitted on its training side, and measured on clips of recordings, places or
speakers that are not in the training side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_models.recipe import PROJECTIONS
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.probing.seconds import ClipWindows

PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Inverse strengths of the probe's regularization, chosen on the training side alone."""

NEIGHBOURS = 10

_INNER_FOLDS = 3
_KMEANS_SEEDS = 5


@dataclass(frozen=True)
class FoldMeasures:
    """The measures of one fold.

    Attributes:
        second_accuracy: Accuracy of the linear probe on disjoint seconds.
        clip_accuracy: Accuracy of the linear probe on the mean log-probability of a clip's windows;
            a clip that is silent throughout counts as wrong.
        neighbour_accuracy: Accuracy of the vote of the ten nearest training windows by cosine, on
            seconds.
        ari: Adjusted Rand index of k-means on the held-out seconds, k = classes; mean over seeds.
        ari_twice: Adjusted Rand index with twice as many clusters.
        silhouette: Silhouette of the true classes of the held-out seconds, by cosine.
        confusion: Confusion matrix of the seconds, truth by row, int64 (classes, classes).
        penalty: Chosen penalty.
    """

    second_accuracy: float
    clip_accuracy: float
    neighbour_accuracy: float
    ari: float
    ari_twice: float
    silhouette: float
    confusion: NDArray[np.int64]
    penalty: float


@dataclass(frozen=True)
class LinearProbe:
    """A linear classifier of embeddings.

    Attributes:
        penalty: Penalty chosen from `PENALTIES`.
        model: Model of scikit-learn.
        classes: Number of all classes, including those missing from the training side.
    """

    penalty: float
    model: Any
    classes: int

    def log_odds(self, embeddings: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return log-probabilities (embeddings, classes)."""
        logs = np.full((len(embeddings), self.classes), -np.inf)
        logs[:, self.model.classes_] = self.model.predict_log_proba(embeddings)
        return logs

    def accuracy(self, embeddings: NDArray[np.floating], truth: NDArray[np.int64]) -> float:
        """Return the fraction of embeddings whose likeliest class is the true one."""
        return float(np.mean(self.log_odds(embeddings).argmax(axis=1) == truth))


def fit(seconds: ClipWindows, embeddings: NDArray[np.floating], side: int) -> LinearProbe:
    """Fit the linear probe on all sides but one.

    Args:
        seconds: Embedded windows.
        embeddings: Embeddings, (windows, dimensions).
        side: Side that is held out.

    Raises:
        InvalidInputError: The side, or the rest, has fewer than two classes.
    """
    training = seconds.sides[seconds.clip] != side
    for part, what in ((~training, "is"), (training, "is not")):
        if len(np.unique(seconds.label[part])) < 2:
            raise InvalidInputError(
                f"all sound that {what} of {seconds.names[side]} is of one class: hold out sides "
                "with several classes, or give no labels to measure only places"
            )
    penalty = _best_penalty(seconds, embeddings, training)
    return _fitted(embeddings[training], seconds.label[training], penalty, len(seconds.labels))


def measure(
    seconds: ClipWindows, embeddings: NDArray[np.floating], linear: LinearProbe, side: int
) -> FoldMeasures:
    """Measure one fold.

    Args:
        seconds: Embedded windows.
        embeddings: Embeddings, (windows, dimensions).
        linear: Linear probe fitted without the side.
        side: Side that is held out.
    """
    from sklearn.metrics import confusion_matrix, silhouette_score

    held_out = seconds.sides[seconds.clip] == side
    tested = seconds.tested(side)
    truth = seconds.label[tested]
    log_odds = linear.log_odds(embeddings[held_out])
    guessed = log_odds[tested[held_out]].argmax(axis=1)
    classes = len(seconds.labels)
    return FoldMeasures(
        float(np.mean(guessed == truth)),
        _clip_accuracy(seconds, held_out, log_odds, side),
        _neighbour_accuracy(
            embeddings[~held_out], seconds.label[~held_out], embeddings[tested], truth
        ),
        clusters_ari(embeddings[tested], truth, classes),
        clusters_ari(embeddings[tested], truth, 2 * classes),
        float(silhouette_score(embeddings[tested], truth, metric="cosine")),
        confusion_matrix(truth, guessed, labels=range(classes)),
        linear.penalty,
    )


@dataclass(frozen=True)
class Projected:
    """Measures of clusters after projection, as in the private steps, to one number of dimensions.

    Attributes:
        ari: Adjusted Rand index, as in `FoldMeasures`.
        ari_twice: Adjusted Rand index with twice as many clusters as classes.
    """

    ari: float
    ari_twice: float


def projected(
    seconds: ClipWindows,
    embeddings: NDArray[np.floating],
    project: Callable[[NDArray[np.floating], int], NDArray[np.floating]],
    side: int,
) -> dict[int, Projected]:
    """Measure clusters by the number of projected dimensions.

    Args:
        seconds: Embedded windows.
        embeddings: Embeddings, (windows, dimensions).
        project: Projection of the encoder.
        side: Side that is held out.
    """
    tested = seconds.tested(side)
    truth, classes = seconds.label[tested], len(seconds.labels)
    found = {}
    for dimensions in PROJECTIONS:
        points = project(embeddings[tested], dimensions)
        found[dimensions] = Projected(
            clusters_ari(points, truth, classes), clusters_ari(points, truth, 2 * classes)
        )
    return found


def interval(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return a mean and half the width of its 95 % interval by Student's t, over folds.

    Args:
        values: Values of the folds, at least two.
    """
    from scipy import stats

    count = len(values)
    wide = stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)
    return float(np.mean(values)), float(wide)


def _fitted(
    embeddings: NDArray[np.floating], labels: NDArray[np.int64], penalty: float, classes: int
) -> LinearProbe:
    """Fit the probe with one penalty.

    Coordinates are not standardized: embeddings have unit length, and for principal components it
    would give dimensions of little variance as much weight as the others.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=penalty, max_iter=2000).fit(embeddings, labels)
    return LinearProbe(penalty, model, classes)


def _best_penalty(
    seconds: ClipWindows, embeddings: NDArray[np.floating], training: NDArray[np.bool_]
) -> float:
    """Choose a penalty by cross-validation over training sides, or over clips of a single one."""
    sides = seconds.sides[seconds.clip]
    groups = sides if len(np.unique(sides[training])) >= 2 else seconds.clip % _INNER_FOLDS
    scores = np.zeros(len(PENALTIES))
    for group in np.unique(groups[training])[:_INNER_FOLDS]:
        inner = training & (groups != group)
        out = training & (groups == group) & seconds.disjoint
        if len(np.unique(seconds.label[inner])) < 2 or not out.any():
            continue  # too little sound to fit or score
        for place, penalty in enumerate(PENALTIES):
            probe = _fitted(embeddings[inner], seconds.label[inner], penalty, len(seconds.labels))
            scores[place] += probe.accuracy(embeddings[out], seconds.label[out])
    return PENALTIES[int(scores.argmax())]


def _clip_accuracy(
    seconds: ClipWindows, held_out: NDArray[np.bool_], log_odds: NDArray[np.float64], side: int
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

    neighbours = KNeighborsClassifier(
        min(NEIGHBOURS, len(known)), metric="cosine", algorithm="brute"
    )
    return float(neighbours.fit(known, labels).score(tested, truth))


def clusters_ari(
    embeddings: NDArray[np.floating], truth: NDArray[np.int64], clusters: int
) -> float:
    """Return the adjusted Rand index of k-means against the truth, mean over seeds.

    Raises:
        InvalidInputError: There are fewer embeddings than clusters.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    if len(embeddings) < clusters:
        raise InvalidInputError(
            f"{len(embeddings)} seconds are held out, too few for {clusters} clusters: "
            "a probe needs more sound"
        )
    # There cannot be more clusters than distinct points.
    clusters = min(clusters, len(np.unique(embeddings, axis=0)))
    scores = [
        adjusted_rand_score(
            truth, KMeans(clusters, n_init=5, random_state=seed).fit_predict(embeddings)
        )
        for seed in range(_KMEANS_SEEDS)
    ]
    return float(np.mean(scores))
