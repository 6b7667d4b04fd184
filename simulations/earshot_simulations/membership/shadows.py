"""Attacks by shadow models: generators with and without a record, and a classifier between them.

Stadler, Oprisanu and Troncoso (USENIX Security 2022), section 3.2: the attacker trains generators
whose records it knows, describes each by a few numbers of its samples, and learns which numbers go
with the record. The first half of a game's trials are the shadow models here; they are scored by
classifiers that were learned without them.
"""

from __future__ import annotations

import numpy as np

from earshot_simulations.membership.distances import distances
from earshot_simulations.membership.game import Coins, Game, Numbers, Played, flat

_FOLDS = 4
_NEAREST = 5
_SMALL = 1e-9
_PENALTY = 30.0
"""Penalty on the weights of classifiers, as shadow models are few."""


def moments(game: Game, played: Played) -> Numbers:
    """Score by mean, median and deviation of each number of a record, (trials, records)."""
    samples = played.samples
    told = (samples.mean(axis=1), np.median(samples, axis=1), samples.std(axis=1))
    return _by_shadows(np.concatenate(told, axis=1), played.coins, game.known)


def correlations(game: Game, played: Played) -> Numbers:
    """Score by the correlations between the numbers of a record, (trials, records)."""
    upper = np.triu_indices(played.samples.shape[2], 1)
    centred = played.samples - played.samples.mean(axis=1, keepdims=True)
    together = np.einsum("tsi,tsj->tij", centred, centred) / played.samples.shape[1]
    spread = centred.std(axis=1) + _SMALL
    together /= spread[:, :, None] * spread[:, None, :]
    return _by_shadows(together[:, upper[0], upper[1]], played.coins, game.known)


def nearness(game: Game, played: Played) -> Numbers:
    """Score by the distances of a record to samples: the nearest few, and the median."""
    records = flat(game.records)
    apart = np.stack([distances(records, samples) for samples in played.samples])
    few = min(_NEAREST, apart.shape[2])
    close = np.sort(np.partition(apart, few - 1, axis=2)[:, :, :few], axis=2)
    told = np.concatenate([close, np.median(apart, axis=2, keepdims=True)], axis=2)
    each = [
        _by_shadows(told[:, record], played.coins[:, record : record + 1], game.known)
        for record in range(len(records))
    ]
    return np.concatenate(each, axis=1)


def _by_shadows(told: Numbers, coins: Coins, known: int) -> Numbers:
    """Return scores of classifiers, one for each record, (trials, records).

    Args:
        told: Features of each generator, (trials, features).
        coins: Coins of each generator, (trials, records).
        known: Number of first trials that a classifier may learn from.
    """
    fold = np.arange(known) % _FOLDS
    scores = np.empty(coins.shape)
    scores[known:] = _learned(told[:known], coins[:known], told[known:])
    for each in range(_FOLDS):
        own, others = np.flatnonzero(fold == each), np.flatnonzero(fold != each)
        scores[own] = _learned(told[others], coins[others], told[own])
    return scores


def _learned(told: Numbers, coins: Coins, asked: Numbers) -> Numbers:
    """Return scores of linear classifiers that minimize squared errors, with a penalty.

    The frequency of a record's won coins says nothing about its next coin, so it is withheld from
    classifiers.
    """
    from sklearn.linear_model import Ridge

    middle, spread = told.mean(axis=0), told.std(axis=0) + _SMALL
    model = Ridge(alpha=_PENALTY, fit_intercept=False)
    model.fit((told - middle) / spread, coins - coins.mean(axis=0))
    found = np.asarray(model.predict((asked - middle) / spread), dtype=np.float64)
    return found.reshape(len(asked), coins.shape[1])
