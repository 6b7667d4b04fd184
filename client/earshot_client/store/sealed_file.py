"""One SQLite file whose every row is sealed before SQLite sees it.

The file and its journal hold ciphertext only. Row numbers and the names of values are in the
clear (they are a fixed set), and so are the number of rows and the length of values.

An attacker with write access to the file can remove recordings or values, or restore an old copy of
the file or of a row, undetected: detection needs a monotonic counter, which a phone's hardware may
offer and SQLite does not. Any other change is detected.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from earshot_client.store.interface import (
    DamagedStoreError,
    NewerStoreError,
    StoreUnavailableError,
    WrongKeyError,
    check_outside,
)
from earshot_protocol.errors import InvalidInputError, WrongStateError
from earshot_protocol.files import OWNER_ONLY, made_whole
from earshot_protocol.one_process import OneProcess

KEY_BYTES = 32
SCHEMA_VERSION = 1
"""Version of the file's schema, kept in SQLite's `user_version`."""
_APPLICATION_ID = 0x45617273

_SALT_BYTES = 32
_NONCE_BYTES = 12
_HEADER = struct.Struct(f"<{_SALT_BYTES}sI")

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


class SealedFile(OneProcess):
    """A file of rows, sealed under a key that the phone's system keeps.

    Each row is sealed with ChaCha20-Poly1305, which is fast without special instructions, under a
    random nonce and with its table, number or name, and the file's salt as associated data, so rows
    cannot be swapped. The sealing key is HKDF-SHA256 of the given key and that salt.

    The file is made if it does not exist, readable by its owner only where the file system keeps
    permissions. While it is open it cannot be opened again; the threads of this process may share
    it, one at a time. A process that was forked from this one may not: its calls raise
    OtherProcessError, and it never touches the file.

    Args:
        path: Path of the file.
        key: 32 secret bytes.
        dimensions: Dimensions of the embeddings; for an existing file, those it was made with.
        fill: Function that puts the first rows into a new file, in the transaction that makes it.

    Raises:
        InvalidInputError: The key or the dimensions are invalid, or the file has other dimensions.
        WrongKeyError: The file was made with another key.
        DamagedStoreError: The file is damaged.
        NewerStoreError: A newer version of this software wrote the file.
        StoreUnavailableError: The file is in use, or cannot be read and written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        key: bytes,
        dimensions: int,
        fill: Callable[[SealedFile], None],
    ) -> None:
        if len(key) != KEY_BYTES:
            raise InvalidInputError(f"a key of {len(key)} bytes; {KEY_BYTES} are needed")
        if not 1 <= dimensions < 2**16:
            raise InvalidInputError(f"dimensions={dimensions}: 1 to 65535 are accepted")
        self._lock = threading.RLock()
        place = Path(os.path.abspath(path))
        if not os.path.lexists(place):
            self._make(place, key, dimensions, fill)
        elif not place.is_file():
            raise StoreUnavailableError(f"{place} is not a file")
        self._connect(place)
        try:
            self._check_file()
            self._read_header(key, dimensions)
            # exFAT and network shares keep no permissions; there the encryption must suffice.
            with contextlib.suppress(OSError):
                os.chmod(place, OWNER_ONLY)
        except BaseException:
            self._database.close()
            raise

    def rows(self, statement: str, *values: str | int | bytes) -> list[tuple[Any, ...]]:
        """Run one statement of SQL and return its rows; SQLite's errors are raised as ours."""
        self.check_process()
        with self._lock, _named_errors():
            return self._database.execute(statement, values).fetchall()

    def seal(self, table: str, row: str | int, plaintext: bytes) -> bytes:
        """Seal a plain text for that row of that table."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plaintext, self._bound_to(table, row))

    def unseal(self, table: str, row: str | int, sealed: bytes) -> bytes:
        """Return what was sealed for that row of that table.

        Raises:
            DamagedStoreError: The row is damaged.
        """
        try:
            nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
            return self._cipher.decrypt(nonce, ciphertext, self._bound_to(table, row))
        # A damaged row may even hold another type, or be too short for a nonce.
        except (InvalidTag, TypeError, ValueError) as error:
            raise DamagedStoreError(f"row {row!r} of {table} is damaged") from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a `with` block one change; other threads wait for its end."""
        self.check_process()
        with self._lock:
            # The outermost savepoint is a transaction: releasing it commits.
            self.rows("SAVEPOINT change")
            try:
                yield
                self.rows("RELEASE change")
            except BaseException:
                # A full disk may have made SQLite roll back everything already.
                if self._database.in_transaction:
                    self.rows("ROLLBACK TO change")
                    self.rows("RELEASE change")
                raise

    def close(self) -> None:
        """Close the file, outside of a transaction; closing twice is harmless."""
        self.check_process()
        with self._lock:
            # A closed database cannot say whether it is in a transaction.
            with contextlib.suppress(sqlite3.ProgrammingError):
                check_outside(self._database.in_transaction)
            self._database.close()

    def __del__(self) -> None:
        if self.is_at_home and hasattr(self, "_database"):
            self._database.close()

    def _make(
        self, place: Path, key: bytes, dimensions: int, fill: Callable[[SealedFile], None]
    ) -> None:
        """Make a complete file, because an empty one counts as having lost its content."""
        try:
            with made_whole(place) as fresh:
                self._connect(fresh)
                try:
                    self._create(key, dimensions)
                    fill(self)
                    self.rows("COMMIT")
                finally:
                    self._database.close()
                    Path(f"{fresh}-journal").unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnavailableError(f"the store cannot be made: {error}") from error

    def _connect(self, place: Path) -> None:
        """Open the file, which exists, and begin an exclusive transaction."""
        with _named_errors():
            # The lock of this object keeps threads apart.
            self._database = sqlite3.connect(
                f"file:{quote(str(place))}?mode=rw",
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        # SQLite holds this reference, which Python does not see, so that only `close` closes.
        # Collected in a forked process, a connection would roll back its parent's transaction.
        self._database.create_function("itself", 0, self._database.__repr__)
        try:
            for pragma in _PRAGMAS:
                self.rows(pragma)
            # Under exclusive locking, a lock that was taken once is held until the file is closed.
            self.rows("BEGIN EXCLUSIVE")
        except BaseException:
            self._database.close()
            raise

    def _create(self, key: bytes, dimensions: int) -> None:
        for statement in _SCHEMA:
            self.rows(statement)
        fixed = _HEADER.pack(os.urandom(_SALT_BYTES), dimensions)
        header = fixed + self._derive(key, fixed)
        content = header + hashlib.sha256(header).digest()
        self.rows("INSERT INTO header VALUES (1, ?)", content)

    def _check_file(self) -> None:
        self.rows("ROLLBACK")
        version = self._pragma("user_version")
        if self._pragma("application_id") != _APPLICATION_ID or version < 1:
            raise DamagedStoreError("the file is not a store of recordings, or its content is lost")
        if version > SCHEMA_VERSION:
            raise NewerStoreError(
                f"the store has schema version {version}; this software reads {SCHEMA_VERSION}: "
                "update it"
            )
        findings = self.rows("PRAGMA quick_check")
        if findings != [("ok",)]:
            raise DamagedStoreError(f"the file is damaged: {findings[0][0]}")

    def _read_header(self, key: bytes, expected: int) -> None:
        rows = self.rows("SELECT content FROM header")
        content = rows[0][0] if len(rows) == 1 else b""
        header, digest = content[:-32], content[-32:]
        if len(header) != _HEADER.size + 32 or hashlib.sha256(header).digest() != digest:
            raise DamagedStoreError("the store's header is damaged")
        fixed, key_check = header[: _HEADER.size], header[_HEADER.size :]
        if not hmac.compare_digest(self._derive(key, fixed), key_check):
            raise WrongKeyError("the store was made with another key; use the one it was made with")
        _, dimensions = _HEADER.unpack(fixed)
        if dimensions != expected:
            raise InvalidInputError(
                f"the store was made for {dimensions} dimensions, not {expected}"
            )

    def _derive(self, key: bytes, fixed: bytes) -> bytes:
        """Set the sealing key; return 32 bytes by which the key is checked."""
        # All of the fixed header enters, so that none of it can be changed without the key.
        derived = HKDF(SHA256(), 64, fixed, b"earshot store 1").derive(key)
        self._salt = fixed[:_SALT_BYTES]
        self._cipher = ChaCha20Poly1305(derived[:32])
        return derived[32:]

    def _bound_to(self, table: str, row: str | int) -> bytes:
        return self._salt + f"{table}/{row}".encode()

    def _pragma(self, name: str) -> int:
        return int(self.rows(f"PRAGMA {name}")[0][0])


@contextlib.contextmanager
def _named_errors() -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise WrongStateError(f"the store cannot be used here: {error}") from error
    except sqlite3.Error as error:
        # Errors without a code come from Python's reading of the file's content.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _UNAVAILABLE:
            raise StoreUnavailableError(
                f"the store cannot be read or written now ({error}): it may be open elsewhere (or "
                "was, in the process that this one was forked from), the disk full, the permission "
                "missing, or the file system without locks"
            ) from error
        raise DamagedStoreError(f"the file is not a store, or is damaged: {error}") from error
    except UnicodeDecodeError as error:
        # Python fails to read SQLite's message when that quotes a damaged schema.
        raise DamagedStoreError("the file's schema is damaged") from error
