"""Checkpoints from which a killed training continues, redoing lost steps bit by bit.

The file holds the training's secret, from which all its noise is drawn, and weights between steps.
Both are as sensitive as the clips: the file is readable by its owner alone (0600) and is removed
when the training is done. The same noise drawn again for other clips would give both away by their
difference, so another training is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import OWNER_ONLY
from earshot_protocol.keyed_randomness import KEY_BYTES
from earshot_studies.pate_aae.generators import leaves_file
from earshot_studies.pate_aae.generators.randomness import secret_of

EVERY = 50
"""Steps between two files."""

State = TypeVar("State")


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
            self._found = leaves_file.header(path)
            self._refuse_another()
        self.secret = self._secret() if self._found else secret_of(seed)

    def restored(self, start: State) -> tuple[State, int]:
        """Return the state to continue from, and the number of steps that led to it.

        Args:
            start: State before the first step.
        """
        if self._found is None or self._path is None:
            return start, 0
        state = leaves_file.read(self._path, start)
        return jax.tree.map(jax.numpy.asarray, state), int(self._found["done"])

    def save(self, state: Any, done: int) -> None:
        """Keep a state after `done` steps."""
        if self._path is None:
            return
        header = {"about": self._about, "done": done, "secret": self.secret.hex()}
        leaves_file.write(self._path, header, state, OWNER_ONLY)

    def erase(self) -> None:
        """Forget weights and secret; what a disk keeps of an erased file is its owner's concern."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _refuse_another(self) -> None:
        assert self._found is not None  # noqa: S101
        kept = self._found.get("about")
        if not isinstance(kept, dict):
            raise leaves_file.DamagedFileError(f"{self._path} is not a checkpoint")
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
            raise leaves_file.DamagedFileError(f"{self._path} is not a checkpoint") from error
        if len(secret) != KEY_BYTES or not isinstance(done, int):
            raise leaves_file.DamagedFileError(f"{self._path} is not a checkpoint")
        return secret


def finite(tree: Any) -> bool:
    """Return whether all numbers of a tree are finite."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))
