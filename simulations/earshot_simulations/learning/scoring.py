"""How well published centroids describe the truth (thesis 9.2.4 and 9.2.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import nearest
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_simulations.populations import Recordings

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """Agreement with the truth.

    Attributes:
        ari_train: adjusted Rand index of nearest centroids against true scenes, on recordings
            that phones took part with.
        ari_test: the same on recordings that no phone has.
        label_accuracy: fraction of the latter that the published labels name rightly; what lies
            closest to an unnamed centroid is named by nothing, and counts as wrong.
        clear_label_accuracy: the same by those labels alone that stand clear of the noise.
        label_histogram: how many of the latter each label was given to, shape (labels,).
        true_histogram: how many of the latter each label belongs to, shape (labels,).
    """

    ari_train: float
    ari_test: float
    label_accuracy: float
    clear_label_accuracy: float
    label_histogram: Labels
    true_histogram: Labels


def score(result: NamedCentroids, heard: Recordings, held_out: Recordings) -> Scores:
    """Score a published result; label i is the name of scene i."""
    from sklearn.metrics import adjusted_rand_score

    centroids = result.centroids.array()
    train = nearest(heard.points, centroids, result.geometry)
    test = nearest(held_out.points, centroids, result.geometry)
    groups = np.asarray(result.environments)
    named = np.asarray(result.labels, dtype=np.int64)[test]
    clear = np.array([name is not None for name in result.names])[test]
    right = named == held_out.scenes
    total = len(result.label_names)
    return Scores(
        ari_train=float(adjusted_rand_score(heard.scenes, groups[train])),
        ari_test=float(adjusted_rand_score(held_out.scenes, groups[test])),
        label_accuracy=float(np.mean(right)),
        clear_label_accuracy=float(np.mean(right & clear)),
        label_histogram=np.bincount(named[named >= 0], minlength=total),
        true_histogram=np.bincount(held_out.scenes, minlength=total),
    )
