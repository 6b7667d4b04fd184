"""Export of a trained network to the one file that phones carry."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
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
    places: float = 0.0,
) -> keras.Model:
    """Return a network whose output is concatenated with those of other layers.

    Args:
        network: Network from spectra (batch, 61, 64, 1) to (batch, any); all networks here take
            such spectra. Its part has unit length.
        places: Weight of its last 128 numbers as a part of their own; 0 where they are none.
        others: Layers with outputs (batch, any), each with its weight relative to the network's.
            Each number of a layer's output is standardized.
        public: Spectra of public sound, from which the means and deviations are computed.

    Returns:
        A network from spectra to (batch, all parts).
    """
    spectrum = _spectrum()
    said = network(spectrum)
    if places:
        own, place = said[:, :-DIMENSIONS], said[:, -DIMENSIONS:]
        parts = [ops.normalize(own, axis=1), places * ops.normalize(place, axis=1)]
    else:
        parts = [ops.normalize(said, axis=1)]
    for layer, weight in others:
        said = in_batches(layer, public)
        mean, deviation = said.mean(axis=0), np.maximum(said.std(axis=0), _LEAST_DEVIATION)
        part = (layer(spectrum) - mean) / deviation
        parts.append(weight * ops.normalize(part, axis=1))
    return keras.Model(spectrum, ops.concatenate(parts, axis=1))


def turned(network: keras.Model, turn: NDArray[np.float64]) -> keras.Model:
    """Return the network with its embeddings (batch, features) multiplied by (features, 128)."""
    last = keras.layers.Dense(DIMENSIONS, use_bias=False, name="turn")
    last.build((None, len(turn)))
    last.set_weights([turn.astype(np.float32)])
    spectrum = _spectrum()
    return keras.Model(spectrum, last(network(spectrum)))


def averaged(network: keras.Model) -> keras.Model:
    """Return a network that averages the embeddings of a spectrum moved by -1, 0 and 1 bands.

    The three share weights, so the file does not grow; the cost on a phone is small
    (docs/embedding.md).
    """
    spectrum = _spectrum()
    higher = ops.concatenate([spectrum[:, :, :1], spectrum[:, :, :-1]], axis=2)
    lower = ops.concatenate([spectrum[:, :, 1:], spectrum[:, :, -1:]], axis=2)
    views = network(ops.concatenate([higher, spectrum, lower], axis=0))
    embeddings = ops.mean(ops.reshape(views, (3, -1, views.shape[-1])), axis=0)
    return keras.Model(spectrum, embeddings)


def to_lite_rt(network: keras.Model, kinds: Iterable[bool]) -> dict[bool, bytes]:
    """Convert a network for LiteRT; it is traced once for all kinds, as tracing is slow.

    Args:
        network: Network as `turned` returns it.
        kinds: Whether to store weights as 8-bit integers, with a scale for each channel.
            Activations are then rounded to 8 bits for each product and summed in float32: fixed
            ranges, chosen beforehand, would halve the precision of texture statistics.

    Returns:
        A flatbuffer of each kind. It takes one second at a time, as some runtimes need a fixed
        size; others may resize its first dimension.
    """
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        network.export(folder, format="tf_saved_model", verbose=False)
        made = {}
        for int8 in kinds:
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            if int8:
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
            made[int8] = _one_at_a_time(converter.convert())
    return made


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
    """Write the encoder file of a network that `to_lite_rt` converted, replacing an older file.

    Args:
        path: Path of the encoder file.
        flatbuffer: Converted network, which includes the turn of `components`.
        name: Name by which phases and phones refer to this encoder.
        components: Components, of which the file holds the mean and the scale.
        int8: Whether its weights are 8-bit integers.
        trained: Facts about the training.
        credits_: Credits for the sound that the encoder was trained on.
        start_centroids: Start centroids as `start_centroids.learn` returns them.
        spectrum: Spectrum that the network takes.
    """
    mean, scale = components.mean, components.scale
    data = pack(flatbuffer, name, int8, mean, scale, trained, credits_, start_centroids, spectrum)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)


def _one_at_a_time(flatbuffer: bytes) -> bytes:
    """Set the batch size in the model's signature to one, where the converter leaves it open.

    Inner operations still derive their sizes from the input, so it can be resized.
    """
    from tensorflow.lite.python import schema_py_generated as schema

    changed = bytearray(flatbuffer)
    graph = schema.Model.GetRootAs(changed).Subgraphs(0)
    for place in (graph.Inputs(0), graph.Outputs(0)):
        sizes = graph.Tensors(place).ShapeSignatureAsNumpy()  # a view into `changed`
        sizes[0] = 1
    return bytes(changed)


def _spectrum() -> Any:
    return keras.layers.Input((FRAMES, BANDS, 1), name="log_mel")
