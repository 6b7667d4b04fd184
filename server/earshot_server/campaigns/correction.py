"""Correction of contacts that the map named, by how it names recordings that people labelled.

A map takes some places for others. Of the contacts x_k made at places k it names E[n_j] = Σ x_k
P_kj, where P_kj is how often a recording made at place k is named j. A noisy table of labelled
recordings, label × name, estimates P; solving for x adjusts the counts (Forman 2008). This holds if
the map names unlabelled recordings of a place as it names labelled ones. Where these are easier,
counts are corrected by too little, and intervals do not know.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

_CLEAR = 3.0
"""Standard deviations of noise from which on the recordings of a label say how they are named."""


class Naming(NamedTuple):
    """How a map names the recordings of each place.

    Attributes:
        table: Noisy numbers of labelled recordings, label × name, float64 (places, places).
        rates: Share of the recordings of each place that get each name, P, float64 (places, names).
            A place with too few labelled recordings to tell has its own name alone.
        recordings: Labelled recordings of each place, as the sum weighs them; infinite where the
            rates do not rest on them, float64 (places,).
        deviation: Standard deviation of the noise on each number of the table.
    """

    table: Reals
    rates: Reals
    recordings: Reals
    deviation: float


class Corrected(NamedTuple):
    """Corrected counts of one week.

    Attributes:
        counts: Contacts without a label, by place, float64 (places,). They add up to the named
            contacts, and may be negative.
        noise: Covariance of their errors by the noise of the week and the chance by which the map
            names a contact, float64 (places, places). Independent from week to week.
        naming: Covariances of their errors by those of the rates of each place, which are
            independent, float64 (places, places, places). The same errors in all weeks with one
            map, in proportion to the contacts at that place: smoothing does not make them smaller.
    """

    counts: Reals
    noise: Reals
    naming: Reals


def naming_of(table: Reals, deviation: float) -> Naming:
    """Estimate how a map names recordings from a noisy table of labelled ones.

    Args:
        table: Numbers of recordings, label × name, float64 (places, places).
        deviation: Standard deviation of the noise on each number.
    """
    places = len(table)
    totals = table.sum(axis=1)
    clear = totals > _CLEAR * deviation * np.sqrt(places)
    rates = np.eye(places)
    for place in np.flatnonzero(clear):
        rates[place] = _nearest_shares(table[place] / totals[place])
    return Naming(table, rates, np.where(clear, totals, np.inf), deviation)


def corrected(named: Reals, noise: Reals, naming: Naming) -> Corrected:
    """Correct the contacts of a week that a map named.

    Args:
        named: Noisy contacts by name, float64 (places,).
        noise: Variances of the noise on them, float64 (places,).
        naming: How the map names recordings.
    """
    rates = naming.rates
    inverse = np.linalg.pinv(rates.T)
    counts = inverse @ named
    made = np.maximum(counts, 0)
    by_chance = np.diag(made @ rates) - (rates.T * made) @ rates
    rates_wrong = []
    for row, recordings, contacts in zip(rates, naming.recordings, made, strict=True):
        drawn = (np.diag(row) - np.outer(row, row)) / recordings
        # A share's error is the noise on its number, less the share of that on the row's total.
        apart = np.eye(len(row)) - row[:, np.newaxis]
        by_noise = (naming.deviation / recordings) ** 2 * (apart @ apart.T)
        rates_wrong.append(contacts**2 * (drawn + by_noise))
    return Corrected(
        counts,
        inverse @ (np.diag(noise) + by_chance) @ inverse.T,
        inverse @ np.stack(rates_wrong) @ inverse.T,
    )


def _nearest_shares(numbers: Reals) -> Reals:
    """Return the shares nearest to numbers that add up to 1 (Duchi et al., ICML 2008)."""
    falling = np.sort(numbers)[::-1]
    above = (np.cumsum(falling) - 1) / np.arange(1, len(numbers) + 1)
    shares: Reals = np.maximum(numbers - above[np.flatnonzero(falling > above)[-1]], 0)
    return shares
