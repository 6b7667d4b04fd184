"""Cluster the same blobs by DPLloyd and by diffprivlib's KMeans: the table of docs/estimators.md.

diffprivlib 0.6.6 does not import with the scikit-learn that Earshot's lock pins, so this program
has an environment of its own:

    python3 -m venv out/beside
    out/beside/bin/pip install '.[simulations]' diffprivlib==0.6.6 'scikit-learn<1.8'
    OMP_NUM_THREADS=1 out/beside/bin/python docs/beside_diffprivlib.py
"""

from __future__ import annotations

import math
import statistics
import time
import warnings

from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from earshot_simulations.estimators import DPLloyd
from earshot_simulations.sweeps.estimate import estimate, paired

SCENES, RECORDINGS, SEEDS = 5, 1000, 200
DIMENSIONS, EPSILONS = (2, 8), (0.5, 1, 2, 4, 8)
BOUNDS = (-1.0, 1.0)
ARI = (-0.5, 1.0)
"""Least and largest adjusted Rand index."""


def blobs(seed, dimensions):
    """Return points (RECORDINGS, dimensions) and their scenes: public data, drawn from a seed."""
    return make_blobs(
        RECORDINGS,
        dimensions,
        centers=SCENES,
        cluster_std=0.08,
        center_box=(-0.8, 0.8),
        random_state=seed,
    )


def spent(dimensions):
    """Return what diffprivlib's noise spends of its ε on a recording that is present or not.

    With w = ∛(4d · 0.225²), an iteration's ε/T is split as 1/(d + w) for the count, and w/(d + w)
    for each of d sums, whose sensitivity is the width of the bounds. A present recording moves a
    sum by half of that.
    """
    weight = math.cbrt(4 * dimensions * 0.225**2)
    return (1 + dimensions * weight / 2) / (dimensions + weight)


def ours(epsilon, seed):
    """Return our estimator."""
    return DPLloyd(SCENES, epsilon=epsilon, bounds=BOUNDS, recordings=RECORDINGS, random_state=seed)


def theirs(epsilon, seed):
    """Return diffprivlib's estimator."""
    from diffprivlib.models import KMeans as PrivateKMeans

    return PrivateKMeans(SCENES, epsilon=epsilon, bounds=BOUNDS, random_state=seed)


def without_noise(seed):
    """Return scikit-learn's estimator."""
    return KMeans(SCENES, n_init=10, random_state=seed)


def aris(make, dimensions):
    """Return the adjusted Rand index of the fitted points for each seed."""
    found = []
    for seed in range(SEEDS):
        points, scenes = blobs(seed, dimensions)
        found.append(adjusted_rand_score(scenes, make(seed).fit(points).predict(points)))
    return found


def milliseconds(make, dimensions):
    """Return the median CPU time of a fit with secret noise."""
    points, _ = blobs(0, dimensions)
    taken = []
    for _ in range(SEEDS):
        begun = time.process_time()
        make(None).fit(points)
        taken.append(time.process_time() - begun)
    return 1000 * statistics.median(taken)


def row(dimensions, epsilon):
    """Return a row of the table."""
    equal = epsilon / spent(dimensions)
    arms = (
        lambda seed: ours(epsilon, seed),
        lambda seed: theirs(equal, seed),
        lambda seed: theirs(epsilon, seed),
    )
    found = [aris(arm, dimensions) for arm in arms]
    times = [milliseconds(arm, dimensions) for arm in arms[:2]]
    cells = [
        f"{dimensions}",
        f"{epsilon:g}",
        *(str(estimate(each, ARI)) for each in found),
        str(paired(found[0], found[1])),
        *(f"{each:.1f}" for each in times),
    ]
    return f"| {' | '.join(cells)} |"


def main():
    """Print the table."""
    warnings.simplefilter("ignore")  # the data are public, and the noise has seeds
    print(
        "| d | ε | DPLloyd | diffprivlib, equal cost | diffprivlib, its ε | difference | ms | ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for dimensions in DIMENSIONS:
        for epsilon in EPSILONS:
            print(row(dimensions, epsilon), flush=True)
        clear = estimate(aris(without_noise, dimensions), ARI)
        print(f"without noise, d = {dimensions}: {clear}")


if __name__ == "__main__":
    main()
