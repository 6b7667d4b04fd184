"""Sessions of browsers in which an operator has signed in."""

from __future__ import annotations

import hashlib
import secrets

from earshot_server.store.database import Database

SECRET_BYTES = 32
HOURS = 8
"""Hours after which an operator has to sign in again, active or not."""
_PURPOSE = b"earshot session\x00"


class Sessions:
    """Sessions in a migrated database, for any number of threads and processes.

    Only the browser has a session's secret: the database stores its SHA-256, and the hash of the
    token with which the operator signed in. Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, token_hash: bytes) -> str:
        """Begin a session, delete expired ones, and return the new one's secret.

        Args:
            token_hash: Hash of the operator's token (`operators.hash_of`).
        """
        secret = secrets.token_urlsafe(SECRET_BYTES)
        self._database.query("DELETE FROM sessions WHERE ends <= seconds_now()")
        self._database.query(
            "INSERT INTO sessions (secret_hash, token_hash, ends)"
            " VALUES (%s, %s, seconds_now() + %s)",
            (_hash(secret), token_hash, HOURS * 3600.0),
        )
        return secret

    def token_hash(self, secret: str) -> bytes | None:
        """Return the hash of the token that began a session; None if it is over or unknown."""
        # The time of the search may leak bits of a hash, which reveal nothing about the secret.
        rows = self._database.query(
            "SELECT token_hash FROM sessions WHERE secret_hash = %s AND ends > seconds_now()",
            (_hash(secret),),
        )
        return bytes(rows[0][0]) if rows else None

    def end(self, secret: str) -> None:
        """End a session, if there is one with this secret."""
        self._database.query("DELETE FROM sessions WHERE secret_hash = %s", (_hash(secret),))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(_PURPOSE + secret.encode("utf-8", "replace")).digest()
