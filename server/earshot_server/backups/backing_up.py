"""Back up a server, whether or not it is running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_server.backups import file, rows
from earshot_server.processes.embedded import at_hand
from earshot_server.store.database import Database


def back_up(out: Path, folder: Path, url: str | None = None) -> None:
    """Write a consistent backup of a server.

    Args:
        out: File to write; it replaces one that exists.
        folder: The server's data folder.
        url: URL of its database, as the owner; None for the one in the data folder.

    Raises:
        InvalidInputError: The folder or the database is not a server's, or the file cannot be
            written.
        EmbeddedDatabaseError: The database in the folder is missing or does not start.
        DatabaseUnavailableError: The database cannot be reached.
    """
    files = dict(_folder_files(folder))
    with (
        _database_url(folder, url) as owner,
        closing(Database(owner, pool_size=1)) as database,
        database.transaction() as connection,
    ):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        schema = database.schema()
        if schema == 0:
            raise InvalidInputError("the database is not a server's: no server has used it yet")
        columns = rows.columns(connection)
        manifest = file.Manifest(
            software=distribution.version(),
            schema=schema,
            created=database.now(),
            columns=columns,
            numbers=rows.numbers(connection),
        )
        tables = ((table, rows.read(connection, table, columns[table])) for table in columns)
        try:
            file.write(out, manifest, files, tables)
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
