"""Encoders in the package: their names, by which phases refer to them, and their files.

Phones embed sound with them; a server reads their start centroids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from types import MappingProxyType

from earshot_protocol import distribution
from earshot_protocol.encoder_file import DamagedEncoderError

DEFAULT_ENCODER = "contrast-3"
"""Default encoder of phones and phases."""

SHIPPED_ENCODERS: Mapping[str, str] = MappingProxyType(
    {
        "contrast-1": "622142b15ef98273a8225aa2adcc1b90486152e775367086d8ec031f7c112816",
        "contrast-3": "239cd1cde9f082de37e76cd821c9622f20f2d69be4753210f19899c777ce994e",
    }
)
"""SHA-256 of each encoder's file by name, hexadecimal: all phones share the same files."""

_DATA = resources.files("earshot_protocol") / "data"


def packaged_file(name: str) -> Traversable:
    """Return the path of a shipped encoder's file, unchecked; see `packaged`."""
    return _DATA / f"{name}.tflite"


def packaged(name: str) -> bytes:
    """Return the file of a shipped encoder, if it is the one that all phones share.

    Args:
        name: Name of the encoder, one of `SHIPPED_ENCODERS`.

    Raises:
        DamagedEncoderError: No encoder has that name, or its packaged file has been changed.
    """
    digest = SHIPPED_ENCODERS.get(name)
    if digest is None:
        raise DamagedEncoderError(
            f"there is no encoder '{name}' in {distribution.name()}; it has: "
            f"{', '.join(SHIPPED_ENCODERS)}"
        )
    file = packaged_file(name)
    data = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(data).hexdigest() != digest:
        raise DamagedEncoderError(
            f"the packaged encoder '{name}' does not have the digest {digest}; "
            f"reinstall {distribution.name()}"
        )
    return data
