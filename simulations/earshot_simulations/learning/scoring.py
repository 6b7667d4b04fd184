"""Agreement of published centroids with the truth (thesis 9.2.4 and 9.2.5)."""

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
    """The agreement of published centroids with the truth.

    Attributes:
        ari_train: Adjusted Rand index of nearest centroids against true scenes, on the recordings
            of phones that took part.
        ari_test: Adjusted Rand index on held-out recordings, which no phone has.
        label_accuracy: Fraction of held-out recordings with the right published label; a recording
            closest to an unnamed centroid counts as wrong.
        clear_label_accuracy: Fraction of held-out recordings with the right label from labels that
            stand clear of the noise.
        label_histogram: Number of held-out recordings that were given each label, shape (labels,).
        true_histogram: Number of held-out recordings with each true label, shape (labels,).
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
