"""Privileges of the SQL roles of the web processes and of the driver.

Neither may change the schema or privileges. The web processes, which are exposed, cannot change a
step, a result or an entry of the audit log, nor read snapshots; the driver cannot read keys of
phones, operators, or the audit log. Locking a row (`FOR SHARE`, `FOR UPDATE`) requires the
privilege to update one of its columns; for this, an insignificant column is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import LiteralString

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from earshot_protocol.errors import InvalidInputError
from earshot_server.store.database import SCHEMA_LOCK, Connection, Database, parse

Privileges = Mapping[str, LiteralString]
"""Privileges of a role by table; it has none on other tables."""

WEB: Privileges = {
    "schema_version": "SELECT",
    "readiness": "SELECT, INSERT, UPDATE",
    "phones": "SELECT, INSERT, DELETE, UPDATE (enrolled)",  # without it no row can be locked
    "invitations": "SELECT, INSERT, UPDATE (used)",
    "invitation_codes": "SELECT, INSERT, UPDATE (revoked)",
    "gatherings": "SELECT, INSERT, UPDATE (joined, ended, failure)",
    "members": "SELECT, INSERT, DELETE, UPDATE (index, refused)",
    "refusals": "SELECT, INSERT, UPDATE (phones)",
    "phases": "SELECT, UPDATE (wait)",
    "steps": "SELECT",
    "tasks": "SELECT, DELETE",
    "answers": "SELECT, INSERT, DELETE, UPDATE (answer)",
    "troubles": "SELECT",
    "errands": "SELECT",
    "drivers": "SELECT",
    "tallies": "SELECT",
    "campaigns": "SELECT, INSERT, UPDATE (state, reason, until)",
    "campaign_phases": "SELECT",
    "missed_phases": "SELECT",
    "operators": "SELECT, INSERT, DELETE, UPDATE (token_hash)",
    "sessions": "SELECT, INSERT, DELETE",
    "audit": "SELECT, INSERT",
}
DRIVER: Privileges = {
    "schema_version": "SELECT",
    "phones": "SELECT (cohort)",
    "gatherings": "SELECT, INSERT, UPDATE (ended, failure)",
    "members": "SELECT (phase), DELETE",
    "phases": "SELECT, INSERT, UPDATE",
    "snapshots": "SELECT, INSERT, UPDATE, DELETE",
    "steps": "SELECT, INSERT, UPDATE (closed, answered)",
    "tasks": "SELECT, INSERT, DELETE",
    "answers": "SELECT, INSERT, DELETE, UPDATE (answer)",
    "leases": "SELECT, INSERT, UPDATE, DELETE",
    "troubles": "SELECT, INSERT, UPDATE, DELETE",
    "errands": "SELECT, INSERT, UPDATE, DELETE",
    "drivers": "SELECT, INSERT, UPDATE, DELETE",
    "tallies": "SELECT, INSERT, UPDATE",
    "campaigns": "SELECT",
    "campaign_phases": "SELECT, INSERT",
    "missed_phases": "SELECT, INSERT",
}


def separate(owner: Database, web: str, driver: str) -> None:
    """Grant each of two roles the privileges that its processes need, and revoke all others.

    A missing role is created with the password of its URL, if the owner may create roles.

    Args:
        owner: Migrated database, as the role that owns its tables.
        web: URL of the database for the web processes, with a role.
        driver: URL of the database for the driver, with a role.

    Raises:
        InvalidInputError: A URL names no role, or one with all rights of the tables' owner, or both
            name the same role; the message says which.
        DatabaseUnavailableError: The owner may not do this, or the database cannot be reached.
    """
    roles = {"web": _role(web), "driver": _role(driver)}
    if roles["web"][0] == roles["driver"][0]:
        raise InvalidInputError(
            f"web and driver have the same role, {roles['web'][0]}: give each its own"
        )
    with owner.transaction() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
        for process, privileges in (("web", WEB), ("driver", DRIVER)):
            name, password = roles[process]
            _make(connection, name, password)
            _refuse_mighty(connection, process, name)
            _grant(connection, name, privileges)


def _role(url: str) -> tuple[str, str]:
    """Return the name and password of the role."""
    conninfo, password = parse(url)
    name = conninfo_to_dict(conninfo).get("user")
    if not name:
        raise InvalidInputError("a URL for web or driver names no role: postgresql://role:…@…")
    return str(name), password


def _make(connection: Connection, name: str, password: str) -> None:
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).rowcount:
        return
    # The server and its logs see only a verifier, not the password.
    verifier = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode()
    secret = sql.SQL(" PASSWORD {}").format(verifier) if password else sql.SQL("")
    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)) + secret)


def _refuse_mighty(connection: Connection, process: str, name: str) -> None:
    rows = connection.execute(
        "SELECT bool_or(pg_has_role(%s, tableowner, 'MEMBER')) FROM pg_tables"
        " WHERE tablename = ANY(%s) AND schemaname = current_schema()",
        (name, list(TABLES)),
    )
    if rows.fetchall() != [(False,)]:
        raise InvalidInputError(
            f"the {process}'s role {name} may do whatever the tables' owner may: give it another"
        )


def _grant(connection: Connection, name: str, privileges: Privileges) -> None:
    role = sql.Identifier(name)
    for table in TABLES:
        whose = sql.Identifier(table), role
        connection.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(*whose))
        if table in privileges:
            granted = sql.SQL(privileges[table])
            connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(granted, *whose))
    # Up to PostgreSQL 14, every role may create tables.
    connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")


TABLES = (*dict.fromkeys((*WEB, *DRIVER)), "credentials")
"""All tables, each after the tables that it references."""
