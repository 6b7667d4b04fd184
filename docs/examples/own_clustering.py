"""
A clustering of your own
========================

On the local route phones publish centroids of their own, with noise, and the server clusters them:
by OPTICS, unless you bring something else. Here it is scikit-learn's HDBSCAN.
"""

# %%
# `discover` gets everything that phones published, and the geometry. It returns a centroid for each
# cluster, and for each point the number of its cluster, or -1.

import numpy as np
from sklearn.cluster import HDBSCAN

from earshot_simulations import Discovery, FoundCentroids, Settings, SummationChoice, simulate


class ByDensity:
    key = "HDBSCAN, leaves of 10"

    def discover(self, points, geometry):
        method = HDBSCAN(min_cluster_size=10, cluster_selection_method="leaf", copy=True)
        clusters = method.fit_predict(points)
        middles = [points[clusters == one].mean(axis=0) for one in range(clusters.max() + 1)]
        return FoundCentroids(np.array(middles), clusters)


# %%
# The same phase twice: phones, noise and votes are the same, and only the clustering differs.

settings = Settings(
    phones=600,
    recordings=100,
    scenes=6,
    discovery=Discovery.LOCAL,
    summation=SummationChoice.IDEAL,
    jobs=1,
)
usual = simulate(settings)
own = simulate(settings, clustering=ByDensity())
for name, run in {"OPTICS": usual, "HDBSCAN": own}.items():
    found = len(run.found.global_centroids)
    print(f"{name}: {found} centroids, right name {run.found.label_accuracy:.2f}")

# %%
# Kept centroids, each with its name and its votes. Votes carry noise: a centroid that few phones
# voted for may have fewer than none. One run is one draw of the noise: to say which clustering is
# better, give both to `sweep`, which takes the same arguments.

own.plot().savefig("own_clustering.png")
