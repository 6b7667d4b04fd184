"""Read from a server's database; another process can import it."""

from __future__ import annotations

from collections.abc import Callable

from earshot_server.records import PhaseRecord
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.postgres import PostgresPhaseStore

ONE = b"one phase, 16 by"
MEBIBYTE = 2**20


def record(database: Database, phase: bytes) -> PhaseRecord:
    """Return a phase as the archive has it."""
    found = Archive(database).phase(phase)
    assert found is not None
    return found


def left(database: Database) -> float:
    """Return the seconds until the only lease ends."""
    return float(database.query("SELECT expires - seconds_now() FROM leases")[0][0])


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
