"""A student that learns from unanswered images: virtual adversarial training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from earshot_models.teachers.cnn import Settings, Workshop
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError


class AdversarialWorkshop(Workshop):
    """A workshop whose networks give an unanswered image and images close to it the same answer.

    Virtual adversarial training (Miyato, Maeda, Koyama and Ishii 2018) adds to the loss the
    divergence between the network's output for an image and its output for the image moved by
    `radius` in the direction that changes it most, found by one step of the power method.

    Args:
        shape: Height, width and channels of an image.
        classes: Names of the classes.
        unanswered: Images without an answer, (images, *shape).
        settings: Settings of training.
        radius: Distance by which an image is moved, in Euclidean length; an image's length is in
            the tens.
        share: Weight of the added loss.

    Raises:
        InvalidInputError: if there are no images, or they have another shape.
        InvalidParametersError: if the radius or the weight is not positive.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: Sequence[str],
        unanswered: NDArray[np.floating],
        settings: Settings | None = None,
        radius: float = 2.0,
        share: float = 1.0,
    ) -> None:
        self._radius = checks.positive("radius", radius)
        self._share = checks.positive("share", share)
        super().__init__(shape, classes, settings)
        if not len(unanswered):
            raise InvalidInputError("unanswered: must be at least one image")
        self._unanswered = tf.constant(self._images(unanswered))

    def _loss(self, images: Any, labels: Any, seed: Any) -> Any:
        number = tf.shape(images)[0]
        chosen = tf.random.stateless_uniform(
            [number], seed + tf.constant([11, 0]), 0, len(self._unanswered), tf.int32
        )
        pool = self._augmented(tf.gather(self._unanswered, chosen), seed + tf.constant([13, 0]))
        usual = super()._loss(images, labels, seed)

        def network(rows: Any) -> Any:
            return self._forward(rows, moves=False)

        return usual + self._share * adversarial_divergence(network, pool, self._radius, seed)


def adversarial_divergence(network: Any, images: Any, radius: float, seed: Any) -> Any:
    """Return the change of a network's output in the worst direction, on average over images.

    Args:
        network: Function from images to logits.
        images: Images, (images, …).
        radius: Distance by which each image is moved.
        seed: Two whole numbers, seed of the direction from which the worst is searched for.

    Returns:
        The mean divergence, a scalar tensor; gradients do not flow through the direction, nor
        through the network's output for the unmoved images.
    """
    here = tf.stop_gradient(network(images))
    direction = _unit(tf.random.stateless_normal(tf.shape(images), seed))
    with tf.GradientTape() as tape:
        tape.watch(direction)
        change = _divergence(here, network(images + _NEAR * direction))
    worst = tf.stop_gradient(_unit(tape.gradient(change, direction)))
    return _divergence(here, network(images + radius * worst))


_NEAR = 0.1
"""Distance at which to find the direction in which the divergence grows most."""


def _divergence(first: Any, second: Any) -> Any:
    logs = tf.nn.log_softmax(first)
    each = tf.reduce_sum(tf.exp(logs) * (logs - tf.nn.log_softmax(second)), axis=-1)
    return tf.reduce_mean(each)


def _unit(rows: Any) -> Any:
    axes = list(range(1, len(rows.shape)))
    return rows / (tf.sqrt(tf.reduce_sum(rows**2, axis=axes, keepdims=True)) + 1e-12)
