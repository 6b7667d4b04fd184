"""Which credentials a database is served with, so that no host serves it with others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from earshot_protocol.errors import LocalError
from earshot_server.store.database import Database


class OtherCredentialsError(LocalError):
    """The credentials of this data folder are not those with which the database is served."""


def claim(
    database: Database, folder: Path, fingerprints: Mapping[str, bytes], *, renew: bool = False
) -> None:
    """Serve a database with these credentials; whoever comes first decides which they are.

    Args:
        database: migrated.
        folder: of the credentials.
        fingerprints: of each file in it, by its name; 32 bytes.
        renew: these are the database's from now on, whatever they were.

    Raises:
        OtherCredentialsError: it is served with others; says which file to copy.
        DatabaseUnavailableError: the database cannot be reached or written.
    """
    with database.transaction() as connection:
        for file, fingerprint in fingerprints.items():
            connection.execute(
                "INSERT INTO credentials (file, fingerprint) VALUES (%s, %s)"
                " ON CONFLICT (file) DO UPDATE SET fingerprint = excluded.fingerprint WHERE %s",
                (file, fingerprint, renew),
            )
        kept = dict(connection.execute("SELECT file, fingerprint FROM credentials").fetchall())
    others = [file for file in fingerprints if bytes(kept[file]) != fingerprints[file]]
    if others:
        raise OtherCredentialsError(
            f"this database is served with another {' and another '.join(others)} than "
            f"{folder} holds: copy {' and '.join(others)} from the data folder of the host that "
            "serves it; if they were renewed on purpose, start once with --renew-credentials"
        )
