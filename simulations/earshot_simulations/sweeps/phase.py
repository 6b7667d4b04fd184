"""The figures of one simulated phase: the default measure of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_server.accounting.accountant import composed_total
from earshot_simulations.phases.environments import EnvironmentFindings
from earshot_simulations.phases.own import OF_SETTINGS, Own
from earshot_simulations.phases.run import NOISELESS
from earshot_simulations.phases.settings import Settings
from earshot_simulations.phases.simulation import simulate
from earshot_simulations.sweeps.estimate import SHARE, Range
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure

ARI_TRAIN, ARI_TEST = "ari_train", "ari_test"
NAMES, CLEAR_NAMES = "label_accuracy", "clear_label_accuracy"
__all__ = ["SIMULATED"]

CENTROIDS = "centroids"
CENTROID_NAMES = "centroid_label_accuracy"
"""Name of the figure by which the thesis counts (9.2.5): the fraction of published centroids that
have the name of the scene of the recording next to them."""

RANGES: Mapping[str, Range] = {
    **dict.fromkeys((ARI_TRAIN, ARI_TEST), (-0.5, 1.0)),
    **dict.fromkeys((NAMES, CLEAR_NAMES, CENTROID_NAMES), SHARE),
}
"""Ranges of the figures that have one: shares, and adjusted Rand indices, which are -0.5 at least
(Chacón and Rastrojo 2023)."""

EPSILONS = {unit: f"epsilon_{unit}" for unit in LEDGER_UNITS}
"""Names of the figures of a phase's composed cost, at the δ of the accountant or of the phase."""

NOTHING: Figures = {
    **dict.fromkeys((ARI_TRAIN, ARI_TEST, NAMES, CLEAR_NAMES, CENTROID_NAMES), 0.0),
    CENTROIDS: 0,
}
"""Figures of a phase without a result: one unnamed cluster of all recordings."""


def simulated(settings: Settings, own: Own = OF_SETTINGS) -> Figures:
    """Return the figures of one simulated phase, with its cost.

    Args:
        settings: Settings of the phase.
        own: Things of the caller's own that take part.

    Raises:
        KeyboardInterrupt: The phase was interrupted; half a phase has no figures.
    """
    run = simulate(settings, **own.given)
    if run.stopped:
        raise KeyboardInterrupt
    spent = composed_total(settings.expenses(own))
    epsilons = {
        EPSILONS[unit]: NOISELESS if settings.noiseless else cost.epsilon
        for unit, cost in spent.items()
    }
    return {**_scored(run.found), **epsilons, "failure": run.interrupted}


def centroid_accuracy(
    centroids: npt.NDArray[np.float32],
    labels: npt.NDArray[np.integer],
    points: npt.NDArray[np.float32],
    scenes: npt.NDArray[np.integer],
) -> float:
    """Return the fraction of centroids with the label of the scene of the closest recording.

    Args:
        centroids: Centroids, float32 (centroids, dimensions), at least one.
        labels: Label of each centroid, int (centroids,); -1 for an unnamed one.
        points: Recordings, float32 (recordings, dimensions), at least one. On the sphere the
            closest by angle is the closest by distance, as these have length one.
        scenes: True scene of each recording, int (recordings,).
    """
    closest = nearest(centroids, points, Geometry.EUCLIDEAN)
    return float(np.mean(labels == scenes[closest]))


def _scored(found: EnvironmentFindings) -> Figures:
    if found.global_centroids is None or found.ari_test is None:
        return NOTHING
    centroids = found.global_centroids[found.top]
    return {
        ARI_TRAIN: found.ari_train,
        ARI_TEST: found.ari_test,
        NAMES: found.label_accuracy,
        CLEAR_NAMES: found.clear_label_accuracy,
        CENTROID_NAMES: centroid_accuracy(centroids, found.labels, found.points, found.scenes)
        if len(found.points)
        else None,
        CENTROIDS: len(centroids),
    }


SIMULATED = Measure("simulated", simulated)
"""Measure of a simulated phase, which Earshot's own sweeps take: its figures by name."""


def simulated_with(own: Own) -> Measure:
    """Return the measure of phases with things of the caller's own.

    Raises:
        InvalidParametersError: One has no key.
    """
    if not own.given:
        return SIMULATED
    own.check_keys()
    return Measure(SIMULATED.name, partial(simulated, own=own), own.described())
