"""Teachers that a test can check: files of small models, made on the spot."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import keras
import numpy as np
from keras import layers

RATE, WINDOW, DIMENSIONS = 16_000, 15_600, 160
MAP = (13, 5, 30)
"""Times, frequencies and channels of the map."""


def model(
    window: int = WINDOW, dimensions: int = DIMENSIONS, named: str = "embedding"
) -> keras.Model:
    """Energies of bits of a window, at random weights, then scores that nobody should learn.

    Beside it a map: the window as 13 times, 5 frequencies and so many channels.
    """
    samples = layers.Input((window,), name="waveform")
    frames = layers.Reshape((window // 200, 200))(samples)
    energies = keras.ops.log(keras.ops.mean(keras.ops.square(frames), axis=2) + 1e-6)
    random = keras.initializers.RandomNormal(stddev=1.0, seed=5)
    learned = layers.Dense(dimensions, activation="relu", kernel_initializer=random, name=named)(
        energies
    )
    maps = layers.Reshape((*MAP[:2], window // MAP[0] // MAP[1]))(samples)
    channels = layers.Conv2D(MAP[2], 1, kernel_initializer=random, name="deeper")(maps)
    met = layers.GlobalAveragePooling2D(name="met")(channels)
    return keras.Model(
        samples, layers.Dense(7, name="scores")(layers.Concatenate()([learned, met]))
    )


def keras_file(folder: Path, **what: object) -> Path:
    """A `.keras` file."""
    return saved(model(**what), folder / "teacher.keras")  # type: ignore[arg-type]


def saved(made: keras.Model, path: Path) -> Path:
    """The path, where Keras has written a model."""
    with warnings.catch_warnings():
        # Keras 3.12 asks its arrays for a copy in a way that numpy no longer likes.
        warnings.simplefilter("ignore", DeprecationWarning)
        made.save(path)
    return path


def lite_rt_file(folder: Path, made: keras.Model | None = None) -> Path:
    """A `.tflite` file of the same."""
    import tensorflow as tf

    path = folder / "teacher.tflite"
    with tempfile.TemporaryDirectory() as exported:
        (made or model()).export(exported, format="tf_saved_model", verbose=False)
        path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(exported).convert())
    return path


class Loudness:
    """A teacher without a file: the energies of 200 bits of a window."""

    rate, window, lengths, identity, name = RATE, WINDOW, (200,), "loudness", "loudness"

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, samples: np.ndarray) -> np.ndarray:
        self.asked += len(samples)
        return np.sqrt(np.mean(samples.reshape(len(samples), 200, -1) ** 2, axis=2)).astype("f4")
