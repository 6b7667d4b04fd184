"""The classifier that Yang et al. (Interspeech 2021, section 4.1) name for teachers and students.

The paper says only "a self-attention and U-Net based neural network" on 80 mel bands. So its parts
are those of the works that it cites there: a U-Net (Ronneberger et al., MICCAI 2015) over frames
and bands, then self-attention (Vaswani et al., NIPS 2017) among the frames of the output, a mean
over frames, and one number for each class. Widths, depth and heads are ours.

It learns by cross-entropy over all classes. The printed losses would not do: equation 7 tells real
latent vectors from generated ones and knows no class, and equation 8 is a likelihood, to be
maximized, that is called a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import layers
from numpy.typing import NDArray

from earshot_models.teachers.teacher import Teacher, trained
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError


@dataclass(frozen=True)
class Settings:
    """Settings by which the network is built and trained.

    Attributes:
        width: Channels of the first level; each level down has twice as many.
        depth: Levels down, each with half as many frames and bands.
        heads: Heads of the attention among frames.
        key: Numbers by which a head compares two frames.
        dropout: Share of the pooled features that is lost in training.
        epochs: Passes over all samples.
        batch: Samples in a step.
        rate: Learning rate of Adam.

    Raises:
        InvalidParametersError: if a number is out of range.
    """

    width: int = 16
    depth: int = 2
    heads: int = 4
    key: int = 16
    dropout: float = 0.25
    epochs: int = 20
    batch: int = 16
    rate: float = 1e-3

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "key", "epochs", "batch"):
            checks.whole(name, getattr(self, name))
        checks.fraction("dropout", self.dropout)
        checks.positive("rate", self.rate, 1)


PAPER = Settings(width=32, depth=3, heads=8, key=32, epochs=100, batch=64)
"""Settings for pictures of the paper's size, 100 frames of 80 bands: hours for 200 teachers."""


def build(shape: tuple[int, int], classes: int, settings: Settings | None = None) -> keras.Model:
    """Build the untrained network: pictures (batch, frames, bands) → logits (batch, classes).

    Args:
        shape: Frames and bands, each at least 2 to the power of the depth; sizes that do not divide
            evenly are padded with silence.
        classes: Number of classes, at least two.
        settings: Settings of the network's parts.

    Raises:
        InvalidParametersError: if a picture is too small for the depth, or there are fewer than two
            classes.
    """
    chosen = settings or Settings()
    checks.whole("classes", classes, 2)
    step = 2**chosen.depth
    for name, size in zip(("frames", "bands"), shape, strict=True):
        checks.whole(name, size, step)
    frames, bands = shape
    spare = ((0, -frames % step), (0, -bands % step))
    pictures = keras.Input(shape)
    signal = layers.Reshape((frames, bands, 1))(pictures)
    # Silence is -1, and padding is 0.
    signal = layers.Rescaling(1.0, offset=1.0)(signal)
    signal = layers.ZeroPadding2D(spare)(signal)
    levels = []
    for level in range(chosen.depth):
        signal = _twice(signal, chosen.width * 2**level)
        levels.append(signal)
        signal = layers.MaxPooling2D()(signal)
    signal = _twice(signal, chosen.width * step)
    for level in reversed(range(chosen.depth)):
        width = chosen.width * 2**level
        signal = layers.Conv2DTranspose(width, 2, strides=2, activation="relu")(signal)
        signal = _twice(layers.Concatenate()([levels[level], signal]), width)
    signal = layers.Cropping2D(spare)(signal)
    signal = layers.TimeDistributed(layers.Flatten())(signal)
    tokens = layers.Dense(chosen.heads * chosen.key, activation="relu")(signal)
    attended = layers.MultiHeadAttention(chosen.heads, chosen.key)(tokens, tokens)
    signal = layers.LayerNormalization()(layers.Add()([tokens, attended]))
    signal = layers.GlobalAveragePooling1D()(signal)
    signal = layers.Dropout(chosen.dropout)(signal)
    return keras.Model(pictures, layers.Dense(classes)(signal))


def train(
    samples: NDArray[np.floating],
    labels: NDArray[np.integer],
    classes: Sequence[str],
    settings: Settings | None = None,
    seed: int = 0,
) -> Teacher:
    """Train a teacher or a student of pictures, which `teacher.save` keeps as a Keras model.

    Args:
        samples: Pictures, (samples, frames, bands) in [-1, 1].
        labels: Class of each sample, (samples,), as a place in `classes`.
        classes: Names of the classes, at least two.
        settings: Settings of the network and of its training.
        seed: Seed of weights, order and dropout; it seeds all of Keras, Python and NumPy.

    Raises:
        InvalidInputError: if pictures have another shape or are not finite, or labels are not
            classes.
        InvalidParametersError: see `build`.
    """
    chosen = settings or Settings()
    if samples.ndim != 3 or not np.isfinite(samples).all():
        raise InvalidInputError(
            f"pictures of shape {samples.shape}: must be samples × frames × bands, finite numbers"
        )
    keras.utils.set_random_seed(seed)
    network = build((samples.shape[1], samples.shape[2]), len(classes), chosen)
    network.compile(
        keras.optimizers.Adam(chosen.rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    names = trained(_InEpochs(network, chosen), samples, labels, classes).classes
    return Teacher(names, network)


@dataclass(frozen=True)
class _InEpochs:
    """A network that learns for several epochs, silently."""

    network: keras.Model
    settings: Settings

    def fit(self, samples: Any, labels: Any) -> Any:
        return self.network.fit(
            samples, labels, self.settings.batch, self.settings.epochs, verbose=0
        )

    def predict(self, samples: Any) -> Any:
        return self.network.predict(samples, verbose=0)


def _twice(signal: Any, width: int) -> Any:
    for _ in range(2):
        signal = layers.Conv2D(width, 3, padding="same", activation="relu")(signal)
    return signal
