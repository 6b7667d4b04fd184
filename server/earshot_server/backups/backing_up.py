"""Backing a server up, while it serves or not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_server.backups import file, programs
from earshot_server.processes.embedded import at_hand
from earshot_server.store.database import Database


def back_up(out: Path, folder: Path, url: str | None = None) -> None:
    """Write a backup of a server, as it is at one moment.

    Args:
        out: File to write; it replaces one that exists.
        folder: The server's data folder.
        url: URL of its database, as the owner; None for the one in the data folder.

    Raises:
        InvalidInputError: The folder or the database is not a server's, or the file cannot be
            written.
        EmbeddedDatabaseError: The database in the folder is missing or does not start.
        DatabaseUnavailableError: The database cannot be reached.
        DumpError: PostgreSQL's program does not fit the database, or failed.
    """
    files = dict(_folder_files(folder))
    with _database_url(folder, url) as owner, closing(Database(owner, pool_size=1)) as database:
        manifest = file.Manifest(
            software=distribution.version(),
            schema=database.schema(),
            postgresql=programs.server_version(database),
            created=database.now(),
        )
        if manifest.schema == 0:
            raise InvalidInputError("the database is not a server's: nobody has served it yet")
        try:
            with tempfile.TemporaryFile(dir=out.absolute().parent) as dump:
                programs.dump(owner, manifest.postgresql, dump)
                dump.seek(0)
                file.write(out, manifest, files, dump)
        except OSError as error:
            raise InvalidInputError(f"cannot write {out}: {error.strerror}") from error


def _folder_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for name in file.FOLDER_FILES:
        try:
            yield name, (folder / name).read_bytes()
        except FileNotFoundError as error:
            if name in file.NEEDED:
                said = f"{folder} holds no {name}: give the server's --data folder"
                raise InvalidInputError(said) from error
        except OSError as error:
            raise InvalidInputError(f"cannot read {folder / name}: {error.strerror}") from error


@contextmanager
def _database_url(folder: Path, url: str | None) -> Iterator[str]:
    if url:
        yield url
        return
    with at_hand(folder) as postgres:
        yield postgres.url
