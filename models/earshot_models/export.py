"""From a trained network to the one file that phones carry."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from earshot_models.batches import in_batches
from earshot_protocol.checks import between
from earshot_protocol.encoder_file import DIMENSIONS, pack
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import BANDS, FRAMES, NARROW, Spectrum

_LEAST_DEVIATION = 1e-6


@dataclass(frozen=True)
class Components:
    """Principal components of embeddings of public sound, and how far to whiten them.

    Attributes:
        rotation: float64 (features, 128), orthonormal columns by descending variance.
        mean: float32 (128,) of the rotated rows, at unit length again.
        scale: float32 (128,), what a centred coordinate is multiplied by before `project` keeps the
            leading ones and brings them to unit length.
    """

    rotation: NDArray[np.float64]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]

    def projected(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """What `Encoder.project` makes of embeddings: float32 (batch, dimensions), unit rows.

        Args:
            embeddings: (batch, features), unit rows that are not rotated yet.
            dimensions: 1 to 128.
        """
        return _unit(((self.rotated(embeddings) - self.mean) * self.scale)[:, :dimensions])

    def rotated(self, embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
        """What `Encoder.embed` makes of them: float32 (batch, 128), unit rows."""
        return _unit(embeddings @ self.rotation)


def public_components(embeddings: NDArray[np.floating], whitening: float) -> Components:
    """Principal components of embeddings (thesis, section 10.1: their scale).

    Args:
        embeddings: (examples, features), unit rows, of public sound; at least 128 features, and
            more than 128 examples.
        whitening: 0 keeps each component's variance λ, 0.5 makes all alike; between, a coordinate
            is divided by λ**whitening.

    Raises:
        InvalidInputError: if there are too few examples or features, or one is not finite.
        InvalidParametersError: if `whitening` is not 0 to 0.5.
    """
    if embeddings.ndim != 2 or min(embeddings.shape[1], len(embeddings) - 1) < DIMENSIONS:
        raise InvalidInputError(
            f"embeddings must have shape (more than {DIMENSIONS}, {DIMENSIONS} or more), not "
            f"{embeddings.shape}"
        )
    if not np.isfinite(embeddings).all():
        raise InvalidInputError("embeddings must be finite")
    between("whitening", whitening, 0, 0.5)
    rows = embeddings.astype(np.float64)
    rotation = np.linalg.eigh(np.cov(rows, rowvar=False))[1][:, ::-1][:, :DIMENSIONS]
    largest = np.abs(rotation).argmax(axis=0)
    rotation = rotation * np.sign(rotation[largest, np.arange(DIMENSIONS)])
    rotated = _unit(rows @ rotation)
    variances = np.maximum(rotated.var(axis=0), 1e-9)
    scale = variances**-whitening
    scale /= np.sqrt(np.mean(variances * scale**2))
    return Components(rotation, rotated.mean(axis=0), scale.astype(np.float32))


def beside(
    network: keras.Model,
    others: Sequence[tuple[keras.layers.Layer, float]],
    public: NDArray[np.floating],
) -> keras.Model:
    """A network that says what others say too, each part at a length of its own.

    Args:
        network: spectra (batch, 61, 64, 1) → (batch, any); all networks here take such spectra.
            Its part has unit length.
        others: layers → (batch, any), and the length of each one's part: its weight beside the
            network's. What a layer says is brought to mean 0 and deviation 1, number by number.
        public: spectra of public sound, by which that is done.

    Returns:
        Spectra → (batch, its + all theirs).
    """
    spectrum = _spectrum()
    parts = [ops.normalize(network(spectrum), axis=1)]
    for layer, weight in others:
        said = in_batches(layer, public)
        mean, deviation = said.mean(axis=0), np.maximum(said.std(axis=0), _LEAST_DEVIATION)
        part = (layer(spectrum) - mean) / deviation
        parts.append(weight * ops.normalize(part, axis=1))
    return keras.Model(spectrum, ops.concatenate(parts, axis=1))


def rotated(network: keras.Model, rotation: NDArray[np.float64]) -> keras.Model:
    """The same network with its embeddings (batch, features) rotated by (features, 128)."""
    turn = keras.layers.Dense(DIMENSIONS, use_bias=False, name="rotation")
    turn.build((None, len(rotation)))
    turn.set_weights([rotation.astype(np.float32)])
    spectrum = _spectrum()
    return keras.Model(spectrum, turn(network(spectrum)))


def averaged(network: keras.Model) -> keras.Model:
    """A network that embeds a spectrum as it is and a band higher and lower, and takes the mean.

    The weights are the same three times, so that the file does not grow; what it costs a phone
    is little (docs/embedding.md).
    """
    spectrum = _spectrum()
    higher = ops.concatenate([spectrum[:, :, :1], spectrum[:, :, :-1]], axis=2)
    lower = ops.concatenate([spectrum[:, :, 1:], spectrum[:, :, -1:]], axis=2)
    views = network(ops.concatenate([higher, spectrum, lower], axis=0))
    embeddings = ops.mean(ops.reshape(views, (3, -1, views.shape[-1])), axis=0)
    return keras.Model(spectrum, embeddings)


def to_lite_rt(network: keras.Model, int8: bool) -> bytes:
    """Convert a network for LiteRT.

    Args:
        network: what `rotated` makes.
        int8: whether weights are 8-bit integers, each channel with a scale of its own. What is
            computed from them is rounded to 8 bits for each product and summed in float32: fixed
            ranges for all, chosen beforehand, cost the statistics of a texture half their digits.

    Returns:
        A flatbuffer; its first dimension can be resized.
    """
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        network.export(folder, format="tf_saved_model", verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return bytes(converter.convert())


def write_encoder(
    path: Path,
    flatbuffer: bytes,
    name: str,
    components: Components,
    int8: bool,
    trained: dict[str, Any],
    credits_: str,
    start_centroids: Sequence[NDArray[np.floating]] = (),
    spectrum: Spectrum = NARROW,
) -> None:
    """Write the encoder file of what `to_lite_rt` made, in place of one that is there.

    Args:
        path: of the file.
        flatbuffer: with the rotation of `components`.
        name: by which phases and phones mean this encoder; embeddings of two do not compare.
        components: of which the file holds the rest.
        int8: as given to `to_lite_rt`.
        trained: how it came about.
        credits_: of the sound that it was trained on.
        start_centroids: as `start_centroids.learn` found them.
        spectrum: what the network is given.
    """
    mean, scale = components.mean, components.scale
    data = pack(flatbuffer, name, int8, mean, scale, trained, credits_, start_centroids, spectrum)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    os.replace(new, path)


def _spectrum() -> Any:
    return keras.layers.Input((FRAMES, BANDS, 1), name="log_mel")


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)
