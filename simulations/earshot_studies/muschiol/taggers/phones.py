"""Thousands of phones as teachers: each learns from the few mixtures that it has, all at once.

A ridge regression on what bands do, in closed form, so that no phone has to be trained by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.muschiol.taggers.linear import Scale
from earshot_studies.muschiol.taggers.study import Material

RIDGE = 5.0
"""Added to the diagonal of the Gram matrix, for features of unit variance."""

_AT_ONCE = 100
"""Phones whose mixtures are in memory together."""


@dataclass(frozen=True)
class Crowd:
    """What phones say, and what is known of the mixtures that they are asked about.

    Attributes:
        probabilities: of each phone on queries, float32 (phones, queries, labels) in [0, 1].
        validation, queries, test: features and truth, on a public scale.
    """

    probabilities: NDArray[np.float32]
    validation: Part
    queries: Part
    test: Part


def crowd(
    material: Material,
    phones: int,
    ridge: float = RIDGE,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Crowd:
    """Teach all phones, each on its share of the pool, and ask them.

    Args:
        material: whose validation mixtures are public and give features their scale.
        phones: how many there are; each has as many mixtures as the others.
        ridge: see `RIDGE`.
        progress: told how many phones have learned.

    Raises:
        InvalidParametersError: a phone would have fewer than two mixtures.
    """
    checks.whole("phones", phones)
    checks.positive("ridge", ridge)
    each = len(material.pool) // phones
    if each < 2:
        raise InvalidParametersError(
            f"phones={phones}: {len(material.pool):,} mixtures are fewer than two for each; there "
            f"can be {len(material.pool) // 2}"
        )
    scale = Scale.of(material.validation.power())
    validation, queries, test = (
        Part(scale.features(mixtures.power()), mixtures.truth)
        for mixtures in (material.validation, material.queries, material.test)
    )
    asked = queries.features.astype(np.float64)
    said = np.empty((phones, len(asked), len(material.labels)), dtype=np.float32)
    for first in range(0, phones, _AT_ONCE):
        last = min(first + _AT_ONCE, phones)
        own = material.pool.rows(slice(first * each, last * each))
        shape = (last - first, each, -1)
        features = scale.features(own.power()).astype(np.float64)
        said[first:last] = answers(features.reshape(shape), own.truth.reshape(shape), asked, ridge)
        progress(last, phones)
    return Crowd(said, validation, queries, test)


def ballots(probabilities: NDArray[np.floating], most: int) -> NDArray[np.int8]:
    """A whole vote for each of the labels that a phone finds likeliest; of equal ones the first.

    Args:
        probabilities: (phones, queries, labels).
        most: v, votes of each phone and query.

    Raises:
        InvalidParametersError: more votes than labels.
    """
    labels = probabilities.shape[-1]
    checks.whole("most", most, 1, labels)
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    cast = np.zeros(probabilities.shape, dtype=np.int8)
    np.put_along_axis(cast, order[..., :most], 1, axis=-1)
    return cast


def answers(
    features: NDArray[np.float64],
    truth: NDArray[np.integer] | NDArray[np.floating],
    asked: NDArray[np.float64],
    ridge: float,
) -> NDArray[np.float64]:
    """How likely each phone finds each label: ridge regressions on zeros and ones, clipped.

    ŷ = ȳ + (K − 1k̄ᵀ)(G + ridge)⁻¹(Y − ȳ) with all features centred at the phone's mean: what a
    phone never met it never names.

    Args:
        features: of each phone's mixtures, (phones, mixtures, features).
        truth: what is in them, 0 or 1 or a share, (phones, mixtures, labels).
        asked: features of what is asked about, (rows, features).
        ridge: see `RIDGE`.

    Returns:
        (phones, rows, labels), from 0 to 1.
    """
    middle = features.mean(axis=1, keepdims=True)
    centred = features - middle
    usual = truth.mean(axis=1, keepdims=True)
    gram = centred @ centred.transpose(0, 2, 1)
    gram[:, range(gram.shape[1]), range(gram.shape[1])] += ridge
    duals = np.linalg.solve(gram, truth - usual)
    weights = centred.transpose(0, 2, 1) @ duals
    found: NDArray[np.float64] = np.clip(usual + (asked - middle) @ weights, 0.0, 1.0)
    return found
