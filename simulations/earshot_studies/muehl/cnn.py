"""A small convolutional network for digits, trained hundreds of times.

All trainings share one graph: building a network takes longer than training it on 240 images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from numpy.typing import NDArray

from earshot_models.teachers.teacher import named
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

Images = NDArray[np.float32]
Weights = tuple[NDArray[np.float32], ...]

_AT_ONCE = 1000
"""Images in one step of prediction."""


@dataclass(frozen=True)
class CnnSettings:
    """Settings of training; by default those of Table 6.1 and section 6.1.1 of Mühl (2021).

    Attributes:
        epochs: Passes over all examples, not stated by Mühl (2021). On held-out images of the
            private part 20 are far worse than 30, and more gain little for their time.
        part: Batch size as a share of the examples.
        least, most: Least and greatest number of examples in a batch.
        degrees: Largest angle by which an image is turned, either way, in degrees.
        shift: Largest distance by which an image is moved, as a share of its height and width.
        rate: Learning rate of Adam.
    """

    epochs: int = 30
    part: float = 0.1
    least: int = 16
    most: int = 64
    degrees: float = 7.5
    shift: float = 0.07
    rate: float = 1e-3

    def __post_init__(self) -> None:
        checks.whole("epochs", self.epochs)
        checks.share("part", self.part)
        checks.whole("most", self.most, checks.whole("least", self.least))
        checks.between("degrees", self.degrees, 0, 180)
        checks.fraction("shift", self.shift)
        checks.positive("rate", self.rate)

    def batch(self, examples: int) -> int:
        """Return the batch size for a number of examples."""
        return min(examples, max(self.least, min(self.most, round(self.part * examples))))


def build(shape: tuple[int, int, int], classes: int) -> keras.Model:
    """Build the untrained network of Table 6.1: images (batch, *shape) → logits.

    The logits are (batch, classes).
    """
    return keras.Sequential(
        [
            keras.Input(shape),
            layers.Conv2D(32, 3, activation="relu", kernel_initializer="he_uniform"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(100, activation="relu", kernel_initializer="he_uniform"),
            layers.BatchNormalization(),
            layers.Dense(classes),
        ]
    )


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network: weights, and the workshop that can run them.

    Attributes:
        classes: Names of the classes, in the order of the outputs.
        weights: Weights of all its variables, in the model's order.
        workshop: Workshop that runs the network.
    """

    classes: tuple[str, ...]
    weights: Weights
    workshop: NetworkWorkshop = field(repr=False, compare=False)

    def predict(self, samples: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the most likely class of each image, (samples,); see `teacher.named`."""
        return named(self.workshop.logits(self.weights, samples))


class NetworkWorkshop:
    """Trainer of networks of one shape, one after another.

    Args:
        shape: Height, width and channels of an image.
        classes: Names of the classes.
        settings: Settings of training.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: Sequence[str],
        settings: CnnSettings | None = None,
    ) -> None:
        self.classes = tuple(classes)
        self.settings = settings or CnnSettings()
        self.model = build(shape, len(self.classes))
        self._optimizer = keras.optimizers.Adam(self.settings.rate)
        self._optimizer.build(self.model.trainable_variables)
        self._train = tf.function(self._steps, reduce_retracing=True)
        self._predict = tf.function(lambda images: self.model(images, training=False))

    def fit(
        self, samples: NDArray[np.floating], labels: NDArray[np.integer], seed: int = 0
    ) -> TrainedNetwork:
        """Train a network from new random weights.

        Args:
            samples: Images, (samples, height, width, channels) in [0, 1].
            labels: Class of each sample, (samples,), as an index into `classes`.
            seed: Seed of weights, order and augmentation.

        Raises:
            InvalidInputError: The shape is wrong, a label is not a class, or there are fewer
                than two samples.
        """
        images = self._images(samples)
        answers = np.asarray(labels, dtype=np.int64)
        if answers.shape != images.shape[:1] or len(images) < 2:
            raise InvalidInputError(
                f"{len(images)} images with labels of shape {answers.shape}: at least two images "
                "and a label for each are needed"
            )
        if not 0 <= answers.min() <= answers.max() < len(self.classes):
            raise InvalidInputError(f"labels must be from 0 to {len(self.classes) - 1}")
        self._start(seed)
        batch = self.settings.batch(len(images))
        steps = self.settings.epochs * (len(images) // batch)
        self._train(
            tf.constant(images), tf.constant(answers), tf.constant(batch), tf.constant(steps),
            tf.constant([seed & 0x7FFFFFFF, 0x7EAC], tf.int32),
        )  # fmt: skip
        weights = tuple(variable.numpy() for variable in self.model.variables)
        return TrainedNetwork(self.classes, weights, self)

    def logits(self, weights: Weights, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return a network's logits for images, (samples, classes)."""
        self.restore(weights)
        images = self._images(samples)
        parts = [
            self._predict(tf.constant(images[start : start + _AT_ONCE])).numpy()
            for start in range(0, len(images), _AT_ONCE)
        ]
        return np.concatenate([np.zeros((0, len(self.classes)), np.float32), *parts])

    def restore(self, weights: Sequence[NDArray[np.floating]]) -> None:
        """Put weights into the model.

        Raises:
            InvalidInputError: The weights belong to another architecture.
        """
        variables = self.model.variables
        if [array.shape for array in weights] != [tuple(each.shape) for each in variables]:
            raise InvalidInputError("weights of another architecture, or of other classes")
        for variable, array in zip(variables, weights, strict=True):
            variable.assign(array)

    def _images(self, samples: NDArray[np.floating]) -> Images:
        images = np.asarray(samples, dtype=np.float32)
        if images.shape[1:] != self.model.input_shape[1:]:
            raise InvalidInputError(
                f"images of shape {images.shape[1:]}: must be {self.model.input_shape[1:]}"
            )
        return images

    def _start(self, seed: int) -> None:
        """Draw new random weights, and reset the optimizer."""
        seeds = keras.random.SeedGenerator(seed & 0x7FFFFFFF)
        for layer in self.model.layers:
            for variable in layer.variables:
                if variable.path.endswith("kernel"):
                    variable.assign(_limits(layer, variable, seeds))
                else:
                    one = variable.path.endswith(("gamma", "moving_variance"))
                    variable.assign(np.full(variable.shape, float(one), np.float32))
        for variable in self._optimizer.variables:
            if "learning_rate" not in variable.path:
                variable.assign(tf.zeros_like(variable))

    def _steps(self, images: Any, labels: Any, batch: Any, steps: Any, seed: Any) -> None:
        """Train for some steps."""
        variables = self.model.trainable_variables
        in_epoch = tf.shape(images)[0] // batch
        order = tf.range(tf.shape(images)[0])
        for step in tf.range(steps):
            here = seed + tf.stack([0, step])
            if step % in_epoch == 0:
                order = tf.argsort(tf.random.stateless_uniform(tf.shape(labels), here))
            start = (step % in_epoch) * batch
            chosen = order[start : start + batch]
            seen = self._augmented(tf.gather(images, chosen), here)
            with tf.GradientTape() as tape:
                loss = self._loss(seen, tf.gather(labels, chosen))
            gradients = tape.gradient(loss, variables)
            self._optimizer.apply_gradients(zip(gradients, variables, strict=True))

    def _loss(self, images: Any, labels: Any) -> Any:
        """Return the loss of augmented images."""
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self._forward(images))
        return tf.reduce_mean(losses)

    def _forward(self, images: Any) -> Any:
        """Return the output in training, with TensorFlow's fused normalization of images."""
        signal = images
        for layer in self.model.layers:
            if not isinstance(layer, layers.BatchNormalization):
                signal = layer(signal)
                continue
            if len(signal.shape) == 4:
                signal, mean, variance = tf.compat.v1.nn.fused_batch_norm(
                    signal, layer.gamma, layer.beta, epsilon=layer.epsilon, is_training=True
                )
            else:
                mean, variance = tf.nn.moments(signal, axes=[0])
                signal = tf.nn.batch_normalization(
                    signal, mean, variance, layer.beta, layer.gamma, layer.epsilon
                )
            for moving, now in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
                moving.assign(moving * layer.momentum + now * (1 - layer.momentum))
        return signal

    def _augmented(self, images: Any, seed: Any) -> Any:
        """Rotate images about their centre and shift them, at random, filling edges with 0."""
        _, height, width, _ = self.model.input_shape
        number = tf.shape(images)[0]
        draws = tf.random.stateless_uniform([3, number], seed + tf.constant([7, 0]), -1.0, 1.0)
        angle = draws[0] * (self.settings.degrees * np.pi / 180)
        down, right = (
            draws[1] * self.settings.shift * height,
            draws[2] * self.settings.shift * width,
        )
        cosine, sine, none = tf.cos(angle), tf.sin(angle), tf.zeros_like(angle)
        x, y = (width - 1) / 2, (height - 1) / 2
        transforms = [
            cosine, -sine, x - x * cosine + y * sine - right,
            sine, cosine, y - x * sine - y * cosine - down,
            none, none,
        ]  # fmt: skip
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=images, transforms=tf.stack(transforms, axis=1), output_shape=[height, width],
            interpolation="BILINEAR", fill_mode="CONSTANT", fill_value=0.0,
        )  # fmt: skip


def _limits(layer: Any, variable: Any, seeds: Any) -> Any:
    """Return new random values of a kernel, by its layer's initializer."""
    fresh = type(layer.kernel_initializer).from_config(
        {**layer.kernel_initializer.get_config(), "seed": int(seeds.next()[0]) & 0x7FFFFFFF}
    )
    return fresh(variable.shape)
