"""A store in one encrypted file.

It is one SQLite file whose every row is sealed before SQLite sees it, so the file
and its journal hold ciphertext only. Row numbers and the names of values are in clear (they are a
fixed set), and so are the number of rows and the length of values; every sealed recording has the
same length, whether and however it is labelled.

A thief of the file who returns it can remove recordings or values, or put back an old copy of the
file or of a row, unnoticed: noticing takes a counter that nobody can turn back, which a phone's
hardware may offer and SQLite does not. Anything else that is changed is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import sqlite3
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from earshot_client.store.interface import (
    EMBEDDING_DIMENSIONS,
    ENCODER,
    LARGEST_NAME,
    DamagedStoreError,
    NewerStoreError,
    StoreUnavailableError,
    WrongKeyError,
    check_outside,
    checked_embedding,
    checked_name,
    no_recording,
)
from earshot_protocol.errors import InvalidInputError, WrongStateError

KEY_BYTES = 32
SCHEMA_VERSION = 3
"""Of the file; kept in SQLite's `user_version`."""
_APPLICATION_ID = 0x45617273

_FIRST_ENCODER = b"log-mel-1"
"""The encoder of every file of version 1, which did not name it."""

_OWNER_ONLY = 0o600
_SALT_BYTES = 32
_NONCE_BYTES = 12
_HEADER = struct.Struct(f"<{_SALT_BYTES}sI")
_COUNT = struct.Struct("<Q")
_CHOICE = struct.Struct(f"<H{4 * LARGEST_NAME}s")
"""Its length in bytes, and the bytes, which UTF-8 makes of at most four each."""
_NO_CHOICE = 0xFFFF

_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
    "CREATE TABLE header (id INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    "CREATE TABLE recordings (id INTEGER PRIMARY KEY AUTOINCREMENT, sealed BLOB NOT NULL)",
    # Without row numbers there is no index beside the table, whose damage would hide a value.
    "CREATE TABLE named_values (name TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL)",
    "CREATE TABLE ledger_length (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL)",
)

# Secure deletion overwrites what `forget` removes. The rollback journal is preferred to a
# write-ahead log, which would keep a forgotten recording until its next checkpoint; truncated
# under synchronous=FULL it is synced after a commit, so that a power cut cannot bring it back and
# undo a ledger entry whose answer has left. `fullfsync` is the sync that Apple's systems need.
_PRAGMAS = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA secure_delete = ON",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA journal_mode = TRUNCATE",
)

_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
    }
)


