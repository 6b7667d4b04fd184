"""The Keras model that trains an encoder under any objective."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from earshot_models.objectives import (
    Distillation,
    MomentumContrast,
    Objective,
    follow,
    freeze,
)


class Contrastive(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Sound → front end → network → unit embeddings (batch, parts × 128) → objective.

    A batch is ((first, second), recordings): two views float32 (batch, rate) and integers (batch,).
    Under `Distillation` the second is the teacher's output for the first, float32
    (batch, parts × 128). The loss is computed in `compute_loss`, which every back end calls in its
    own training step.
    """

    def __init__(self, front_end: Any, network: keras.Model, objective: Objective) -> None:
        super().__init__()
        self.front_end = front_end
        self.network = network
        self.objective = objective
        self.key_network: keras.Model | None = None
        if isinstance(objective, MomentumContrast):
            self.key_network = keras.models.clone_model(network)
            self.key_network.set_weights(network.get_weights())
            freeze(self.key_network)
        objective.build((None, network.output_shape[-1]))
        self.built = True

    def call(self, views: Any, training: bool = False) -> tuple[Any, Any]:
        """Return the unit embeddings of both views, or of one beside the teacher's output."""
        first, second = views
        if isinstance(self.objective, Distillation):
            return self._embed(self.network, first, training), second
        if self.key_network is None:
            count = ops.shape(first)[0]
            both = self._embed(self.network, ops.concatenate([first, second]), training)
            return both[:count], both[count:]
        if training:
            # Before anything is computed, so that all back ends use the same weights.
            follow(self.network, self.key_network, self.objective.momentum)
            self.objective.follow()
        keys = self._embed(self.key_network, second, training)
        return self._embed(self.network, first, training), ops.stop_gradient(keys)

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Return the objective's loss of the embeddings `y_pred` and the recordings `y`."""
        first, second = y_pred
        return self.objective.loss(first, second, y)

    def _embed(self, network: keras.Model, samples: Any, training: bool) -> Any:
        spectra = self.front_end(samples, training=training)
        return ops.normalize(network(spectra, training=training), axis=1)
