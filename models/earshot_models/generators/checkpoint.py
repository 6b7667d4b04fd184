"""A killed training goes on from a file, and redoes what was lost bit by bit.

The file has the secret of the training, from which all its noise is drawn, and weights between
steps. Both are as sensitive as the clips: it is for its owner alone (0600) and is gone when the
training is done. Noise that is drawn again for other clips would give both away by their
difference, so another training is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from earshot_models.generators import leaves_file
from earshot_models.generators.randomness import secret_of
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.keyed_randomness import KEY_BYTES

EVERY = 50
"""Steps between two files."""
_OWNER_ONLY = 0o600

State = TypeVar("State")


class OtherTrainingError(InvalidInputError):
    """A checkpoint of a training with other settings, or of other clips."""


class Checkpoint:
    """Of one training; without a path, nothing is kept.

    Args:
        path: of the file; an earlier training goes on if it is there.
        about: what must not change, plain values by name.
        seed: of all randomness; None for the operating system's.

    Raises:
        OtherTrainingError: the file is of another training; the message names what differs.
        DamagedFileError: it cannot be read.
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
        """The state to go on from, and how many steps it has behind it.

        Args:
            start: the state before the first step.
        """
        if self._found is None or self._path is None:
            return start, 0
        state = leaves_file.read(self._path, start)
        return jax.tree.map(jax.numpy.asarray, state), int(self._found["done"])

    def save(self, state: Any, done: int) -> None:
        """Keep a state with so many steps behind it."""
        if self._path is None:
            return
        header = {"about": self._about, "done": done, "secret": self.secret.hex()}
        leaves_file.write(self._path, header, state, _OWNER_ONLY)

    def erase(self) -> None:
        """Forget weights and secret; what a disk keeps of an erased file is its owner's matter."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _refuse_another(self) -> None:
        assert self._found is not None  # noqa: S101
        kept = self._found.get("about")
        if not isinstance(kept, dict):
            raise leaves_file.DamagedFileError(f"{self._path} is no checkpoint")
        names = sorted(kept.keys() | self._about.keys())
        other = [name for name in names if kept.get(name) != self._about.get(name)]
        if other:
            name = other[0]
            raise OtherTrainingError(
                f"{self._path} is of another training: {', '.join(other)} differ ({name} was "
                f"{kept.get(name)!r} and is {self._about.get(name)!r}); take another file, or "
                "erase this one and start anew"
            )

    def _secret(self) -> bytes:
        assert self._found is not None  # noqa: S101
        try:
            secret = bytes.fromhex(self._found["secret"])
            done = self._found["done"]
        except (KeyError, TypeError, ValueError) as error:
            raise leaves_file.DamagedFileError(f"{self._path} is no checkpoint") from error
        if len(secret) != KEY_BYTES or not isinstance(done, int):
            raise leaves_file.DamagedFileError(f"{self._path} is no checkpoint")
        return secret


def finite(tree: Any) -> bool:
    """Whether all numbers of a tree are."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(tree))
