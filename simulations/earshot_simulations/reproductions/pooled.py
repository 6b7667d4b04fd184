"""What one would have without privacy: all recordings in one place, and plain k-means."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from earshot_protocol.geometry import nearest
from earshot_simulations.phases.environments import heard_by_some
from earshot_simulations.phases.routes import Settings
from earshot_simulations.phases.simulation import open_population
from earshot_simulations.reproductions.scored import scored
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure

_STARTS = 4


def pooled(settings: Settings) -> Figures:
    """Cluster what some phones heard, one cluster a scene, and name clusters by majority.

    Two hundred phones are taken, which is plenty: k-means has no noise to drown.
    """
    from sklearn.cluster import KMeans

    with closing(open_population(settings)) as population:
        population.prepare()
        heard = heard_by_some(settings, population)
        scenes = len(population.labels)
        means = KMeans(scenes, n_init=_STARTS, random_state=settings.seed).fit(heard.points)
        centroids = means.cluster_centers_.astype(np.float32)
        owner = nearest(heard.points, centroids, population.geometry)
        votes = np.zeros((scenes, scenes), dtype=np.int64)
        named = heard.labels >= 0
        np.add.at(votes, (owner[named], heard.labels[named]), 1)
        names = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
        return scored(centroids, names, population, heard, population.geometry)


POOLED = Measure("pooled k-means", pooled)
