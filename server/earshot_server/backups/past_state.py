"""A past state that comes back: what was under way in it is over, since it may have gone on.

A database is copied, phones are not. After the backup they may have answered, and a sum may have
been opened and published. Were the copy to go on with that phase, phones could answer one sum to
two servers, so that shares of both open a secret, and noise would be drawn twice for one release.
So nothing that was under way goes on: it ends by name, and the next phase has keys of its own
(docs/decisions/0051-a-restored-server-starts-anew.md).
"""

from __future__ import annotations

from datetime import UTC, datetime

from earshot_server.backups.file import Manifest
from earshot_server.phases.ending import end_unread
from earshot_server.records import RESTORED_REASON
from earshot_server.store.database import Database
from earshot_server.store.operators import FIRST, Accounts
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

_SKIPPED = 1_000_000
"""Numbers that may have been given out after the backup, and that nobody gets again."""


def come_back(database: Database, manifest: Manifest) -> int:
    """Make a database that was read from a backup fit to be served, in one transaction.

    Args:
        database: Migrated database, as its owner.
        manifest: Statement of the backup.

    Returns:
        Number of phases that were under way, and are over now.
    """
    registry, store = Registry(database), PostgresPhaseStore(database)
    moment = datetime.fromtimestamp(manifest.created, UTC)
    when = f"{moment.day} {moment:%b %Y, %H:%M} UTC"
    reason = (
        f"{RESTORED_REASON} {when}: it may have gone on since, and its sums may have been spent; "
        "start a new phase"
    )
    with database.transaction() as connection:
        gathering = registry.gatherings()
        for each in gathering:
            registry.end_gathering(each.phase, reason)
        stopped, running = dict(registry.stopped()), store.running()
        for phase in running:
            end_unread(store, phase, stopped.get(phase, reason))
        connection.execute(
            "UPDATE phases SET snapshot = NULL WHERE phase = ANY(%s)", (list(running),)
        )
        connection.execute("DELETE FROM sessions")  # some may have been signed out since
        for table, column in (("phones", "phone"), ("audit", "entry")):
            connection.execute(
                "SELECT setval(sequence, nextval(sequence) + %s)"
                " FROM pg_get_serial_sequence(%s, %s) AS sequence",
                (_SKIPPED, table, column),
            )
        ended = len(gathering) + len(running) - len(stopped)
        Accounts(database).record(
            FIRST,
            "restore server",
            detail=f"backup of {when}, by version {manifest.software}; phases that it ended: "
            f"{ended}; what was done, spent or erased since is not known here",
        )
    return ended
