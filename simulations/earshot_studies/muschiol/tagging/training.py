"""Training of taggers, one after another with a shared graph.

Building a network takes longer than training it on 150 clips, so a `Workshop` builds it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_studies.muschiol.tagging import losses, metrics, mixup, networks
from earshot_studies.muschiol.tagging.balanced_batches import Balanced, Cycle
from earshot_studies.muschiol.tagging.examples import Examples
from earshot_studies.muschiol.tagging.mel_power import FLOOR
from earshot_studies.muschiol.tagging.mixup import ClipPairs, Mixup

Weights = tuple[NDArray[np.float32], ...]

_AT_ONCE = 500
"""Clips in one step of prediction."""


@dataclass(frozen=True)
class Training:
    """Settings by which taggers are trained: 150 clips of a second take about 3 s on one core.

    Attributes:
        steps: Largest number of batches.
        batch: Examples in a batch.
        rate: Learning rate of Adam.
        every: Steps between two validations.
        patience: Validations without a better mAP after which training ends.
        mixup: Settings of the mixture of clips; None for no mixture.
        balanced: Let labels take turns in batches.
        weighted: Use the weights of Definition 13 in the loss.
        adaptive: Let examples of badly learned labels count for more.
    """

    steps: int = 240
    batch: int = 32
    rate: float = 3e-3
    every: int = 30
    patience: int = 3
    mixup: Mixup | None = field(default_factory=Mixup)
    balanced: bool = True
    weighted: bool = False
    adaptive: bool = False

    def __post_init__(self) -> None:
        checks.whole("steps", self.steps)
        checks.whole("batch", self.batch, 2)
        checks.positive("rate", self.rate)
        checks.whole("every", self.every)
        checks.whole("patience", self.patience)


@dataclass(frozen=True)
class Tagger:
    """A trained network: weights, and the workshop that can run them.

    Attributes:
        labels: Names of the labels, in the order of the outputs.
        weights: Weights of the network, in Keras's order.
        history: Step and mAP of each validation; empty without validation.
        workshop: Workshop that runs the network.
    """

    labels: tuple[str, ...]
    weights: Weights = field(repr=False)
    history: tuple[tuple[int, float], ...]
    workshop: Workshop = field(repr=False, compare=False)

    def probabilities(self, power: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the probability of each label in each clip, float32 (clips, labels).

        Args:
            power: Mel power, (clips, frames, bands).

        Raises:
            InvalidInputError: The shape is wrong, or numbers are not powers.
        """
        return self.workshop.probabilities(self.weights, power)


