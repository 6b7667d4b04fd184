"""An array in a temporary file, so that many processes share it and memory stays bounded."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from earshot_protocol.errors import WrongStateError


class ArrayFile:
    """Rows of numbers, written by the process that made it and readable by its pickled copies.

    The file lies in the system's temporary folder (TMPDIR), and goes with `close` or with the
    object that made it.
    """

    def __init__(self, rows: int, columns: int, dtype: DTypeLike) -> None:
        """Make a file of zeros.

        Args:
            rows: number of rows, at least 0.
            columns: numbers in a row, at least 1.
            dtype: of the numbers.
        """
        self._shape = (rows, columns)
        self._dtype = np.dtype(dtype)
        self._directory: TemporaryDirectory[str] | None = TemporaryDirectory(
            prefix="earshot-", ignore_cleanup_errors=True
        )
        self._path: Path | None = Path(self._directory.name) / "array"
        self._view: NDArray[Any] | None = None
        with self._path.open("wb") as file:
            file.truncate(rows * self._row_bytes())

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Store rows from row `start` on.

        Raises:
            OSError: if the disk is full; a write through the memory map would end the process.
        """
        with self._open_path().open("r+b") as file:
            file.seek(start * self._row_bytes())
            file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())

    def view(self) -> NDArray[Any]:
        """All rows, mapped read-only: copy what has to outlive `close`.

        Raises:
            WrongStateError: after `close`.
        """
        path = self._open_path()
        if self._shape[0] == 0:
            return np.zeros(self._shape, dtype=self._dtype)
        if self._view is None:
            self._view = np.memmap(path, dtype=self._dtype, mode="r", shape=self._shape)
        return self._view

    def close(self) -> None:
        """Remove the file, if this object made it."""
        self._view = self._path = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy only reads: neither the open map nor the duty to remove the file goes along.
        return {**self.__dict__, "_view": None, "_directory": None}

    def _row_bytes(self) -> int:
        return self._shape[1] * self._dtype.itemsize

    def _open_path(self) -> Path:
        if self._path is None:
            raise WrongStateError("the file is closed and removed")
        return self._path
