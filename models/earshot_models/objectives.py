"""Contrastive objectives behind one interface.

Each takes the embeddings of two views of the same sounds, or of a view and a teacher's output for
it, and the recording that each pair was cut from. Another pair of the same recording is neither
positive nor negative: similar sounds are not pushed apart. No label is used.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from earshot_protocol.checks import between, fraction, positive, whole
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.overriding import override

_NEVER = -1e9
"""Logit of an entry that is not a candidate."""

_MOMENTUM = 0.9


class Objective(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """An objective on projected embeddings: how well pairs are discriminated from the rest."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = positive("temperature", temperature, 10)

    @abstractmethod
    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """Return the mean loss of a batch, a scalar.

        Args:
            first: Embeddings of the first views, unit rows, float (batch, 128).
            second: Embeddings of the second views; by the momentum encoder for `MomentumContrast`,
                by the teacher for `Distillation`.
            recordings: Recording of each pair, integers (batch,).
        """


class NTXent(Objective):
    """Normalized temperature-scaled cross entropy over all other views of the batch.

    Chang et al., Neural Audio Fingerprint for High-Specific Audio Retrieval Based on Contrastive
    Learning (2021), section 2.2, after Chen et al. (SimCLR, 2020).
    """

    def __init__(self, temperature: float = 0.1, hidden: int = 256) -> None:
        super().__init__(temperature)
        self._head = _head(hidden)

    @override
    def build(self, shape: Any) -> None:
        self._head.build((None, shape[-1]))

    @override
    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        views = self._head(ops.concatenate([first, second]), training=True)
        views = ops.normalize(views, axis=1)
        logits = ops.matmul(views, ops.transpose(views)) / self.temperature
        partner = ops.roll(ops.eye(ops.shape(views)[0]), ops.shape(first)[0], axis=1)
        return _cross_entropy(logits, partner > 0.5, ops.concatenate([recordings, recordings]))


class MomentumContrast(Objective):
    """Cross entropy over a queue of earlier keys, made by an encoder that follows slowly.

    Yu et al., Contrastive unsupervised learning for audio fingerprinting (2020), after He et al.
    (MoCo, 2020), algorithm 1. The queue remembers the recording of each key.

    Keys are normalized by the statistics of their batch, as in the paper: with moving averages, an
    untrained encoder maps all of them to nearly one point. He et al. (section 3.3) shuffle batches
    between devices, so that those statistics do not reveal the positive. Here, on one device, the
    batch's own keys are in the queue instead, with the same statistics.
    """

    def __init__(
        self, temperature: float = 0.1, hidden: int = 256, queue: int = 4096, momentum: float = 0.99
    ) -> None:
        """Choose the size of the queue and the momentum of the key encoder.

        Raises:
            InvalidParametersError: The `queue` is below 2, or the `momentum` is not 0 to less than
                1.
        """
        super().__init__(temperature)
        self.momentum = fraction("momentum", momentum)
        self._size = whole("queue", queue, 2)
        self._head = _head(hidden)
        self._key_head = _head(hidden)

    @override
    def build(self, shape: Any) -> None:
        for head in (self._head, self._key_head):
            head.build((None, shape[-1]))
        self._key_head.set_weights(self._head.get_weights())
        freeze(self._key_head)
        self._keys = self.add_weight(
            shape=(self._size, DIMENSIONS), initializer="zeros", trainable=False, name="keys"
        )
        none = keras.initializers.Constant(-1)
        self._of = self.add_weight(
            (self._size,), none, dtype="int32", trainable=False, name="recordings"
        )

    def follow(self) -> None:
        """Move the key head a step towards the head."""
        follow(self._head, self._key_head, self.momentum)

    @override
    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        queries = ops.normalize(self._head(first, training=True), axis=1)
        keys = ops.stop_gradient(ops.normalize(self._key_head(second, training=True), axis=1))
        own = ops.sum(queries * keys, axis=1, keepdims=True)
        recordings = ops.cast(recordings, "int32")
        # The newest come first; the oldest fall out.
        self._keys.assign(ops.concatenate([keys, self._keys])[: self._size])
        self._of.assign(ops.concatenate([recordings, self._of])[: self._size])
        # A copy, because PyTorch differentiates through it after the queue was changed.
        others = ops.matmul(queries, ops.transpose(ops.copy(self._keys)))
        of = ops.expand_dims(self._of, 0)
        out = ops.logical_or(_same(recordings, self._of), of < 0)
        logits = ops.concatenate([own, ops.where(out, _NEVER, others)], axis=1)
        return -ops.mean(ops.log_softmax(logits / self.temperature, axis=1)[:, 0])


