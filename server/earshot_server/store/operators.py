"""Accounts of the server's operators, and the audit log."""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
from typing import NamedTuple

from psycopg import errors

from earshot_protocol.errors import RemoteError
from earshot_server.records import AuditEntry
from earshot_server.store.database import Database

FIRST = "operator"
"""Name of the operator with the token in the data folder: an administrator, not in any table."""
PHONE = "phone"
"""Name in the audit log for a phone that left by itself."""
TOKEN_BYTES = 32

_RESERVED = (FIRST, PHONE)
_PURPOSE = b"earshot operator token\x00"


class Role(enum.Enum):
    """Rights of an operator; each role includes the ones before."""

    VIEWER = "viewer"
    """Read."""
    OPERATOR = "operator"
    """Invite phones, start and stop phases."""
    ADMIN = "admin"
    """Manage operators, read the audit log, erase phones."""

    def includes(self, other: Role) -> bool:
        """Return whether this role permits all that the other one does."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class UnknownOperatorError(RemoteError):
    """No operator has this name."""


class OperatorNameError(RemoteError):
    """The name is taken or reserved."""


class TokenReplacedError(RemoteError):
    """The token that was to be replaced is not the operator's any more."""


class Operator(NamedTuple):
    """A person who may operate the server.

    Attributes:
        name: Name in the audit log.
        role: Rights of the operator.
    """

    name: str
    role: Role


class Accounts:
    """Operators and the audit log, in a migrated database, for any number of threads.

    Tokens are 32 random bytes, stored as SHA-256: they cannot be guessed, so no slow hash is
    needed. Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, role: Role) -> str:
        """Add an operator.

        Returns:
            The token, which is not stored.

        Raises:
            OperatorNameError: The name is taken or reserved.
        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        if name in _RESERVED:
            raise OperatorNameError(f"'{name}' is the server's own name: choose another one")
        try:
            self._database.query(
                "INSERT INTO operators (name, role, token_hash) VALUES (%s, %s, %s)",
                (name, role.value, hash_of(token)),
            )
        except errors.UniqueViolation as error:
            raise OperatorNameError(
                f"there is an operator '{name}': choose another name, or remove that one first"
            ) from error
        return token

    def remove(self, name: str) -> None:
        """Remove an operator, which invalidates the token.

        Raises:
            UnknownOperatorError: There is no such operator.
            OperatorNameError: The operator is the one whose token is in the data folder.
        """
        self._refuse_first(name)
        rows = self._database.query("DELETE FROM operators WHERE name = %s RETURNING true", (name,))
        _refuse_unknown(rows, name)

    def mark(self, name: str) -> str:
        """Return a mark of an operator's present token: a hash of the hash that is stored.

        Within a transaction, the token stays the same until its end.

        Raises:
            UnknownOperatorError: There is no such operator.
        """
        rows = self._database.query(
            "SELECT token_hash FROM operators WHERE name = %s FOR UPDATE", (name,)
        )
        _refuse_unknown(rows, name)
        return hashlib.sha256(rows[0][0]).hexdigest()

    def rotate(self, name: str, marked: str | None = None) -> str:
        """Replace an operator's token, and return the new one; call this in a transaction.

        Args:
            name: Name of the operator.
            marked: Mark of the token that is to be replaced, so that a form that is sent twice
                replaces one; None for any.

        Raises:
            UnknownOperatorError: There is no such operator.
            OperatorNameError: The operator is the one whose token is in the data folder.
            TokenReplacedError: The operator's token has another mark.
        """
        self._refuse_first(name)
        mark = self.mark(name)
        if marked not in (mark, None):
            raise TokenReplacedError(f"the token of '{name}' was replaced already")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._database.query(
            "UPDATE operators SET token_hash = %s WHERE name = %s RETURNING true",
            (hash_of(token), name),
        )
        return token

    def all(self) -> tuple[Operator, ...]:
        """Return all operators by name, after the first one."""
        rows = self._database.query("SELECT name, role FROM operators ORDER BY name")
        return (Operator(FIRST, Role.ADMIN), *(Operator(name, Role(role)) for name, role in rows))

    def holder(self, given: bytes) -> Operator | None:
        """Return the operator whose token has this hash; None if there is none."""
        rows = self._database.query(
            "SELECT name, role, token_hash FROM operators WHERE token_hash = %s", (given,)
        )
        # The time of the search may leak bits of a hash, which reveal nothing about the token.
        if not rows or not hmac.compare_digest(rows[0][2], given):
            return None
        return Operator(rows[0][0], Role(rows[0][1]))

    def _refuse_first(self, name: str) -> None:
        if name in _RESERVED:
            raise OperatorNameError(
                f"'{name}' is not an operator in the database: to replace the token in the data "
                "folder, delete its file and restart the server"
            )

    # ------------------------------------------------------------------------------- audit

    def record(self, operator: str, action: str, subject: str = "", detail: str = "") -> None:
        """Add an entry to the audit log; call this in the transaction of the action.

        Args:
            operator: Name of the operator.
            action: Action, such as `start phase`.
            subject: Identifier or name that the action concerned; never a secret.
            detail: Further details.
        """
        self._database.query(
            "INSERT INTO audit (operator, action, subject, detail) VALUES (%s, %s, %s, %s)",
            (operator, action, subject, detail),
        )

    def audit(self, before: int | None = None, limit: int = 500) -> tuple[AuditEntry, ...]:
        """Return the newest entries of the audit log, newest first.

        Args:
            before: Number below which entries are returned; None for all.
            limit: Most entries that are returned.
        """
        rows = self._database.query(
            "SELECT entry, at, operator, action, subject, detail FROM audit"
            " WHERE %(before)s::bigint IS NULL OR entry < %(before)s"
            " ORDER BY entry DESC LIMIT %(limit)s",
            {"before": before, "limit": limit},
        )
        return tuple(AuditEntry(*row) for row in rows)


def hash_of(token: str) -> bytes:
    """Return the hash under which a token is stored, 32 bytes."""
    return hashlib.sha256(_PURPOSE + token.encode("utf-8", "replace")).digest()


def _refuse_unknown(rows: list[tuple[object, ...]], name: str) -> None:
    if not rows:
        raise UnknownOperatorError(f"there is no operator '{name}'")
