"""Fingerprints of a database's credentials, so that all hosts serve it with the same."""

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
    """Record the fingerprints of a database's credentials, or compare them with the recorded ones.

    Args:
        database: Migrated database.
        folder: Folder of the credentials.
        fingerprints: Fingerprint of each file in it, 32 bytes, by its name.
        renew: Whether to replace the recorded ones.

    Raises:
        OtherCredentialsError: Others are recorded; the message says which files to copy.
        DatabaseUnavailableError: The database cannot be reached or written.
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
