"""Encoders: one second of sound → 128 numbers on the unit sphere.

The rest of the system sees an `Encoder` as a black box (thesis, chapter 5). Shipped ones run on
LiteRT, an extra: an app with its own encoder needs only numpy.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_protocol.shipped_encoders import (
    DEFAULT_ENCODER,
    SHIPPED_ENCODERS,
    packaged,
    packaged_file,
)
from earshot_protocol.spectrum import NARROW
from earshot_protocol.start_centroids import chosen


class Encoder(Protocol):
    """Function from sound to embeddings. It is public, and the same on every phone."""

    @property
    def name(self) -> str:
        """Name of the encoder and its version: embeddings of two encoders do not compare."""

    @property
    def dimensions(self) -> int:
        """Length of an embedding."""

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Map floats (batch, rate) in [-1, 1] → float32 (batch, 128), unit rows; see `rate_of`."""

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Map embeddings (batch, 128) → float32 (batch, dimensions), unit rows.

        Private steps add noise to every coordinate, so few dimensions are better.
        """


@runtime_checkable
class StartingEncoder(Encoder, Protocol):
    """An encoder with public start centroids in its projection."""

    def start_centroids(self, dimensions: int, count: int) -> NDArray[np.float32]:
        """Return the centroids, float32 (count, dimensions), unit rows in the projection; a copy.

        Raises:
            MissingCentroidsError: The encoder has none, or not these; the message says which it
                has.
        """


def rate_of(encoder: Encoder) -> int:
    """Return the samples per second of an encoder's input: its `rate`.

    An app's own encoder without a `rate` gets 8,000.
    """
    return int(getattr(encoder, "rate", NARROW.rate))


def start_centroids(encoder: Encoder, dimensions: int, count: int) -> NDArray[np.float32]:
    """Return the start centroids of any encoder, see `StartingEncoder.start_centroids`.

    Raises:
        MissingCentroidsError: The encoder has none, or not these; an app's own need not have any.
    """
    if isinstance(encoder, StartingEncoder):
        return encoder.start_centroids(dimensions, count)
    return chosen((), encoder.name, dimensions, count)


def default_encoder() -> Encoder:
    """Return the encoder that all phones share by default; see `shipped_encoder`."""
    return shipped_encoder(DEFAULT_ENCODER)


@cache
def shipped_encoder(name: str) -> Encoder:
    """Return an encoder that comes with every phone, read once.

    Args:
        name: Name of the encoder, one of `SHIPPED_ENCODERS`.

    Raises:
        DamagedEncoderError: No encoder has that name, or its packaged file has been changed.
        MissingRuntimeError: LiteRT is not installed.
    """
    return LiteRtEncoder(packaged(name))


def open_encoder(encoder: Encoder | str | os.PathLike[str] | None = None) -> Encoder:
    """Return a phone's encoder: a shipped one, that of a file, or one that runs already.

    Args:
        encoder: Name of a shipped encoder; path of an encoder file, such as one that `earshot
            train` wrote; an encoder; or None for the default one. The name of a shipped encoder
            takes precedence over a file of that name, which `./name` or a `Path` selects.

    Raises:
        DamagedEncoderError: There is no such encoder or file, or it is damaged.
        MissingRuntimeError: LiteRT is not installed.
    """
    if encoder is None:
        return default_encoder()
    if isinstance(encoder, str) and encoder in SHIPPED_ENCODERS:
        return shipped_encoder(encoder)
    return LiteRtEncoder.open(encoder) if isinstance(encoder, str | os.PathLike) else encoder


def encoder_path(encoder: str | None = None) -> Path:
    """Return the file of an encoder, to measure it or to hand it to other processes.

    Args:
        encoder: Name or path as in `open_encoder`.

    Returns:
        The file of the shipped encoder of this name, checked; else the path that was given,
        unchecked.

    Raises:
        DamagedEncoderError: The packaged file has been changed.
    """
    name = DEFAULT_ENCODER if encoder is None else encoder
    if name not in SHIPPED_ENCODERS:
        return Path(name)
    packaged(name)
    return Path(str(packaged_file(name)))
