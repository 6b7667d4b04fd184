"""End phases in a database that was set back, as they may have continued since."""

from __future__ import annotations

from pathlib import Path

from earshot_server.phases.ending import end_unread
from earshot_server.records import RESTORED, RESTORED_REASON
from earshot_server.store.campaigns import CampaignRows
from earshot_server.store.database import Connection, Database
from earshot_server.store.operators import FIRST, Accounts
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

SET_BACK = "set-back"
"""File of a data folder whose database was set back by other means than `earshot restore`."""
_SKIPPED = 1_000_000
"""Numbers to skip, as they may have been given out after the backup."""


def end_if_set_back(database: Database, folder: Path) -> int:
    """End phases under way if the operator has marked the database as set back.

    Copies of disks and continuous archiving bypass `earshot restore`, and a database does not show
    that it is an old one. So the operator puts the file `SET_BACK` into the data folder before the
    start; it is removed once all phases have ended.

    Args:
        database: Migrated database, as its owner, which is not served yet.
        folder: Data folder.

    Returns:
        Number of phases that were under way and have been ended.
    """
    mark = folder / SET_BACK
    if not mark.exists():
        return 0
    with database.transaction() as connection:
        ended = end_all(database, "copy of its database")
        begin_anew(connection)
        Accounts(database).record(
            FIRST,
            RESTORED,
            detail=f"set back by other means than a backup; phases that it ended: {ended}; what "
            "was done, spent or erased since is not known here",
        )
    mark.unlink(missing_ok=True)
    return ended


def end_all(database: Database, copy: str) -> int:
    """End every phase that gathers or runs, and pause campaigns.

    Args:
        database: Migrated database, as its owner, in a transaction.
        copy: Name of what the database was restored from.

    Returns:
        Number of phases that were not already being stopped.
    """
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
    CampaignRows(database).restore(f"{RESTORED_REASON} {copy}")
    return len(gathering) + len(running) - len(stopped)


def begin_anew(connection: Connection) -> None:
    """End all sessions, and skip numbers that may have been given out since the backup."""
    connection.execute("DELETE FROM sessions")  # operators may have signed out since
    for table, column in (("phones", "phone"), ("audit", "entry")):
        connection.execute(
            "SELECT setval(sequence, nextval(sequence) + %s)"
            " FROM pg_get_serial_sequence(%s, %s) AS sequence",
            (_SKIPPED, table, column),
        )
