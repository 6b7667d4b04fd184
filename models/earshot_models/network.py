"""The network of a phone: separable convolutions over a log-mel spectrum, 128 numbers out."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops

from earshot_protocol.checks import between, fraction
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.spectrum import BANDS, FRAMES

MOST_PARAMETERS = 3_700_000
"""Most parameters of a network; with the layers beside it and the last layer, a phone carries
4,000,000 at most, a byte each."""

# Approximate range of the logarithms of a second at unit level; public constants, so that the
# network sees numbers around zero from its first step on.
_MEAN, _DEVIATION = -6.0, 3.0

# Momentum of batch normalization: short runs would end before a longer average had settled.
_MOMENTUM = 0.9


def build(width: float = 1.0, dropout: float = 0.1, parts: int = 1) -> keras.Model:
    """Build a network with random weights.

    Depthwise-separable convolutions as in MobileNet (Howard et al. 2017), with residual connections
    where the shape allows. Features are pooled over time, by mean and maximum, but not over
    frequency, as pitch is informative.

    Args:
        width: Factor on the number of channels, 0.25 to 8: widths of 2, 4 and 6 make files of 1, 2
            and 4 MB.
        dropout: Chance that a pooled feature is dropped in training.
        parts: Number of embeddings per spectrum, as many as are read from the teacher.

    Returns:
        A functional model, float32 (batch, 61, 64, 1) → float32 (batch, parts × 128), each part at
        unit length.

    Raises:
        InvalidParametersError: A parameter is out of range, or the network has more than 3,700,000
            parameters.
    """
    between("width", width, 0.25, 8)
    fraction("dropout", dropout)
    spectrum = features = layers.Input((FRAMES, BANDS, 1), name="log_mel")
    features = layers.Rescaling(1 / _DEVIATION, -_MEAN / _DEVIATION)(features)
    first = layers.Conv2D(_channels(24, width), 5, strides=2, padding="same", use_bias=False)
    features = _activated(first(features))
    features = _separable(features, _channels(64, width), strides=2)
    features = _residual(features)
    features = _separable(features, _channels(128, width), strides=2)
    features = _residual(features)
    features = _residual(features)
    features = _separable(features, _channels(256, width))
    features = _activated(layers.Conv2D(48, 1, use_bias=False)(features))
    pooled = [layers.Flatten()(over_time(features, axis=1)) for over_time in (ops.mean, ops.max)]
    features = layers.Dropout(dropout)(layers.Concatenate()(pooled))
    features = layers.Dense(parts * DIMENSIONS, name="embedding")(features)
    features = layers.UnitNormalization()(layers.Reshape((parts, DIMENSIONS))(features))
    network = keras.Model(spectrum, layers.Flatten()(features))
    if network.count_params() > MOST_PARAMETERS:
        raise InvalidParametersError(
            f"width {width} makes {network.count_params()} parameters; "
            f"{MOST_PARAMETERS} is the most that a phone should carry"
        )
    return network


def _channels(number: int, width: float) -> int:
    return max(8, round(number * width / 8) * 8)


def _activated(features: Any) -> Any:
    return layers.ReLU()(layers.BatchNormalization(momentum=_MOMENTUM)(features))


def _separable(features: Any, channels: int, strides: int = 1) -> Any:
    depthwise = layers.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)
    return _activated(layers.Conv2D(channels, 1, use_bias=False)(_activated(depthwise(features))))


def _residual(features: Any) -> Any:
    return layers.Add()([features, _separable(features, features.shape[-1])])
