"""The network of taggers, small enough to train on one core.

Table 4.2 of Muschiol (2021) has ResNets and VGGs that start from weights of ImageNet, which are not
available here.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

from earshot_protocol import checks

_MOMENTUM, _EPSILON = 0.9, 1e-5
"""Parameters of batch normalization: PyTorch's, which the paper uses."""

_LEAST = 8
"""Least frames and bands of a clip, for three halvings."""


def build(shape: tuple[int, int], labels: int) -> keras.Model:
    """Build an untrained network: log-mel (batch, *shape) → logits (batch, labels).

    Three halvings are followed by the mean and the maximum of each band over time.

    Args:
        shape: Frames and bands of a clip.
        labels: Number of labels.

    Raises:
        InvalidParametersError: The spectrum is too small, or there are no labels.
    """
    checks.whole("labels", labels)
    for what, size in zip(("frames", "bands"), shape, strict=True):
        checks.whole(what, size, _LEAST)
    spectrum = keras.Input(shape)
    # This normalization learns nothing, so no gradient has to reach the spectrum.
    signal = layers.BatchNormalization(
        momentum=_MOMENTUM, epsilon=_EPSILON, center=False, scale=False
    )(spectrum)
    signal = layers.Reshape((*shape, 1))(signal)
    for filters, size in ((16, 5), (32, 3), (64, 3)):
        signal = _halved(signal, filters, size)
    frames, bands, channels = signal.shape[1:]
    signal = layers.Reshape((frames, bands * channels))(signal)
    mean, most = layers.GlobalAveragePooling1D()(signal), layers.GlobalMaxPooling1D()(signal)
    signal = layers.Dropout(0.5)(layers.Concatenate()([mean, most]))
    return keras.Model(spectrum, layers.Dense(labels)(signal), name="small")


def _halved(signal: Any, filters: int, size: int) -> Any:
    """Add a convolution, equally padded, without a bias as a normalization follows."""
    signal = layers.ZeroPadding2D(size // 2)(signal)
    signal = layers.Conv2D(filters, size, 2, use_bias=False, kernel_initializer="he_normal")(signal)
    return layers.ReLU()(layers.BatchNormalization(momentum=_MOMENTUM, epsilon=_EPSILON)(signal))
