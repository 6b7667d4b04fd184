"""Reads large answers of a step; where a process of its own can import it."""

from __future__ import annotations

from collections.abc import Callable

from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore

ONE = b"one phase, 16 by"
MEBIBYTE = 2**20


def reading(url: str) -> Callable[[], object]:
    """All answers, as whoever closes a step reads them."""
    database = Database(url)
    store = PostgresPhaseStore(database)
    assert len(store.phases()) == 1

    def read() -> None:
        for _, answer in store.answers(ONE):
            assert len(answer) == MEBIBYTE
        database.close()

    return read
