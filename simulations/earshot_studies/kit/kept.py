"""Results of a study, kept under all that they depend on, so that a run can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.files import replace_file, replacement
from earshot_studies.kit.outcome import Row

Settings = Sequence[Any]
"""All that something depends on, as JSON takes it; a version of its format among it."""


@dataclass(frozen=True)
class Kept:
    """A folder of files, each complete or missing, with names that say what they depend on.

    Attributes:
        folder: Folder of the files, made when something is kept.
    """

    folder: Path

    def place(self, name: str, settings: Settings, suffix: str = ".json") -> Path:
        """Return the path under which something is kept.

        Args:
            name: Name of what is kept.
            settings: Settings that it depends on, all of them.
            suffix: End of the file's name.
        """
        key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
        return self.folder / f"{name}-{key}{suffix}"

    def rows(self, name: str, settings: Settings, make: Callable[[], list[Row]]) -> list[Row]:
        """Return rows that were measured, or measure them now and keep them; see `place`."""
        return rows_at(self.place(name, settings), make)

    def arrays(
        self, name: str, settings: Settings, make: Callable[[], Mapping[str, NDArray[Any]]]
    ) -> dict[str, NDArray[Any]]:
        """Return arrays that were made, or make them now and keep them; see `place`."""
        path = self.place(name, settings, ".npz")
        if not path.is_file():
            made = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacement(path) as draft:
                np.savez(draft, allow_pickle=False, **made)
        with np.load(path) as kept:
            return {each: kept[each] for each in kept}


def rows_at(path: Path, make: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of a file, or make them now and keep them there."""
    if not path.is_file():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(made))
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def digest(*arrays: NDArray[Any]) -> str:
    """Return a digest that stands for the content of arrays among settings."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()
