"""A store in one encrypted file: its content and how it is read.

`SealedFile` documents what the file reveals. Every sealed recording has the same length, whatever
its label and its day.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from earshot_client.store.interface import (
    EMBEDDING_DIMENSIONS,
    DamagedStoreError,
    LostLedgerError,
    Recording,
    Store,
    checked_embedding,
    checked_name,
    no_recording,
)
from earshot_client.store.rows import RecordingRow, pack_count, unpack_count
from earshot_client.store.sealed_file import SealedFile
from earshot_protocol.overriding import override


class EncryptedStore(Store):
    """A `Store` in one file, sealed under a key that the phone's system keeps.

    The file is made if it does not exist, readable by its owner only, and is read and checked whole
    when it is opened. While it is open it cannot be opened again; the threads of this process may
    share it, and it runs their calls one at a time.

    Args:
        path: Path of the file.
        key: 32 secret bytes.
        dimensions: Dimensions of the embeddings; for an existing file, those it was made with.

    Raises:
        InvalidInputError: The key or the dimensions are invalid, or the file has other dimensions.
        WrongKeyError: The file was made with another key.
        LostLedgerError: The file, or a row of it, is damaged; the message says how to recover.
        NewerStoreError: A newer version of this software wrote the file.
        StoreUnavailableError: The file is in use, or cannot be read and written.
    """

    def __init__(
        self, path: str | os.PathLike[str], key: bytes, *, dimensions: int = EMBEDDING_DIMENSIONS
    ) -> None:
        self._dimensions = dimensions
        try:
            self._file = SealedFile(path, key, dimensions, begin_ledger)
            try:
                with self._file.transaction():
                    self._check_rows()
            except BaseException:
                self._file.close()
                raise
        except DamagedStoreError as error:
            raise LostLedgerError(str(error)) from error

    @override
    def add(self, embedding: NDArray[np.floating], day: date | None = None) -> int:
        row = RecordingRow(checked_embedding(embedding, self._dimensions), day)
        with self.transaction():
            # The number is part of what is sealed, and SQLite assigns it on insertion.
            ((number,),) = self._file.rows(
                "INSERT INTO recordings (sealed) VALUES (x'') RETURNING id"
            )
            self._put_recording(number, row)
        return int(number)

    @override
    def label(self, recording: int, choice: str) -> None:
        number = _checked_number(recording)
        checked_name("choice", choice)
        with self.transaction():
            row = self._recording(number)
            if row is None:
                raise no_recording(recording)
            self._put_recording(number, replace(row, choice=choice))

    @override
    def recordings(self) -> tuple[NDArray[np.float32], tuple[str | None, ...]]:
        rows = self._recordings()
        embeddings = np.empty((len(rows), self._dimensions), dtype=np.float32)
        for place, (_, row) in enumerate(rows):
            embeddings[place] = row.embedding
        return embeddings, tuple(row.choice for _, row in rows)

    @override
    def count(self) -> int:
        ((count,),) = self._file.rows("SELECT count(*) FROM recordings")
        return int(count)

    @override
    def descriptions(self) -> tuple[Recording, ...]:
        return tuple(
            Recording(number, row.day, row.choice, row.counted)
            for number, row in self._recordings()
        )

    @override
    def mark_counted(self, recordings: Iterable[int]) -> None:
        with self.transaction():
            for number in recordings:
                row = self._recording(number)
                if row is not None:
                    self._put_recording(number, replace(row, counted=True))

    @override
    def forget(self, recording: int) -> None:
        number = _checked_number(recording)
        if not self._file.rows("DELETE FROM recordings WHERE id = ? RETURNING id", number):
            raise no_recording(recording)

    @override
    def forget_all(self) -> None:
        self._file.rows("DELETE FROM recordings")

    @override
    def get(self, name: str) -> bytes | None:
        rows = self._file.rows("SELECT sealed FROM named_values WHERE name = ?", name)
        return self._file.unseal("named_values", name, rows[0][0]) if rows else None

    @override
    def put(self, name: str, value: bytes) -> None:
        sealed = self._file.seal("named_values", checked_name("name", name), value)
        self._file.rows("INSERT OR REPLACE INTO named_values VALUES (?, ?)", name, sealed)

    @override
    def delete(self, name: str) -> None:
        self._file.rows("DELETE FROM named_values WHERE name = ?", name)

    @override
    def ledger(self) -> tuple[bytes, ...]:
        with self.transaction():
            rows = self._file.rows("SELECT id, sealed FROM ledger ORDER BY id")
            length = self._ledger_length()
        if [number for number, _ in rows] != list(range(1, length + 1)):
            raise DamagedStoreError("entries are missing from the store's ledger")
        return tuple(self._file.unseal("ledger", number, sealed) for number, sealed in rows)

    @override
    def append_ledger(self, entry: bytes) -> None:
        with self.transaction():
            number = self._ledger_length() + 1
            sealed = self._file.seal("ledger", number, entry)
            self._file.rows("INSERT INTO ledger VALUES (?, ?)", number, sealed)
            put_ledger_length(self._file, number)

    @override
    def transaction(self) -> AbstractContextManager[None]:
        """Make all changes of a `with` block one change; other threads wait for its end."""
        return self._file.transaction()

    @override
    def close(self) -> None:
        self._file.close()

    def _check_rows(self) -> None:
        self._recordings()
        self.ledger()
        for name, sealed in self._file.rows("SELECT name, sealed FROM named_values"):
            self._file.unseal("named_values", name, sealed)

    def _recordings(self) -> list[tuple[int, RecordingRow]]:
        rows = self._file.rows("SELECT id, sealed FROM recordings ORDER BY id")
        return [(number, self._unsealed(number, sealed)) for number, sealed in rows]

    def _recording(self, number: int) -> RecordingRow | None:
        rows = self._file.rows("SELECT sealed FROM recordings WHERE id = ?", number)
        return self._unsealed(number, rows[0][0]) if rows else None

    def _unsealed(self, number: int, sealed: bytes) -> RecordingRow:
        plaintext = self._file.unseal("recordings", number, sealed)
        return RecordingRow.unpack(plaintext, self._dimensions)

    def _put_recording(self, number: int, row: RecordingRow) -> None:
        sealed = self._file.seal("recordings", number, row.pack())
        self._file.rows("UPDATE recordings SET sealed = ? WHERE id = ?", sealed, number)

    def _ledger_length(self) -> int:
        rows = self._file.rows("SELECT sealed FROM ledger_length")
        if len(rows) != 1:
            raise DamagedStoreError("the length of the store's ledger is missing")
        return unpack_count(self._file.unseal("ledger_length", 1, rows[0][0]))


def begin_ledger(file: SealedFile) -> None:
    """Put the first rows into a new file."""
    put_ledger_length(file, 0)


def put_ledger_length(file: SealedFile, length: int) -> None:
    """Store the number of the ledger's entries, so that missing newest ones are noticed."""
    sealed = file.seal("ledger_length", 1, pack_count(length))
    file.rows("INSERT OR REPLACE INTO ledger_length VALUES (1, ?)", sealed)


def _checked_number(recording: int) -> int:
    # SQLite's integers end at 63 bits, and it does not take numpy's.
    if not 0 < recording < 2**63:
        raise no_recording(recording)
    return int(recording)
