"""Checks of an external database's version, encoding and settings.

A role or a database may have defaults for the settings of its sessions. We do not change them, as a
pooler may give every transaction another session; a database with unsuitable ones is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from earshot_protocol.errors import LocalError
from earshot_server.store.database import Database

_OLDEST = 14
_MINUTES = 10
_LIMITS = ("statement_timeout", "transaction_timeout", "idle_in_transaction_session_timeout")
_SETTINGS = (
    *("server_version_num", "server_encoding", "synchronous_commit"),
    *("default_transaction_isolation", *_LIMITS),
)


class UnsuitableDatabaseError(LocalError):
    """The database would lose data or fail later; the message says why, and what to change.

    Its version is too old, its encoding is not UTF-8, or its settings are unsuitable.
    """


def refuse_unsuitable(database: Database) -> None:
    """Check that a database would not fail later or lose data.

    Args:
        database: Database, as the role that is to use it; migrated or not.

    Raises:
        UnsuitableDatabaseError: It is unsuitable.
        DatabaseUnavailableError: It cannot be reached.
    """
    settings: dict[str, str] = dict(
        database.query(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(_SETTINGS),)
        )
    )
    ((role, schema),) = database.query("SELECT quote_ident(current_user), current_schema()::text")
    found = list(_reasons(settings, f"ALTER ROLE {role} SET", schema))
    if found:
        raise UnsuitableDatabaseError(f"the database does not suit: {'; '.join(found)}")


def _reasons(settings: Mapping[str, str], set_: str, schema: str | None) -> Iterator[str]:
    version = int(settings["server_version_num"]) // 10_000
    if version < _OLDEST:
        yield f"it is of PostgreSQL {version}, and {_OLDEST} or later is needed"
    encoding = settings["server_encoding"]
    if encoding != "UTF8":
        yield (
            f"its encoding is {encoding}, and names in any language need UTF8: make another by "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    if schema is None:
        yield f"there is no schema in the role's search_path: {set_} search_path = public"
    if settings["synchronous_commit"] == "off":
        yield (
            "synchronous_commit is off, so that a crash loses acknowledged answers of phones: "
            f"{set_} synchronous_commit = on"
        )
    isolation = settings["default_transaction_isolation"]
    if isolation != "read committed":
        yield (
            f"default_transaction_isolation is {isolation}, with which concurrent statements fail: "
            f"{set_} default_transaction_isolation = 'read committed'"
        )
    for name in _LIMITS:
        milliseconds = int(settings.get(name, "0"))  # one of them is new in PostgreSQL 17
        if 0 < milliseconds < _MINUTES * 60_000:
            yield (
                f"{name} is {milliseconds / 1000:g} s, and a step of a large phase takes minutes: "
                f"{set_} {name} = 0, or '{_MINUTES}min' and more"
            )
