"""Thousands of phones as teachers, each trained on a few mixtures, many in one step.

The model is a ridge regression on statistics of bands, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.progress import Progress, silent
from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.muschiol.taggers.linear import FeatureScale
from earshot_studies.muschiol.taggers.study import Material

RIDGE = 5.0
"""Value added to the diagonal of the Gram matrix, for features of unit variance."""

_AT_ONCE = 100
"""Phones whose mixtures are in memory together."""


@dataclass(frozen=True)
class PhoneOutputs:
    """The output of phones, and the mixtures of the other sides.

    Attributes:
        probabilities: Probabilities of each phone on queries, float32 (phones, queries, labels) in
            [0, 1].
        validation, queries, test: Features and truth, on a public scale.
    """

    probabilities: NDArray[np.float32]
    validation: Part
    queries: Part
    test: Part


def crowd(
    material: Material,
    phones: int,
    ridge: float = RIDGE,
    progress: Progress = silent,
) -> PhoneOutputs:
    """Train every phone on its share of the pool, and compute their outputs.

    Args:
        material: Material whose validation mixtures are public and give features their scale.
        phones: Number of phones, all with equally many mixtures.
        ridge: Ridge; see `RIDGE`.
        progress: Callback that receives the number of trained phones.

    Raises:
        InvalidParametersError: A phone would have fewer than two mixtures.
    """
    checks.whole("phones", phones)
    checks.positive("ridge", ridge)
    each = len(material.pool) // phones
    if each < 2:
        raise InvalidParametersError(
            f"phones={phones}: {len(material.pool):,} mixtures are fewer than two for each; there "
            f"can be at most {len(material.pool) // 2}"
        )
    scale = FeatureScale.of(material.validation.power())
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
        progress("phones learn", last, phones)
    return PhoneOutputs(said, validation, queries, test)


def ballots(probabilities: NDArray[np.floating], most: int) -> NDArray[np.int8]:
    """Cast a whole vote for each of a phone's likeliest labels; ties go to the first labels.

    Args:
        probabilities: Probabilities, (phones, queries, labels).
        most: Votes of each phone and query (v).

    Raises:
        InvalidParametersError: There are more votes than labels.
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
    """Return each phone's probability of each label, by ridge regressions on 0 and 1, clipped.

    ŷ = ȳ + QXᵀ(XXᵀ + ridge · I)⁻¹(Y − ȳ) with features X and queries Q centred at the phone's mean.
    A label of none of a phone's mixtures has probability 0.

    Args:
        features: Features of each phone's mixtures, (phones, mixtures, features).
        truth: Labels of the mixtures, 0 or 1 or a share, (phones, mixtures, labels).
        asked: Features of the queries, (rows, features).
        ridge: Ridge; see `RIDGE`.

    Returns:
        Probabilities (phones, rows, labels), from 0 to 1.
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
