"""A generator in one file that can be published: settings, origin and weights, no code."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from earshot_models.generators import leaves_file
from earshot_models.generators.checkpoint import finite
from earshot_models.generators.generator import Generator
from earshot_models.generators.leaves_file import DamagedFileError, OtherShapeError
from earshot_models.generators.networks import Decoder, Shape
from earshot_models.generators.origin import Origin, OriginKind
from earshot_models.generators.settings import GeneratorSettings, Network, checked_shape, plain
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

VERSION = 1
"""Version of the file; a reader accepts only its own."""
_KIND = "generator"


def save(generator: Generator, path: Path) -> None:
    """Write a generator; the whole file is on the disk when this returns.

    Raises:
        InvalidInputError: The generator's weights are not finite, or the file cannot be written.
    """
    if not finite(generator.decoder):
        raise InvalidInputError("the generator's weights must be finite numbers")
    header = {
        "kind": _KIND,
        "version": VERSION,
        "shape": list(generator.shape),
        "settings": plain(generator.settings),
        "origin": {**asdict(generator.origin), "kind": generator.origin.kind.value},
    }
    try:
        leaves_file.write(path, header, generator.decoder)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {error}") from error


def load(path: Path, shape: Shape | None = None) -> Generator:
    """Read a generator; nothing in the file is run.

    Args:
        path: Generator file.
        shape: Frames and bands that its clips must have; None for any.

    Raises:
        DamagedFileError: The file is not a generator, is of another version, was cut short or
            changed, or has weights that are not finite.
        OtherShapeError: The generator's clips do not have the wanted shape, or its weights are not
            those of its network.
    """
    header = leaves_file.header(path)
    if header.get("kind") != _KIND or header.get("version") != VERSION:
        raise DamagedFileError(
            f"{path} holds {header.get('kind')!r} of version {header.get('version')!r}: must be a "
            f"{_KIND} of version {VERSION}"
        )
    made, settings, origin = _described(path, header)
    if shape is not None and made != tuple(shape):
        raise OtherShapeError(
            f"{path} makes clips of {made[0]} frames × {made[1]} bands; wanted: "
            f"{shape[0]} × {shape[1]}"
        )
    expected = jax.eval_shape(lambda key: Decoder(made, settings, key), jax.random.key(0))
    decoder = jax.tree.map(jnp.asarray, leaves_file.read(path, expected))
    if not finite(decoder):
        raise DamagedFileError(f"{path} holds weights that are not finite numbers")
    return Generator(decoder, made, settings, origin)


def _described(path: Path, header: dict[str, Any]) -> tuple[Shape, GeneratorSettings, Origin]:
    try:
        shape = checked_shape(tuple(header["shape"]))
        settings = dict(header["settings"])
        settings["network"] = Network(settings["network"])
        origin = dict(header["origin"])
        origin["kind"] = OriginKind(origin["kind"])
        return shape, GeneratorSettings(**settings), Origin(**origin)
    except (
        KeyError, TypeError, ValueError, InvalidInputError, InvalidParametersError
    ) as error:  # fmt: skip
        raise DamagedFileError(f"{path} does not describe its content: {error}") from error
