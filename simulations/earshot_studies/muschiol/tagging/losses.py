"""Weights of the loss, for rare labels and for badly learned ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def positive_weights(targets: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the p of Definition 13 of Muschiol (2021), float32 (labels,), each from ½ to 1.

    p is the sigmoid of negatives over positives; the ratio itself is unbounded, above 10,000 for
    some labels of AudioSet. A label without positives has weight 1, which has no effect.

    Args:
        targets: Targets, (clips, labels); a clip has a label if its target is above 0.
    """
    there = (np.asarray(targets) > 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (len(targets) - there) / there
    weights = 1 / (1 + np.exp(-np.where(there > 0, ratio, np.inf)))
    return np.asarray(weights, dtype=np.float32)


def example_weights(
    present: NDArray[np.bool_], precisions: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return adaptive weights (section 5.1.3): examples of badly learned labels count for more.

    Muschiol gives no formula, and found no gain. Here an example's weight is the mean of 1 − AP
    over its labels, with AP their average precision on validation, scaled to a mean of 1 over all
    examples.

    Args:
        present: Labels of each example, bool (examples, labels).
        precisions: Average precision of each label on validation, (labels,); NaN where it has none.

    Returns:
        float32 (examples,).
    """
    known = np.isfinite(precisions)
    lack = np.where(known, 1 - np.where(known, precisions, 0), np.nan)
    lack = np.where(known, lack, lack[known].mean() if known.any() else 1.0)
    there = np.asarray(present, dtype=np.float64)
    numbers = there.sum(axis=1)
    weights = np.where(numbers > 0, there @ lack / np.maximum(numbers, 1), lack.mean())
    mean = weights.mean()
    return np.asarray(weights / mean if mean > 0 else np.ones_like(weights), dtype=np.float32)


def binary_cross_entropy(targets: Any, logits: Any, weights: Any) -> Any:
    """Return Definition 13 of each example, −mean over labels of p·t·log y + (1 − t)·log(1 − y).

    Args:
        targets: Targets t, tensor (examples, labels) in [0, 1].
        logits: Logits of y, of the same shape.
        weights: Weights p, (labels,).

    Returns:
        Tensor (examples,).
    """
    import tensorflow as tf

    each = tf.nn.weighted_cross_entropy_with_logits(targets, logits, weights)
    return tf.reduce_mean(each, axis=1)
