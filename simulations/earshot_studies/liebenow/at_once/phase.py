"""A measure for large sweeps: the figures of a phase vectorized over all phones."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_simulations.phases.environments import heard_by_some, score
from earshot_simulations.phases.settings import Settings
from earshot_simulations.phases.simulation import HEARD, open_population
from earshot_simulations.populations import Recordings, SimulatedPopulation
from earshot_simulations.sweeps.phase import (
    ARI_TEST,
    ARI_TRAIN,
    CENTROIDS,
    CLEAR_NAMES,
    NAMES,
    NOTHING,
)
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Measure
from earshot_studies.liebenow.at_once.crowd import discover
from earshot_studies.liebenow.at_once.heard import HeardByAll
from earshot_studies.liebenow.at_once.learners import learn

MOVED = "moved"
"""Name of the figure for the number of cells that were clear of the noise."""

CELLS_ALONE = "cell_ari"
"""Name of the figure for cells without any labels (`PlaceScores.cell_ari`)."""

UNKNOWN = "unknown"
"""Name of the figure for held-out recordings beyond the radius (`PlaceScores.unknown`)."""

_HEARS = (*HEARD, "labelled", "dimensions", "discovery", "jobs", "adversary")
"""Settings that affect the phones' inputs."""


class _Heard(NamedTuple):
    population: SimulatedPopulation
    by_all: HeardByAll
    sample: Recordings
    held_out: Recordings


def at_once(settings: Settings) -> Figures:
    """Measure one simulated phase of either route.

    Raises:
        InvalidParametersError: The settings cannot be simulated, or have a selection or several
            runs of a phone's clustering, which `learn` does not support.
    """
    settings.check()
    heard = _hear(settings)
    parameters = settings.parameters(heard.population)
    found: NamedCentroids
    if isinstance(parameters, DiscoveryParameters):
        found = discover(parameters, heard.by_all, settings.seed)
        counted = {MOVED: int(np.sum(found.moved))}
    else:
        assert isinstance(parameters, PhaseParameters)  # noqa: S101 - there are two routes
        try:
            found = learn(parameters, heard.by_all, settings.seed, Optics())
        except NothingFoundError:
            return NOTHING
        counted = {CENTROIDS: found.centroids.rows}
    scores = score(found, heard.sample, heard.held_out)
    return {
        ARI_TEST: scores.ari_test,
        ARI_TRAIN: scores.ari_train,
        NAMES: scores.label_accuracy,
        CLEAR_NAMES: scores.clear_label_accuracy,
        CELLS_ALONE: scores.cell_ari or 0.0,
        UNKNOWN: scores.unknown or 0.0,
        **counted,
    }


def _hear(settings: Settings) -> _Heard:
    """Return the phones' projected recordings; cached for the last settings that affect them."""
    chosen = {name: value for name, value in vars(settings).items() if name in _HEARS}
    return _prepared(Settings(**chosen))


@lru_cache(maxsize=1)
def _prepared(settings: Settings) -> _Heard:
    with open_population(settings) as population:
        return _Heard(
            population,
            HeardByAll.of(population, settings.attack(population)),
            heard_by_some(population, settings.seed),
            population.held_out(),
        )


AT_ONCE = Measure("at once", at_once)