class Workshop:
    """Trainer of taggers of one shape, one after another.

    Args:
        shape: Frames and bands of a clip.
        labels: Names of the labels.
        settings: Settings of training.

    Attributes:
        shape, labels, settings: Values as given.
        model: Network, with the weights that were used last.

    Raises:
        InvalidParametersError: The spectrum is too small for the network.
    """

    def __init__(self, shape: tuple[int, int], labels: Sequence[str], settings: Training) -> None:
        self.shape = shape
        self.labels = tuple(labels)
        self.settings = settings
        self.model = networks.build(shape, len(self.labels))
        clips, batches = tf.TensorSpec((None, *shape), tf.float32), (None, None)
        self._train = tf.function(
            self._steps,
            input_signature=[
                clips,
                tf.TensorSpec((None, len(self.labels)), tf.float32),
                tf.TensorSpec((len(self.labels),), tf.float32),
                *(tf.TensorSpec(batches, kind) for kind in (tf.int64, tf.int64)),
                *(tf.TensorSpec(batches, kind) for kind in (tf.float32, tf.float32)),
            ],
        )
        self._predict = tf.function(
            lambda power: tf.sigmoid(self.model(_log(power), training=False)),
            input_signature=[clips],
        )

    def fit(self, examples: Examples, validation: Examples | None = None, seed: int = 0) -> Tagger:
        """Train a tagger from new random weights.

        The weights with the best mAP on validation are kept; without validation, the last. With
        validation, outputs that are no longer finite end the training with the best weights so far,
        so that one teacher's clips do not stop the whole ensemble.

        Args:
            examples: Training examples; labels that none of them has are learned as absent.
            validation: Clips for early stopping, never for reported scores, with targets 0 or 1.
            seed: Seed of weights, order, mixup and dropout.

        Raises:
            InvalidInputError: The shape is wrong or, without validation, the loss is not finite.
        """
        examples.check(self.shape, len(self.labels))
        if validation is not None:
            validation.check(self.shape, len(self.labels))
        settings, generator = self.settings, np.random.default_rng([seed, 0x7A66])
        pairs = mixup.alone(len(examples))
        if settings.mixup is not None:
            pairs = mixup.doubled(len(examples), generator)
        present = pairs.present(examples.targets)
        order: Cycle | Balanced = Cycle(np.arange(len(pairs)), generator)
        if settings.balanced:
            order = Balanced(present, generator)
        weights = np.ones(len(self.labels), np.float32)
        if settings.weighted:
            weights = losses.positive_weights(examples.targets)
        by_example = np.ones(len(pairs), np.float32)
        self._start(seed)
        data = tf.constant(examples.power), tf.constant(examples.targets), tf.constant(weights)
        history: list[tuple[int, float]] = []
        best, kept = -1.0, self._weights()
        for start in range(0, settings.steps, settings.every):
            steps = min(settings.every, settings.steps - start)
            chosen = order.draw(steps * settings.batch)
            shares = self._shares(len(chosen), generator)
            loss = float(
                self._train(*data, *_cut(pairs, chosen, shares, by_example, settings.batch))
            )
            if validation is None:
                if not np.isfinite(loss):
                    raise InvalidInputError(f"the loss is {loss}: train at a lower rate")
                continue
            likely = self._run(validation.power)
            if not np.isfinite(likely).all():
                break
            precisions = metrics.average_precisions(validation.targets.astype(np.int8), likely)
            score = float(np.nanmean(precisions))
            history.append((start + steps, score))
            if score > best:
                best, kept = score, self._weights()
            since = len(history) - 1 - int(np.argmax([each for _, each in history]))
            if since >= settings.patience:
                break
            if settings.adaptive:
                by_example = losses.example_weights(present, precisions)
        if validation is None:
            kept = self._weights()
        return Tagger(self.labels, kept, tuple(history), self)

    def probabilities(self, weights: Weights, power: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return a tagger's probabilities for clips; see `Tagger.probabilities`."""
        self.restore(weights)
        clips = Examples.of_power(power)
        clips.check(self.shape, 0)
        return self._run(clips.power)

    def restore(self, weights: Sequence[NDArray[np.floating]]) -> None:
        """Put weights into the network.

        Raises:
            InvalidInputError: The weights belong to another network.
        """
        variables = self.model.weights
        if [array.shape for array in weights] != [tuple(each.shape) for each in variables]:
            raise InvalidInputError("weights of another network, or of other labels")
        for variable, array in zip(variables, weights, strict=True):
            variable.assign(array)

    @cached_property
    def _optimizer(self) -> Any:
        """Optimizer, built on first use: it takes twice the memory of the network."""
        optimizer = keras.optimizers.Adam(self.settings.rate)
        optimizer.build(self.model.trainable_variables)
        return optimizer

    def _weights(self) -> Weights:
        return tuple(variable.numpy() for variable in self.model.weights)

    def _run(self, power: NDArray[np.float32]) -> NDArray[np.float32]:
        parts = [
            self._predict(tf.constant(power[start : start + _AT_ONCE])).numpy()
            for start in range(0, len(power), _AT_ONCE)
        ]
        return np.concatenate([np.zeros((0, len(self.labels)), np.float32), *parts])

    def _start(self, seed: int) -> None:
        """Draw new random weights, and reset the optimizer."""
        drawn = np.random.default_rng([seed, 0x57A7])
        for layer in self.model.layers:
            for variable in layer.weights:
                if variable.path.endswith("kernel"):
                    kind = layer.kernel_initializer
                    own = {**kind.get_config(), "seed": int(drawn.integers(2**31))}
                    variable.assign(type(kind).from_config(own)(variable.shape))
                else:
                    one = variable.path.endswith(("gamma", "moving_variance"))
                    variable.assign(np.full(variable.shape, float(one), np.float32))
            if isinstance(layer, keras.layers.Dropout):
                layer.seed_generator.state.assign([int(drawn.integers(2**31)), 0])
        for variable in self._optimizer.variables:
            if "learning_rate" not in variable.path:
                variable.assign(tf.zeros_like(variable))

    def _shares(self, count: int, generator: np.random.Generator) -> NDArray[np.float32]:
        if self.settings.mixup is None:
            return np.ones(count, np.float32)
        return self.settings.mixup.shares(count, generator)

    def _steps(
        self, power: Any, targets: Any, weights: Any, first: Any, second: Any, shares: Any, own: Any
    ) -> Any:
        """Train for one step per row of `first` to `own`, and return the last loss."""
        variables, loss = self.model.trainable_variables, tf.constant(0.0)
        for step in tf.range(tf.shape(first)[0]):
            share = shares[step]
            heard = self._mixed(power, first[step], second[step], share)
            wanted = _between(
                tf.gather(targets, first[step]), tf.gather(targets, second[step]), share[:, None]
            )
            with tf.GradientTape() as tape:
                logits = self.model(heard, training=True)
                each = losses.binary_cross_entropy(wanted, logits, weights)
                loss = tf.reduce_mean(own[step] * each)
            gradients = tape.gradient(loss, variables)
            self._optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def _mixed(self, power: Any, first: Any, second: Any, share: Any) -> Any:
        """Return log-mel of clips whose power is mixed with that of others."""
        one, other, part = tf.gather(power, first), tf.gather(power, second), share[:, None, None]
        if self.settings.mixup is None:
            return _log(one)
        return _log(_between(one, other, part))


def _log(power: Any) -> Any:
    return tf.math.log(power + FLOOR)


def _between(one: Any, other: Any, share: Any) -> Any:
    return share * one + (1 - share) * other


def _cut(
    pairs: ClipPairs,
    chosen: NDArray[np.int64],
    shares: NDArray[np.float32],
    weights: NDArray[np.float32],
    batch: int,
) -> tuple[Any, ...]:
    """Return the graph's inputs, step by step: tensors (steps, batch)."""
    columns = (pairs.first[chosen], pairs.second[chosen], shares, weights[chosen])
    return tuple(tf.constant(column.reshape(-1, batch)) for column in columns)
