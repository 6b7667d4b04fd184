"""Enrolment of phones in the registry before a phase begins."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import closing

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.errors import InvalidInputError
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry


def enrol(url: str, keys: Sequence[bytes]) -> list[str]:
    """Enrol phones directly in the database, in one transaction, under an invitation of their own.

    This bypasses nothing of the API but the request: whoever can do it owns the database.

    Args:
        url: URL of the database, which is migrated.
        keys: Private keys, 32 bytes each.

    Returns:
        Names of the phones, in order.
    """
    if not keys:
        return []
    invitation = secrets.token_bytes(16)
    public = [
        Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw() for key in keys
    ]
    if len(set(public)) < len(public):
        raise InvalidInputError("two phones have the same key; give each phone a key of its own")
    with closing(Database(url, pool_size=1)) as database, database.transaction():
        registry = Registry(database)
        return [str(registry.enrol(key, invitation, len(public))) for key in public]
