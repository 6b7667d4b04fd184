"""Attacks by distance: a generator that has learned from a record makes samples close to it.

Nearest samples: GAN-Leaks (Chen et al., CCS 2020, sections 4.1 and 4.4), whose calibration takes
from a record's distance what it is from samples of a generator that never met it: a record that is
easy to generate is close to both. Samples within a radius: Hilprecht et al. (PoPETs 2019), section
4.2, with the radius of their median heuristic.
"""

from __future__ import annotations

import numpy as np

from earshot_simulations.membership.game import Game, Numbers, Played, flat


def nearest(game: Game, played: Played) -> Numbers:
    """Minus the distance of a record to the nearest sample, (trials, records)."""
    return np.asarray(-_distances(game, played).min(axis=2))


def calibrated(game: Game, played: Played) -> Numbers:
    """The same, plus the distance to the nearest sample of a generator that never met it."""
    unmet = distances(flat(game.records), played.reference).min(axis=1)
    return np.asarray(nearest(game, played) + unmet)


def within_radius(game: Game, played: Played) -> Numbers:
    """The share of samples that are as near as half of all records have their nearest one."""
    apart = _distances(game, played)
    radius = np.median(apart.min(axis=2), axis=1)
    close: Numbers = (apart <= radius[:, None, None]).mean(axis=2)
    return close


def distances(ones: Numbers, others: Numbers) -> Numbers:
    """Euclidean, (ones, others)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(ones, others))


def _distances(game: Game, played: Played) -> Numbers:
    """(trials, records, samples)."""
    records = flat(game.records)
    return np.stack([distances(records, samples) for samples in played.samples])
