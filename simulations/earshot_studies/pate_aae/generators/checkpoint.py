"""Checkpoints from which an interrupted training continues, repeating lost steps bit by bit.

The file holds the training's secret, from which all its noise is drawn, and weights between steps.
Both are as sensitive as the clips: the file is readable by its owner alone (0600) and is removed
when the training is done. The same noise on other clips would reveal both by their difference, so
another training is refused.

The file holds no code. Before any number is read, its length must follow from its header and the
expected arrays.

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
from earshot_protocol.files import OWNER_ONLY, replace_file
from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_studies.pate_aae.generators.randomness import secret_of

EVERY = 50
"""Steps between two files."""

_MAGIC = b"EARSHOT\x01"
_LONGEST_HEADER = 2**16
_DIGEST = 32
_KINDS = {"float32": "<f4", "int32": "<i4", "uint32": "<u4"}

State = TypeVar("State")


class DamagedFileError(InvalidInputError):
    """A file that does not have this format, was cut short or was changed."""


class OtherShapeError(InvalidInputError):
    """An intact file whose numbers do not have the wanted shape."""


class OtherTrainingError(InvalidInputError):
    """A checkpoint of a training with other settings, or of other clips."""


class Checkpoint:
    """Checkpoint of one training; without a path, nothing is kept.

    Args:
        path: Checkpoint file; if it exists, its training continues.
        about: Values that must not change, plain and by name.
        seed: Seed for all randomness; None for the operating system's.

    Raises:
        OtherTrainingError: The file is of another training; the message names what differs.
        DamagedFileError: The file cannot be read.
    """

    def __init__(self, path: Path | None, about: dict[str, Any], seed: int | None) -> None:
        self._path = path
        self._about = about
        self._found: dict[str, Any] | None = None
        if path is not None and path.exists():
            self._found = read_header(path)
            self._refuse_another()
        self.secret = self._secret() if self._found else secret_of(seed)

    def restored(self, start: State) -> tuple[State, int]:
        """Return the state to continue from, and the number of steps that led to it.

        Args:
            start: State before the first step.
        """
        if self._found is None or self._path is None:
            return start, 0
        state = read_arrays(self._path, start)
        return jax.tree.map(jax.numpy.asarray, state), int(self._found["done"])

    def save(self, state: Any, done: int) -> None:
        """Write the state after `done` steps."""
        if self._path is None:
            return
        header = {"about": self._about, "done": done, "secret": self.secret.hex()}
        write_arrays(self._path, header, state)

    def erase(self) -> None:
        """Delete the file with weights and secret; this does not overwrite the disk."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _refuse_another(self) -> None:
        assert self._found is not None  # noqa: S101
        kept = self._found.get("about")
        if not isinstance(kept, dict):
            raise DamagedFileError(f"{self._path} is not a checkpoint")
        names = sorted(kept.keys() | self._about.keys())
        other = [name for name in names if kept.get(name) != self._about.get(name)]
        if other:
            name = other[0]
            raise OtherTrainingError(
                f"{self._path} is of another training: {', '.join(other)} differ ({name} was "
                f"{kept.get(name)!r} and is {self._about.get(name)!r}); choose another file, or "
                "erase this one and start again"
            )

    def _secret(self) -> bytes:
        assert self._found is not None  # noqa: S101
        try:
            secret = bytes.fromhex(self._found["secret"])
            done = self._found["done"]
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{self._path} is not a checkpoint") from error
        if len(secret) != KEY_BYTES or not isinstance(done, int):
            raise DamagedFileError(f"{self._path} is not a checkpoint")
        return secret


def finite(tree: Any) -> bool:
    """Return whether all numbers of a tree are finite."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))


def write_arrays(path: Path, header: dict[str, Any], tree: Any) -> None:
    """Write a file as a whole or not at all; it is on the disk when this returns.

    Args:
        path: File to write or replace.
        header: Plain values.
        tree: Arrays of float32, int32 or uint32 in any nesting.
    """
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    about = {"header": header, "arrays": [[str(leaf.dtype), *leaf.shape] for leaf in leaves]}
    text = json.dumps(about).encode()
    parts = [_MAGIC, len(text).to_bytes(4, "little"), text]
    parts += [leaf.astype(_KINDS[str(leaf.dtype)]).tobytes() for leaf in leaves]
    content = b"".join(parts)
    replace_file(path, content + hashlib.sha256(content).digest(), OWNER_ONLY)


def read_header(path: Path) -> dict[str, Any]:
    """Return a file's header.

    Raises:
        DamagedFileError: The file cannot be read, or does not have this format.
    """
    return _about(path)[0]


def read_arrays(path: Path, expected: State) -> State:
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
    tree: State = jax.tree.unflatten(nesting, found)
    return tree


def _about(path: Path) -> tuple[dict[str, Any], list[list[Any]], int]:
    """Return the header, the arrays' dtypes and shapes, and the offset of the first array."""
    try:
        with open(path, "rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise DamagedFileError(f"{path} is not a checkpoint, or of another version")
            length = int.from_bytes(file.read(4), "little")
            if length > _LONGEST_HEADER:
                raise DamagedFileError(f"{path} has a header of {length} bytes")
            about = json.loads(file.read(length))
        inner, arrays = about["header"], about["arrays"]
        if not isinstance(inner, dict) or not isinstance(arrays, list):
            raise DamagedFileError(f"{path} has no readable header")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFileError(f"{path} cannot be read: {error}") from error
    return inner, arrays, len(_MAGIC) + 4 + length


def _shown(arrays: list[list[Any]]) -> str:
    return f"{len(arrays)} ({str(arrays)[:80]}…)"
