"""Networks that name what sounds: a small one that trains on one core, and the paper's.

Table 4.2 of Muschiol (2021) has the paper's: ResNets (He et al. 2016) and VGGs (Simonyan and
Zisserman 2015) on one channel. There are three differences: its start from weights of ImageNet is
out of reach, so all begin at random; its VGG convolutions are 3 × 3, as in every VGG, where the
table prints 2 × 2; and each band is brought to one scale first (a batch normalization over bands),
about which Muschiol says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import layers

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError

RESNETS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}
"""Number of basic blocks of 64, 128, 256 and 512 channels, by network."""

VGGS = {"vgg11": (1, 1, 2, 2, 2), "vgg19": (2, 2, 4, 4, 4)}
"""Number of convolutions of 64, 128, 256, 512 and 512 channels before each pooling, by network."""

NAMES = ("small", *RESNETS, *VGGS)

_MOMENTUM, _EPSILON = 0.9, 1e-5
"""Parameters of batch normalization: PyTorch's, which the paper uses."""

_HALVINGS = 5
"""Halvings in time and in bands of every network of the paper; a spectrum must allow them."""


def build(name: str, shape: tuple[int, int], labels: int) -> keras.Model:
    """Build an untrained network: log-mel (batch, *shape) → logits (batch, labels).

    Args:
        name: Name of the network, one of `NAMES`.
        shape: Frames and bands of a clip.
        labels: Number of labels.

    Raises:
        InvalidParametersError: There is no such network, the spectrum is too small for it, or there
            are no labels.
    """
    checks.whole("labels", labels)
    if name not in NAMES:
        raise InvalidParametersError(f"network={name!r}: must be one of {', '.join(NAMES)}")
    least = 8 if name == "small" else 2**_HALVINGS
    for what, size in zip(("frames", "bands"), shape, strict=True):
        checks.whole(f"{what} of {name}", size, least)
    spectrum = keras.Input(shape)
    # This normalization learns nothing, so no gradient has to reach the spectrum.
    signal = layers.BatchNormalization(
        momentum=_MOMENTUM, epsilon=_EPSILON, center=False, scale=False
    )(spectrum)
    signal = layers.Reshape((*shape, 1))(signal)
    if name in RESNETS:
        signal = _dense(_resnet(signal, RESNETS[name]), (512, 256), normalized=True)
    elif name in VGGS:
        signal = _dense(_vgg(signal, VGGS[name]), (4096, 4096), normalized=False)
    else:
        signal = _small(signal)
    return keras.Model(spectrum, layers.Dense(labels)(signal), name=name)


def _small(signal: Any) -> Any:
    """Add three halvings, then the mean and the maximum of each band over time."""
    for filters, size in ((16, 5), (32, 3), (64, 3)):
        signal = _convolution(signal, filters, size, 2)
        signal = layers.ReLU()(_normalized(signal))
    frames, bands, channels = signal.shape[1:]
    signal = layers.Reshape((frames, bands * channels))(signal)
    mean, most = layers.GlobalAveragePooling1D()(signal), layers.GlobalMaxPooling1D()(signal)
    return layers.Dropout(0.5)(layers.Concatenate()([mean, most]))


def _resnet(signal: Any, blocks: Sequence[int]) -> Any:
    signal = layers.ReLU()(_normalized(_convolution(signal, 64, 7, 2)))
    signal = layers.ZeroPadding2D(1)(signal)  # no value of a ReLU is below the padding
    signal = layers.MaxPooling2D(3, 2)(signal)
    for group, number in enumerate(blocks):
        for block in range(number):
            signal = _basic_block(signal, 64 * 2**group, 2 if group and not block else 1)
    return layers.GlobalAveragePooling2D()(signal)


def _basic_block(signal: Any, filters: int, stride: int) -> Any:
    """Add two convolutions, and a way past them (He et al. 2016, Figure 2)."""
    past = signal
    if stride > 1:
        past = _normalized(_convolution(signal, filters, 1, stride))
    signal = layers.ReLU()(_normalized(_convolution(signal, filters, 3, stride)))
    signal = _normalized(_convolution(signal, filters, 3, 1))
    return layers.ReLU()(layers.Add()([signal, past]))


def _vgg(signal: Any, convolutions: Sequence[int]) -> Any:
    for filters, number in zip((64, 128, 256, 512, 512), convolutions, strict=True):
        for _ in range(number):
            signal = layers.Conv2D(
                filters, 3, padding="same", activation="relu", kernel_initializer="he_normal"
            )(signal)
        signal = layers.MaxPooling2D(2)(signal)
    return layers.Flatten()(signal)


def _dense(signal: Any, units: Sequence[int], normalized: bool) -> Any:
    """Add the paper's head without its last layer: ReLU, normalization, dropout of a half."""
    for number in units:
        signal = layers.Dense(number, activation="relu", kernel_initializer="he_normal")(signal)
        if normalized:
            signal = _normalized(signal)
        signal = layers.Dropout(0.5)(signal)
    return signal


def _convolution(signal: Any, filters: int, size: int, stride: int) -> Any:
    """Add a convolution without a bias, as a normalization follows; padded alike on both sides."""
    if size > 1:
        signal = layers.ZeroPadding2D(size // 2)(signal)
    return layers.Conv2D(filters, size, stride, use_bias=False, kernel_initializer="he_normal")(
        signal
    )


def _normalized(signal: Any) -> Any:
    return layers.BatchNormalization(momentum=_MOMENTUM, epsilon=_EPSILON)(signal)
