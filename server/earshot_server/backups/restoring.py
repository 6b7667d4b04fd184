"""Restoring a server from a backup, into a new folder.

A backup copies the database, but not the phones. After it they may have answered, and a sum may
have been opened and published. If the copy continued that phase, phones could answer one sum to two
servers, whose shares together would reconstruct a secret, and noise would be drawn twice for one
release. So every phase under way ends as failed, and the next phase has new keys
(docs/decisions/0051-a-restored-server-starts-anew.md).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import OWNER_ONLY
from earshot_server.backups import rows
from earshot_server.backups.file import Backup, Manifest, damaged, opened
from earshot_server.phases.set_back import begin_anew, end_all
from earshot_server.processes.address import remember, remembered
from earshot_server.processes.embedded import embedded
from earshot_server.records import RESTORED
from earshot_server.store.database import Database, refuse_newer
from earshot_server.store.operators import FIRST, Accounts
from earshot_server.store.suitability import refuse_unsuitable

_DRAFT = ".restoring"


def restore(backup: Path, folder: Path, url: str | None = None, port: int | None = None) -> int:
    """Restore a server from a backup, completely or not at all.

    Args:
        backup: File that `back_up` wrote.
        folder: Data folder of the new server, empty or new.
        url: URL of an empty database, as its owner; None for one in the data folder.
        port: Port at which the new server listens; None for the old server's.

    Returns:
        Number of phases that were under way in the backup and have been ended.

    Raises:
        InvalidInputError: The folder or the database is not empty, or cannot be written.
        DamagedBackupError: The file is not a complete, undamaged backup.
        NewerSchemaError: A newer version of this software made it.
        EmbeddedDatabaseError: PostgreSQL does not start in the folder.
        DatabaseUnavailableError: The database cannot be reached.
        UnsuitableDatabaseError: The database or its role has settings that do not suit.
    """
    try:
        with _new(folder) as draft, opened(backup) as found:
            for name, content in found.files.items():
                (draft / name).touch(OWNER_ONLY)
                (draft / name).write_bytes(content)
            if port is not None:
                address = msgspec.structs.replace(remembered(draft), port=port)
                remember(draft, address)
            try:
                if url:
                    return _load(url, found)
                with embedded(draft) as postgres:
                    return _load(postgres.url, found)
            except rows.UnfitRowsError as error:
                raise damaged(backup, str(error)) from error
    except OSError as error:
        raise InvalidInputError(f"cannot write {folder}: {error.strerror}") from error


def _load(url: str, backup: Backup) -> int:
    """Create the tables of the backup's schema, insert its rows, and migrate."""
    manifest = backup.manifest
    refuse_newer(manifest.schema)
    with closing(Database(url, pool_size=1)) as database:
        refuse_unsuitable(database)
        with database.transaction() as connection:
            if database.tables():
                raise InvalidInputError("the database holds tables: give the URL of an empty one")
            database.migrate(manifest.schema)
            columns = rows.columns(connection)
            if manifest.columns != columns or backup.tables != columns.keys():
                raise rows.UnfitRowsError(f"its tables are not those of schema {manifest.schema}")
            for table in (each for each in rows.KEPT if each in columns):
                with rows.named_misfits(table):
                    rows.write(connection, table, columns[table], backup.rows(table))
            database.migrate()
            with rows.named_misfits("what is under way in it"):
                rows.go_on_after(connection, manifest.numbers)
                return _come_back(database, manifest)


def _come_back(database: Database, manifest: Manifest) -> int:
    """Prepare a database restored from a backup for serving, in one transaction.

    Args:
        database: Migrated database, as its owner.
        manifest: Description of the backup.

    Returns:
        Number of phases that were under way and have been ended.
    """
    moment = datetime.fromtimestamp(manifest.created, UTC)
    when = f"{moment.day} {moment:%b %Y, %H:%M} UTC"
    with database.transaction() as connection:
        ended = end_all(database, f"backup of {when}")
        begin_anew(connection)
        Accounts(database).record(
            FIRST,
            RESTORED,
            detail=f"backup of {when}, by version {manifest.software}; phases that it ended: "
            f"{ended}; what was done, spent or erased since is not known here",
        )
    return ended


@contextmanager
def _new(folder: Path) -> Iterator[Path]:
    """Yield a staging folder; at the end its content moves up, the database first.

    If this is interrupted, no server runs on the database without its credentials
    (`fingerprints.claim`).
    """
    existed = folder.exists()
    # If we are root, the embedded PostgreSQL's account must be able to reach its own folder.
    mode = 0o701 if os.geteuid() == 0 else 0o700
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    held = sorted(each.name for each in folder.iterdir())
    if held:
        raise InvalidInputError(f"{folder} is not empty: it holds {held[0]}; name a new folder")
    draft = folder / _DRAFT
    try:
        draft.mkdir(mode)
        yield draft
        for each in sorted(draft.iterdir(), key=lambda path: not path.is_dir()):
            each.rename(folder / each.name)
        draft.rmdir()
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        if not existed:
            shutil.rmtree(folder, ignore_errors=True)
        raise
