"""A past state that comes back: what was under way in it is over, since it may have gone on.

A database is copied, phones are not. After the backup they may have answered, and a sum may have
been opened and published. Were the copy to go on with that phase, phones could answer one sum to
two servers, so that shares of both open a secret, and noise would be drawn twice for one release.
So nothing that was under way goes on: it ends by name, and the next phase has keys of its own
(docs/decisions/0051-a-restored-server-starts-anew.md).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from earshot_server.backups.file import Manifest
from earshot_server.phases.ending import end_unread
from earshot_server.records import RESTORED_REASON
from earshot_server.store.database import Connection, Database
from earshot_server.store.operators import FIRST, Accounts
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

SET_BACK = "set-back"
"""File of a data folder whose database was set back by other means than `earshot restore`."""
_SKIPPED = 1_000_000
"""Numbers that may have been given out after the backup, and that nobody gets again."""


def come_back(database: Database, manifest: Manifest) -> int:
    """Make a database that was read from a backup fit to be served, in one transaction.

    Args:
        database: Database without records of its schema, as its owner.
        manifest: Statement of the backup.

    Returns:
        Number of phases that were under way, and are over now.
    """
    moment = datetime.fromtimestamp(manifest.created, UTC)
    when = f"{moment.day} {moment:%b %Y, %H:%M} UTC"
    with database.transaction() as connection:
        database.record_schema(manifest.schema)
        database.migrate()
        ended = _end_all(database, f"backup of {when}")
        connection.execute("DELETE FROM snapshots")  # an older backup may hold some
        _begin_anew(connection)
        Accounts(database).record(
            FIRST,
            "restore server",
            detail=f"backup of {when}, by version {manifest.software}; phases that it ended: "
            f"{ended}; what was done, spent or erased since is not known here",
        )
    return ended


def end_if_set_back(database: Database, folder: Path) -> int:
    """End what is under way where the operator says that the database was set back.

    Copies of disks and continuous archiving go around `earshot restore`, and nothing in a database
    shows that it is an old one. So the operator leaves a file in the data folder before the start,
    which is removed once everything has ended.

    Args:
        database: Migrated database, as its owner, which nobody serves yet.
        folder: Data folder.

    Returns:
        Number of phases that were under way, and are over now.
    """
    mark = folder / SET_BACK
    if not mark.exists():
        return 0
    with database.transaction() as connection:
        ended = _end_all(database, "copy of its database")
        _begin_anew(connection)
        Accounts(database).record(
            FIRST,
            "restore server",
            detail=f"set back by other means than a backup; phases that it ended: {ended}; what "
            "was done, spent or erased since is not known here",
        )
    mark.unlink(missing_ok=True)
    return ended


def _end_all(database: Database, copy: str) -> int:
    reason = (
        f"{RESTORED_REASON} {copy}: it may have gone on since, and its sums may have been spent; "
        "start a new phase"
    )
    registry, store = Registry(database), PostgresPhaseStore(database)
    gathering = registry.gatherings()
    for each in gathering:
        registry.end_gathering(each.phase, reason)
    stopped, running = dict(registry.stopped()), store.running()
    for phase in running:
        end_unread(store, phase, stopped.get(phase, reason))
    return len(gathering) + len(running) - len(stopped)


def _begin_anew(connection: Connection) -> None:
    connection.execute("DELETE FROM sessions")  # some may have been signed out since
    for table, column in (("phones", "phone"), ("audit", "entry")):
        connection.execute(
            "SELECT setval(sequence, nextval(sequence) + %s)"
            " FROM pg_get_serial_sequence(%s, %s) AS sequence",
            (_SKIPPED, table, column),
        )
