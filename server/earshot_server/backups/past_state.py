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
from earshot_server.phases.set_back import begin_anew, end_all
from earshot_server.store.database import Database
from earshot_server.store.operators import FIRST, Accounts


def come_back(database: Database, manifest: Manifest) -> int:
    """Make a database that was read from a backup fit to be served, in one transaction.

    Args:
        database: Migrated database, as its owner.
        manifest: Statement of the backup.

    Returns:
        Number of phases that were under way, and are over now.
    """
    moment = datetime.fromtimestamp(manifest.created, UTC)
    when = f"{moment.day} {moment:%b %Y, %H:%M} UTC"
    with database.transaction() as connection:
        ended = end_all(database, f"backup of {when}")
        begin_anew(connection)
        Accounts(database).record(
            FIRST,
            "restore server",
            detail=f"backup of {when}, by version {manifest.software}; phases that it ended: "
            f"{ended}; what was done, spent or erased since is not known here",
        )
    return ended
