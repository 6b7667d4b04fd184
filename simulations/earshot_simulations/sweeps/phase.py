"""One simulated phase as figures: what a sweep measures where it is not told otherwise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_server.accounting.accountant import composed_total
from earshot_simulations.learning.run import Run
from earshot_simulations.learning.settings import Settings
from earshot_simulations.learning.simulation import simulate
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure

ARI_TRAIN, ARI_TEST = "ari_train", "ari_test"
NAMES, CLEAR_NAMES = "label_accuracy", "clear_label_accuracy"
CENTROIDS = "centroids"
CENTROID_NAMES = "centroid_label_accuracy"
"""Figures of a phase. The last is how the thesis counts (9.2.5): the fraction of published
centroids that have the name of the scene of the recording next to them."""

EPSILONS = {unit: f"epsilon_{unit}" for unit in LEDGER_UNITS}
"""Figures, too: all that a phase costs, composed, at the δ of the accountant or of the phase."""

NOTHING: Figures = {
    **dict.fromkeys((ARI_TRAIN, ARI_TEST, NAMES, CLEAR_NAMES, CENTROID_NAMES), 0.0),
    CENTROIDS: 0,
}
"""Of a phase that ended without a result: all recordings are in one cluster, which has no name."""


def simulated(settings: Settings) -> Figures:
    """The figures of one simulated phase, with what it cost.

    Raises:
        KeyboardInterrupt: it was interrupted; half a phase is no figure.
    """
    run = simulate(settings)
    if run.stopped:
        raise KeyboardInterrupt
    spent = composed_total(settings.expenses())
    epsilons = {EPSILONS[unit]: cost.epsilon for unit, cost in spent.items()}
    return {**_scored(run), **epsilons, "failure": run.interrupted}


def centroid_accuracy(
    centroids: npt.NDArray[np.float32],
    labels: npt.NDArray[np.integer],
    points: npt.NDArray[np.float32],
    scenes: npt.NDArray[np.integer],
) -> float:
    """Fraction of centroids that are labelled with the scene of the recording closest to them.

    Args:
        centroids: float32 (centroids, dimensions), at least one.
        labels: int (centroids,), of each; -1 for an unnamed one.
        points: float32 (recordings, dimensions), at least one. On the sphere the closest by angle
            is the closest by distance, as these have length one.
        scenes: int (recordings,), the true one of each.
    """
    closest = nearest(centroids, points, Geometry.EUCLIDEAN)
    return float(np.mean(labels == scenes[closest]))


def _scored(run: Run) -> Figures:
    if run.global_centroids is None or run.ari_train is None:
        return NOTHING
    centroids = run.global_centroids[run.top]
    return {
        ARI_TRAIN: run.ari_train,
        ARI_TEST: run.ari_test,
        NAMES: run.label_accuracy,
        CLEAR_NAMES: run.clear_label_accuracy,
        CENTROID_NAMES: centroid_accuracy(centroids, run.labels, run.points, run.scenes),
        CENTROIDS: len(centroids),
    }


SIMULATED = Measure("simulated", simulated)
