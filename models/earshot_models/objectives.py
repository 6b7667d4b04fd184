"""Contrastive objectives behind one interface.

Each is given the embeddings of two views of the same sounds, or of a view and what a teacher says
of it, and which recording each pair was cut from. Another pair of the same recording is neither
positive nor negative: it may be another variant, and what may sound alike is not pushed apart. No
label enters.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import keras
from keras import layers, ops

from earshot_protocol.checks import between, fraction, positive, whole
from earshot_protocol.encoder_file import DIMENSIONS

_NEVER = -1e9
"""Logit of what is no candidate."""

_MOMENTUM = 0.9


class Objective(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Projects embeddings and says how well the pairs are told from all else."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = positive("temperature", temperature, 10)

    @abstractmethod
    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """The mean loss of a batch.

        Args:
            first: embeddings of the first views, float (batch, 128), unit rows.
            second: of the second views; for `MomentumContrast` of the momentum encoder.
            recordings: integers (batch,).

        Returns:
            A scalar.
        """


class NTXent(Objective):
    """Normalized temperature-scaled cross entropy over all other views of the batch.

    Chang et al., Neural Audio Fingerprint for High-Specific Audio Retrieval Based on Contrastive
    Learning (2021), section 2.2, after Chen et al. (SimCLR, 2020).
    """

    def __init__(self, temperature: float = 0.1, hidden: int = 256) -> None:
        super().__init__(temperature)
        self._head = _head(hidden)

    def build(self, shape: Any) -> None:
        """Make the head's weights."""
        self._head.build((None, shape[-1]))

    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """See `Objective.loss`."""
        views = self._head(ops.concatenate([first, second]), training=True)
        views = ops.normalize(views, axis=1)
        logits = ops.matmul(views, ops.transpose(views)) / self.temperature
        partner = ops.roll(ops.eye(ops.shape(views)[0]), ops.shape(first)[0], axis=1)
        return _cross_entropy(logits, partner > 0.5, ops.concatenate([recordings, recordings]))


class MomentumContrast(Objective):
    """Cross entropy over a queue of earlier keys, which a slowly following encoder made.

    Yu et al., Contrastive unsupervised learning for audio fingerprinting (2020), after He et al.
    (MoCo, 2020), algorithm 1. The queue remembers which recording each key is of.

    Keys are normalized by the statistics of their batch, as there: by averages, a young encoder
    makes all of them alike. He et al. (section 3.3) shuffle batches between devices, so that those
    statistics do not give the positive away. Here is one device; instead the batch's own keys stand
    in the queue already, and have the same statistics, and the same age.
    """

    def __init__(
        self, temperature: float = 0.1, hidden: int = 256, queue: int = 4096, momentum: float = 0.99
    ) -> None:
        """Choose the size of the queue and the momentum of the key encoder.

        Raises:
            InvalidParametersError: if `queue` is below 2, or `momentum` not 0 to below 1.
        """
        super().__init__(temperature)
        self.momentum = fraction("momentum", momentum)
        self._size = whole("queue", queue, 2)
        self._head = _head(hidden)
        self._key_head = _head(hidden)

    def build(self, shape: Any) -> None:
        """Make the heads' weights and an empty queue."""
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

    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """See `Objective.loss`."""
        queries = ops.normalize(self._head(first, training=True), axis=1)
        keys = ops.stop_gradient(ops.normalize(self._key_head(second, training=True), axis=1))
        own = ops.sum(queries * keys, axis=1, keepdims=True)
        recordings = ops.cast(recordings, "int32")
        # The newest first; the oldest fall out.
        self._keys.assign(ops.concatenate([keys, self._keys])[: self._size])
        self._of.assign(ops.concatenate([recordings, self._of])[: self._size])
        # A copy: PyTorch goes back through it after the queue has moved on.
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

    def build(self, shape: Any) -> None:
        """Make the weights."""
        self._dense.build((None, shape[-1]))
        self._normalize.build((None, DIMENSIONS))
        self._similarity = self.add_weight(
            shape=(DIMENSIONS, DIMENSIONS), initializer="glorot_uniform", name="w"
        )

    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """See `Objective.loss`."""
        anchors, others = (ops.tanh(self._normalize(self._dense(view))) for view in (first, second))
        logits = ops.matmul(ops.matmul(anchors, self._similarity), ops.transpose(others))
        partner = ops.cast(ops.eye(ops.shape(logits)[0]), "bool")
        return _cross_entropy(logits / self.temperature, partner, recordings)


class Distillation(Objective):
    """The cosine to what a teacher said, and picking it out of all that it said of the batch.

    After Tian, Krishnan and Isola, Contrastive Representation Distillation (ICLR 2020), with the
    batch for their memory. Another lesson of the same recording is a candidate too: its sound was
    changed or mixed, and the teacher says what is different.
    """

    def __init__(self, temperature: float = 0.1, contrast: float = 0.3) -> None:
        """Weigh the two.

        Args:
            temperature: of the contrast.
            contrast: its weight beside twice the distance by cosine.

        Raises:
            InvalidParametersError: if a parameter is out of range.
        """
        super().__init__(temperature)
        self._contrast = between("contrast", contrast, 0)

    def loss(self, first: Any, second: Any, recordings: Any) -> Any:
        """See `Objective.loss`; `second` is what the teacher said, unit rows."""
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
"""By the name on the command line."""


def follow(source: keras.Model, copy: keras.Model, momentum: float) -> None:
    """Copy ← momentum · copy + (1 - momentum) · source, for weights and normalization averages.

    Integer state, such as a dropout's seed, is the copy's own.
    """
    for ours, its in zip(source.variables, copy.variables, strict=True):
        if "float" in str(its.dtype):
            its.assign(momentum * its + (1 - momentum) * ours)


def freeze(model: keras.Model) -> None:
    """No gradient reaches its weights, but it is still told when it trains.

    (`trainable = False` would have batch normalization use its averages.)
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
    """Of each row's partner, among it and all that is of another recording."""
    out = ops.logical_and(_same(recordings, recordings), ops.logical_not(partner))
    log_odds = ops.log_softmax(ops.where(out, _NEVER, logits), axis=1)
    return -ops.mean(ops.sum(ops.where(partner, log_odds, 0.0), axis=1))
