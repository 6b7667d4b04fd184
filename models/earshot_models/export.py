"""From a trained network to the one file that phones carry."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from earshot_models.network import BANDS, DIMENSIONS, FRAMES
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

FORMAT = 1
FEATURES = "log-mel 61x64 at 8 kHz, unit rms"
_CARD, _CREDITS = "encoder.json", "CREDITS.txt"
_EARLIEST = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Components:
    """Principal components of embeddings of public sound, and how far to whiten them.

    Attributes:
        rotation: float64 (128, 128), orthogonal; its columns by descending variance.
        mean: float32 (128,) of the rotated embeddings.
        scale: float32 (128,), what a centred coordinate is multiplied by before `project` keeps the
            leading ones and brings them to unit length.
    """

    rotation: NDArray[np.float64]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]

    def projected(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """What `Encoder.project` makes of embeddings that are not rotated yet.

        Args:
            embeddings: (batch, 128), unit rows.
            dimensions: 1 to 128.

        Returns:
            float32 (batch, dimensions), unit rows.
        """
        kept = slice(dimensions)
        rows = (embeddings @ self.rotation[:, kept] - self.mean[kept]) * self.scale[kept]
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def public_components(embeddings: NDArray[np.floating], whitening: float) -> Components:
    """Principal components of embeddings (thesis, section 10.1: their scale).

    Args:
        embeddings: (examples, 128), unit rows, of public sound; more than 128 of them.
        whitening: 0 keeps each component's variance λ, 0.5 makes all alike; between, a coordinate
            is divided by λ**whitening.

    Raises:
        InvalidInputError: if there are too few examples, or one is not finite.
        InvalidParametersError: if `whitening` is not 0 to 0.5.
    """
    if embeddings.ndim != 2 or embeddings.shape[1] != DIMENSIONS or len(embeddings) <= DIMENSIONS:
        raise InvalidInputError(
            f"embeddings must have shape (more than {DIMENSIONS}, {DIMENSIONS}), not "
            f"{embeddings.shape}"
        )
    if not np.isfinite(embeddings).all():
        raise InvalidInputError("embeddings must be finite")
    if not 0 <= whitening <= 0.5:
        raise InvalidParametersError(f"whitening must be 0 to 0.5, not {whitening}")
    rows = embeddings.astype(np.float64)
    mean = rows.mean(axis=0)
    variances, rotation = np.linalg.eigh(np.cov(rows - mean, rowvar=False, bias=True))
    variances, rotation = np.maximum(variances[::-1], 1e-9), rotation[:, ::-1]
    largest = np.abs(rotation).argmax(axis=0)
    rotation = rotation * np.sign(rotation[largest, np.arange(DIMENSIONS)])
    scale = variances**-whitening
    scale /= np.sqrt(np.mean(variances * scale**2))
    return Components(rotation, (mean @ rotation).astype(np.float32), scale.astype(np.float32))


def rotated(network: keras.Model, rotation: NDArray[np.float64]) -> keras.Model:
    """A copy whose embeddings are rotated: the last layer is linear, so it takes the rotation up.

    Args:
        network: its last layer is a `Dense` named "embedding".
        rotation: (128, 128).
    """
    copy = keras.models.clone_model(network)
    copy.set_weights(network.get_weights())
    last = copy.get_layer("embedding")
    kernel, bias = (np.asarray(each, dtype=np.float64) for each in last.get_weights())
    last.set_weights([kernel @ rotation, bias @ rotation])
    return copy


def averaged(network: keras.Model) -> keras.Model:
    """A network that embeds a spectrum as it is and a band higher and lower, and takes the mean.

    The weights are the same three times, so that the file does not grow; what it costs a phone
    is little (docs/embedding.md).

    Args:
        network: (batch, 61, 64, 1) → (batch, 128).
    """
    spectrum = keras.layers.Input((FRAMES, BANDS, 1), name="log_mel")
    higher = ops.concatenate([spectrum[:, :, :1], spectrum[:, :, :-1]], axis=2)
    lower = ops.concatenate([spectrum[:, :, 1:], spectrum[:, :, -1:]], axis=2)
    views = network(ops.concatenate([higher, spectrum, lower], axis=0))
    embeddings = ops.mean(ops.reshape(views, (3, -1, DIMENSIONS)), axis=0)
    return keras.Model(spectrum, embeddings)


def to_lite_rt(network: keras.Model, calibration: NDArray[np.float32], int8: bool) -> bytes:
    """Convert a network for LiteRT.

    Args:
        network: (batch, 61, 64, 1) → (batch, 128).
        calibration: log-mel spectra float32 (examples, 61, 64) of public sound, from which int8
            takes the range of each layer.
        int8: whether weights and activations are 8-bit integers; input and output are float32 in
            any case.

    Returns:
        A flatbuffer; its first dimension can be resized.

    Raises:
        InvalidInputError: if `calibration` has another shape, or is empty.
    """
    import tensorflow as tf

    if calibration.ndim != 3 or calibration.shape[1:] != (FRAMES, BANDS) or not len(calibration):
        raise InvalidInputError(
            f"calibration must have shape (examples, {FRAMES}, {BANDS}), not {calibration.shape}"
        )
    with tempfile.TemporaryDirectory() as folder:
        network.export(folder, format="tf_saved_model", verbose=False)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if int8:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
            converter.representative_dataset = lambda: (
                [each[np.newaxis, ..., np.newaxis].astype(np.float32)] for each in calibration
            )
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        return bytes(converter.convert())


def write_encoder(
    path: Path,
    flatbuffer: bytes,
    name: str,
    components: Components,
    int8: bool,
    trained: dict[str, Any],
    credits_: str,
) -> None:
    """Write the encoder file: the flatbuffer, and an archive with its card appended.

    Args:
        path: replaced as a whole.
        flatbuffer: of `to_lite_rt`.
        name: by which phases and phones mean this encoder; embeddings of two do not compare.
        components: whose rotation the network has taken up.
        int8: as given to `to_lite_rt`.
        trained: how it came about.
        credits_: of the sound that it was trained on.
    """
    card = {
        "format": FORMAT,
        "name": name,
        "dimensions": DIMENSIONS,
        "sha256": hashlib.sha256(flatbuffer).hexdigest(),
        "length": len(flatbuffer),
        "quantization": "int8" if int8 else "float32",
        "features": FEATURES,
        "mean": [round(float(each), 7) for each in components.mean],
        "scale": [round(float(each), 5) for each in components.scale],
        "trained": trained,
    }
    file = io.BytesIO()
    file.write(flatbuffer)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_STORED) as archive:
        for entry, text in ((_CARD, json.dumps(card, indent=1)), (_CREDITS, credits_)):
            archive.writestr(zipfile.ZipInfo(entry, _EARLIEST), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_bytes(file.getvalue())
    os.replace(new, path)