class EncryptedStore:
    """A `Store` in one file, sealed under a key that the phone's system keeps.

    Each row is sealed with ChaCha20-Poly1305, which is fast without special instructions, under a
    random nonce and with its table, number or name, and the store's salt as associated data, so
    rows cannot be swapped. The sealing key is HKDF-SHA256 of the given key and that salt.

    The file is made if it does not exist, readable by its owner only, and is read and checked
    whole when it is opened. While it is open nobody else can open it.

    Args:
        path: of the file.
        key: 32 secret bytes.
        dimensions: of the embeddings; for an existing file, those it was made with.

    Raises:
        InvalidInputError: the key or the dimensions do not fit.
        WrongKeyError: the file was made with another key.
        DamagedStoreError: the file, or a row of it, is not what was written.
        NewerStoreError: a newer version of this software wrote the file.
        StoreUnavailableError: the file is in use, or cannot be read and written.
    """

    def __init__(
        self, path: str | os.PathLike[str], key: bytes, *, dimensions: int = EMBEDDING_DIMENSIONS
    ) -> None:
        if len(key) != KEY_BYTES:
            raise InvalidInputError(f"a key of {len(key)} bytes; {KEY_BYTES} are needed")
        if not 1 <= dimensions < 2**16:
            raise InvalidInputError(f"dimensions={dimensions}: 1 to 65535 are accepted")
        self._dimensions = dimensions
        path = os.path.abspath(path)
        _make_private(path)
        with _named_errors():
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._open(path, key)
            os.chmod(path, _OWNER_ONLY)
        except BaseException:
            self._database.close()
            raise

    def add(self, embedding: NDArray[np.floating]) -> int:
        """See `Store.add`."""
        row = checked_embedding(embedding, self._dimensions)
        with self.transaction():
            # The number is part of what is sealed, and SQLite gives it with the insertion.
            ((number,),) = self._rows("INSERT INTO recordings (sealed) VALUES (x'') RETURNING id")
            self._put_recording(number, row, None)
        return int(number)

    def label(self, recording: int, choice: str) -> None:
        """See `Store.label`."""
        number = _checked_number(recording)
        checked_name("choice", choice)
        rows = self._rows("SELECT sealed FROM recordings WHERE id = ?", number)
        if not rows:
            raise no_recording(recording)
        embedding, _ = self._open_recording(number, rows[0][0])
        self._put_recording(number, embedding, choice)

    def recordings(self) -> tuple[NDArray[np.float32], tuple[str | None, ...]]:
        """See `Store.recordings`."""
        rows = self._rows("SELECT id, sealed FROM recordings ORDER BY id")
        embeddings = np.empty((len(rows), self._dimensions), dtype=np.float32)
        choices: list[str | None] = []
        for place, (number, sealed) in enumerate(rows):
            embeddings[place], choice = self._open_recording(number, sealed)
            choices.append(choice)
        return embeddings, tuple(choices)

    def forget(self, recording: int) -> None:
        """See `Store.forget`."""
        number = _checked_number(recording)
        if not self._rows("DELETE FROM recordings WHERE id = ? RETURNING id", number):
            raise no_recording(recording)

    def forget_all(self) -> None:
        """See `Store.forget_all`."""
        self._rows("DELETE FROM recordings")

    def get(self, name: str) -> bytes | None:
        """See `Store.get`."""
        rows = self._rows("SELECT sealed FROM named_values WHERE name = ?", name)
        return self._unseal("named_values", name, rows[0][0]) if rows else None

    def put(self, name: str, value: bytes) -> None:
        """See `Store.put`."""
        sealed = self._seal("named_values", checked_name("name", name), value)
        self._rows("INSERT OR REPLACE INTO named_values VALUES (?, ?)", name, sealed)

    def delete(self, name: str) -> None:
        """See `Store.delete`."""
        self._rows("DELETE FROM named_values WHERE name = ?", name)

    def ledger(self) -> tuple[bytes, ...]:
        """See `Store.ledger`."""
        rows = self._rows("SELECT id, sealed FROM ledger ORDER BY id")
        if [number for number, _ in rows] != list(range(1, self._ledger_length() + 1)):
            raise DamagedStoreError("entries are missing from the store's ledger")
        return tuple(self._unseal("ledger", number, sealed) for number, sealed in rows)

    def append_ledger(self, entry: bytes) -> None:
        """See `Store.append_ledger`."""
        with self.transaction():
            number = self._ledger_length() + 1
            sealed = self._seal("ledger", number, entry)
            self._rows("INSERT INTO ledger VALUES (?, ?)", number, sealed)
            self._put_ledger_length(number)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`."""
        # The outermost savepoint is a transaction: releasing it commits.
        self._rows("SAVEPOINT change")
        try:
            yield
            self._rows("RELEASE change")
        except BaseException:
            # A full disk may have made SQLite roll back everything already.
            if self._database.in_transaction:
                self._rows("ROLLBACK TO change")
                self._rows("RELEASE change")
            raise

    def close(self) -> None:
        """See `Store.close`."""
        # A closed database does not even say whether it is in a transaction.
        with contextlib.suppress(sqlite3.ProgrammingError):
            check_outside(self._database.in_transaction)
        self._database.close()

    def _open(self, path: str, key: bytes) -> None:
        for pragma in _PRAGMAS:
            self._rows(pragma)
        # Under exclusive locking, a lock that was taken once is held until the file is closed.
        self._rows("BEGIN EXCLUSIVE")
        if os.path.getsize(path) == 0:
            self._create(key)
            self._rows("COMMIT")
            return
        self._rows("ROLLBACK")
        self._check_file()
        self._read_header(key)
        self._check_rows()
        self._migrate()

    def _create(self, key: bytes) -> None:
        for statement in _SCHEMA:
            self._rows(statement)
        fixed = _HEADER.pack(os.urandom(_SALT_BYTES), self._dimensions)
        header = fixed + self._derive(key, fixed)
        content = header + hashlib.sha256(header).digest()
        self._rows("INSERT INTO header VALUES (1, ?)", content)
        self._put_ledger_length(0)

    def _check_file(self) -> None:
        version = self._pragma("user_version")
        if self._pragma("application_id") != _APPLICATION_ID or version < 1:
            raise DamagedStoreError("the file is not a store of recordings, or is damaged")
        if version > SCHEMA_VERSION:
            raise NewerStoreError(
                f"the store has schema version {version}; this software reads {SCHEMA_VERSION}: "
                "update it"
            )
        findings = self._rows("PRAGMA quick_check")
        if findings != [("ok",)]:
            raise DamagedStoreError(f"the file is damaged: {findings[0][0]}")

    def _migrate(self) -> None:
        """Version 1 did not record whose embeddings it held, nor version 2 the ledger's events.

        Entries without events stay as they are, chained; older software could not read new ones.
        """
        if self._pragma("user_version") == SCHEMA_VERSION:
            return
        with self.transaction():
            if self.get(ENCODER) is None:
                self.put(ENCODER, _FIRST_ENCODER)
            self._rows(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _read_header(self, key: bytes) -> None:
        rows = self._rows("SELECT content FROM header")
        content = rows[0][0] if len(rows) == 1 else b""
        header, digest = content[:-32], content[-32:]
        if len(header) != _HEADER.size + 32 or hashlib.sha256(header).digest() != digest:
            raise DamagedStoreError("the store's header is damaged")
        fixed, key_check = header[: _HEADER.size], header[_HEADER.size :]
        if not hmac.compare_digest(self._derive(key, fixed), key_check):
            raise WrongKeyError("the store was made with another key; use the one it was made with")
        _, dimensions = _HEADER.unpack(fixed)
        if dimensions != self._dimensions:
            raise InvalidInputError(
                f"the store was made for {dimensions} dimensions, not {self._dimensions}"
            )

    def _check_rows(self) -> None:
        self.recordings()
        self.ledger()
        for name, sealed in self._rows("SELECT name, sealed FROM named_values"):
            self._unseal("named_values", name, sealed)

    def _derive(self, key: bytes, fixed: bytes) -> bytes:
        """Set the sealing key; return 32 bytes that tell whether a key is the right one."""
        # All of the fixed header enters, so that none of it can be changed without the key.
        derived = HKDF(SHA256(), 64, fixed, b"earshot store 1").derive(key)
        self._salt = fixed[:_SALT_BYTES]
        self._cipher = ChaCha20Poly1305(derived[:32])
        return derived[32:]

    def _seal(self, table: str, row: str | int, plaintext: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plaintext, self._bound_to(table, row))

    def _unseal(self, table: str, row: str | int, sealed: bytes) -> bytes:
        try:
            nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
            return self._cipher.decrypt(nonce, ciphertext, self._bound_to(table, row))
        # A damaged row may even hold another type, or be too short for a nonce.
        except (InvalidTag, TypeError, ValueError) as error:
            raise DamagedStoreError(f"row {row!r} of {table} is damaged") from error

    def _bound_to(self, table: str, row: str | int) -> bytes:
        return self._salt + f"{table}/{row}".encode()

    def _put_recording(
        self, number: int, embedding: NDArray[np.float32], choice: str | None
    ) -> None:
        encoded = b"" if choice is None else choice.encode()
        length = _NO_CHOICE if choice is None else len(encoded)
        plaintext = embedding.astype("<f4").tobytes() + _CHOICE.pack(length, encoded)
        sealed = self._seal("recordings", number, plaintext)
        self._rows("UPDATE recordings SET sealed = ? WHERE id = ?", sealed, number)

    def _open_recording(self, number: int, sealed: bytes) -> tuple[NDArray[np.float32], str | None]:
        plaintext = self._unseal("recordings", number, sealed)
        embedding = np.frombuffer(plaintext, "<f4", self._dimensions)
        length, encoded = _CHOICE.unpack_from(plaintext, embedding.nbytes)
        return embedding, None if length == _NO_CHOICE else encoded[:length].decode()

    def _ledger_length(self) -> int:
        rows = self._rows("SELECT sealed FROM ledger_length")
        if len(rows) != 1:
            raise DamagedStoreError("the length of the store's ledger is missing")
        (length,) = _COUNT.unpack(self._unseal("ledger_length", 1, rows[0][0]))
        return int(length)

    def _put_ledger_length(self, length: int) -> None:
        sealed = self._seal("ledger_length", 1, _COUNT.pack(length))
        self._rows("INSERT OR REPLACE INTO ledger_length VALUES (1, ?)", sealed)

    def _pragma(self, name: str) -> int:
        return int(self._rows(f"PRAGMA {name}")[0][0])

    def _rows(self, statement: str, *values: str | int | bytes) -> list[tuple[Any, ...]]:
        with _named_errors():
            return self._database.execute(statement, values).fetchall()


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise WrongStateError(f"the store cannot be used here: {error}") from error
    except sqlite3.Error as error:
        # Errors without a code come from Python's reading of what the file holds.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _UNAVAILABLE:
            raise StoreUnavailableError(
                f"the store cannot be read or written now ({error}): it may be open elsewhere, "
                "the disk full, or the permission missing"
            ) from error
        raise DamagedStoreError(f"the file is not a store, or is damaged: {error}") from error
    except UnicodeDecodeError as error:
        # Python fails to read SQLite's message when that quotes a damaged schema.
        raise DamagedStoreError("the file's schema is damaged") from error


def _make_private(path: str) -> None:
    """Make the file, for its owner only, unless it exists."""
    # An existing file is not opened here: closing it would let go of locks that this very process
    # may hold on it.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _OWNER_ONLY))
    except FileExistsError:
        if not os.path.isfile(path):
            raise StoreUnavailableError(f"{path} is not a file") from None
    except OSError as error:
        raise StoreUnavailableError(f"the store cannot be made: {error}") from error


def _checked_number(recording: int) -> int:
    # SQLite's integers end at 63 bits, and it takes none of numpy's.
    if not 0 < recording < 2**63:
        raise no_recording(recording)
    return int(recording)
