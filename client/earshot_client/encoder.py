"""Encoders: one second of sound → 128 numbers on the unit sphere.

The rest of the system sees an `Encoder` as a black box (thesis, chapter 5). The shipped one runs on
LiteRT, an extra: whoever brings an encoder of its own needs no more than numpy.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_protocol import distribution
from earshot_protocol.encoder_file import DamagedEncoderError

SHIPPED_SHA256 = "622142b15ef98273a8225aa2adcc1b90486152e775367086d8ec031f7c112816"
"""Digest of data/encoder.tflite: the encoder must be the one that all phones share."""


class Encoder(Protocol):
    """Turns sound into embeddings. It is public, and the same on every phone."""

    @property
    def name(self) -> str:
        """Identifies the encoder and its version: embeddings of two encoders do not compare."""

    @property
    def dimensions(self) -> int:
        """Length of an embedding."""

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Floats (batch, 8000) at 8 kHz in [-1, 1] → float32 (batch, 128), unit rows."""

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Embeddings (batch, 128) → float32 (batch, dimensions), unit rows.

        The private steps add noise to every coordinate, so they want few of them.
        """


@cache
def default_encoder() -> Encoder:
    """The encoder that all phones share, read once.

    Raises:
        DamagedEncoderError: if the packaged file has been changed.
        MissingRuntimeError: if LiteRT is not installed.
    """
    data = (resources.files("earshot_client") / "data" / "encoder.tflite").read_bytes()
    if hashlib.sha256(data).hexdigest() != SHIPPED_SHA256:
        raise DamagedEncoderError(
            f"the packaged encoder does not have the digest {SHIPPED_SHA256}; "
            f"reinstall {distribution.NAME}"
        )
    return LiteRtEncoder(data)


def open_encoder(encoder: Encoder | str | Path | None = None) -> Encoder:
    """What a phone embeds with: the shipped encoder, that of a file, or one that runs already.

    Args:
        encoder: the path of an encoder file, such as one that `earshot train` wrote, or an encoder;
            None for the shipped one.

    Raises:
        DamagedEncoderError: there is no such file, or it is damaged.
        MissingRuntimeError: LiteRT is not installed.
    """
    if encoder is None:
        return default_encoder()
    return LiteRtEncoder.open(encoder) if isinstance(encoder, str | Path) else encoder
