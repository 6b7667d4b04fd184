"""Results of a study, kept under a key of their settings, so that a run can be resumed."""

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
"""Everything that a result depends on, as JSON values, including a version of its format."""


@dataclass(frozen=True)
class Kept:
    """A folder of results, each complete or missing, named by a hash of their settings.

    Attributes:
        folder: Folder of the files, created with the first result.
    """

    folder: Path

    def place(self, name: str, settings: Settings, suffix: str = ".json") -> Path:
        """Return the path of a result.

        Args:
            name: Name of the result.
            settings: All settings that it depends on.
            suffix: Suffix of the file.
        """
        key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
        return self.folder / f"{name}-{key}{suffix}"

    def rows(self, name: str, settings: Settings, make: Callable[[], list[Row]]) -> list[Row]:
        """Return kept rows, or make and keep them; see `place`."""
        return rows_at(self.place(name, settings), make)

    def arrays(
        self, name: str, settings: Settings, make: Callable[[], Mapping[str, NDArray[Any]]]
    ) -> dict[str, NDArray[Any]]:
        """Return kept arrays, or make and keep them; see `place`."""
        path = self.place(name, settings, ".npz")
        if not path.is_file():
            made = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacement(path) as draft:
                np.savez(draft, allow_pickle=False, **made)
        with np.load(path) as kept:
            return {each: kept[each] for each in kept}


def rows_at(path: Path, make: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of a file, or make and write them if it is missing."""
    if not path.is_file():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(made))
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def digest(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the arrays' bytes in hexadecimal, for use in `Settings`."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()
