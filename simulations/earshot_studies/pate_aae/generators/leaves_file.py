"""The numbers of a network or a training in one file: a header of JSON, then plain numbers.

Nothing in such a file is code, and nothing in it is larger than stated: before a number is read,
the file must have the length that follows from its header and the reader's expectation.

    magic (8 bytes) · length of the header (4, little-endian) · header · arrays · SHA-256 of all
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file

MAGIC = b"EARSHOT\x01"
LONGEST_HEADER = 2**16
_DIGEST = 32
_KINDS = {"float32": "<f4", "int32": "<i4", "uint32": "<u4"}

Tree = TypeVar("Tree")


class DamagedFileError(InvalidInputError):
    """A file that does not have this format, was cut short or was changed."""


class OtherShapeError(InvalidInputError):
    """An intact file whose numbers do not have the wanted shape."""


def write(path: Path, header: dict[str, Any], tree: Any, mode: int = 0o644) -> None:
    """Write a file as a whole or not at all; it is on the disk when this returns.

    Args:
        path: File to write or replace.
        header: Plain values.
        tree: Arrays of float32, int32 or uint32 in any nesting.
        mode: Permissions of the file.
    """
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    about = {"header": header, "arrays": [[str(leaf.dtype), *leaf.shape] for leaf in leaves]}
    text = json.dumps(about).encode()
    parts = [MAGIC, len(text).to_bytes(4, "little"), text]
    parts += [leaf.astype(_KINDS[str(leaf.dtype)]).tobytes() for leaf in leaves]
    content = b"".join(parts)
    replace_file(path, content + hashlib.sha256(content).digest(), mode)


def header(path: Path) -> dict[str, Any]:
    """Return a file's header.

    Raises:
        DamagedFileError: The file cannot be read, or does not have this format.
    """
    return _about(path)[0]


def read(path: Path, expected: Tree) -> Tree:
    """Return the arrays of a file, in the nesting of `expected`.

    Args:
        path: File to read.
        expected: Arrays, or objects with their shapes and dtypes.

    Raises:
        DamagedFileError: The file cannot be read, does not have this format, or was changed.
        OtherShapeError: The file has other arrays.
    """
    _, arrays, start = _about(path)
    leaves, nesting = jax.tree.flatten(expected)
    wanted = [[str(leaf.dtype), *leaf.shape] for leaf in leaves]
    if arrays != wanted:
        raise OtherShapeError(f"{path} holds arrays {_shown(arrays)}; expected {_shown(wanted)}")
    sizes = [4 * int(np.prod(leaf.shape, dtype=np.int64)) for leaf in leaves]
    if path.stat().st_size != start + sum(sizes) + _DIGEST:
        raise DamagedFileError(f"{path} does not have its stated length: it was cut or changed")
    content = path.read_bytes()
    if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise DamagedFileError(f"{path} has changed since it was written")
    found = []
    for leaf, size in zip(leaves, sizes, strict=True):
        numbers = np.frombuffer(content[start : start + size], _KINDS[str(leaf.dtype)])
        found.append(numbers.astype(str(leaf.dtype)).reshape(leaf.shape))
        start += size
    tree: Tree = jax.tree.unflatten(nesting, found)
    return tree


def _about(path: Path) -> tuple[dict[str, Any], list[list[Any]], int]:
    """Return the header, the arrays and the place where these begin."""
    try:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise DamagedFileError(f"{path} is not a checkpoint, or of another version")
            length = int.from_bytes(file.read(4), "little")
            if length > LONGEST_HEADER:
                raise DamagedFileError(f"{path} has a header of {length} bytes")
            about = json.loads(file.read(length))
        inner, arrays = about["header"], about["arrays"]
        if not isinstance(inner, dict) or not isinstance(arrays, list):
            raise DamagedFileError(f"{path} has no readable header")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFileError(f"{path} cannot be read: {error}") from error
    return inner, arrays, len(MAGIC) + 4 + length


def _shown(arrays: list[list[Any]]) -> str:
    return f"{len(arrays)} ({str(arrays)[:80]}…)"
