"""Start centroids of an encoder: spherical k-means of public sound in its projection, no labels.

Rare seconds weigh more (`rarity`), which brings the centroids nearer to unseen sound
(docs/encoders.md). The sound is augmented first: played faster and slower, coloured, and mixed, as
in the lessons of a teacher.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio
from earshot_models.components import NEIGHBOURS, Components, rarity
from earshot_models.distillation.lessons import Lessons, Variation
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.start_centroids import USUAL_COUNTS, USUAL_DIMENSIONS

if TYPE_CHECKING:
    from earshot_models.pools import Pool

SECONDS = 6_000
"""Usual number of seconds of augmented sound."""

_BEGINNINGS = 8
"""Initializations of each clustering, of which the best is kept."""


def wider(pools: Sequence[Pool], count: int, seed: int, rate: int) -> NDArray[np.float32]:
    """Return seconds of public sound, changed and mixed, float32 (count, rate).

    Args:
        pools: Pools of one rate.
        count: Number of seconds.
        seed: Seed of the choice of seconds and changes.
        rate: Samples per second of the seconds.
    """
    lessons = Lessons(pools, Variation(), count, seed)
    return np.stack(
        [audio.resample(lessons.sound(each), lessons.rate, rate) for each in range(count)]
    )


def learn(
    components: Components, embeddings: NDArray[np.floating], seed: int
) -> list[NDArray[np.float32]]:
    """Compute start centroids for every usual number of dimensions and of centroids.

    Args:
        components: Public projection.
        embeddings: Embeddings of public sound, (examples, features), as `Components.projected`
            takes them.
        seed: Seed of the initializations.

    Returns:
        float32 (count, dimensions), unit rows, for each of `USUAL_DIMENSIONS` and `USUAL_COUNTS`.

    Raises:
        InvalidInputError: There are fewer different sounds than centroids.
    """
    from threadpoolctl import threadpool_limits

    # One thread, so that sums have one order on every machine; on a busy one it is faster too.
    with threadpool_limits(1):
        projected = {each: components.projected(embeddings, each) for each in USUAL_DIMENSIONS}
        return [
            cluster(projected[dimensions], count, seed)
            for dimensions, count in product(USUAL_DIMENSIONS, USUAL_COUNTS)
        ]


def cluster(points: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    """Cluster points by weighted spherical k-means.

    Args:
        points: Unit rows, (examples, dimensions).
        count: Number of centroids.
        seed: Seed of the initializations.

    Returns:
        float32 (count, dimensions), unit rows: of all initializations, the centroids with the
        largest weighted mean cosine to their points.

    Raises:
        InvalidInputError: There are fewer different points than centroids.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.preprocessing import normalize

    different = len(np.unique(points, axis=0))
    if different < max(count, NEIGHBOURS + 1):
        raise InvalidInputError(
            f"{different} different seconds of sound are too few for {count} start centroids: "
            f"at least {max(count, NEIGHBOURS + 1)} are needed"
        )
    weights = rarity(points)
    best, nearest = np.empty(0), -np.inf
    for beginning in np.random.default_rng([seed, 5]).integers(2**32, size=_BEGINNINGS):
        # On unit rows, normalized centres are those of spherical k-means.
        means = KMeans(count, n_init=1, random_state=int(beginning))
        with warnings.catch_warnings():
            # Near-duplicate seconds may leave a centre empty, which spoils only this
            # initialization.
            warnings.simplefilter("ignore", ConvergenceWarning)
            means.fit(points, sample_weight=weights)
        centroids = normalize(means.cluster_centers_)
        near = np.average((points @ centroids.T).max(axis=1), weights=weights)
        if near > nearest:
            best, nearest = centroids, near
    return np.asarray(best, dtype=np.float32)
