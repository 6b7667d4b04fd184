"""Data folder of a helper: its identity, its database, its keys, and parts of lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.errors import LocalError
from earshot_server.credentials import (
    TOKEN_FILE,
    CredentialsError,
    key_of,
    load_or_create,
    load_token,
    new_key,
)
from earshot_server.helper.database import HelperDatabase
from earshot_server.helper.keys import KeyFolder
from earshot_server.helper.leaders import Leaders
from earshot_server.helper.parts import ListParts
from earshot_server.helper.sqlite_book import SqliteBook

KEY_FILE = "helper.key"
_DATABASE, _KEYS, _LISTS = "helper.db", "keys", "lists"
_LOST = "restore it: leaders and phones know this helper by it"


class HelperFolderError(LocalError):
    """The folder does not contain a complete helper; the message says what to do."""


@dataclass(frozen=True)
class HelperFolder:
    """Open data folder of a helper; open it after a fork, not before.

    Attributes:
        identity: Signing key of the helper.
        token: Token for metrics.
        database: Database of records and leaders.
        book: Records and secrets of sums.
        leaders: Leaders that are served.
        parts: Parts of lists.
    """

    identity: Ed25519PrivateKey = field(repr=False)
    token: str = field(repr=False)
    database: HelperDatabase
    book: SqliteBook
    leaders: Leaders
    parts: ListParts

    @classmethod
    def make(cls, folder: Path) -> Self:
        """Create a helper in a folder, or the missing files of an existing one, and open it.

        Raises:
            CredentialsError: A file of credentials cannot be read or written, is open to others or
                damaged.
            LocalError: The folder cannot be opened (see `open`).
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / KEY_FILE
            identity = key_of(load_or_create(path, new_key()), path, _LOST)
            load_token(folder)
        except OSError as error:
            raise CredentialsError(f"credentials in {folder}: {error.strerror}") from error
        HelperDatabase.make(folder / _DATABASE, identity.public_key().public_bytes_raw())
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the folder of a helper that `make` created.

        Raises:
            HelperFolderError: There is no helper in the folder, or its database is of another one.
            CredentialsError: A file of credentials cannot be read, is open to others or damaged.
            DatabaseUnavailableError: The database cannot be read or written.
            HelperDatabaseError: The file is not a helper's database, or has another schema.
            NewerSchemaError: A newer version of this software wrote it.
        """
        for name in (KEY_FILE, TOKEN_FILE, _DATABASE):
            if not (folder / name).exists():
                raise HelperFolderError(
                    f"{folder} holds no helper ({name} is missing): make one with `earshot helper "
                    f"init --data {folder}`, or name its folder with --data"
                )
        try:
            path = folder / KEY_FILE
            identity = key_of(load_or_create(path, b""), path, _LOST)
            token = load_token(folder)
        except OSError as error:
            raise CredentialsError(f"credentials in {folder}: {error.strerror}") from error
        database = HelperDatabase(folder / _DATABASE)
        ((known,),) = database.rows("SELECT identity FROM helper")
        if known != identity.public_key().public_bytes_raw():
            database.close()
            raise HelperFolderError(
                f"{path} is not the key of {folder / _DATABASE}, which is of the helper "
                f"{known.hex()}: restore the key that belongs to it"
            )
        book = SqliteBook(database, KeyFolder(folder / _KEYS))
        return cls(identity, token, database, book, Leaders(database), ListParts(folder / _LISTS))

    def tidy(self, now: float) -> None:
        """Erase expired keys, and drop expired parts, offers and totals.

        Args:
            now: Time in seconds since 1970.
        """
        self.book.tidy(now)
        self.parts.drop_others(self.book.timely_sums(now))
        self.book.forget(now)  # last, as it needs free disk space
