"""From a trained network to the one file that phones carry."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from earshot_models.batches import in_batches
from earshot_models.components import Components
from earshot_protocol.encoder_file import DIMENSIONS, pack
from earshot_protocol.files import replace_file
from earshot_protocol.spectrum import BANDS, FRAMES, NARROW, Spectrum

_LEAST_DEVIATION = 1e-6


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


def turned(network: keras.Model, turn: NDArray[np.float64]) -> keras.Model:
    """The same network with its embeddings (batch, features) multiplied by (features, 128)."""
    last = keras.layers.Dense(DIMENSIONS, use_bias=False, name="turn")
    last.build((None, len(turn)))
    last.set_weights([turn.astype(np.float32)])
    spectrum = _spectrum()
    return keras.Model(spectrum, last(network(spectrum)))


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
        network: what `turned` makes.
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
        flatbuffer: with the turn of `components`.
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
    replace_file(path, data)


def _spectrum() -> Any:
    return keras.layers.Input((FRAMES, BANDS, 1), name="log_mel")