class Bilinear(Objective):
    """Cross entropy over the batch, with a learned bilinear similarity.

    COLA: Saeed, Grangier, Zeghidour, Contrastive Learning of General-Purpose Audio Representations
    (2021), equations 1 and 2; the head is a layer normalization and tanh, as in section 3.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__(temperature)
        self._dense = layers.Dense(DIMENSIONS)
        self._normalize = layers.LayerNormalization()

    @override
    def build(self, shape: Any) -> None:
        self._dense.build((None, shape[-1]))
        self._normalize.build((None, DIMENSIONS))
        self._similarity = self.add_weight(
            shape=(DIMENSIONS, DIMENSIONS), initializer="glorot_uniform", name="w"
        )

    @override
    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        anchors, others = (ops.tanh(self._normalize(self._dense(view))) for view in (first, second))
        logits = ops.matmul(ops.matmul(anchors, self._similarity), ops.transpose(others))
        partner = ops.cast(ops.eye(ops.shape(logits)[0]), "bool")
        return _cross_entropy(logits / self.temperature, partner, recordings)


class Distillation(Objective):
    """Cosine distance to the teacher's output, and contrast with all outputs of the batch.

    After Tian, Krishnan and Isola, Contrastive Representation Distillation (ICLR 2020), with the
    batch instead of their memory. Another lesson of the same recording is a negative too: its sound
    was changed or mixed, and the teacher's output differs.

    A network may have 128 numbers more than the teacher's output: these learn, by `NTXent`, to
    find the other second of the same sounds. A teacher of kinds of sound does not tell places.
    """

    def __init__(
        self, temperature: float = 0.1, contrast: float = 0.3, places: float = 0.0
    ) -> None:
        """Weigh the contrast against the distance.

        Args:
            temperature: Temperature of the contrast.
            contrast: Weight of the contrast beside twice the cosine distance.
            places: Weight of the loss of the last 128 numbers; 0 where all are the teacher's.

        Raises:
            InvalidParametersError: A parameter is out of range.
        """
        super().__init__(temperature)
        self._contrast = between("contrast", contrast, 0)
        self._weight = between("places", places, 0)
        self._places = NTXent() if places else None

    @override
    def build(self, shape: Any) -> None:
        if self._places is not None:
            self._places.build((None, DIMENSIONS))

    @override
    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """Return the mean loss of a batch.

        Args:
            first: Embeddings of the lessons and, behind them, of other seconds of the first ones.
            second: The teacher's output, a row for each lesson.
            recordings: Recording of each lesson.
        """
        if self._places is None:
            return self._taught(first, second)
        lessons = ops.shape(second)[0]
        taught = ops.normalize(first[:lessons, :-DIMENSIONS], axis=1)
        places = ops.normalize(first[:, -DIMENSIONS:], axis=1)
        pairs = ops.shape(first)[0] - lessons
        found = self._places.loss(places[:pairs], places[lessons:], recordings[:pairs])
        return self._taught(taught, second) + self._weight * found

    def _taught(self, first: Any, second: Any) -> Any:
        cosines = ops.matmul(first, ops.transpose(second))
        log_odds = ops.log_softmax(cosines / self.temperature, axis=1)
        distance = 1 - ops.mean(ops.sum(first * second, axis=1))
        return 2 * distance - self._contrast * ops.mean(ops.diagonal(log_odds))


OBJECTIVES: dict[str, Callable[[], Objective]] = {
    "nt-xent": NTXent,
    "momentum": MomentumContrast,
    "bilinear": Bilinear,
    "distillation": Distillation,
}
"""Objectives by their names on the command line."""


def follow(source: keras.Model, copy: keras.Model, momentum: float) -> None:
    """Set copy ← momentum · copy + (1 - momentum) · source: weights and normalization averages.

    Integer state, such as a dropout's seed, remains the copy's own.
    """
    for ours, its in zip(source.variables, copy.variables, strict=True):
        if "float" in str(its.dtype):
            its.assign(momentum * its + (1 - momentum) * ours)


def freeze(model: keras.Model) -> None:
    """Exclude a model's weights from training, but keep it in training mode.

    (`trainable = False` would make batch normalization use its averages.)
    """
    for variable in model.variables:
        variable.trainable = False


def _head(hidden: int) -> keras.Sequential:
    return keras.Sequential(
        [
            layers.Dense(hidden, use_bias=False),
            layers.BatchNormalization(momentum=_MOMENTUM),
            layers.ReLU(),
            layers.Dense(DIMENSIONS),
        ]
    )


def _same(rows: Any, columns: Any) -> Any:
    return ops.equal(ops.expand_dims(rows, 1), ops.expand_dims(columns, 0))


def _cross_entropy(logits: Any, partner: Any, recordings: Any) -> Any:
    """Return the mean cross entropy of each row's partner against rows of other recordings."""
    out = ops.logical_and(_same(recordings, recordings), ops.logical_not(partner))
    log_odds = ops.log_softmax(ops.where(out, _NEVER, logits), axis=1)
    return -ops.mean(ops.sum(ops.where(partner, log_odds, 0.0), axis=1))
