"""Attacks by distance: a generator that has learned from a record makes samples close to it.

Nearest samples: GAN-Leaks (Chen et al., CCS 2020, sections 4.1 and 4.4), whose calibration takes
into account that a record that is easy to generate is close to samples of any generator. Samples
within a radius: Hilprecht et al. (PoPETs 2019), section 4.2, with the radius of their median
heuristic.
"""

from __future__ import annotations

import numpy as np

from earshot_simulations.membership.game import Game, Numbers, Played, flat


def nearest(game: Game, played: Played) -> Numbers:
    """Return minus the distance of each record to the nearest sample, (trials, records)."""
    return np.asarray(-_distances(game, played).min(axis=2))


def calibrated(game: Game, played: Played) -> Numbers:
    """Add to `nearest` the distance to the nearest sample of a generator without the records."""
    unmet = distances(flat(game.records), played.reference).min(axis=1)
    return np.asarray(nearest(game, played) + unmet)


def within_radius(game: Game, played: Played) -> Numbers:
    """Return the share of samples within the median distance of records to the nearest."""
    apart = _distances(game, played)
    radius = np.median(apart.min(axis=2), axis=1)
    close: Numbers = (apart <= radius[:, None, None]).mean(axis=2)
    return close


def distances(ones: Numbers, others: Numbers) -> Numbers:
    """Return Euclidean distances, (ones, others)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(ones, others))


def _distances(game: Game, played: Played) -> Numbers:
    """Return the distances of records to samples, (trials, records, samples)."""
    records = flat(game.records)
    return np.stack([distances(records, samples) for samples in played.samples])
